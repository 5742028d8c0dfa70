"""What sbatch, srun and salloc have in common: from merged options to a request, and how they say no.

Functions take `who` is speaking; words that differ between the three are in `FAILED`. Follows sbatch(1), srun(1) and
salloc(1).
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Sequence
from typing import Any, NoReturn

import msgspec

from slurmbridge.commands.effects import Call, Effect, FileData, Print, ReadFile, Site, Submitted
from slurmbridge.errors import SlurmErrno
from slurmbridge.lang import hostlist, times
from slurmbridge.model.capabilities import VIRTUAL_NODES
from slurmbridge.model.request import JobRequest
from slurmbridge.model.verdict import Refused, UsageError
from slurmbridge.submit import helptext, listing
from slurmbridge.submit.merge import CommandLine, Draft, Early
from slurmbridge.submit.value import Bad, error
from slurmbridge.submit.verify import SUBMISSION_FAILED, needs_capabilities, verify

VERSION = "slurm-wlm 26.05.5\n"
FAILED = {
    "sbatch": SUBMISSION_FAILED,
    "srun": "Unable to allocate resources: ",
    "salloc": "Job submit/allocate failed: ",
}
"""What stands before the controller's words."""
BARE = frozenset({SlurmErrno.INVALID_GRES, SlurmErrno.INVALID_GRES_MIX})
"""Refusals that sbatch prints without those words."""

Steps = Generator[Effect, Any, Any]


class Stop(Exception):
    """Ends the command with an exit code; everything has been said."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """The command: its name, the exit code of what is no wrong option (SLURM_EXIT_ERROR), and how much it says."""

    name: str
    failure: int = 1
    verbose: int = 0
    quiet: bool = False


def number(text: str) -> int:
    """A count from the environment; anything else is 0."""
    return int(text) if text.isdecimal() else 0


def speaker(name: str, call: Call) -> Steps:
    """Who speaks, before any option is known."""
    text = call.env.get("SLURM_EXIT_ERROR")
    if text is None:
        return Speaker(name=name)
    code = number(text)
    if code == 0:
        yield Print(f"{name}: error: SLURM_EXIT_ERROR has zero value\n", 2)
        return Speaker(name=name)
    return Speaker(name=name, failure=code & 0xFF)


# what is said


def spoken(who: Speaker, lines: Sequence[tuple[str, str]]) -> str:
    """(level, text) lines as the command prints them."""
    shown = []
    for level, text in lines:
        if who.name != "sbatch" and text.startswith(SUBMISSION_FAILED):
            text = FAILED[who.name] + text.removeprefix(SUBMISSION_FAILED)
        if level == "":
            shown.append(f"{text}\n")
        elif level in ("program", "info") or (level == "verbose" and who.verbose):
            shown.append(f"{who.name}: {text}\n")
        elif level != "verbose":
            shown.append(f"{who.name}: {level}: {text}\n")
    return "".join(shown)


def complain(who: Speaker, bad: Bad, failure: int | None = None) -> Generator[Effect, Any, NoReturn]:
    """`failure`: the exit code to take instead of 1, for what is no wrong option."""
    if bad.stdout:
        yield Print(bad.stdout)
    if bad.lines:
        yield Print(spoken(msgspec.structs.replace(who, verbose=0), bad.lines), 2)
    is_fatal = any(level == "fatal" for level, _ in bad.lines)
    raise Stop(failure if failure is not None and bad.exit_code == 1 and not is_fatal else bad.exit_code)


def one_voice(who: Speaker) -> Steps:
    """Both louder and silent is neither."""
    if who.verbose and who.quiet:
        yield from complain(who, Bad((("error", "don't specify both --verbose (-v) and --quiet (-Q)"),), 1))


def checked_line(who: Speaker, line: CommandLine | Early | UsageError) -> Steps:
    """The command line, unless getopt refused it or it asks for something else than the command."""
    if isinstance(line, UsageError):
        yield Print("".join(f"{text}\n" for text in line.lines), 2)
        raise Stop(line.exit_code)
    if isinstance(line, Early):
        yield Print(_early(who.name, line))
        raise Stop(0)
    return line


def _early(name: str, line: Early) -> str:
    if line.what == "version":
        return VERSION
    if line.what == "autocomplete":
        return helptext.complete(name, line.text)
    return helptext.usage(name) if line.what == "usage" else helptext.help_page(name)


# files and names that options give


def read_files(who: Speaker, draft: Draft) -> Steps:
    """Burst buffer and host files: their content takes the place of their names."""
    values = draft.values
    name = values.get("+burst-buffer-file")
    if isinstance(name, str):
        data: FileData = yield ReadFile(name=name)
        if data.errno:
            yield from complain(who, error("Invalid --bbf specification", 1), who.failure)
        values["burst_buffer"] = data.data.decode("utf-8", "surrogateescape")
    for field in ("nodelist", "exclude"):
        name = values.get(f"+{field}-file")
        if isinstance(name, str):
            yield from _host_file(who, draft, field, name)


def _host_file(who: Speaker, draft: Draft, field: str, name: str) -> Steps:
    """One hostlist a line, or several joined by blanks and commas."""
    option = "--nodefile node file" if draft.values.get("+nodefile") else f"--{field} specification"
    data: FileData = yield ReadFile(name=name)
    if data.errno:
        text = f"slurm_allocate_resources error opening file {name}, No such file or directory"
        if draft.values.get("+nodefile"):
            yield from complain(who, Bad((("error", text), ("error", f"Invalid {option}")), 255))
        yield from complain(who, Bad((("error", text),), 1))
    words = data.data.decode("utf-8", "surrogateescape").replace(",", "\n")
    hosts: list[str] = []
    for word in words.split():
        hosts += hostlist.expand(word)
    if not hosts:
        yield from complain(who, Bad((("error", "Hostlist is empty!"), ("error", f"Invalid {option}")), 255))
    draft.values[field] = tuple(hosts)


def settle_identity(who: Speaker, draft: Draft, call: Call, site: Site) -> Steps:
    """--uid and --gid are root's; names become numbers."""
    for long, find in (("uid", site.user_id), ("gid", site.group_id)):
        text = draft.values.get(long)
        if text is None:
            continue
        if call.uid != 0:
            yield from complain(who, error(f"--{long} only permitted by root user"))
        known = int(str(text)) if str(text).isdecimal() else find(str(text))
        if known is None:
            yield from complain(who, error(f"Invalid --{long} specification"))
        draft.values[long] = str(known)


# the request


def requests_of(
    who: Speaker, drafts: Sequence[Draft], line: CommandLine, call: Call, site: Site, tz: datetime.tzinfo
) -> Steps:
    """One JobRequest per component, verified; with -v what is in force is said."""
    requests = []
    for draft in drafts:
        found = verify(
            draft,
            site.config,
            is_admin=site.is_operator(call.uid),
            components=len(drafts),
            failed="" if who.name == "sbatch" else FAILED[who.name],
            capabilities=site.capabilities if needs_capabilities(draft) else VIRTUAL_NODES,
        )
        if who.verbose and not (isinstance(found, Bad) and found.exit_code == 255):
            lines = listing.defined_options(
                draft, command=who.name, verbose=who.verbose, wrap=line.wrap, cwd=call.cwd, tz=tz
            )
            before = found.lines if not isinstance(found, Bad) else ()
            yield Print(spoken(who, (*before, *(("info", text) for text in lines))), 2)
        elif not isinstance(found, Bad) and found.lines:
            kept = tuple(each for each in found.lines if each[0] == "error" or not line.quiet)
            yield Print(spoken(who, kept), 2)
        if isinstance(found, Bad):
            yield from complain(who, found, who.failure)
        else:
            requests.append(found.request)
    if who.verbose > 1:
        yield Print(spoken(who, [("info", text) for text in listing.propagated(call.rlimits, call.umask)]), 2)
    return requests


def cluster_of(who: Speaker, request: JobRequest, site: Site) -> Steps:
    """The name of this cluster where one was asked for: answers then carry it. Empty: none was."""
    if request.clusters is None:
        return ""
    names = request.clusters.split(",")
    known = set(site.accounting.clusters) | {site.config.cluster_name}
    for name in names:
        if name != "all" and name not in known:
            yield Print(f"{who.name}: error: No cluster '{name}' known by database.\n", 2)
    if not any(name == "all" or name in known for name in names):
        text = (
            f"'{request.clusters}' can't be reached now, or it is an invalid entry for --cluster.  "
            "Use 'sacctmgr list clusters' to see available clusters."
        )
        yield from complain(who, error(text, 1), who.failure)
    return site.config.cluster_name


# the controller's answer


def refusal(who: Speaker, refused: Refused) -> Bad:
    """The controller's refusal in the command's words."""
    text = refused.errno.text
    last = text if who.name == "sbatch" and refused.errno in BARE else FAILED[who.name] + text
    return Bad((*(("error", line) for line in refused.before), ("error", last)), 1)


def tested(who: Speaker, answer: Submitted | Refused, tz: datetime.tzinfo) -> Steps:
    """What --test-only says; the exit code."""
    if isinstance(answer, Refused):
        before = "".join(f"{who.name}: error: {text}\n" for text in answer.before)
        yield Print(f"{before}allocation failure: {answer.errno.text}\n", 2)
        return who.failure
    yield Print("".join(f"{who.name}: {warning}\n" for warning in answer.warnings), 2)
    if not who.quiet:
        start = times.render(answer.start, tz)
        text = f"{who.name}: Job {answer.job_id} to start at {start} a using {answer.cpus} processors on nodes "
        yield Print(f"{text}{answer.nodes} in partition {answer.partition}\n", 2)
    return 0
