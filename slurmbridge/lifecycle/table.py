"""Which base state follows which, by event: the whole state machine of a run as one table.

Source: Slurm's job state codes (squeue(1), JOB STATE CODES). Flags such as COMPLETING are not states here: a run that
is being ended already has its final base state and carries COMPLETING until its processes are gone.
"""

from __future__ import annotations

import enum

from slurmbridge.model.states import JobState


class Event(enum.Enum):
    START = "start"
    SUSPEND = "suspend"
    RESUME = "resume"
    EXIT_ZERO = "exit zero"
    EXIT_NONZERO = "exit non-zero"
    CANCEL = "cancel"
    TIME_LIMIT = "time limit"
    DEADLINE = "deadline"
    NODE_FAIL = "node fail"
    LAUNCH_FAIL = "launch fail"
    OUT_OF_MEMORY = "out of memory"
    PREEMPT = "preempt"
    REQUEUE = "requeue"


_RUNNING_ENDS = {
    Event.EXIT_ZERO: JobState.COMPLETED,
    Event.EXIT_NONZERO: JobState.FAILED,
    Event.CANCEL: JobState.CANCELLED,
    Event.TIME_LIMIT: JobState.TIMEOUT,
    Event.DEADLINE: JobState.DEADLINE,
    Event.NODE_FAIL: JobState.NODE_FAIL,
    Event.LAUNCH_FAIL: JobState.BOOT_FAIL,
    Event.OUT_OF_MEMORY: JobState.OUT_OF_MEMORY,
    Event.PREEMPT: JobState.PREEMPTED,
    Event.REQUEUE: JobState.PENDING,
}

TRANSITIONS: dict[JobState, dict[Event, JobState]] = {
    JobState.PENDING: {
        Event.START: JobState.RUNNING,
        Event.CANCEL: JobState.CANCELLED,
        Event.DEADLINE: JobState.DEADLINE,
    },
    JobState.RUNNING: {Event.SUSPEND: JobState.SUSPENDED, **_RUNNING_ENDS},
    JobState.SUSPENDED: {Event.RESUME: JobState.RUNNING, **_RUNNING_ENDS},
    **{
        state: {Event.REQUEUE: JobState.PENDING}
        for state in JobState
        if state.is_finished and state not in (JobState.CANCELLED, JobState.DEADLINE)
    },
    JobState.CANCELLED: {Event.REQUEUE: JobState.PENDING},
    JobState.DEADLINE: {},
}


def following(state: JobState, event: Event) -> JobState | None:
    """The next base state, or None when the event can't happen in this one."""
    return TRANSITIONS[state].get(event)
