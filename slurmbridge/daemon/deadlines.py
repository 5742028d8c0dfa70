"""Pending jobs that can no longer end before their --deadline are ended as DEADLINE (sbatch(1) --deadline)."""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.daemon.core import Core
from slurmbridge.lifecycle.starts import effective_limit
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobState, Reason


def is_missed(job: Job, limit_minutes: int | None, now: float) -> bool:
    """Whether even a start right now would end too late. limit_minutes: of the run, None without limit."""
    deadline = job.spec.deadline
    if deadline is None or not job.is_pending:
        return False
    least = job.spec.time_min if job.spec.time_min is not None else limit_minutes
    return now + 60 * (least or 0) > deadline


def end_missed(core: Core) -> None:
    """Look at all pending jobs with a deadline once."""
    now = core.clock()
    missed = []
    for job in core.memory.jobs():
        if job.spec.deadline is None or not job.is_pending:
            continue
        partition = core.memory.partition(job.spec.partitions[0]) if job.spec.partitions else None
        if is_missed(job, effective_limit(job, partition), now):
            missed.append(replace(job, state=JobState.DEADLINE, reason=Reason.DEADLINE, start_time=now, end_time=now))
    if missed:
        core.update(missed)
