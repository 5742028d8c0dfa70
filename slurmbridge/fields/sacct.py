"""Which columns has `sacct`? All names of --format with width and value.

Follows sacct(1). `Kind` says what happens to a value that is wider than its column: text ends in `+`, numbers and times
run over, dates become `#`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.fields import accounting as acc
from slurmbridge.fields import containers, text
from slurmbridge.fields.accounting import AccountRow
from slurmbridge.fields.view import View
from slurmbridge.lang import durations
from slurmbridge.model.job import StepId, Usage


class Kind(enum.Enum):
    TEXT = "text"
    NUMBER = "number"
    DATE = "date"


class Column(msgspec.Struct, frozen=True):
    name: str
    width: int
    get: Callable[[AccountRow, View], str]
    kind: Kind = Kind.TEXT
    left: bool = False


Getter = Callable[[AccountRow, View], str]
_T, _N, _D = Kind.TEXT, Kind.NUMBER, Kind.DATE


def _nothing(row: AccountRow, view: View) -> str:
    return ""


def _job(get: Getter) -> Getter:
    """Of the allocation alone; steps have nothing there."""
    return lambda row, view: get(row, view) if row.step is None else ""


def _step(get: Getter) -> Getter:
    return lambda row, view: get(row, view) if row.step is not None else ""


def _measured(get: Callable[[Usage, AccountRow, View], str]) -> Getter:
    """Of steps that were sampled."""

    def value(row: AccountRow, view: View) -> str:
        usage = acc.sampled(row, view)
        return get(usage, row, view) if usage is not None else ""

    return value


def _frequency(row: AccountRow, view: View) -> str:
    return "0" if row.step is not None and row.step.step_id == StepId.BATCH.value else "Unknown"


def _node(usage: Usage, row: AccountRow, view: View) -> str:
    return usage.max_rss_node or (row.step.nodes[0] if row.step is not None and row.step.nodes else "")


def _task(usage: Usage, row: AccountRow, view: View) -> str:
    return str(usage.max_rss_task)


def _disk(size: int) -> str:
    return f"{size / 1048576:.2f}M"


def _cpu_seconds(usage: Usage) -> int:
    return (usage.user_us + usage.system_us) // 1_000_000


def _share(usage: Usage, row: AccountRow) -> int:
    """Tasks that a sum is shared by."""
    return max(row.step.num_tasks if row.step is not None else 1, 1)


def _mean_rss(usage: Usage, parts: int) -> int:
    """Of the greatest of each task; of runs that did not add them up, the greatest of all."""
    return usage.sum_rss_kib // parts or usage.max_rss_kib


def _mean_vsize(usage: Usage, parts: int) -> int:
    return usage.sum_vsize_kib // parts or usage.max_vsize_kib


def _in(usage: Usage, row: AccountRow, view: View, parts: int) -> str:
    """A mean over `parts` tasks."""
    return _all_in(usage, view, parts, usage.pages // parts, _mean_rss(usage, parts), _mean_vsize(usage, parts))


def _all_in(usage: Usage, view: View, parts: int, pages: int, rss_kib: int, vsize_kib: int) -> str:
    cpu = durations.render_elapsed(_cpu_seconds(usage) // parts)
    memory, virtual = acc.kib_amount(rss_kib, view), acc.kib_amount(vsize_kib, view)
    return f"cpu={cpu},energy=0,fs/disk={usage.disk_read // parts},mem={memory},pages={pages},vmem={virtual}"


def _out(usage: Usage, parts: int) -> str:
    return f"energy=0,fs/disk={usage.disk_write // parts}"


def _or_energy(get: Callable[[Usage, AccountRow, View], str]) -> Getter:
    """Sums of a step that was never sampled hold the energy alone."""

    def value(row: AccountRow, view: View) -> str:
        if row.step is None:
            return ""
        usage = acc.sampled(row, view)
        return get(usage, row, view) if usage is not None else "energy=0"

    return value


_IN_NODES = ("cpu", "energy", "fs/disk", "mem", "pages", "vmem")


def _everywhere(names: Sequence[str], get: Callable[[Usage, AccountRow, View], str]) -> Getter:
    return _measured(lambda u, r, v: ",".join(f"{name}={get(u, r, v)}" for name in names))


_in_nodes = _everywhere(_IN_NODES, _node)
_in_tasks = _everywhere(("cpu", "fs/disk", "mem", "pages", "vmem"), _task)
_out_nodes = _everywhere(("energy", "fs/disk"), _node)
_out_tasks = _everywhere(("fs/disk",), _task)
_max_in = _measured(lambda u, r, v: _all_in(u, v, 1, u.pages, u.max_rss_kib, u.max_vsize_kib))
_max_out = _measured(lambda u, r, v: _out(u, 1))


def _planned(row: AccountRow, view: View, factor: int) -> str:
    seconds = acc.planned(row, view.now)
    return "INVALID" if seconds is None else durations.render_elapsed(seconds * factor)


def _planned_raw(row: AccountRow, view: View) -> str:
    return str((acc.planned(row, view.now) or 0) * acc.req_cpus(row))


def _cpu_of(part: Callable[[Usage], int]) -> Getter:
    def value(row: AccountRow, view: View) -> str:
        usage = acc.usage_of(row)
        return acc.cpu_time(part(usage)) if usage is not None else "00:00:00"

    return value


def _qos_id(row: AccountRow, view: View) -> str:
    return str(next((qos.qos_id for qos in view.accounting.qos if qos.name == row.job.spec.qos), 0))


def _eligible(row: AccountRow, view: View) -> str:
    moment = row.step.start_time if row.step is not None else row.job.eligible_time
    return view.time(moment, "Unknown")


def _submit(row: AccountRow, view: View) -> str:
    return view.time(row.step.start_time if row.step is not None else row.job.submit_time, "Unknown")


def _stdio(stream: str) -> Getter:
    def value(row: AccountRow, view: View) -> str:
        if row.step is not None:
            return ""
        return text.stdio_path(row.job, stream, expand=view.expand_patterns) or ""

    return value


def _start(row: AccountRow, view: View) -> str:
    never_ran = row.step is None and row.job.is_finished and row.job.allocation is None
    return "None" if never_ran else view.time(acc.start_of(row), "Unknown")


def _dbindex(row: AccountRow, view: View) -> str:
    return str(row.job.job_id)


COLUMNS: tuple[Column, ...] = (
    Column("Account", 10, lambda r, v: r.job.spec.account),
    Column("AdminComment", 15, _job(lambda r, v: r.job.admin_comment)),
    Column("AllocCPUS", 10, lambda r, v: str(acc.alloc_cpus(r)), _N),
    Column("AllocNodes", 10, lambda r, v: str(acc.alloc_nodes(r)), _N),
    Column("AllocTRES", 10, acc.alloc_tres),
    Column("AssocID", 7, lambda r, v: str(r.job.spec.assoc_id), _N),
    Column("AveCPU", 10, _measured(lambda u, r, v: durations.render_elapsed(_cpu_seconds(u) // _share(u, r)))),
    Column("AveCPUFreq", 10, _step(lambda r, v: "0")),
    Column("AveDiskRead", 14, _measured(lambda u, r, v: _disk(u.disk_read // _share(u, r)))),
    Column("AveDiskWrite", 14, _measured(lambda u, r, v: _disk(u.disk_write // _share(u, r)))),
    Column("AvePages", 10, _measured(lambda u, r, v: str(u.pages // _share(u, r)))),
    Column("AveRSS", 10, _measured(lambda u, r, v: acc.kib_amount(_mean_rss(u, _share(u, r)), v))),
    Column("AveVMSize", 10, _measured(lambda u, r, v: acc.kib_amount(_mean_vsize(u, _share(u, r)), v))),
    Column("BlockID", 16, _nothing),
    Column("Cluster", 10, lambda r, v: v.config.cluster_name),
    Column("Comment", 14, _job(lambda r, v: r.job.spec.comment or "")),
    Column("Constraints", 19, _job(lambda r, v: r.job.spec.features or "")),
    Column("ConsumedEnergy", 14, lambda r, v: acc.energy(r), _N),
    Column("ConsumedEnergyRaw", 17, lambda r, v: acc.energy(r), _N),
    Column("Container", 19, _job(lambda r, v: containers.container(r.job.spec.request))),
    Column("CPUTime", 10, lambda r, v: durations.render_elapsed(acc.elapsed(r, v.now) * acc.alloc_cpus(r)), _N),
    Column("CPUTimeRAW", 10, lambda r, v: str(acc.elapsed(r, v.now) * acc.alloc_cpus(r)), _N),
    Column("DBIndex", 21, _dbindex, _N),
    Column("DerivedExitCode", 15, _job(lambda r, v: text.exit_text(r.job.derived_exit_code))),
    Column("Elapsed", 10, lambda r, v: durations.render_elapsed(acc.elapsed(r, v.now)), _N),
    Column("ElapsedRaw", 10, lambda r, v: str(acc.elapsed(r, v.now)), _N),
    Column("Eligible", 19, _eligible, _D),
    Column("End", 19, lambda r, v: v.time(acc.end_of(r), "Unknown"), _D),
    Column("Exclusive", 14, _job(lambda r, v: r.job.spec.exclusive.value)),
    Column("ExitCode", 8, lambda r, v: text.exit_text(acc.exit_code(r))),
    Column("Extra", 14, _job(lambda r, v: r.job.spec.extra or "")),
    Column("FailedNode", 8, _nothing),
    Column("Flags", 19, _job(lambda r, v: acc.flags(r))),
    Column("GID", 6, _job(lambda r, v: str(r.job.spec.gid)), _N),
    Column("Group", 9, _job(lambda r, v: v.group(r.job.spec.gid))),
    Column("JobID", 12, acc.label, left=True),
    Column("JobIDRaw", 12, lambda r, v: acc.raw_label(r), left=True),
    Column("JobName", 10, lambda r, v: r.step.name if r.step is not None else r.job.spec.name),
    Column("Layout", 9, _step(lambda r, v: r.step.layout or "Unknown")),  # type: ignore[union-attr]
    Column("Licenses", 10, _job(lambda r, v: r.job.spec.licenses)),
    Column("MaxDiskRead", 12, _measured(lambda u, r, v: _disk(u.disk_read))),
    Column("MaxDiskReadNode", 15, _measured(_node)),
    Column("MaxDiskReadTask", 15, _measured(_task)),
    Column("MaxDiskWrite", 12, _measured(lambda u, r, v: _disk(u.disk_write))),
    Column("MaxDiskWriteNode", 16, _measured(_node)),
    Column("MaxDiskWriteTask", 16, _measured(_task)),
    Column("MaxPages", 8, _measured(lambda u, r, v: str(u.pages))),
    Column("MaxPagesNode", 12, _measured(_node)),
    Column("MaxPagesTask", 14, _measured(_task)),
    Column("MaxRSS", 10, _measured(lambda u, r, v: acc.kib_amount(u.max_rss_kib, v))),
    Column("MaxRSSNode", 10, _measured(_node)),
    Column("MaxRSSTask", 10, _measured(_task)),
    Column("MaxVMSize", 10, _measured(lambda u, r, v: acc.kib_amount(u.max_vsize_kib, v))),
    Column("MaxVMSizeNode", 14, _measured(_node)),
    Column("MaxVMSizeTask", 14, _measured(_task)),
    Column("McsLabel", 12, _job(lambda r, v: r.job.spec.request.mcs_label or "")),
    Column("MinCPU", 10, _measured(lambda u, r, v: durations.render_elapsed(_cpu_seconds(u) // _share(u, r)))),
    Column("MinCPUNode", 10, _measured(_node)),
    Column("MinCPUTask", 10, _measured(_task)),
    Column("NCPUS", 10, lambda r, v: str(acc.alloc_cpus(r)), _N),
    Column("NNodes", 8, lambda r, v: str(acc.alloc_nodes(r) or acc.req_nodes(r)), _N),
    Column("NodeList", 15, lambda r, v: acc.node_names(r)),
    Column("NTasks", 8, _step(lambda r, v: str(r.step.num_tasks)), _N),  # type: ignore[union-attr]
    Column("OriginalSLUID", 14, lambda r, v: r.job.sluid),
    Column("OverSubscribe", 14, _job(lambda r, v: "YES" if r.job.spec.oversubscribe else "NO")),
    Column("Partition", 10, _job(lambda r, v: r.job.allocation.partition if r.job.allocation else ",".join(r.job.spec.partitions))),
    Column("Planned", 10, _job(lambda r, v: _planned(r, v, 1)), _N),
    Column("PlannedCPU", 10, _job(lambda r, v: _planned(r, v, acc.req_cpus(r))), _N),
    Column("PlannedCPURAW", 13, _job(_planned_raw), _N),
    Column("Priority", 10, _job(lambda r, v: str(r.job.priority)), _N),
    Column("QOS", 10, _job(lambda r, v: r.job.spec.qos)),
    Column("QOSRAW", 6, _job(_qos_id), _N),
    Column("QOSREQ", 10, _job(lambda r, v: r.job.spec.request.qos or "")),
    Column("Reason", 22, _job(lambda r, v: acc.reason(r))),
    Column("ReqCPUFreq", 10, _frequency),
    Column("ReqCPUFreqGov", 13, _frequency),
    Column("ReqCPUFreqMax", 13, _frequency),
    Column("ReqCPUFreqMin", 13, _frequency),
    Column("ReqCPUS", 8, lambda r, v: str(acc.req_cpus(r)), _N),
    Column("ReqMem", 10, _job(acc.req_memory)),
    Column("ReqNodes", 8, lambda r, v: str(acc.req_nodes(r)), _N),
    Column("ReqTRES", 10, _job(lambda r, v: acc.tres_text(r.job.spec.req_tres, v))),
    Column("Reservation", 20, _job(lambda r, v: r.job.spec.reservation)),
    Column("ReservationId", 8, _nothing),
    Column("ReqReservation", 20, _job(lambda r, v: r.job.spec.request.reservation or "")),
    Column("Restarts", 8, _job(lambda r, v: str(r.job.restarts)), _N),
    Column("SegmentSize", 11, _job(lambda r, v: str(r.job.spec.request.segment or "")), _N),
    Column("SLUID", 14, lambda r, v: r.job.sluid),
    Column("Start", 19, _start, _D),
    Column("State", 10, lambda r, v: acc.state_text(r)),
    Column("StdErr", 20, _stdio("stderr")),
    Column("StdIn", 20, _stdio("stdin")),
    Column("StdOut", 20, _stdio("stdout")),
    Column("Submit", 19, _submit, _D),
    Column("SubmitLine", 20, lambda r, v: r.step.submit_line if r.step is not None else r.job.spec.submit_line),
    Column("Suspended", 10, lambda r, v: durations.render_elapsed(acc.suspended(r, v.now)), _N),
    Column("SystemComment", 15, _job(lambda r, v: r.job.system_comment)),
    Column("SystemCPU", 10, _cpu_of(lambda u: u.system_us)),
    Column("Timelimit", 10, _job(lambda r, v: acc.time_limit(r))),
    Column("TimelimitRaw", 10, _job(lambda r, v: acc.time_limit_raw(r))),
    Column("TotalCPU", 10, _cpu_of(lambda u: u.user_us + u.system_us)),
    Column("TRESUsageInAve", 14, _or_energy(lambda u, r, v: _in(u, r, v, _share(u, r)))),
    Column("TRESUsageInMax", 14, _max_in),
    Column("TRESUsageInMaxNode", 18, _in_nodes),
    Column("TRESUsageInMaxTask", 18, _in_tasks),
    Column("TRESUsageInMin", 14, _max_in),
    Column("TRESUsageInMinNode", 18, _in_nodes),
    Column("TRESUsageInMinTask", 18, _in_tasks),
    Column("TRESUsageInTot", 14, _or_energy(lambda u, r, v: _in(u, r, v, 1))),
    Column("TRESUsageOutAve", 15, _or_energy(lambda u, r, v: _out(u, _share(u, r)))),
    Column("TRESUsageOutMax", 15, _max_out),
    Column("TRESUsageOutMaxNode", 19, _out_nodes),
    Column("TRESUsageOutMaxTask", 19, _out_tasks),
    Column("TRESUsageOutMin", 15, _max_out),
    Column("TRESUsageOutMinNode", 19, _out_nodes),
    Column("TRESUsageOutMinTask", 19, _out_tasks),
    Column("TRESUsageOutTot", 15, _or_energy(lambda u, r, v: _out(u, 1))),
    Column("UID", 6, _job(lambda r, v: str(r.job.spec.uid)), _N),
    Column("User", 9, _job(lambda r, v: v.user(r.job.spec.uid))),
    Column("UserCPU", 10, _cpu_of(lambda u: u.user_us)),
    Column("WCKey", 10, _job(lambda r, v: r.job.spec.wckey)),
    Column("WCKeyID", 10, _job(lambda r, v: "0"), _N),
    Column("WorkDir", 20, _job(lambda r, v: r.job.spec.work_dir)),
)  # fmt: skip

DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF = "jobid,state,exitcode"
LONG = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,"
    "maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed,state,"
    "exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,reqtres,alloctres,"
    "tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,tresusageinminnode,"
    "tresusageinmintask,tresusageintot,tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,"
    "tresusageouttot"
)


class Placed(msgspec.Struct, frozen=True):
    """A column with the width and side of this listing."""

    column: Column
    width: int
    left: bool


def find(name: str) -> Column | None:
    """By name, or by its beginning: the first in the list that fits."""
    lower = name.lower()
    exact = next((column for column in COLUMNS if column.name.lower() == lower), None)
    return exact or next((column for column in COLUMNS if column.name.lower().startswith(lower)), None)


def place(spec: str) -> tuple[list[Placed], str | None]:
    """Columns of a --format list (`jobid%-15,state%20`), and the first name that is none."""
    placed: list[Placed] = []
    for word in spec.split(","):
        if not word:  # the list ends there
            break
        name, percent, rest = word.partition("%")
        if name.lower() == "all":
            placed.extend(Placed(column, column.width, column.left) for column in COLUMNS)
            continue
        column = find(name)
        if column is None:
            return placed, name
        width, left = column.width, column.left
        if percent:
            digits = rest.lstrip("-")
            digits = digits[: next((i for i, c in enumerate(digits) if c not in "0123456789"), len(digits))]
            width, left = min(int(digits[:9] or 0), 65535), rest.startswith("-")
        placed.append(Placed(column, width, left))
    return placed, None


def cell(value: str, placed: Placed) -> str:
    """The value in its column, with the blank behind it."""
    width = placed.width
    if len(value) > width and placed.column.kind is not Kind.NUMBER:
        if placed.column.kind is Kind.DATE:
            value = value[:width] if value == "Unknown" else "#" * width
        else:
            value = value[: width - 1] + "+" if width else ""
    return (value.ljust(width) if placed.left else value.rjust(width)) + " "


def header(placed: Sequence[Placed]) -> list[str]:
    """Names and the line under them."""
    names = []
    for each in placed:
        name = each.column.name[: each.width]
        names.append((name.ljust(each.width) if each.left else name.rjust(each.width)) + " ")
    return ["".join(names), "".join("-" * each.width + " " for each in placed)]


def help_names() -> str:
    """--helpformat: names in four columns."""
    names = [column.name for column in COLUMNS]
    rows = [names[at : at + 4] for at in range(0, len(names), 4)]
    return "".join(" ".join(f"{name:<19}" for name in row) + "\n" for row in rows)
