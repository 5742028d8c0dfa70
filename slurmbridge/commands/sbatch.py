"""sbatch: submit a batch script (sbatch(1), Slurm 26.05).

Order of events, as users see mistakes: the command line, the script, then options by source, then what goes with them,
then the controller. Everything the command reads or does is an effect; decisions are in `submit`.
"""

from __future__ import annotations

import datetime

import msgspec

from slurmbridge.commands.effects import (
    Call,
    Command,
    Component,
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
from slurmbridge.commands.repeated import Key, Told, Words, key_of, stands_alone
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
from slurmbridge.lang.directives import Script, read_script
from slurmbridge.model.job import Job
from slurmbridge.model.request import JobRequest
from slurmbridge.model.verdict import Refused
from slurmbridge.submit.exporting import exported
from slurmbridge.submit.merge import CommandLine, Draft, first_pass, merge, typed_values
from slurmbridge.submit.value import Bad, Clock, error, fatal

WRAPPED = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n"

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


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The script as read: content, directives, the name that messages use, the path that is kept, the job's name."""

    content: bytes
    script: Script | None
    label: str
    path: str | None
    job_name: str


def main(call: Call, site: Site) -> Command:
    """sbatch [OPTIONS] [ : OPTIONS] [SCRIPT [ARGS]]."""
    try:
        return (yield from _run(call, site, time_zone(call, site)))
    except Stop as stop:
        return stop.exit_code


def _run(call: Call, site: Site, tz: datetime.tzinfo) -> Command:
    who: Speaker = yield from speaker("sbatch", call)
    line: CommandLine = yield from checked_line(who, first_pass("sbatch", call.argv))
    clock = Clock(call.now, tz)
    typed = typed_values("sbatch", line, clock)
    if isinstance(typed, Bad):
        return (yield from complain(who, typed))
    yield from settle_identity(who, typed, call, site)
    source = yield from _source(who, line)
    verbose = line.verbose or number(call.env.get("SBATCH_DEBUG", ""))
    who = msgspec.structs.replace(who, verbose=verbose, quiet=bool(line.quiet))
    yield from one_voice(who)
    said = key_of(call.argv, call.env, source.script, source.label, source.job_name, tz, site.is_operator(call.uid))
    requests = _WORDS.find(said, site.config)
    if requests is None:
        requests = yield from _requests(who, line, typed, source, clock, call, site, said)
    cluster = yield from cluster_of(who, requests[0], site)
    components = []
    for index, request in enumerate(requests):
        leader = request if index == 0 else msgspec.structs.replace(request, mail_type=())
        components.append((yield from _component(who, leader, source, line, call)))
    answer = yield Submit(components=tuple(components), test_only=requests[0].test_only)
    return (yield from _answer(who, answer, requests[0], cluster, tz))


_WORDS = Words()


def _requests(
    who: Speaker,
    line: CommandLine,
    typed: Draft,
    source: Source,
    clock: Clock,
    call: Call,
    site: Site,
    said: Key | None,
) -> Steps:
    """One request per component; remembered by what was said when there is nothing to tell about it."""
    drafts = merge("sbatch", line, call.env, source.script, script_name=source.label, clock=clock, typed=typed)
    if isinstance(drafts, Bad):
        return (yield from complain(who, drafts))
    told = Told()
    for draft in drafts:
        if line.wrap is not None:
            draft.values["wrap"] = line.wrap
        yield from told.of(read_files(who, draft))
        yield from told.of(settle_identity(who, draft, call, site))
    found: list[JobRequest] = yield from told.of(requests_of(who, drafts, line, call, site, clock.tz))
    requests = tuple(
        request if request.name is not None else msgspec.structs.replace(request, name=source.job_name)
        for request in found
    )
    if not told.anything and not who.verbose and stands_alone(drafts):
        _WORDS.keep(said, site.config, requests)
    return requests


# the script


def _source(who: Speaker, line: CommandLine) -> Steps:
    if line.wrap is not None:
        if line.operands:
            yield from complain(who, error("Script arguments not permitted with --wrap option", 1), who.failure)
        content = WRAPPED.format(command=line.wrap).encode("utf-8", "surrogateescape")
        return Source(content=content, script=None, label="", path=None, job_name="wrap")
    if not line.operands:
        data: FileData = yield ReadStdin()
        return (yield from _checked(who, data, "", None, "sbatch"))
    name = line.operands[0]
    data = yield ReadFile(name=name, search_path=True)
    if data.errno == EISDIR:
        data = FileData(path=data.path)
    elif data.errno not in (0, EFBIG):
        yield from complain(who, error(f"Unable to open file {data.path or name}", 1), who.failure)
    path = name if name.startswith((".", "/")) else (data.path or name)
    return (yield from _checked(who, data, name, path, name.rpartition("/")[2]))


def _checked(who: Speaker, data: FileData, label: str, path: str | None, job_name: str) -> Steps:
    if data.errno == EFBIG:
        yield from complain(who, refusal(who, Refused(errno=SlurmErrno.PATHNAME_TOO_LONG)), who.failure)
    script = read_script(data.data)
    if script.problem is not None:
        yield from complain(who, Bad(tuple(("error", text) for text in _PROBLEMS[script.problem]), 1), who.failure)
    for warning in script.warnings:
        yield Print(f"sbatch: warning: {warning}\n", 2)
    broken = next((each for each in script.directives if each.error), None)
    if broken is not None:
        yield from complain(who, fatal(f"{label}: line {broken.line}: {broken.error}"))
    return Source(content=data.data, script=script, label=label, path=path, job_name=job_name)


# the request


def _component(who: Speaker, request: JobRequest, source: Source, line: CommandLine, call: Call) -> Steps:
    content: bytes | None = None
    if request.export_file is not None:
        name = request.export_file
        data: FileData = (yield ReadFile(name=name)) if name and not name.isdecimal() else FileData(errno=2)
        if data.errno:
            yield from complain(who, error(f"Could not open user environment file {name}", 1), who.failure)
        content = data.data
        if who.verbose:
            yield Print(f"sbatch: Getting environment variables from {name}\n", 2)
    env = exported(request.export, call.env, call.cwd, file=content)
    if isinstance(env, Bad):
        return (yield from complain(who, env))
    return Component(
        request=request,
        script=source.content,
        script_args=line.operands[1:],
        script_path=source.path,
        env=env,
    )


# the answer


def _answer(
    who: Speaker, answer: Submitted | Refused, request: JobRequest, cluster: str, tz: datetime.tzinfo
) -> Command:
    if request.test_only:
        code: int = yield from tested(who, answer, tz)
        return code
    if isinstance(answer, Refused):
        return (yield from complain(who, refusal(who, answer), who.failure))
    for warning in answer.warnings:
        yield Print(f"sbatch: {warning}\n", 2)
    for note in () if who.quiet else answer.notes:
        yield Print(f"sbatch: {note}\n", 2)
    if not who.quiet:
        yield Print(_success(answer, request, cluster))
    return (yield from _wait(answer.job_id)) if request.wait else 0


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
