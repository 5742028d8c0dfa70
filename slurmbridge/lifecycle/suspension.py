"""A run stops for a while and goes on: what becomes of its times.

As in Slurm `pre_suspend_s` is the run time until `suspend_time`, the moment of the last change; a time limit moves on by
the time of suspension.
"""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.model.job import Job
from slurmbridge.model.states import JobState, Reason


def stopped(job: Job, now: float) -> Job:
    since = job.suspend_time if job.suspend_time is not None else job.start_time
    ran = max(0.0, now - since) if since is not None else 0.0
    return replace(
        job,
        state=JobState.SUSPENDED,
        is_stopped=True,
        suspend_time=now,
        pre_suspend_s=job.pre_suspend_s + ran,
        reason=Reason.NONE,
    )


def going_on(job: Job, now: float) -> Job:
    paused = now - (job.suspend_time or now)
    end = job.time_limit_end
    return replace(
        job,
        state=JobState.RUNNING,
        is_stopped=False,
        suspend_time=now,
        time_limit_end=None if end is None else end + paused,
    )
