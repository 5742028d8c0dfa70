"""sbcast: copy a file to the nodes of a job (sbcast(1), Slurm 26.05). The client sends it to the job's supervisor.

What only tunes Slurm's own way of copying (compression, fan-out, block size, timeout) is accepted: the copy is the same.
"""

from __future__ import annotations

import re

from slurmbridge.commands.effects import Call, Command, HandOver, Print, Recall, Returned, Site
from slurmbridge.commands.help_page import help_page
from slurmbridge.errors import SlurmErrno
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

VERSION = "slurm-wlm 26.05.5\n"
USAGE = "Usage: sbcast [--exclude] [-CfFjpvV] [--send-libs] SOURCE DEST\n"
_R, _O = Arg.REQUIRED, Arg.OPTIONAL
OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("compress", "C", _O), Opt("exclude", "", _R), Opt("fanout", "F", _R),
        Opt("force", "f"), Opt("help"), Opt("jobid", "j", _R), Opt("send-libs", "", _O), Opt("preserve", "p"),
        Opt("size", "s", _R), Opt("timeout", "t", _R), Opt("treewidth", "", _R), Opt("usage"), Opt("verbose", "v"),
        Opt("version", "V"),
    )
)  # fmt: skip
HELP = help_page(
    "sbcast [OPTIONS] SOURCE DEST",
    24,
    (
        ("-C, --compress[=lib]", "accepted: files are sent as they are"),
        ("    --exclude=PATHS", "accepted: no libraries are sent"),
        ("-f, --force", "replace a file that is there"),
        ("-F, --fanout=N", "accepted: there is one way to the nodes"),
        ("    --help", "this text"),
        ("-j, --jobid=ID", "the job; without it the one around"),
        ("-p, --preserve", "keep the times of the file"),
        ("    --send-libs[=yes|no]", "libraries too: not available"),
        ("-s, --size=N", "bytes in a block (K, M)"),
        ("-t, --timeout=SECONDS", "accepted"),
        ("    --treewidth=N", "accepted"),
        ("    --usage", "a short form of this text"),
        ("-v, --verbose", "say more"),
        ("-V, --version", "the version"),
    ),
)
NO_JOB = "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option."
COMPRESSIONS = ("", "lz4", "none", "zlib")
TWINS = {"SBCAST_FORCE": "force", "SBCAST_PRESERVE": "preserve"}


def main(call: Call, site: Site) -> Command:
    """sbcast [OPTIONS] SOURCE DEST."""
    found = getopt.scan(OPTIONS, call.argv[1:])
    parsed = getopt.Parsed(options=tuple(found.options), operands=tuple(found.operands))
    for key, text in (("help", HELP), ("usage", USAGE), ("version", VERSION)):
        if parsed.has(key):
            yield Print(text)
            return 0
    if found.problem:
        yield Print("".join(f"{line}\n" for line in getopt.complain(call.argv[0], found.problem).lines), 2)
        return 1
    yield Print(_remarks(parsed), 2)
    if len(parsed.operands) != 2:
        count = len(parsed.operands)
        yield Print(f'Need two file names, have {count} names\nTry "sbcast --help" for more information\n', 2)
        return 1
    source, dest = parsed.operands
    if (parsed.last("send-libs") if parsed.has("send-libs") else "no") not in ("no", "n"):
        return (yield from _no("--send-libs: libraries are not sent; copy what the program needs by itself"))
    if dest.endswith("/"):
        return (yield from _no("Target filename cannot be a directory."))
    asked = parsed.last("jobid") or call.env.get("SBCAST_JOBID") or call.env.get("SLURM_JOB_ID")
    if not asked:
        return (yield from _no(NO_JOB))
    head = asked.partition(".")[0].partition("+")[0]
    if not head.isdecimal() or int(head) == 0:
        yield Print(f"sbcast: fatal: Bad job/step specified: {asked}: JobID can not be zero\n", 2)
        return 1
    job = site.job(int(head))
    errno: SlurmErrno | None = None
    if job is None or job.is_finished:
        errno = SlurmErrno.INVALID_JOB_ID
    elif job.is_pending:
        errno = SlurmErrno.JOB_PENDING
    elif call.uid not in (0, job.spec.uid):
        errno = SlurmErrno.ACCESS_DENIED
    if job is None or errno is not None:
        text = (errno or SlurmErrno.INVALID_JOB_ID).text
        return (yield from _no(f"Failed to load JobId={head}: '{text}'"))
    facts: list[tuple[str, object]] = [("source", source), ("dest", dest), ("block", _size(parsed.last("size")))]
    for variable, option in TWINS.items():
        facts.append((option, parsed.has(option) or variable in call.env))
    if parsed.has("verbose"):
        yield Print(f"sbcast: source     = {source}\nsbcast: dest       = {dest}\nsbcast: jobid      = {head}\n", 2)
    returned: Returned = yield HandOver(job_id=job.job_id, what="cast", facts=tuple(facts))
    if returned.is_over:
        returned = yield Recall()
    return returned.code


def _remarks(parsed: getopt.Parsed) -> str:
    """What is wrong with values that have no effect anyway."""
    said = ""
    compress = parsed.last("compress") or ""
    if compress not in COMPRESSIONS:
        said += f"sbcast: error: Compression type '{compress}' unknown, disabling compression support.\n"
    size = parsed.last("size")
    if size is not None and _size(size) == 0:
        said += "size specification is invalid, ignored\n"
    return said


def _size(text: str | None) -> int:
    """Bytes in a block; 0: not said, or nonsense."""
    match = re.fullmatch(r"([0-9]{1,9})([kKmM]?)", text or "")
    return int(match[1]) << {"": 0, "k": 10, "m": 20}[match[2].lower()] if match else 0


def _no(text: str) -> Command:
    yield Print(f"sbcast: error: {text}\n", 2)
    return 1
