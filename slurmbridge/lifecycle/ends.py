"""What becomes of a run whose processes are gone: its final state, or its next run.

Sources: sbatch(1) --requeue, scontrol(1) requeue, sacct(1) JOB STATE CODES and ExitCode.
"""

from __future__ import annotations

import enum
import signal as signals

import msgspec
from msgspec.structs import replace

from slurmbridge.lifecycle.table import Event, following
from slurmbridge.model.job import Job, Usage
from slurmbridge.model.states import JobFlag, JobState, Reason


class Death(enum.Enum):
    """Why the processes are gone; value: the words of a supervisor's report and of Job.kill_reason."""

    EXIT = "exit"
    CANCEL = "cancelled"
    TIME_LIMIT = "timeout"
    DEADLINE = "deadline"
    REQUEUE = "requeue"
    REQUEUE_HOLD = "requeue_hold"
    PREEMPT = "preempt"
    NODE_FAIL = "node_fail"
    LAUNCH = "launch"
    OUT_OF_MEMORY = "oom"


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """`ended`: the record of the run as history keeps it. `again`: the pending job that follows it, or None."""

    ended: Job
    again: Job | None = None


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """When the site begins a batch job again: MaxBatchRequeue, RequeueExit and RequeueExitHold."""

    max_failures: int = 5  # runs lost with a node
    on: frozenset[int] = frozenset()  # exit codes
    hold_on: frozenset[int] = frozenset()  # the same, and the job is held


_EVENTS = {
    Death.CANCEL: Event.CANCEL,
    Death.TIME_LIMIT: Event.TIME_LIMIT,
    Death.DEADLINE: Event.DEADLINE,
    Death.PREEMPT: Event.PREEMPT,
    Death.NODE_FAIL: Event.NODE_FAIL,
    Death.LAUNCH: Event.LAUNCH_FAIL,
    Death.OUT_OF_MEMORY: Event.OUT_OF_MEMORY,
}
_REASONS = {
    Death.TIME_LIMIT: Reason.TIME_LIMIT,
    Death.DEADLINE: Reason.DEADLINE,
    Death.NODE_FAIL: Reason.NODE_DOWN,
    Death.LAUNCH: Reason.LAUNCH_FAILURE,
    Death.OUT_OF_MEMORY: "OutOfMemory",
}
LAUNCH_FAILED = "launch failed requeued held"
"""What squeue and scontrol show as the reason of such a job."""
_AGAIN = (Death.REQUEUE, Death.REQUEUE_HOLD)
_AGAIN_IF_ALLOWED = (Death.NODE_FAIL, Death.PREEMPT)


def settle(
    job: Job, death: Death, status: int, time: float, usage: Usage | None = None, again: Again = Again()
) -> Settled:
    """The run of `job` is over. status: wait status of the batch script."""
    if death in _AGAIN and not job.spec.is_batch:  # nobody may: its node did not take it, and its caller waits for it
        death = Death.LAUNCH
    gives_way = job.evicted is not None and job.evicted.mode == "CANCEL" and death is Death.PREEMPT
    if death is Death.NODE_FAIL and job.may_requeue and job.failures >= again.max_failures:
        return _requeued(job, death, status, time, usage, reason=Reason.MAX_REQUEUE, admin=True)
    if death is Death.EXIT and job.may_requeue and not status & 0x7F:
        code = status >> 8 & 0xFF
        if code in again.hold_on or code in again.on:
            special = code in again.hold_on
            death = Death.REQUEUE_HOLD if special else Death.REQUEUE
            return _requeued(job, death, status, time, usage, special=special)
    if death in _AGAIN or (death in _AGAIN_IF_ALLOWED and job.may_requeue and not gives_way):
        return _requeued(job, death, status, time, usage)
    if death is Death.LAUNCH and job.spec.is_batch:
        return _not_launched(job, status, time, usage)
    return Settled(ended=_ended(job, death, status, time, usage))


def _not_launched(job: Job, status: int, time: float, usage: Usage | None) -> Settled:
    """A batch job waits for its user to release it. One that may not begin again is cancelled by root; slurmctld says not why."""
    if not job.may_requeue:
        ended = _ended(job, Death.CANCEL, 0, time, usage)
        return Settled(ended=replace(ended, exit_code=0, cancelled_by=0, reason=Reason.LAUNCH_FAILURE))
    held = _requeued(job, Death.REQUEUE_HOLD, status, time, usage, reason=Reason.LAUNCH_FAILURE)
    assert held.again is not None
    return Settled(ended=held.ended, again=replace(held.again, reason_text=LAUNCH_FAILED))


def _ended(job: Job, death: Death, status: int, time: float, usage: Usage | None) -> Job:
    event = _EVENTS.get(death) or (Event.EXIT_NONZERO if status else Event.EXIT_ZERO)
    state = job.state if job.state.is_finished else following(job.state, event)
    if state is None:
        raise ValueError(f"{event} in state {job.state}")
    if death in (Death.TIME_LIMIT, Death.DEADLINE):
        status = 0
    elif death in (Death.CANCEL, Death.PREEMPT):
        status = status & 0x7F or signals.SIGTERM.value if status & 0x7F or not status else status
    return replace(
        job,
        state=state,
        flags=job.flags - {JobFlag.COMPLETING, JobFlag.STOPPED},
        reason=_REASONS.get(death) or _exit_reason(state, status),
        reason_text="",
        end_time=job.end_time if JobFlag.COMPLETING in job.flags and job.end_time else time,
        exit_code=encode(status),
        kill_reason="",
        usage=usage or job.usage,
    )


def _exit_reason(state: JobState, status: int) -> str:
    if state is not JobState.FAILED:
        return Reason.NONE
    number = status & 0x7F
    return f"{Reason.RAISED_SIGNAL}:{number}({signal_text(number)})" if number else Reason.NON_ZERO_EXIT


def _held(by: str) -> str:
    return Reason.HELD_ADMIN if by == "admin" else Reason.HELD_USER


def _requeued(
    job: Job,
    death: Death,
    status: int,
    time: float,
    usage: Usage | None,
    *,
    reason: str = "",
    admin: bool = False,
    special: bool = False,
) -> Settled:
    """The old run as history shows it, and the job pending again under the same id with the next restart count."""
    old_state = {
        Death.NODE_FAIL: JobState.NODE_FAIL,
        Death.PREEMPT: JobState.PREEMPTED,
    }.get(death)
    flags = frozenset() if old_state else frozenset({JobFlag.REQUEUED})
    base = old_state or (job.state if job.state.is_finished else JobState.CANCELLED)
    ended = replace(
        job,
        state=base,
        flags=flags,
        end_time=time,
        exit_code=0 if death is Death.PREEMPT else encode(status),
        kill_reason="",
        reason=Reason.NONE,
        usage=usage or job.usage,
    )
    hold = bool(reason) or death is Death.REQUEUE_HOLD or (job.priority == 0 and bool(job.held_by))
    held_by = job.held_by or ("admin" if admin else "user")
    again = replace(
        job,
        spec=replace(job.spec, time_limit=job.whole_limit) if job.is_cut else job.spec,
        failures=0 if reason else job.failures + (death is Death.NODE_FAIL),
        is_stopped=False,
        is_cut=False,
        whole_limit=None,
        restarts=job.restarts + 1,
        state=JobState.PENDING,
        flags=frozenset({JobFlag.SPECIAL_EXIT if special else JobFlag.REQUEUE_HOLD})
        if death is Death.REQUEUE_HOLD
        else frozenset(),
        reason=reason or (_held(held_by) if hold else Reason.NONE),
        reason_text="",
        held_by=held_by if hold else "",
        priority=0 if hold else 1,
        eligible_time=None if hold else time,
        accrue_time=None if hold else time,
        start_time=None,
        end_time=None,
        suspend_time=None,
        pre_suspend_s=0.0,
        preempt_time=None,
        evicted=job.evicted if death is Death.PREEMPT else None,
        allocation=None,
        batch_host="",
        exit_code=0,
        derived_exit_code=0,
        kill_reason="",
        time_limit_end=None,
        cancelled_by=None,
        usage=None,
        time_mailed=0,
    )
    return Settled(ended=ended, again=again)


def encode(status: int) -> int:
    """A wait status as it is stored: exit code << 8 | signal."""
    return status & 0xFF7F


def signal_text(number: int) -> str:
    """The text that strsignal gives, as Slurm's reasons show it."""
    try:
        return signals.strsignal(number) or f"Unknown signal {number}"
    except ValueError:
        return f"Unknown signal {number}"
