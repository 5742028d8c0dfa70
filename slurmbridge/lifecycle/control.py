"""What the control verbs do to one job: hold, release, requeue, cancel, suspend, resume.

Each takes the record and gives the changed record (or None: nothing changes) and what the runtime must do, or the
refusal in Slurm's terms. Who may ask is decided by `daemon.rights`, not here. Sources: scontrol(1), scancel(1).
"""

from __future__ import annotations

import signal as signals

import msgspec
from msgspec.structs import replace

from slurmbridge.errors import SlurmErrno
from slurmbridge.lifecycle.ends import Death, encode, settle
from slurmbridge.lifecycle.suspension import going_on, stopped
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag, JobState, Reason


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """End the run's processes; `why` comes back with the report."""

    why: str


class Deliver(msgspec.Struct, frozen=True, kw_only=True):
    """Send a signal to the run."""

    signal: int
    scope: str


class Suspend(msgspec.Struct, frozen=True, kw_only=True):
    """Stop the run's processes, or let them go on."""

    resume: bool = False


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """`jobs`: records to store, the live one last. `effect`: for the runtime."""

    jobs: tuple[Job, ...] = ()
    effect: Kill | Deliver | Suspend | None = None


Answer = Changed | SlurmErrno

NOTHING = Changed()


def hold(job: Job, *, by: str, now: float) -> Answer:
    """by: "user" or "admin" (an operator's hold that only an operator releases). A running job goes on; it counts when
    the job is requeued."""
    if job.is_finished:
        return SlurmErrno.ALREADY_DONE
    held_by = job.held_by if job.held_by == "admin" and by == "user" else by
    reason = Reason.HELD_ADMIN if held_by == "admin" else Reason.HELD_USER
    if not job.is_pending:
        return Changed(jobs=(replace(job, priority=0, held_by=held_by, reason=reason, reason_text=""),))
    return Changed(
        jobs=(
            replace(
                job,
                priority=0,
                held_by=held_by,
                reason=reason,
                reason_text="",
                eligible_time=None,
                accrue_time=None,
                start_time=None,
            ),
        )
    )


def release(job: Job, *, operator: bool, now: float) -> Answer:
    if job.is_finished and JobFlag.COMPLETING not in job.flags:
        return SlurmErrno.ALREADY_DONE
    if job.held_by == "admin" and not operator:
        return SlurmErrno.ACCESS_DENIED
    if job.priority != 0 or job.is_finished:
        return NOTHING
    if not job.is_pending:
        return Changed(jobs=(replace(job, priority=1, held_by="", reason=Reason.NONE, reason_text=""),))
    begin = job.spec.begin
    eligible = None if begin is not None and begin > now else now
    return Changed(
        jobs=(
            replace(
                job,
                priority=1,
                held_by="",
                flags=job.flags - {JobFlag.REQUEUE_HOLD, JobFlag.SPECIAL_EXIT},
                reason=Reason.NONE,
                reason_text="",
                eligible_time=eligible,
                accrue_time=eligible,
            ),
        )
    )


def cancel(job: Job, *, uid: int, now: float) -> Answer:
    """Without a signal: a pending job ends now, a running one is killed."""
    if job.is_finished:
        if JobFlag.COMPLETING in job.flags:
            return NOTHING
        return SlurmErrno.ALREADY_DONE
    if job.is_pending:
        return Changed(
            jobs=(
                replace(
                    job,
                    state=JobState.CANCELLED,
                    flags=frozenset(),
                    reason=Reason.NONE,
                    reason_text="",
                    end_time=now,
                    start_time=now if job.start_time is None or job.start_time > now else job.start_time,
                    cancelled_by=uid,
                ),
            )
        )
    return Changed(
        jobs=(
            replace(
                job,
                state=JobState.CANCELLED,
                flags=job.flags | {JobFlag.COMPLETING},
                end_time=now,
                cancelled_by=uid,
                kill_reason=Death.CANCEL.value,
                reason=Reason.NONE,
            ),
        ),
        effect=Kill(why=Death.CANCEL.value),
    )


def complete(job: Job, *, status: int, uid: int, now: float) -> Answer:
    """The owner of an allocation without a script gives it back, with the wait status of what it ran there."""
    if job.is_finished or JobFlag.COMPLETING in job.flags:
        return SlurmErrno.ALREADY_DONE
    if job.is_pending:
        return cancel(job, uid=uid, now=now)
    return Changed(
        jobs=(
            replace(
                job,
                state=JobState.FAILED if status else JobState.COMPLETED,
                flags=job.flags | {JobFlag.COMPLETING},
                end_time=now,
                exit_code=encode(status),
                kill_reason=Death.EXIT.value,
            ),
        ),
        effect=Kill(why=Death.EXIT.value),
    )


def send(job: Job, *, signal: int, scope: str, uid: int, now: float) -> Answer:
    """A signal by scancel -s or scontrol: SIGKILL without a scope cancels; what does not run yet, with any."""
    if signal == signals.SIGKILL and (not scope or job.is_pending):
        return cancel(job, uid=uid, now=now)
    if job.is_finished:
        return SlurmErrno.ALREADY_DONE
    if job.is_pending:
        return SlurmErrno.JOB_PENDING
    return Changed(effect=Deliver(signal=signal, scope=scope))


def requeue(job: Job, *, held: bool, now: float) -> Answer:
    """Running: killed, then pending again. Finished: pending again at once."""
    if job.is_pending:
        return SlurmErrno.JOB_PENDING
    if not job.spec.is_batch or (not job.spec.requeue and not job.is_finished):
        return SlurmErrno.DISABLED
    death = Death.REQUEUE_HOLD if held else Death.REQUEUE
    if JobFlag.COMPLETING in job.flags:
        return Changed(jobs=(replace(job, kill_reason=death.value),))
    if job.is_finished:
        settled = settle(job, death, job.exit_code, now, job.usage)
        assert settled.again is not None
        old = replace(settled.ended, state=job.state, flags=frozenset({JobFlag.REQUEUED}), end_time=job.end_time)
        return Changed(jobs=(old, settled.again))
    return Changed(
        jobs=(replace(job, flags=job.flags | {JobFlag.COMPLETING}, kill_reason=death.value, end_time=now),),
        effect=Kill(why=death.value),
    )


def suspend(job: Job, *, now: float) -> Answer:
    if job.is_finished:
        return SlurmErrno.ALREADY_DONE
    if job.is_pending:
        return SlurmErrno.JOB_PENDING
    if job.state is JobState.SUSPENDED:
        return SlurmErrno.DISABLED
    return Changed(jobs=(stopped(job, now),), effect=Suspend())


def resume(job: Job, *, now: float) -> Answer:
    if job.is_finished:
        return SlurmErrno.ALREADY_DONE
    if job.is_pending:
        return SlurmErrno.JOB_PENDING
    if job.state is not JobState.SUSPENDED or job.gave_way:
        return SlurmErrno.DISABLED
    return Changed(jobs=(going_on(job, now),), effect=Suspend(resume=True))
