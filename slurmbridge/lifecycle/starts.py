"""What a start makes of a pending job: the running record, checked against what the job still is.

The planner works on a snapshot; between its look and the commit a job may have been cancelled, held or changed, and
its places taken. `start` gives the record or None (then the next cycle decides again).
"""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.lifecycle.dependencies import is_satisfied
from slurmbridge.model.cluster import Partition
from slurmbridge.model.job import Allocation, Job, NodeShare, Step, StepId
from slurmbridge.model.states import JobState, Reason
from slurmbridge.model.tres import Tres
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


def start(
    job: Job, allocation: Allocation, partition: Partition | None, now: float, *, cut_to: int | None = None
) -> Job:
    """The record of the run from now on. `cut_to`: its time limit in minutes, where that is shortened to fit."""
    if cut_to is not None:
        job = replace(job, is_cut=True, whole_limit=job.spec.time_limit, spec=replace(job.spec, time_limit=cut_to))
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
        preempt_time=None,
        evicted=None,
        sched_nodes=(),
        exit_code=0,
        derived_exit_code=0,
        last_sched_eval=now,
    )


def batch_step(job: Job) -> Step | None:
    """The batch step of a run that has started, None when it has none: no script, or a further component."""
    if not job.spec.is_batch or job.allocation is None or job.het_offset:
        return None
    first = job.allocation.nodes[0]
    return Step(
        job_id=job.job_id,
        restarts=job.restarts,
        step_id=StepId.BATCH.value,
        name="batch",
        start_time=job.start_time or 0.0,
        nodes=(first.node,),
        num_tasks=1,
        cpus=first.cpus,
        tres=_tres_of(first, job.allocation),
    )


def _tres_of(share: NodeShare, allocation: Allocation) -> Tres:
    """What a batch script has: the job's share of its first node, of what the job's own sum names."""
    held = {"cpu": share.cpus, "mem": share.memory_mib, "node": 1}
    for device in share.devices:
        for name in ("gres/gpu", f"gres/gpu:{device.type}"):
            held[name] = held.get(name, 0) + device.milli
    names = ("cpu", "mem", *(name for name, _ in allocation.tres if name.startswith("gres/")), "node")
    return tuple((name, held[name]) for name in names if name in held)
