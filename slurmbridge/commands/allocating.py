"""How srun and salloc get an allocation: submit without a script, say what one waits for, take signals as a wish to stop.

Answers the job once its supervisors have met; any other end has been said, with its exit code (`Stop`). Words follow
srun(1) and salloc(1), Slurm 26.05.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.commands.effects import Call, Change, Component, Print, Progress, Site, Submit, Submitted, WaitStart
from slurmbridge.commands.listing import time_zone
from slurmbridge.commands.submitting import (
    Speaker,
    Steps,
    Stop,
    checked_line,
    cluster_of,
    complain,
    number,
    one_voice,
    read_files,
    refusal,
    requests_of,
    settle_identity,
    speaker,
    tested,
)
from slurmbridge.errors import SlurmErrno
from slurmbridge.model.job import Job
from slurmbridge.model.request import JobRequest
from slurmbridge.model.states import JobState, Reason
from slurmbridge.model.verdict import Refused
from slurmbridge.submit.merge import CommandLine, Draft, first_pass, merge
from slurmbridge.submit.value import Bad, Clock

LOOK_S = 10.0
"""A job that the scheduler has not looked at by then is said to be queued, and refused where it must begin at once: as long
as Slurm's commands wait for the answer that says so (MessageTimeout). A scheduler that is only slow decides."""
CLEAR_S = 10.0
"""How long the end of an allocation waits for its processes to be gone, so that the next command finds the room."""
DEBUG = {"srun": "SLURM_DEBUG", "salloc": "SALLOC_DEBUG"}

_NOTES = {
    Reason.PARTITION_NODE_LIMIT: "Requested partition configuration not available now",
    Reason.PARTITION_CONFIG: "Requested partition configuration not available now",
    Reason.BAD_CONSTRAINTS: "Requested partition configuration not available now",
    Reason.PARTITION_DOWN: "Partition in DOWN state",
    Reason.PARTITION_INACTIVE: "Partition in INACTIVE state",
    Reason.HELD_USER: "Job is in held state, pending scheduler release",
    Reason.HELD_ADMIN: "Job is in held state, pending scheduler release",
    Reason.REQ_NODE_NOT_AVAIL: "Required node not available (down, drained or reserved)",
}
"""What is said of some reasons when the job has to wait."""
_NOT_FIRST = "Immediate execution impossible, insufficient priority"
_NOT_BOOTED = "Something is wrong with the boot of the nodes."


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A command line, read: who speaks, the drafts and requests of its components, what stands behind the options."""

    who: Speaker
    line: CommandLine
    drafts: tuple[Draft, ...]
    requests: tuple[JobRequest, ...]

    @property
    def leader(self) -> JobRequest:
        return self.requests[0]

    def has(self, field: str) -> bool:
        """Whether an option that only this command reads was given."""
        return bool(self.drafts[0].values.get(field))


Check = Callable[[Speaker, tuple[Draft, ...], CommandLine], Steps]
Refuse = Callable[[Speaker, Bad, CommandLine], Steps]


def read_wish(name: str, call: Call, site: Site, job_name: str, check: Check, refuse: Refuse) -> Steps:
    """The command line as requests. `check` is asked before the options are verified against each other, `refuse` says
    that an option's value is none."""
    who: Speaker = yield from speaker(name, call)
    line: CommandLine = yield from checked_line(who, first_pass(name, call.argv))
    tz = time_zone(call, site)
    found = merge(name, line, call.env, None, clock=Clock(call.now, tz))
    if isinstance(found, Bad):
        yield from refuse(who, found, line)
        raise Stop(1)
    who = msgspec.structs.replace(
        who, verbose=line.verbose or number(call.env.get(DEBUG[name], "")), quiet=bool(line.quiet)
    )
    yield from one_voice(who)
    yield from check(who, found, line)
    for draft in found:
        yield from read_files(who, draft)
        yield from settle_identity(who, draft, call, site)
    requests = yield from requests_of(who, found, line, call, site, tz)
    named = tuple(
        request if request.name is not None else msgspec.structs.replace(request, name=job_name) for request in requests
    )
    return Wish(who=who, line=line, drafts=found, requests=named)


def as_told(bad: Bad) -> Bad:
    """srun and salloc leave with 1, not 255, when a number is none."""
    is_number = any(text.startswith("Invalid numeric value") for _, text in bad.lines)
    return msgspec.structs.replace(bad, exit_code=1) if is_number else bad


def allocate(wish: Wish, call: Call, site: Site) -> Steps:
    """The job, ready to be used."""
    who = wish.who
    yield from cluster_of(who, wish.leader, site)
    components = tuple(Component(request=request) for request in wish.requests)
    answer: Submitted | Refused = yield Submit(components=components, batch=False, test_only=wish.leader.test_only)
    if wish.leader.test_only:
        raise Stop((yield from tested(who, answer, time_zone(call, site))))
    if isinstance(answer, Refused):
        yield from complain(who, refusal(who, answer), who.failure)
        raise Stop(who.failure)
    for warning in answer.warnings:
        yield Print(f"{who.name}: {warning}\n", 2)
    waiting = _Waiting(who=who, job_id=answer.job_id, is_told=answer.repeated)
    if who.verbose:
        yield waiting.say(f"JobId={answer.job_id} returned by the controller", always=True)
    yield from _wait(waiting, wish, site)
    job = site.job(answer.job_id)
    if job is None:
        raise Stop(who.failure)
    return job


class _Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A submitted job, and whether its story was told before the connection was cut."""

    who: Speaker
    job_id: int
    is_told: bool

    def say(self, text: str, *, always: bool = False) -> Print:
        """A line for information: not with --quiet."""
        is_silent = (self.who.quiet and not always) or self.is_told
        return Print("" if is_silent else f"{self.who.name}: {text}\n", 2)


def _wait(waiting: _Waiting, wish: Wish, site: Site) -> Steps:
    who, job_id = waiting.who, waiting.job_id
    immediate = wish.leader.immediate
    is_het = len(wish.requests) > 1
    progress: Progress = yield WaitStart(job_id=job_id, seconds=LOOK_S)
    if immediate == 1 and progress.phase in ("new", "waiting") and not progress.signal:
        yield from _not_now(waiting, site)
    queued = progress.phase in ("new", "waiting") or is_het
    if queued:
        yield from _say_queued(waiting, site)
    if progress.phase in ("new", "waiting") and not progress.signal:
        limit = float(immediate) if immediate and immediate > 1 else None
        if progress.phase == "new":
            progress = yield WaitStart(job_id=job_id, seconds=limit)
        if progress.phase == "waiting" and not progress.signal:
            progress = yield WaitStart(job_id=job_id, known="waiting", seconds=limit)
        if progress.phase in ("new", "waiting") and not progress.signal:
            yield from _too_late(waiting)
    if queued and progress.phase in ("allocated", "ready"):
        yield waiting.say(f"job {job_id} has been allocated resources")
    if who.name == "salloc" and progress.phase in ("allocated", "ready") and not progress.signal:
        yield waiting.say(f"Granted job allocation {job_id}")
    while progress.phase == "allocated" and not progress.signal:
        progress = yield WaitStart(job_id=job_id, known="allocated")
    if progress.signal:
        yield from _stopped(waiting, progress.signal)
    if progress.phase != "ready":
        yield from _ended(waiting, site)


def _say_queued(waiting: _Waiting, site: Site) -> Steps:
    job = site.job(waiting.job_id)
    note = _NOTES.get(job.reason) if job is not None else None
    if note:
        yield waiting.say(note)
    if waiting.who.name == "salloc":
        yield waiting.say(f"Pending job allocation {waiting.job_id}")
    yield waiting.say(f"job {waiting.job_id} queued and waiting for resources")


# how it can go wrong


def _cancel(waiting: _Waiting) -> Steps:
    yield Change(verb="cancel", job_id=waiting.job_id)


def _revoked(waiting: _Waiting) -> Print:
    stop = "." if waiting.who.name == "salloc" else ""
    return waiting.say(f"Job allocation {waiting.job_id} has been revoked{stop}")


def _not_now(waiting: _Waiting, site: Site) -> Steps:
    """--immediate, and it would have to wait."""
    who = waiting.who
    job = site.job(waiting.job_id)
    is_first = job is not None and job.reason == Reason.RESOURCES
    yield from _cancel(waiting)
    text = SlurmErrno.NODES_BUSY.text if is_first else _NOT_FIRST
    yield Print(f"{who.name}: error: Unable to allocate resources: {text}\n", 2)
    if who.name == "salloc":
        yield _revoked(waiting)
    raise Stop(who.failure)


def _too_late(waiting: _Waiting) -> Steps:
    """--immediate=SECONDS are over."""
    yield from _cancel(waiting)
    if waiting.who.name == "salloc":
        yield _revoked(waiting)
    yield Print(f"{waiting.who.name}: error: Unable to allocate resources: {SlurmErrno.NODES_BUSY.text}\n", 2)
    raise Stop(waiting.who.failure)


def _stopped(waiting: _Waiting, number: int) -> Steps:
    yield from _cancel(waiting)
    if waiting.who.name == "salloc":
        yield waiting.say("Job aborted due to signal")
    elif number not in (signal.SIGUSR1, signal.SIGUSR2):
        yield waiting.say(f"Force Terminated JobId={waiting.job_id}")
    yield _revoked(waiting)
    raise Stop(1)


def _ended(waiting: _Waiting, site: Site) -> Steps:
    """Somebody else ended the job before it could be used, or its nodes did not begin it."""
    who = waiting.who
    job = site.job(waiting.job_id)
    if job is not None and job.state is JobState.BOOT_FAIL:
        yield Print(f"{who.name}: error: {_NOT_BOOTED}\n", 2)
        yield _revoked(waiting)
        raise Stop(who.failure)
    yield waiting.say("Job has been cancelled")
    if who.name == "salloc":
        yield _revoked(waiting)
    yield from complain(who, refusal(who, Refused(errno=SlurmErrno.ALREADY_DONE)), who.failure)


def give_back(job: Job, status: int) -> Steps:
    """The caller is done with the allocation: wait status of what it did there."""
    yield Change(verb="complete", job_id=job.job_id, fields=(("status", status),))
    yield from cleared(job)


def cleared(job: Job) -> Steps:
    """Until nothing of the job is left, but not for ever."""
    progress: Progress = yield WaitStart(job_id=job.job_id, known="ready", seconds=CLEAR_S)
    if progress.phase == "over":
        yield WaitStart(job_id=job.job_id, known="over", seconds=CLEAR_S)


def components_of(job: Job, site: Site) -> Sequence[Job]:
    """All components of a heterogeneous allocation, in order; else the job alone."""
    return site.jobs_of_het(job.het_job_id) if job.het_job_id else (job,)
