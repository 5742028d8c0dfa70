"""salloc: an allocation, and a command beside it that runs where salloc was typed (salloc(1), Slurm 26.05).

The command is run by the client (`cli.allocated`); when it ends, or salloc is sent a signal, the allocation is given
back. With --no-shell it stays until it is cancelled or its time is over.
"""

from __future__ import annotations

import signal

from slurmbridge.commands.allocating import Wish, allocate, as_told, cleared, components_of, give_back, read_wish
from slurmbridge.commands.effects import Call, Command, FileData, HandOver, Print, ReadFile, Recall, Returned, Site
from slurmbridge.commands.submitting import Speaker, Steps, Stop, complain
from slurmbridge.errors import LangError
from slurmbridge.lang import hostlist, signals
from slurmbridge.manifest.environment import allocation_env
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobState
from slurmbridge.submit.merge import CommandLine, Draft
from slurmbridge.submit.value import Bad, error

BELL_AFTER_S = 10.0
EISDIR = 21


def main(call: Call, site: Site) -> Command:
    """salloc [OPTIONS] [COMMAND [ARGS]]."""
    try:
        return (yield from _run(call, site))
    except Stop as stop:
        return stop.exit_code


def _run(call: Call, site: Site) -> Command:
    wish: Wish = yield from read_wish("salloc", call, site, "interactive", _check, _refuse)
    folder = wish.leader.chdir
    if folder:
        found: FileData = yield ReadFile(name=folder, limit=0)
        if found.errno != EISDIR:
            words = "No such file or directory" if found.errno == 2 else "Not a directory"
            yield from complain(wish.who, error(f"chdir({folder}): {words}", 1))
    job: Job = yield from allocate(wish, call, site)
    say = _Voice(wish.who)
    jobs = components_of(job, site)
    for part in jobs:
        names = hostlist.compress_sorted([share.node for share in part.allocation.nodes] if part.allocation else [])
        yield say(f"Nodes {names} are ready for job")
    waited = (job.start_time or call.now) - job.submit_time
    if call.stdout_is_tty and (wish.leader.bell == "always" or (wish.leader.bell is None and waited > BELL_AFTER_S)):
        yield Print("\a")
    if wish.leader.no_shell:
        return 0
    env = allocation_env(job, site.config, components=jobs, submit_dir=call.cwd)
    facts = (("argv", list(wish.line.operands)), ("chdir", folder), ("kill", _kill_signal(wish)))
    returned: Returned = yield HandOver(job_id=job.job_id, what="command", facts=facts, env=tuple(env.items()))
    if returned.is_over:
        yield say(_gone(site.job(job.job_id) or job))
        returned = yield Recall(signal=_kill_signal(wish))
        return returned.code
    if returned.signal:
        yield from give_back(job, returned.signal)
        yield say(f"Job allocation {job.job_id} has been revoked.")
        returned = yield Recall(signal=_kill_signal(wish))
        return returned.code
    yield say(f"Relinquishing job allocation {job.job_id}")
    yield from give_back(job, returned.status)
    yield from cleared(job)
    return returned.code


class _Voice:
    """Lines for information: not with --quiet."""

    def __init__(self, who: Speaker) -> None:
        self._is_silent = who.quiet

    def __call__(self, text: str) -> Print:
        return Print("" if self._is_silent else f"salloc: {text}\n", 2)


def _gone(job: Job) -> str:
    if job.state is JobState.TIMEOUT:
        return f"Job {job.job_id} has exceeded its time limit and its allocation has been revoked."
    return f"Job allocation {job.job_id} has been revoked."


def _check(who: Speaker, drafts: tuple[Draft, ...], line: CommandLine) -> Steps:
    if _kill_number(drafts[0]) is None:
        yield from complain(who, error("Invalid --kill-command specification"))
    if drafts[0].values.get("no_shell"):
        drafts[0].values.setdefault("name", "no-shell")


def _refuse(who: Speaker, bad: Bad, line: CommandLine) -> Steps:
    yield from complain(who, as_told(bad))


def _kill_number(draft: Draft) -> int | None:
    """The signal that the command gets when the allocation is gone; 0: none, None: no signal of that name."""
    if "kill-command" not in draft.typed:
        return 0
    text = draft.typed["kill-command"].text
    if not text:
        return int(signal.SIGTERM)
    try:
        return signals.parse_name(text)
    except LangError:
        return None


def _kill_signal(wish: Wish) -> int:
    return _kill_number(wish.drafts[0]) or 0
