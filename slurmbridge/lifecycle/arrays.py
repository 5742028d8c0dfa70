"""How an array record gives its tasks away.

The record stands for all tasks that have not started. A task splits off with a raw id of its own when it starts or is
changed by itself; the last one becomes the record, and keeps the array's id, as in Slurm.
"""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.model.job import Job

Runs = tuple[tuple[int, int, int], ...]


def split(record: Job, task: int, new_id: int, new_sluid: str = "") -> tuple[Job | None, Job]:
    """(the record without the task, the task as a job of its own). The record is None when this was the last task.

    `new_id` is used unless it was the last task. ValueError when the record does not hold the task.
    """
    left = without(record.tasks, task)
    if not left:
        return None, replace(record, tasks=(), array_task_id=task)
    job = replace(record, job_id=new_id, sluid=new_sluid or record.sluid, tasks=(), array_task_id=task)
    return replace(record, tasks=left), job


def without(runs: Runs, task: int) -> Runs:
    """The runs less one task; ValueError when it is in none of them."""
    for position, (first, last, step) in enumerate(runs):
        if first <= task <= last and (task - first) % step == 0:
            before = ((first, task - step, step),) if task > first else ()
            after = ((task + step, last, step),) if task < last else ()
            return runs[:position] + before + after + runs[position + 1 :]
    raise ValueError(f"no task {task}")


def contains(runs: Runs, task: int) -> bool:
    return any(first <= task <= last and (task - first) % step == 0 for first, last, step in runs)


def count(runs: Runs) -> int:
    return sum((last - first) // step + 1 for first, last, step in runs)
