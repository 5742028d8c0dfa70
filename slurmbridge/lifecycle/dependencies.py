"""When a job's dependencies are satisfied, and when they never can be.

Source: sbatch(1) --dependency. Terms refer to parents by raw or array id; the caller looks the parents up.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from slurmbridge.model.job import Job
from slurmbridge.model.request import DependencyTerm
from slurmbridge.model.states import JobFlag, JobState, Reason

Parents = Callable[[int], Sequence[Job]]
"""Raw or array id -> the job, or the array's record and all its tasks; empty when the controller has forgotten it."""


class TermState(enum.Enum):
    WAITING = "waiting"
    DONE = "done"
    NEVER = "never"


def term_state(term: DependencyTerm, job: Job, parents: Sequence[Job], now: float) -> TermState:
    """Of one term that names a job. A parent that is no longer known counts as ended well (Slurm does so)."""
    if term.kind == "aftercorr" and any(_corresponds(job, p) for p in parents):
        return TermState.WAITING  # the tasks are decided one by one: see `decided_tasks`
    if term.kind == "aftercorr" and job.array_task_id is not None:
        parents = [p for p in parents if p.array_task_id == job.array_task_id] or parents
    elif term.array_task is not None:
        parents = [p for p in parents if p.array_task_id == term.array_task or _holds(p, term.array_task)]
    if not parents:
        return TermState.DONE
    if term.kind == "after":
        started = [_began(p) for p in parents]
        if any(at is None for at in started):
            return TermState.WAITING
        latest = max(at for at in started if at is not None)
        return TermState.DONE if now >= latest + 60 * term.minutes else TermState.WAITING
    if any(not _is_over(p) for p in parents):
        return TermState.WAITING
    last = max(p.end_time or 0.0 for p in parents)
    if term.kind in ("afterok", "aftercorr"):
        if not all(p.state is JobState.COMPLETED for p in parents):
            return TermState.NEVER
    elif term.kind == "afternotok" and all(p.state is JobState.COMPLETED for p in parents):
        return TermState.NEVER
    return TermState.DONE if now >= last + 60 * term.minutes else TermState.WAITING


def decided_tasks(record: Job, parents: Parents) -> list[int]:
    """Tasks that an array record holds and whose own task of an `aftercorr` parent has ended: they must split off."""
    terms = record.spec.dependency.terms if record.spec.dependency is not None and record.tasks else ()
    found = {
        parent.array_task_id
        for term in terms
        if term.kind == "aftercorr"
        for parent in parents(term.job_id)
        if parent.array_task_id is not None and _corresponds(record, parent) and _is_over(parent)
    }
    return sorted(found)


def _corresponds(record: Job, parent: Job) -> bool:
    return bool(record.tasks) and parent.array_task_id is not None and _holds(record, parent.array_task_id)


def evaluate(job: Job, parents: Parents, twins: Sequence[Job], now: float) -> Job:
    """The job with `dep_done`, `dep_failed` brought up to date. twins: unfinished jobs of its user and name."""
    dependency = job.spec.dependency
    if dependency is None:
        return job
    done, failed = set(job.dep_done), set()
    for position, term in enumerate(dependency.terms):
        if position in done:
            continue
        if term.kind == "singleton":
            waits = bool(job.held_by) or any(_is_before(t, job) for t in twins)  # held: not looked at
            state = TermState.WAITING if waits else TermState.DONE
        else:
            state = term_state(term, job, parents(term.job_id), now)
        if state is TermState.DONE:
            done.add(position)
        elif state is TermState.NEVER:
            failed.add(position)
    if done == job.dep_done and failed == job.dep_failed:
        return job
    return replace(job, dep_done=frozenset(done), dep_failed=frozenset(failed))


def is_satisfied(job: Job) -> bool:
    """All terms, or one of them when joined by `?`."""
    dependency = job.spec.dependency
    if dependency is None or not dependency.terms:
        return True
    return bool(job.dep_done) if dependency.any_of else len(job.dep_done) == len(dependency.terms)


def is_impossible(job: Job) -> bool:
    """Whether it can never be satisfied."""
    dependency = job.spec.dependency
    if dependency is None or not job.dep_failed or is_satisfied(job):
        return False
    return len(job.dep_failed) == len(dependency.terms) if dependency.any_of else True


def waiting_reason(job: Job) -> str:
    return Reason.DEPENDENCY_NEVER if is_impossible(job) else Reason.DEPENDENCY


def due_at(job: Job, parents: Parents) -> float | None:
    """When a term with minutes (`after:ID+5`) will become true by time alone; None when it does not wait for time."""
    due: list[float] = []
    for position, term in enumerate(job.spec.dependency.terms if job.spec.dependency else ()):
        if position in job.dep_done or not term.minutes:
            continue
        times = [(_began(p) if term.kind == "after" else p.end_time) for p in parents(term.job_id)]
        known = [t for t in times if t is not None]
        if known and len(known) == len(times):
            due.append(max(known) + 60 * term.minutes)
    return min(due, default=None)


def _holds(job: Job, task: int) -> bool:
    return any(first <= task <= last and (task - first) % step == 0 for first, last, step in job.tasks)


def _began(job: Job) -> float | None:
    """When it started or was cancelled; None while it has done neither."""
    if job.is_pending:
        return None
    return job.start_time if job.start_time is not None else job.end_time


def _is_over(job: Job) -> bool:
    return job.is_finished and JobFlag.COMPLETING not in job.flags


def _is_before(other: Job, job: Job) -> bool:
    """Slurm lets one job of a name run at a time, the oldest first. Tasks of one array count as one."""
    if other.job_id == job.job_id or _is_over(other):
        return False
    if job.array_job_id and other.array_job_id == job.array_job_id:
        return False
    return not other.is_pending or other.job_id < job.job_id
