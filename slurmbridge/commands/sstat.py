"""sstat: what do running steps use now?

Follows sstat(1). Without a step the lowest numbered one counts, with --allsteps every step; only the job's owner and
operators are answered. Columns are sacct's, with the widths that sstat gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Command, Print, Site
from slurmbridge.commands.help_page import help_page
from slurmbridge.commands.listing import Stop
from slurmbridge.commands.sacct_options import parse_job
from slurmbridge.fields import sacct as columns
from slurmbridge.fields import text
from slurmbridge.fields.accounting import AccountRow
from slurmbridge.model.job import Job, Step
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

_R = Arg.REQUIRED

OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("allsteps", "a"), Opt("helpformat", "e"), Opt("help", "h"), Opt("jobs", "j", _R),
        Opt("noheader", "n"), Opt("format", "o", _R), Opt("fields", "", _R, "format"), Opt("pidformat", "i"),
        Opt("noconvert"), Opt("parsable", "p"), Opt("parsable2", "P"), Opt("usage"), Opt("verbose", "v"),
        Opt("version", "V"),
    )
)  # fmt: skip

_NAMES = (
    "AllocTRES", "AveCPU", "AveCPUFreq", "AveDiskRead", "AveDiskWrite", "AvePages", "AveRSS", "AveVMSize",
    "ConsumedEnergy", "ConsumedEnergyRaw", "JobID", "MaxDiskRead", "MaxDiskReadNode", "MaxDiskReadTask", "MaxDiskWrite",
    "MaxDiskWriteNode", "MaxDiskWriteTask", "MaxPages", "MaxPagesNode", "MaxPagesTask", "MaxRSS", "MaxRSSNode",
    "MaxRSSTask", "MaxVMSize", "MaxVMSizeNode", "MaxVMSizeTask", "MinCPU", "MinCPUNode", "MinCPUTask", "Nodelist",
    "NTasks", "Pids", "ReqCPUFreq", "ReqCPUFreqMin", "ReqCPUFreqMax", "ReqCPUFreqGov", "SLUID", "TRESUsageInAve",
    "TRESUsageInMax", "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin", "TRESUsageInMinNode",
    "TRESUsageInMinTask", "TRESUsageInTot", "TRESUsageOutAve", "TRESUsageOutMax", "TRESUsageOutMaxNode",
    "TRESUsageOutMaxTask", "TRESUsageOutMin", "TRESUsageOutMinNode", "TRESUsageOutMinTask", "TRESUsageOutTot",
)  # fmt: skip
_DEFAULT = tuple(
    name.lower()
    for name in (
        "JobID", "AllocTRES", "MaxVMSize", "MaxVMSizeNode", "MaxVMSizeTask", "AveVMSize", "MaxRSS", "MaxRSSNode",
        "MaxRSSTask", "AveRSS", "MaxPages", "MaxPagesNode", "MaxPagesTask", "AvePages", "MinCPU", "MinCPUNode",
        "MinCPUTask", "AveCPU", "NTasks", "AveCPUFreq", "ReqCPUFreqMin", "ReqCPUFreqMax", "ReqCPUFreqGov",
        "ConsumedEnergy", "MaxDiskRead", "MaxDiskReadNode", "MaxDiskReadTask", "AveDiskRead", "MaxDiskWrite",
        "MaxDiskWriteNode", "MaxDiskWriteTask", "AveDiskWrite", *_NAMES[_NAMES.index("TRESUsageInAve") :],
    )
)  # fmt: skip
_WIDTHS = {"AveDiskRead": 12, "AveDiskWrite": 12, "Nodelist": 20, "Pids": 20}

USAGE = "Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n"
HELP = help_page(
    "sstat [<OPTION>] -j <job(.stepid)>",
    28,
    (
        ("-a, --allsteps", "all steps of jobs that are given without a step"),
        ("-e, --helpformat", "names of --format"),
        ("-h, --help", "this text"),
        ("-i, --pidformat", "job, nodes and process ids"),
        ("-j, --jobs=LIST", "jobs or steps: ID, ID.STEP, ID.batch"),
        ("-n, --noheader", "no heading"),
        ("    --noconvert", "memory in the unit it was measured in"),
        ("-o, --format=LIST", "columns: NAME[%[-]WIDTH]"),
        ("-p, --parsable", "fields with | behind each"),
        ("-P, --parsable2", "fields with | between them"),
        ("    --usage", "a short form of this text"),
        ("-v, --verbose", "accepted"),
        ("-V, --version", "the version"),
    ),
)


def main(call: Call, site: Site) -> Command:
    """Exit code 0, or 1 for a wrong request."""
    scan = getopt.scan(OPTIONS, call.argv[1:])
    texts: dict[str, Callable[[], str]] = {
        "help": lambda: HELP,
        "usage": lambda: USAGE,
        "version": lambda: listing.VERSION + "\n",
        "helpformat": _help_names,
    }
    for given in scan.options:
        if given.key in texts:
            yield Print(texts[given.key]())
            return 0
    if scan.problem:
        yield from listing.errors(*getopt.complain("sstat", scan.problem, hint="").lines)
        return 1
    parsed = scan.parsed
    asked = [word for value in parsed.all("jobs") for word in listing.words(value or "")] + list(parsed.operands)
    if not asked:
        yield Print("sstat: error: You didn't give me any jobs to stat.\n", 2)
        return 1
    placed = _place(parsed)
    if isinstance(placed, Stop):
        yield from placed.effects()
        return placed.exit_code
    lines: list[str] = []
    mode = 2 if parsed.has("parsable2") else 1 if parsed.has("parsable") else 0
    if not parsed.has("noheader"):
        lines.extend(["|".join(p.column.name for p in placed) + "|" * (mode == 1)] if mode else columns.header(placed))
    view = listing.make_view(call, site, convert=not parsed.has("noconvert"))
    for word in asked:
        pick = parse_job(word)
        if isinstance(pick, str):
            yield Print(f"sstat: fatal: Bad job/step specified: {pick}\n", 2)
            return 1
        for found in _steps(pick, call, site, every=parsed.has("allsteps")):
            if isinstance(found, str):
                yield Print(f"sstat: error: {found}\n", 2)
                continue
            values = [each.column.get(found, view) for each in placed]
            if mode:
                lines.append("|".join(values) + "|" * (mode == 1))
            else:
                lines.append("".join(columns.cell(value, each) for value, each in zip(values, placed, strict=True)))
    if lines:
        yield Print("\n".join(lines) + "\n")
    return 0


def _place(parsed: getopt.Parsed) -> list[columns.Placed] | Stop:
    chosen = parsed.last("format")
    if chosen is None:
        chosen = "jobid,nodelist,pids" if parsed.has("pidformat") else ",".join(_DEFAULT)
    placed: list[columns.Placed] = []
    for word in listing.words(chosen):
        name, percent, _ = word.partition("%")
        full = next((each for each in _NAMES if each.lower() == name.lower()), None) or next(
            (each for each in _NAMES if each.lower().startswith(name.lower())), None
        )
        if full is None:
            return Stop(stderr=(f'sstat: error: Invalid field requested: "{name}"',))
        if full == "Pids":
            column = columns.Column("Pids", 20, lambda row, view: "")
            found = columns.Placed(column, 20, False)
        else:
            found = columns.place(full + word[len(name) :])[0][0]
        if not percent and full in _WIDTHS:
            found = replace(found, width=_WIDTHS[full])
        placed.append(replace(found, column=replace(found.column, name=full)))
    return placed


def _steps(
    pick: tuple[int, int | None, int | None], call: Call, site: Site, *, every: bool
) -> Iterator[AccountRow | str]:
    """Rows of running steps, or why there are none."""
    number, part, wanted = pick
    label = f"{number}_{part}" if part is not None else str(number)
    job = _job(number, part, site)
    running = sorted(site.steps(job.job_id), key=text.step_order) if job is not None else []
    if job is None or not running:
        yield f"couldn't get steps for JobId={label}" if job is None else f"No steps running for JobId={label}"
        return
    if call.uid != job.spec.uid and not site.is_operator(call.uid):
        first = text.step_label(running[-1].step_id)
        yield f"problem getting step_layout for StepId={label}.{first}: Invalid user id"
        return
    if wanted is not None:
        chosen = [step for step in running if step.step_id == wanted]
    else:
        numbered = [step for step in running if step.step_id >= 0]
        chosen = running if every else numbered[:1]
    if not chosen:
        missing = "" if wanted is None else f".{text.step_label(wanted)}"
        yield f"StepId={label}{missing} not found running."
    yield from (_row(job, step) for step in chosen)


def _row(job: Job, step: Step) -> AccountRow:
    return AccountRow(job=job, step=step, steps=(step,))


def _job(number: int, part: int | None, site: Site) -> Job | None:
    if part is None:
        return site.job(number)
    candidates = (*site.jobs_of_array(number), *site.jobs_of_het(number))
    return next(
        (job for job in candidates if part in (job.array_task_id, job.het_offset if job.het_job_id else None)), None
    )


def _help_names() -> str:
    rows = [_NAMES[at : at + 4] for at in range(0, len(_NAMES), 4)]
    return "".join(" ".join(f"{name:<19}" for name in row) + "\n" for row in rows)
