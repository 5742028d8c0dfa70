"""What becomes of a run that is to give way to another job: it is warned, ended or suspended, and how it goes on.

Follows slurm.conf(5) PreemptMode and GraceTime of 26.05: during its grace time a run goes on with an earlier end, its
tasks have been sent SIGCONT and SIGTERM (or the job's own --signal), and whatever ends it then counts as the
preemption. Each function takes the record and gives the changed one and what the runtime must do; None: it is not, or
no longer, to be touched. Asking twice changes nothing the second time.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from slurmbridge.lifecycle.control import Deliver, Kill, Suspend
from slurmbridge.lifecycle.ends import Death
from slurmbridge.lifecycle.suspension import going_on, stopped
from slurmbridge.model.job import Evicted, Job
from slurmbridge.model.plan import Eviction
from slurmbridge.model.states import JobFlag, JobState, Reason

Effect = Kill | Deliver | Suspend


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The record to store, then what the runtime must do, in this order."""

    job: Job
    effects: tuple[Effect, ...] = ()


def begin(job: Job, eviction: Eviction, now: float, *, own_signal: bool = False) -> Begun | None:
    """The planner chose this run. own_signal: PreemptParameters=send_user_signal."""
    if not _is_live(job) or eviction.restarts not in (None, job.restarts) or in_grace(job):
        return None
    mode = eviction.mode
    if mode == "SUSPEND":
        return _suspended(job, eviction, now)
    if mode == "REQUEUE" and not job.may_requeue:
        mode = "CANCEL"
    mark = Evicted(
        mode=mode,
        for_job=eviction.for_job,
        reason=eviction.reason or "preempt",
        until=now + eviction.grace_s,
        moved=eviction.moved and mode == "REQUEUE",
    )
    marked = replace(job, preempt_time=now, evicted=mark)
    warnings = warning(job, own_signal=own_signal)
    if eviction.grace_s > 0 and job.state is JobState.RUNNING:
        end = mark.until if job.time_limit_end is None else min(job.time_limit_end, mark.until)
        return Begun(job=replace(marked, time_limit_end=end), effects=warnings)
    ended = end_grace(marked, now)
    own = warnings if own_signal and job.spec.signal is not None else ()
    return None if ended is None else Begun(job=ended.job, effects=(*own, *ended.effects))


def _suspended(job: Job, eviction: Eviction, now: float) -> Begun | None:
    if job.state is not JobState.RUNNING:
        return None
    mark = Evicted(mode="SUSPEND", for_job=eviction.for_job, reason=eviction.reason or "preempt")
    changed = replace(stopped(job, now), preempt_time=now, evicted=mark)
    return Begun(job=changed, effects=(Suspend(),))


def warning(job: Job, *, own_signal: bool) -> tuple[Effect, ...]:
    """What tells a run that its end is near."""
    chosen = job.spec.signal
    if own_signal and chosen is not None:
        last = Deliver(signal=chosen.number, scope="batch" if chosen.batch_only else "")
    else:
        last = Deliver(signal=signals.SIGTERM.value, scope="")
    return Deliver(signal=signals.SIGCONT.value, scope=""), last


def end_grace(job: Job, now: float) -> Begun | None:
    """The grace time is over: end it."""
    if not _is_live(job) or not in_grace(job):
        return None
    assert job.evicted is not None
    changed = replace(
        job,
        state=JobState.PREEMPTED if job.evicted.mode == "CANCEL" else job.state,
        flags=job.flags | {JobFlag.COMPLETING},
        kill_reason=Death.PREEMPT.value,
        end_time=now,
        reason=Reason.NONE,
    )
    return Begun(job=changed, effects=(Kill(why=Death.PREEMPT.value),))


def go_on(job: Job, now: float) -> Begun | None:
    """The job it gave its CPUs to is gone: let it run again."""
    if not job.gave_way:
        return None
    changed = replace(going_on(job, now), evicted=None)
    return Begun(job=changed, effects=(Suspend(resume=True),))


def in_grace(job: Job) -> bool:
    """Chosen to end, and not yet being ended."""
    return job.evicted is not None and job.evicted.mode != "SUSPEND" and _is_live(job)


def _is_live(job: Job) -> bool:
    return (
        job.allocation is not None
        and job.state in (JobState.RUNNING, JobState.SUSPENDED)
        and JobFlag.COMPLETING not in job.flags
    )


def of_group(evictions: Sequence[Eviction], group: Sequence[Job]) -> tuple[Eviction, ...]:
    """One eviction for each component of a heterogeneous job: all go the same way.

    SUSPEND comes before REQUEUE before CANCEL; what one component cannot do, none does.
    """
    first = min(evictions, key=lambda each: ("SUSPEND", "REQUEUE", "CANCEL").index(each.mode))
    mode = first.mode
    if mode == "REQUEUE" and not all(job.may_requeue for job in group):
        mode = "CANCEL"
    own = {each.job_id: each for each in evictions}
    return tuple(
        replace(own.get(job.job_id, first), job_id=job.job_id, mode=mode, restarts=job.restarts)
        for job in group
        if not job.is_pending
    )
