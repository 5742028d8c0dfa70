"""The parts of the `slurmbridge` command that the daemon answers: why, logs and the request to stop.

slurmbridge why JOB          which rule keeps a job waiting, and when it may start
slurmbridge logs JOB         its output, or where that is (`logs`)
slurmbridge token ...        a token of the caller's own (`tokens`)
slurmbridge shutdown [jobs]  stop the daemon (and end its jobs): asked by `slurmbridge down`
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from slurmbridge.commands import explained, logs, tokens
from slurmbridge.commands.bridge_jobs import find_jobs, may_see
from slurmbridge.commands.effects import Alter, AlterOutcome, Call, Command, Effect, Explain, Print, Site
from slurmbridge.commands.listing import make_view
from slurmbridge.errors import SlurmErrno
from slurmbridge.model.explain import Explanation
from slurmbridge.model.job import Job
from slurmbridge.model.request import JobRequest
from slurmbridge.submit.option import End
from slurmbridge.submit.options import TABLE

UNSET = {field.name: field.default for field in msgspec.structs.fields(JobRequest)}
"""What a request holds where nothing was asked."""


def main(call: Call, site: Site) -> Command:
    verb, words = (call.argv[1], call.argv[2:]) if len(call.argv) > 1 else ("", ())
    if verb == "shutdown":
        return (yield from shutdown("jobs" in words))
    if verb == "token":
        return (yield from tokens.main(words))
    if verb in ("logs", "where"):
        return (yield from logs.main(call, site, verb, words))
    if verb != "why" or len(words) != 1:
        yield Print("slurmbridge: error: usage: slurmbridge why JOB | logs JOB\n", 2)
        return 1
    jobs = tuple(job for job in find_jobs(site, words[0]) if may_see(call, site, job))
    if not jobs:
        yield Print(f"slurmbridge: error: {words[0]}: {SlurmErrno.INVALID_JOB_ID.text}\n", 2)
        return 1
    for job in jobs:
        yield Print((yield from explain(call, site, job)))
    return 0


def shutdown(jobs: bool) -> Command:
    outcome: AlterOutcome = yield Alter(kind="shutdown", fields=(("jobs", jobs),))
    if outcome.errno is not None:
        yield Print(f"slurmbridge: error: {outcome.errno.text}\n", 2)
        return 1
    return 0


def explain(call: Call, site: Site, job: Job) -> Generator[Effect, Any, str]:
    """One job's answer, with what the planner finds when it waits."""
    view = make_view(call, site)

    def visible(job_id: int) -> bool:
        other = site.job(job_id)
        return other is not None and may_see(call, site, other)

    if not job.is_pending:
        return explained.of_started(job, view, visible)
    found: Explanation | None = yield Explain(job_id=job.job_id)
    current = site.job(job.job_id) or job
    if not current.is_pending:  # it began meanwhile
        return explained.of_started(current, view, visible)
    lines = explained.of_pending(current, found, site, view, visible)
    for option, why in recorded(job):
        lines += f"    --{option} is recorded without effect: {why}\n"
    return lines


def recorded(job: Job) -> tuple[tuple[str, str], ...]:
    """Options of the job that are stored and shown, with the reason why they change nothing."""
    request = job.spec.request
    return tuple(
        (option.long, option.why)
        for option in TABLE
        if option.end is End.RECORDED
        and option.field
        and getattr(request, option.field, None) != UNSET.get(option.field)
    )
