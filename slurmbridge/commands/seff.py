"""seff: how well did a job use what it held?

The page of Slurm's contributed seff: CPU time over core time, and the largest memory of a step over what was allocated.
Steps that overlap are not added up: memory is that of the step with most, each task counted as much as its largest.
"""

from __future__ import annotations

import msgspec

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Command, History, JobFilter, JobRow, Print, Site
from slurmbridge.fields import text
from slurmbridge.model.job import Job, Step
from slurmbridge.model.states import JobState
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Opt

OPTIONS = getopt.OptTable((Opt("debug", "d"), Opt("help", "h"), Opt("version", "v"), Opt("V", "V", key="version")))
USAGE = "Usage: seff [Options] <Jobid>\n       Options:\n       -h    Help menu\n       -v    Version\n       -d    Debug mode: display raw Slurm data\n"


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds and KiB."""

    wall_s: int
    cpus: int
    used_s: int
    memory_kib: int
    held_kib: int


def main(call: Call, site: Site) -> Command:
    """Exit code 0; 1 for a job that is not known, 2 for a wrong request."""
    parsed = getopt.parse(OPTIONS, call.argv, hint="")
    if not isinstance(parsed, getopt.Parsed):
        yield Print("".join(line + "\n" for line in parsed.lines) + USAGE, 2)
        return 2
    if parsed.has("help") or (not parsed.operands and not parsed.has("version")):
        yield Print(USAGE)
        return 0 if parsed.has("help") else 2
    if parsed.has("version"):
        yield Print(listing.VERSION + "\n")
        return 0
    word = parsed.operands[0]
    number, _, task = word.partition("_")
    if not listing.is_id(number) or (task and not listing.is_id(task)):
        yield Print(f"seff: error: Invalid job id: {word}\n", 2)
        return 2
    wanted = JobFilter(job_ids=((int(number), int(task) if task else None, None),))
    rows: tuple[JobRow, ...] = yield History(filter=wanted)
    rows = tuple(row for row in rows if _may_see(row.job, call, site))
    if not rows:
        yield Print("Job not found.\n", 2)
        return 1
    yield Print(render(rows[0], site, call.now, raw=parsed.has("debug")))
    return 0


def _may_see(job: Job, call: Call, site: Site) -> bool:
    return "jobs" not in site.config.private_data or job.spec.uid == call.uid or site.is_operator(call.uid)


def measure(row: JobRow, now: float) -> Efficiency:
    """What a run used and held, up to now."""
    job, held = row.job, row.job.allocation
    end = job.end_time if job.end_time is not None else now
    wall = int(end) - int(job.start_time) if job.start_time is not None and held is not None else 0
    usages = [step.usage for step in row.steps if step.usage is not None] or ([job.usage] if job.usage else [])
    used_us = sum(usage.user_us + usage.system_us for usage in usages)
    memory = max((_memory(step) for step in row.steps), default=job.usage.max_rss_kib if job.usage else 0)
    return Efficiency(
        wall_s=max(wall, 0),
        cpus=sum(node.cpus for node in held.nodes) if held is not None else 0,
        used_s=used_us // 1_000_000,
        memory_kib=memory,
        held_kib=1024 * sum(node.memory_mib for node in held.nodes) if held is not None else 0,
    )


def _memory(step: Step) -> int:
    return step.usage.max_rss_kib * max(step.num_tasks, 1) if step.usage is not None else 0


def render(row: JobRow, site: Site, now: float, *, raw: bool = False) -> str:
    job, found = row.job, measure(row, now)
    nodes = len(job.allocation.nodes) if job.allocation is not None else 0
    ended = f"{job.state.name} (exit code {job.exit_code >> 8})" if job.is_finished else job.state.name
    lines = [f"Job ID: {job.job_id}"]
    if job.array_job_id:
        lines.append(f"Array Job ID: {text.job_label(job)}")
    lines += [
        f"Cluster: {site.config.cluster_name}",
        f"User/Group: {site.user_name(job.spec.uid)}/{site.group_name(job.spec.gid)}",
        f"State: {ended}",
    ]
    if raw:
        lines.insert(0, f"Raw: {msgspec.json.encode(found).decode()}")
    if nodes == 1 and found.cpus == 1:
        lines.append("Cores: 1")
    elif nodes:
        lines += [f"Nodes: {nodes}", f"Cores per node: {_per_node(found.cpus, nodes)}"]
    if job.state is JobState.PENDING or not nodes:
        lines.append(f"Efficiency not available for jobs in the {job.state.name} state.")
        return "\n".join(lines) + "\n"
    core_s = found.wall_s * found.cpus
    lines += [
        f"CPU Utilized: {_clock(found.used_s)}",
        f"CPU Efficiency: {_percent(found.used_s, core_s)} of {_clock(core_s)} core-walltime",
        f"Job Wall-clock time: {_clock(found.wall_s)}",
        f"Memory Utilized: {_size(found.memory_kib)}",
        f"Memory Efficiency: {_percent(found.memory_kib, found.held_kib)} of {_size(found.held_kib)} "
        f"({_size(found.held_kib // nodes)}/node)",
    ]
    if not job.is_finished:
        lines.append("WARNING: Efficiency statistics may be misleading for RUNNING jobs.")
    return "\n".join(lines) + "\n"


def _per_node(cpus: int, nodes: int) -> str:
    return str(cpus // nodes) if cpus % nodes == 0 else f"{cpus / nodes:.2f}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0.0:.2f}%"


def _clock(seconds: int) -> str:
    """`1-02:03:04`, `02:03:04`."""
    days, rest = divmod(seconds, 86400)
    shown = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{shown}" if days else shown


def _size(kib: int) -> str:
    amount, unit = float(kib), "KB"
    for larger in ("MB", "GB", "TB", "PB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.2f} {unit}"
