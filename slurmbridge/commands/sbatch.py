"""sbatch: submit a batch script (sbatch(1), Slurm 26.05).

Order of events, as users see mistakes: the command line, the script, then options by source, then what goes with them,
then the controller. Everything the command reads or does is an effect; decisions are in `submit`.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Sequence
from typing import Any, NoReturn

import msgspec

from slurmbridge.commands.effects import (
    Call,
    Command,
    Component,
    Effect,
    FileData,
    Print,
    ReadFile,
    ReadStdin,
    Site,
    Submit,
    Submitted,
    WaitFor,
)
from slurmbridge.commands.listing import time_zone
from slurmbridge.errors import SlurmErrno
from slurmbridge.lang import hostlist, times
from slurmbridge.lang.directives import Script, read_script
from slurmbridge.model.job import Job
from slurmbridge.model.request import JobRequest
from slurmbridge.model.verdict import Refused, UsageError
from slurmbridge.submit import helptext, listing
from slurmbridge.submit.exporting import exported
from slurmbridge.submit.merge import CommandLine, Draft, Early, first_pass, merge, typed_values
from slurmbridge.submit.value import Bad, Clock, error, fatal
from slurmbridge.submit.verify import verify

VERSION = "slurm-wlm 26.05.5\n"
WRAPPED = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n"
BARE = frozenset({SlurmErrno.INVALID_GRES, SlurmErrno.INVALID_GRES_MIX})
"""Refusals that sbatch prints without `Batch job submission failed: `."""

_PROBLEMS = {
    "empty": ("Batch script is empty!",),
    "whitespace": ("Batch script contains only whitespace!",),
    "no_shebang": (
        "This does not look like a batch script.  The first",
        "line must start with #! followed by the path to an interpreter.",
        "For instance: #!/bin/sh",
    ),
    "nul": ("The Slurm controller does not allow scripts that", "contain a NULL character '\\0'."),
    "dos": ("Batch script contains DOS line breaks (\\r\\n)", "instead of expected UNIX line breaks (\\n)."),
}

EFBIG, EISDIR = 27, 21
Steps = Generator[Effect, Any, Any]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The script as read: content, directives, the name that messages use, the path that is kept, the job's name."""

    content: bytes
    script: Script | None
    label: str
    path: str | None
    job_name: str


class Stop(Exception):
    """Ends the command with an exit code; everything has been said."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def main(call: Call, site: Site) -> Command:
    """sbatch [OPTIONS] [ : OPTIONS] [SCRIPT [ARGS]]."""
    try:
        return (yield from _run(call, site, time_zone(call, site)))
    except Stop as stop:
        return stop.exit_code


def _run(call: Call, site: Site, tz: datetime.tzinfo) -> Command:
    failure = yield from _exit_error(call)
    line = first_pass("sbatch", call.argv)
    if isinstance(line, UsageError):
        yield Print("".join(f"{text}\n" for text in line.lines), 2)
        return line.exit_code
    if isinstance(line, Early):
        yield Print(_early(line))
        return 0
    clock = Clock(call.now, tz)
    typed = typed_values("sbatch", line, clock)
    if isinstance(typed, Bad):
        return (yield from _complain(typed))
    yield from _identity(typed, call, site)
    source = yield from _source(line, failure)
    drafts = merge("sbatch", line, call.env, source.script, script_name=source.label, clock=clock, typed=typed)
    if isinstance(drafts, Bad):
        return (yield from _complain(drafts))
    verbose = line.verbose or _number(call.env.get("SBATCH_DEBUG", ""))
    for draft in drafts:
        if line.wrap is not None:
            draft.values["wrap"] = line.wrap
        yield from _files(draft, failure)
        yield from _identity(draft, call, site)
    requests = yield from _requests(drafts, line, call, site, failure, verbose, tz)
    cluster = yield from _cluster(requests[0], site, failure)
    components = []
    for index, request in enumerate(requests):
        leader = request if index == 0 else msgspec.structs.replace(request, mail_type=())
        components.append((yield from _component(leader, source, line, call, failure, verbose)))
    answer = yield Submit(components=tuple(components), test_only=requests[0].test_only)
    return (yield from _answer(answer, requests[0], line, cluster, failure, tz))


def _early(line: Early) -> str:
    if line.what == "version":
        return VERSION
    if line.what == "autocomplete":
        return helptext.complete("sbatch", line.text)
    return helptext.usage("sbatch") if line.what == "usage" else helptext.help_page("sbatch")


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _exit_error(call: Call) -> Steps:
    """SLURM_EXIT_ERROR: the exit code of everything but wrong options."""
    text = call.env.get("SLURM_EXIT_ERROR")
    if text is None:
        return 1
    code = _number(text)
    if code == 0:
        yield Print("sbatch: error: SLURM_EXIT_ERROR has zero value\n", 2)
        return 1
    return code & 0xFF


# what is said


def _lines(lines: Sequence[tuple[str, str]], verbose: int = 0) -> str:
    """(level, text) lines as sbatch prints them."""
    shown = []
    for level, text in lines:
        if level == "":
            shown.append(f"{text}\n")
        elif level in ("program", "info") or (level == "verbose" and verbose):
            shown.append(f"sbatch: {text}\n")
        elif level != "verbose":
            shown.append(f"sbatch: {level}: {text}\n")
    return "".join(shown)


def _complain(bad: Bad, failure: int | None = None) -> Generator[Effect, Any, NoReturn]:
    """`failure`: the exit code to take instead of 1, for what is no wrong option."""
    if bad.stdout:
        yield Print(bad.stdout)
    if bad.lines:
        yield Print(_lines(bad.lines), 2)
    is_fatal = any(level == "fatal" for level, _ in bad.lines)
    raise Stop(failure if failure is not None and bad.exit_code == 1 and not is_fatal else bad.exit_code)


# the script


def _source(line: CommandLine, failure: int) -> Steps:
    if line.wrap is not None:
        if line.operands:
            yield from _complain(error("Script arguments not permitted with --wrap option", 1), failure)
        content = WRAPPED.format(command=line.wrap).encode("utf-8", "surrogateescape")
        return Source(content=content, script=None, label="", path=None, job_name="wrap")
    if not line.operands:
        data: FileData = yield ReadStdin()
        return (yield from _checked(data, "", None, "sbatch", failure))
    name = line.operands[0]
    data = yield ReadFile(name=name, search_path=True)
    if data.errno == EISDIR:
        data = FileData(path=data.path)
    elif data.errno not in (0, EFBIG):
        yield from _complain(error(f"Unable to open file {data.path or name}", 1), failure)
    path = name if name.startswith((".", "/")) else (data.path or name)
    return (yield from _checked(data, name, path, name.rpartition("/")[2], failure))


def _checked(data: FileData, label: str, path: str | None, job_name: str, failure: int) -> Steps:
    if data.errno == EFBIG:
        yield from _complain(_refusal(Refused(errno=SlurmErrno.PATHNAME_TOO_LONG)), failure)
    script = read_script(data.data)
    if script.problem is not None:
        yield from _complain(Bad(tuple(("error", text) for text in _PROBLEMS[script.problem]), 1), failure)
    for warning in script.warnings:
        yield Print(f"sbatch: warning: {warning}\n", 2)
    broken = next((each for each in script.directives if each.error), None)
    if broken is not None:
        yield from _complain(fatal(f"{label}: line {broken.line}: {broken.error}"))
    return Source(content=data.data, script=script, label=label, path=path, job_name=job_name)


# files that options name


def _files(draft: Draft, failure: int) -> Steps:
    values = draft.values
    name = values.get("+burst-buffer-file")
    if isinstance(name, str):
        data: FileData = yield ReadFile(name=name)
        if data.errno:
            yield from _complain(error("Invalid --bbf specification", 1), failure)
        values["burst_buffer"] = data.data.decode("utf-8", "surrogateescape")
    for field in ("nodelist", "exclude"):
        name = values.get(f"+{field}-file")
        if isinstance(name, str):
            yield from _host_file(draft, field, name)


def _host_file(draft: Draft, field: str, name: str) -> Steps:
    """One hostlist a line, or several joined by blanks and commas."""
    option = "--nodefile node file" if draft.values.get("+nodefile") else f"--{field} specification"
    data: FileData = yield ReadFile(name=name)
    if data.errno:
        text = f"slurm_allocate_resources error opening file {name}, No such file or directory"
        yield from _complain(Bad((("error", text), ("error", f"Invalid {option}")), 255))
    words = data.data.decode("utf-8", "surrogateescape").replace(",", "\n")
    hosts: list[str] = []
    for word in words.split():
        hosts += hostlist.expand(word)
    if not hosts:
        yield from _complain(Bad((("error", "Hostlist is empty!"), ("error", f"Invalid {option}")), 255))
    draft.values[field] = tuple(hosts)


def _identity(draft: Draft, call: Call, site: Site) -> Steps:
    """--uid and --gid are root's; names become numbers."""
    for long, find in (("uid", site.user_id), ("gid", site.group_id)):
        text = draft.values.get(long)
        if text is None:
            continue
        if call.uid != 0:
            yield from _complain(error(f"--{long} only permitted by root user"))
        number = int(str(text)) if str(text).isdigit() else find(str(text))
        if number is None:
            yield from _complain(error(f"Invalid --{long} specification"))
        draft.values[long] = str(number)


# the request


def _requests(
    drafts: Sequence[Draft],
    line: CommandLine,
    call: Call,
    site: Site,
    failure: int,
    verbose: int,
    tz: datetime.tzinfo,
) -> Steps:
    requests = []
    for draft in drafts:
        found = verify(draft, site.config, is_admin=site.is_operator(call.uid), components=len(drafts))
        if verbose and not (isinstance(found, Bad) and found.exit_code == 255):
            lines = listing.defined_options(draft, verbose=verbose, wrap=line.wrap, cwd=call.cwd, tz=tz)
            before = found.lines if not isinstance(found, Bad) else ()
            yield Print(_lines((*before, *(("info", text) for text in lines)), verbose), 2)
        elif not isinstance(found, Bad) and found.lines:
            spoken = tuple(each for each in found.lines if each[0] == "error" or not line.quiet)
            yield Print(_lines(spoken, verbose), 2)
        if isinstance(found, Bad):
            yield from _complain(found, failure)
        else:
            requests.append(found.request)
    if verbose > 1:
        yield Print(_lines([("info", text) for text in listing.propagated(call.rlimits, call.umask)]), 2)
    return requests


def _cluster(request: JobRequest, site: Site, failure: int) -> Steps:
    """The name of this cluster where one was asked for: answers then carry it. Empty: none was."""
    if request.clusters is None:
        return ""
    names = request.clusters.split(",")
    known = set(site.accounting.clusters) | {site.config.cluster_name}
    for name in names:
        if name != "all" and name not in known:
            yield Print(f"sbatch: error: No cluster '{name}' known by database.\n", 2)
    if not any(name == "all" or name in known for name in names):
        text = (
            f"'{request.clusters}' can't be reached now, or it is an invalid entry for --cluster.  "
            "Use 'sacctmgr list clusters' to see available clusters."
        )
        yield from _complain(error(text, 1), failure)
    return site.config.cluster_name


def _component(request: JobRequest, source: Source, line: CommandLine, call: Call, failure: int, verbose: int) -> Steps:
    content: bytes | None = None
    if request.export_file is not None:
        name = request.export_file
        data: FileData = (yield ReadFile(name=name)) if name and not name.isdigit() else FileData(errno=2)
        if data.errno:
            yield from _complain(error(f"Could not open user environment file {name}", 1), failure)
        content = data.data
        if verbose:
            yield Print(f"sbatch: Getting environment variables from {name}\n", 2)
    env = exported(request.export, call.env, call.cwd, file=content)
    if isinstance(env, Bad):
        return (yield from _complain(env))
    if request.name is None:
        request = msgspec.structs.replace(request, name=source.job_name)
    return Component(
        request=request,
        script=source.content,
        script_args=line.operands[1:],
        script_path=source.path,
        env=env,
    )


# the answer


def _refusal(refused: Refused) -> Bad:
    text = refused.errno.text
    last = text if refused.errno in BARE else f"Batch job submission failed: {text}"
    return Bad((*(("error", line) for line in refused.before), ("error", last)), 1)


def _answer(
    answer: Submitted | Refused,
    request: JobRequest,
    line: CommandLine,
    cluster: str,
    failure: int,
    tz: datetime.tzinfo,
) -> Command:
    if isinstance(answer, Refused):
        if request.test_only:
            before = "".join(f"sbatch: error: {text}\n" for text in answer.before)
            yield Print(f"{before}allocation failure: {answer.errno.text}\n", 2)
            return failure
        return (yield from _complain(_refusal(answer), failure))
    for warning in answer.warnings:
        yield Print(f"sbatch: {warning}\n", 2)
    if request.test_only:
        if not line.quiet:
            yield Print(_estimate(answer, tz), 2)
        return 0
    if not line.quiet:
        yield Print(_success(answer, request, cluster))
    return (yield from _wait(answer.job_id)) if request.wait else 0


def _estimate(answer: Submitted, tz: datetime.tzinfo) -> str:
    start = times.render(answer.start, tz)
    return (
        f"sbatch: Job {answer.job_id} to start at {start} a using {answer.cpus} processors on nodes {answer.nodes} "
        f"in partition {answer.partition}\n"
    )


def _success(answer: Submitted, request: JobRequest, cluster: str) -> str:
    if request.parsable:
        return f"{answer.job_id};{cluster}\n" if cluster else f"{answer.job_id}\n"
    return f"Submitted batch job {answer.job_id}" + (f" on cluster {cluster}\n" if cluster else "\n")


def _wait(job_id: int) -> Command:
    """Until the job (all tasks of it) has ended: the highest exit code, 1 where a signal ended it."""
    jobs: tuple[Job, ...] = yield WaitFor(job_ids=(job_id,))
    return max((_exit_code(job.exit_code) for job in jobs), default=0)


def _exit_code(status: int) -> int:
    return 1 if status & 0x7F else (status >> 8) & 0xFF
