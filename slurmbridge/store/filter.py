"""Which runs a `JobFilter` wants, and in which order they are shown (sacct's selection rules).

The rule for all stores: databases narrow the candidates by index, this decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from slurmbridge.commands.effects import JobFilter
from slurmbridge.model.job import Job
from slurmbridge.store.records import ended_at, partition_text

_FOREVER = float("inf")


def wants(wanted: JobFilter, job: Job) -> bool:
    """Whether everything that was given holds (duplicates aside: those are a matter of several runs)."""
    spec = job.spec
    return (
        (wanted.users is None or spec.uid in wanted.users)
        and (not wanted.accounts or spec.account in wanted.accounts)
        and (not wanted.qos or spec.qos in wanted.qos)
        and (not wanted.names or spec.name in wanted.names)
        and (not wanted.wckeys or spec.wckey in wanted.wckeys)
        and (not wanted.partitions or not set(wanted.partitions).isdisjoint(partition_text(job).split(",")))
        and (not wanted.nodes or _ran_on(job, wanted.nodes))
        and (not wanted.job_ids or any(_is_addressed(job, number, task) for number, task, _step in wanted.job_ids))
        and (_in_states(job, wanted) if wanted.states else _was_alive(job, wanted))
    )


def order(job: Job) -> tuple[int, int, int, int]:
    """Sort key: job id, arrays by task (what has not started by its first task), then restart."""
    task = job.array_task_id if job.array_task_id is not None else (job.tasks[0][0] if job.tasks else 0)
    return (job.array_job_id or job.job_id, task, job.job_id, job.restarts)


def last_runs(jobs: Iterable[Job]) -> list[Job]:
    """Of each job id only the run with the highest restart count."""
    last: dict[int, Job] = {}
    for job in jobs:
        seen = last.get(job.job_id)
        if seen is None or job.restarts > seen.restarts:
            last[job.job_id] = job
    return list(last.values())


def _ran_on(job: Job, nodes: tuple[str, ...]) -> bool:
    return job.allocation is not None and any(share.node in nodes for share in job.allocation.nodes)


def _is_addressed(job: Job, number: int, task: int | None) -> bool:
    """By its raw id, or as part of the array or heterogeneous job of that id."""
    if task is None:
        return number in (job.job_id, job.array_job_id, job.het_job_id)
    if number == job.het_job_id and job.array_task_id is None:
        return job.het_offset == task
    if number not in (job.array_job_id, job.job_id):
        return False
    if job.array_task_id is not None:
        return job.array_task_id == task
    return any(first <= task <= last and (task - first) % step == 0 for first, last, step in job.tasks)


def _was_alive(job: Job, wanted: JobFilter) -> bool:
    end = _FOREVER if wanted.end is None else wanted.end
    return job.submit_time <= end and (wanted.start is None or ended_at(job) >= wanted.start)


def _in_states(job: Job, wanted: JobFilter) -> bool:
    """With a window: pending or running at some moment of it, or ended in it; without: the state as it is."""
    names = {job.state.name} | {flag.name for flag in job.flags}
    if wanted.start is None:
        return not names.isdisjoint(wanted.states) and _was_alive(job, wanted)
    start, end, ended = wanted.start, _FOREVER if wanted.end is None else wanted.end, ended_at(job)
    started = job.start_time if job.start_time is not None and not job.is_pending else None
    for state in wanted.states:
        if state == "PENDING":
            matched = job.submit_time <= end and (started if started is not None else ended) >= start
        elif state in ("RUNNING", "SUSPENDED"):
            alive = job.state.name == state if not job.is_finished else state == "RUNNING"
            matched = alive and started is not None and started <= end and ended >= start
        else:
            matched = state in names and (start <= ended <= end if job.is_finished else _was_alive(job, wanted))
        if matched:
            return True
    return False
