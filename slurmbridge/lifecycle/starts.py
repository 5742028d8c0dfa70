"""What a start makes of a pending job: the running record, checked against what the job still is.

The planner works on a snapshot; between its look and the commit a job may have been cancelled, held or changed, and
its places taken. `start` gives the record or None (then the next cycle decides again).
"""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.lifecycle.dependencies import is_satisfied
from slurmbridge.model.cluster import Partition
from slurmbridge.model.job import Allocation, Job
from slurmbridge.model.states import JobState, Reason
from slurmbridge.model.units import UNLIMITED


def may_start(job: Job, now: float) -> bool:
    """Pending, not held, eligible."""
    return (
        job.state is JobState.PENDING
        and job.priority != 0
        and not job.held_by
        and (job.spec.begin is None or job.spec.begin <= now or job.restarts > 0)
        and is_satisfied(job)
    )


def effective_limit(job: Job, partition: Partition | None) -> int | None:
    """Minutes the run may take, None without limit."""
    limit = job.spec.time_limit
    if limit is None and partition is not None:
        limit = partition.default_time if partition.default_time is not None else partition.max_time
    return None if limit is None or limit == UNLIMITED else limit


def start(job: Job, allocation: Allocation, partition: Partition | None, now: float) -> Job:
    """The record of the run from now on."""
    limit = effective_limit(job, partition)
    return replace(
        job,
        state=JobState.RUNNING,
        flags=frozenset(),
        reason=Reason.NONE,
        reason_text="",
        start_time=now,
        end_time=None,
        eligible_time=job.eligible_time if job.eligible_time is not None else now,
        accrue_time=job.accrue_time if job.accrue_time is not None else now,
        time_limit_end=None if limit is None else now + 60 * limit,
        allocation=allocation,
        batch_host=allocation.nodes[0].node if allocation.nodes else "",
        kill_reason="",
        exit_code=0,
        derived_exit_code=0,
        last_sched_eval=now,
    )
