"""sattach: look on at a running step (sattach(1), Slurm 26.05). The client speaks to the step's supervisor.

Output that goes to files on the nodes is not seen, as with Slurm. Only the job's owner and root get through.
"""

from __future__ import annotations

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Command, HandOver, Print, Recall, Returned, Site
from slurmbridge.commands.help_page import help_page
from slurmbridge.errors import SlurmErrno
from slurmbridge.lang import hostlist
from slurmbridge.model.job import Job, Step
from slurmbridge.model.verdict import UsageError
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

VERSION = "slurm-wlm 26.05.5\n"
USAGE = "Usage: sattach [options] <jobid.stepid>\n"
_R = Arg.REQUIRED
FILTERS = {"input-filter": "input", "output-filter": "output", "error-filter": "error"}
OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("error-filter", "", _R), Opt("help", "h"), Opt("input-filter", "", _R),
        Opt("label", "l"), Opt("layout"), Opt("output-filter", "", _R), Opt("pty"), Opt("quiet", "Q"), Opt("usage", "u"),
        Opt("verbose", "v"), Opt("version", "V"),
    )
)  # fmt: skip
HELP = help_page(
    "sattach [options] <jobid.stepid>",
    24,
    (
        ("    --error-filter=TASK", "stderr of this task alone: a number, all or none"),
        ("-h, --help", "this text"),
        ("    --input-filter=TASK", "pass stdin to this task alone"),
        ("-l, --label", "the task's number before each line"),
        ("    --layout", "print which task is on which node, and leave"),
        ("    --output-filter=TASK", "stdout of this task alone"),
        ("    --pty", "not available"),
        ("-Q, --quiet", "say less"),
        ("-u, --usage", "a short form of this text"),
        ("-v, --verbose", "say more"),
        ("-V, --version", "the version"),
    ),
)


def main(call: Call, site: Site) -> Command:
    """sattach [OPTIONS] JOB.STEP."""
    found = getopt.scan(OPTIONS, call.argv[1:])
    parsed = getopt.Parsed(options=tuple(found.options), operands=tuple(found.operands))
    for key, text in (("help", HELP), ("usage", USAGE), ("version", VERSION)):
        if parsed.has(key):
            yield Print(text)
            return 0
    if found.problem:
        yield Print(_lines(getopt.complain(call.argv[0], found.problem)), 2)
        return 1
    if parsed.has("pty"):
        return (yield from _no("--pty: pseudo terminals are not available"))
    if len(parsed.operands) != 1:
        return (yield from _no("too many parameters", usage=True))
    head, dot, tail = parsed.operands[0].partition(".")
    if not listing.is_id(head) or int(head) == 0:
        yield Print(f"sattach: fatal: Bad job/step specified: {parsed.operands[0]}: JobID can not be zero\n", 2)
        return 1
    if not dot or not listing.is_id(tail):
        return (yield from _no("Failed to parse stepid from command line options", usage=True))
    job = site.job(int(head))
    step = next((each for each in site.steps(int(head)) if each.step_id == int(tail)), None)
    problem = _problem(job, step)
    if problem is None and job is not None and call.uid not in (0, job.spec.uid):
        problem = SlurmErrno.ACCESS_DENIED
    if job is None or step is None or problem is not None:
        errno = problem or SlurmErrno.INVALID_JOB_ID
        return (yield from _no(f"Could not get job step info: {errno.text}"))
    if parsed.has("layout"):
        yield Print(_layout(step))
        return 0
    facts: list[tuple[str, object]] = [("step", step.step_id), ("label", parsed.has("label"))]
    for option, name in FILTERS.items():
        chosen = parsed.last(option)
        if chosen is not None and chosen not in ("all", "none") and not chosen.isdecimal():
            return (yield from _no(f"--{option}: a task's number, all or none"))
        facts.append((name, chosen))
    returned: Returned = yield HandOver(job_id=job.job_id, what="attach", facts=tuple(facts))
    if returned.is_over:
        returned = yield Recall()
    return returned.code


def _problem(job: Job | None, step: Step | None) -> SlurmErrno | None:
    if job is None:
        return SlurmErrno.INVALID_JOB_ID
    if job.is_pending:
        return SlurmErrno.JOB_PENDING
    return SlurmErrno.INVALID_JOB_ID if step is None or job.is_finished else None


def _lines(error: UsageError) -> str:
    return "".join(f"{line}\n" for line in error.lines)


def _no(text: str, *, usage: bool = False) -> Command:
    yield Print(f"sattach: error: {text}\n", 2)
    if usage:
        yield Print(USAGE)
    return 1


def _layout(step: Step) -> str:
    nodes = hostlist.compress_sorted(list(step.nodes))
    return f"Job step layout:\n\t{step.num_tasks} tasks, {len(step.nodes)} nodes ({nodes})\n"
