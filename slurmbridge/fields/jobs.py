"""Which columns has `squeue`? Every letter of -o and every name of -O, with heading and value.

Follows squeue(1), sections FORMAT and --Format. What this product never has (burst buffers, federations, boards) is
written as Slurm writes an empty value.
"""

from __future__ import annotations

from collections.abc import Callable

from slurmbridge.fields import containers, states, text
from slurmbridge.fields.layout import Field, Registry
from slurmbridge.fields.view import View
from slurmbridge.lang import durations
from slurmbridge.model.job import Job
from slurmbridge.model.request import MemoryPer
from slurmbridge.model.states import JobState

_NULL = "(null)"
_NOT_AVAILABLE = "N/A"
_WHOLE = 0xFFFFFFFF

Getter = Callable[[Job, View], str]


def _constant(value: str) -> Getter:
    def get(job: Job, view: View) -> str:
        return value

    return get


def node_count(job: Job, view: View) -> int:
    """Allocated nodes; of a waiting job how many it will need at least."""
    if job.allocation is not None:
        return len(job.allocation.nodes)
    spec = job.spec
    least = spec.min_nodes
    most = view.cpus_per_node(spec.partitions[0]) if spec.partitions else 0
    if most and spec.min_cpus > most * least:
        least = -(-spec.min_cpus // most)
    if spec.ntasks_per_node and spec.num_tasks > spec.ntasks_per_node * least:
        least = -(-spec.num_tasks // spec.ntasks_per_node)
    return least


def time_limit(job: Job) -> str:
    limit = job.spec.time_limit
    return "UNLIMITED" if limit is None or limit >= _WHOLE else durations.render_short(limit * 60)


def time_left(job: Job, view: View) -> str:
    limit = job.spec.time_limit
    if limit is None or limit >= _WHOLE:
        return "UNLIMITED"
    return durations.render_short(max(limit * 60 - text.run_seconds(job, view.now), 0))


def end_time(job: Job) -> float | None:
    """When it ended or will at the latest; None: not known; infinity: no limit."""
    if job.state.is_finished:
        return job.end_time
    if job.time_limit_end is not None:
        return job.time_limit_end
    if job.start_time is None:
        return None
    limit = job.spec.time_limit
    return float("inf") if limit is None or limit >= _WHOLE else job.start_time + limit * 60


def _end_text(job: Job, view: View) -> str:
    moment = end_time(job)
    return "NONE" if moment == float("inf") else view.time(moment)


def partition_text(job: Job) -> str:
    """Where it runs, or its candidates."""
    return job.allocation.partition if job.allocation is not None else ",".join(job.spec.partitions)


def priority_fraction(job: Job) -> str:
    return f"{job.priority / _WHOLE:.14f}"


def task_ids(job: Job, view: View) -> str:
    if job.array_task_id is not None:
        return str(job.array_task_id)
    return text.task_text(job.tasks, job.array_limit, view.bitstr) if job.tasks else _NOT_AVAILABLE


def _per_gpu(count: int) -> str:
    return f"gres/gpu:{count}" if count else _NOT_AVAILABLE


def memory_per_gpu(job: Job) -> str:
    memory = job.spec.memory
    return f"gres/gpu:{memory.mib}" if memory is not None and memory.per is MemoryPer.GPU else ""


def _pending_seconds(job: Job, view: View) -> int:
    until = view.now if job.state is JobState.PENDING or job.start_time is None else job.start_time
    return max(int(until) - int(job.submit_time), 0)


def _stars(*values: int | None) -> str:
    return ":".join("*" if value is None else str(value) for value in values)


def _number(value: int | None) -> str:
    return _NOT_AVAILABLE if not value else str(value)


def core_spec(job: Job) -> str:
    request = job.spec.request
    if request.thread_spec is not None:
        return f"{request.thread_spec} Threads"
    return _NOT_AVAILABLE if request.core_spec is None else str(request.core_spec)


def profile_text(job: Job) -> str:
    """`--profile` in Slurm's words; `all` spelled out."""
    wanted = job.spec.request.profile
    if not wanted:
        return "NotSet"
    names = {"energy": "Energy", "lustre": "Lustre", "network": "Network", "task": "Task", "none": "None"}
    words = [word.strip().lower() for word in wanted.split(",")]
    if "all" in words:
        return "Energy,Lustre,Network,Task"
    return ",".join(names.get(word, word) for word in words)


def _stdio(stream: str) -> Getter:
    def get(job: Job, view: View) -> str:
        return text.stdio_path(job, stream, expand=view.expand_patterns) or _NULL

    return get


def licenses_held(job: Job) -> str:
    held = job.allocation.licenses if job.allocation is not None else ()
    return ",".join(f"{term.name}:{term.count}" for term in held)


def het_set(job: Job) -> str:
    """The ids of a heterogeneous job as ranges: `5-6`."""
    ids = job.het_ids
    if not ids:
        return _NOT_AVAILABLE
    return f"{ids[0]}-{ids[-1]}" if len(ids) > 1 else str(ids[0])


def het_text(job: Job, value: int) -> str:
    return str(value) if job.het_job_id else _NOT_AVAILABLE


def _f(
    name: str,
    letter: str,
    heading: str,
    get: Getter,
    *also: str,
    cut: bool = True,
    head: bool = True,
    hidden: bool = False,
) -> Field[Job]:
    return Field(name, letter, heading, get, also, cut, head, hidden)


FIELDS: tuple[Field[Job], ...] = (
    _f("Account", "a", "ACCOUNT", lambda j, v: j.spec.account or _NULL),
    _f("AccrueTime", "", "ACCRUE_TIME", lambda j, v: v.time(j.accrue_time)),
    _f("admin_comment", "", "ADMIN_COMMENT", lambda j, v: j.admin_comment or _NULL),
    _f("AllocNodes", "", "ALLOC_NODES", lambda j, v: j.spec.submit_host or _NULL),
    _f("AllocSID", "", "ALLOC_SID", lambda j, v: str(j.spec.submit_sid)),
    _f("ArrayJobId", "F", "ARRAY_JOB_ID", lambda j, v: str(j.array_job_id or j.job_id)),
    _f("ArrayTaskId", "K", "ARRAY_TASK_ID", task_ids),
    _f("AssocId", "", "ASSOC_ID", lambda j, v: str(j.spec.assoc_id)),
    _f("BatchFlag", "", "BATCH_FLAG", lambda j, v: "1" if j.spec.is_batch else "0"),
    _f("BatchHost", "B", "EXEC_HOST", lambda j, v: j.batch_host or "n/a"),
    _f("BoardsPerNode", "", "BOARDS_PER_NODE", _constant("0")),
    _f("BurstBuffer", "", "BURST_BUFFER", lambda j, v: j.spec.request.burst_buffer or _NULL),
    _f("BurstBufferState", "", "BURST_BUFFER_STATE", _constant(_NULL)),
    _f("Cluster", "", "CLUSTER", lambda j, v: v.config.cluster_name),
    _f("ClusterFeature", "", "CLUSTER_FEATURES", _constant(_NULL)),
    _f("Command", "o", "COMMAND", lambda j, v: j.spec.command or _NULL),
    _f("Comment", "k", "COMMENT", lambda j, v: j.spec.comment or _NULL),
    _f("Container", "", "CONTAINER", lambda j, v: containers.container(j.spec.request) or _NULL),
    _f("ContainerId", "", "CONTAINERID", lambda j, v: j.spec.request.container_id or _NULL),
    _f("ContainerType", "", "CONTAINERTYPE", _constant(_NULL)),
    _f("Contiguous", "O", "CONTIGUOUS", lambda j, v: "1" if j.spec.contiguous else "0"),
    _f("Cores", "I", "CORES_PER_SOCKET", lambda j, v: _stars(j.spec.cores_per_socket)),
    _f("CoreSpec", "X", "CORE_SPEC", lambda j, v: core_spec(j)),
    _f("CPUsPerTask", "", "CPUS_PER_TASK", lambda j, v: str(j.spec.cpus_per_task)),
    _f("cpus-per-task", "", "CPUS_PER_TASK", lambda j, v: str(j.spec.cpus_per_task)),
    _f("cpus-per-tres", "", "CPUS_PER_TRES", lambda j, v: _per_gpu(j.spec.cpus_per_gpu)),
    _f("CronJob", "", "CRON_JOB", _constant("No")),
    _f("Deadline", "", "DEADLINE", lambda j, v: v.time(j.spec.deadline)),
    _f("DelayBoot", "", "DELAY_BOOT", lambda j, v: durations.render_short(j.spec.delay_boot)),
    _f("Dependency", "E", "DEPENDENCY", lambda j, v: text.dependency_text(j, _NULL, v.is_array)),
    _f("DerivedEC", "", "DERIVED_EC", lambda j, v: text.exit_text(j.derived_exit_code)),
    _f("EligibleTime", "", "ELIGIBLE_TIME", lambda j, v: v.time(j.eligible_time)),
    _f("EndTime", "e", "END_TIME", _end_text),
    _f("ExcNodes", "x", "EXC_NODES", lambda j, v: text.fold(j.spec.exc_nodes) if j.spec.exc_nodes else "", cut=False),
    _f("Exclusive", "", "EXCLUSIVE", lambda j, v: j.spec.exclusive.value),
    _f("exit_code", "", "EXIT_CODE", lambda j, v: text.exit_text(j.exit_code)),
    _f("Feature", "f", "FEATURES", lambda j, v: j.spec.features or _NULL),
    _f("GroupId", "G", "GROUP", lambda j, v: str(j.spec.gid)),
    _f("GroupName", "g", "GROUP", lambda j, v: v.group(j.spec.gid)),
    _f("HetJobId", "", "HET_JOB_ID", lambda j, v: het_text(j, j.het_job_id), "PackJobId"),
    _f("HetJobIdSet", "", "HET_JOB_ID_SET", lambda j, v: het_set(j), "PackJobIdSet"),
    _f("HetJobOffset", "", "HET_JOB_OFFSET", lambda j, v: het_text(j, j.het_offset), "PackJobOffset"),
    _f("JobArrayId", "i", "JOBID", lambda j, v: text.job_label(j, v.bitstr)),
    _f("JobId", "A", "JOBID", lambda j, v: str(j.job_id)),
    _f("LastSchedEval", "", "LAST_SCHED_EVAL", lambda j, v: v.time(j.last_sched_eval)),
    _f("Licenses", "W", "LICENSES", lambda j, v: j.spec.licenses or _NULL),
    _f("LicensesAlloc", "", "LICENSES_ALLOC", lambda j, v: licenses_held(j) or _NULL),
    _f("MaxCPUs", "", "MAX_CPUS", lambda j, v: str(text.total_cpus(j))),
    _f("MaxNodes", "", "MAX_NODES", lambda j, v: str(j.spec.max_nodes or j.spec.num_tasks)),
    _f("mem-per-tres", "", "MEM_PER_TRES", lambda j, v: memory_per_gpu(j) or _NOT_AVAILABLE),
    _f("MCSLabel", "", "MCSLABEL", lambda j, v: j.spec.request.mcs_label or _NULL),
    _f("MinCPUs", "c", "MIN_CPUS", lambda j, v: str(j.spec.pn_min_cpus)),
    _f("MinMemory", "m", "MIN_MEMORY", lambda j, v: text.memory_text(j.spec.memory, v.convert)),
    _f("MinTime", "", "TIME_MIN", lambda j, v: durations.render_short((j.spec.time_min or 0) * 60)),
    _f("MinTmpDisk", "d", "MIN_TMP_DISK", lambda j, v: text.mib_text(j.spec.pn_min_tmp_mib, v.convert)),
    _f("Name", "j", "NAME", lambda j, v: j.spec.name or _NULL),
    _f("Network", "", "NETWORK", lambda j, v: j.spec.network or _NULL),
    _f("Nice", "y", "NICE", lambda j, v: str(j.spec.nice)),
    _f("NodeList", "N", "NODELIST", lambda j, v: text.node_list(j), cut=False, head=False),
    _f("NTPerCore", "", "NTASKS_PER_CORE", lambda j, v: _number(j.spec.ntasks_per_core)),
    _f("NTPerNode", "", "NTASKS_PER_NODE", lambda j, v: str(j.spec.ntasks_per_node)),
    _f("NTPerSocket", "", "NTASKS_PER_SOCKET", lambda j, v: _number(j.spec.ntasks_per_socket)),
    _f("NTPerBoard", "", "NTASKS_PER_BOARD", _constant("0")),
    _f("NumCPUs", "C", "CPUS", lambda j, v: str(text.total_cpus(j))),
    _f("NumNodes", "D", "NODES", lambda j, v: str(node_count(j, v))),
    _f("NumTasks", "", "TASKS", lambda j, v: str(j.spec.num_tasks)),
    _f("Origin", "", "ORIGIN", _constant("NA")),
    _f("OriginRaw", "", "ORIGIN_RAW", _constant("NA")),
    _f("OverSubscribe", "h", "OVER_SUBSCRIBE", lambda j, v: "YES" if j.spec.oversubscribe else "NO", "Shared"),
    _f("Partition", "P", "PARTITION", lambda j, v: partition_text(j)),
    _f("PendingTime", "", "PENDING_TIME", lambda j, v: str(_pending_seconds(j, v))),
    _f("PreemptTime", "", "PREEMPT_TIME", lambda j, v: v.time(j.preempt_time)),
    _f("Prefer", "", "PREFER", lambda j, v: j.spec.prefer or _NULL),
    _f("Priority", "p", "PRIORITY", lambda j, v: priority_fraction(j)),
    _f("PriorityLong", "Q", "PRIORITY", lambda j, v: str(j.priority)),
    _f("Profile", "", "PROFILE", lambda j, v: profile_text(j)),
    _f("QOS", "q", "QOS", lambda j, v: j.spec.qos or _NULL),
    _f("Reason", "r", "REASON", lambda j, v: j.reason_text or j.reason),
    _f("ReasonList", "R", "NODELIST(REASON)", lambda j, v: text.nodes_or_reason(j), cut=False, head=False),
    _f("Reboot", "", "REBOOT", lambda j, v: "1" if j.spec.request.reboot else "0"),
    _f("ReqNodes", "n", "REQ_NODES", lambda j, v: text.fold(j.spec.req_nodes) if j.spec.req_nodes else "", cut=False),
    _f("ReqSwitch", "", "REQ_SWITCH", lambda j, v: str(j.spec.switches)),
    _f("Requeue", "", "REQUEUE", lambda j, v: "1" if j.spec.requeue else "0"),
    _f("Reservation", "v", "RESERVATION", lambda j, v: j.spec.reservation or _NULL),
    _f("ResizeTime", "", "RESIZE_TIME", _constant(_NOT_AVAILABLE)),
    _f("RestartCnt", "", "RESTART_COUNT", lambda j, v: str(j.restarts)),
    _f("SchedNodes", "Y", "SCHEDNODES", lambda j, v: text.fold(j.sched_nodes) if j.is_pending and j.sched_nodes else _NULL, cut=False, head=False),
    _f("SCT", "z", "S:C:T", lambda j, v: _stars(j.spec.sockets_per_node, j.spec.cores_per_socket, j.spec.threads_per_core)),
    _f("SegmentSize", "", "SEGMENT_SIZE", lambda j, v: _number(j.spec.request.segment)),
    _f("SiblingsActive", "", "ACTIVE_SIBLINGS", _constant("NA")),
    _f("SiblingsActiveRaw", "", "ACTIVE_SIBLINGS_RAW", _constant("NA")),
    _f("SiblingsViable", "", "VIABLE_SIBLINGS", _constant("NA")),
    _f("SiblingsViableRaw", "", "VIALBLE_SIBLINGS_RAW", _constant("NA")),
    _f("SLUID", "s", "SLUID", lambda j, v: j.sluid),
    _f("Sockets", "H", "SOCKETS_PER_NODE", lambda j, v: _stars(j.spec.sockets_per_node)),
    _f("SPerBoard", "", "SOCKETS_PER_BOARD", _constant("0")),
    _f("StartTime", "S", "START_TIME", lambda j, v: v.time(j.start_time)),
    _f("State", "T", "STATE", lambda j, v: states.job_word(j)),
    _f("StateCompact", "t", "ST", lambda j, v: states.job_code(j)),
    _f("StdErr", "", "STDERR", _stdio("stderr")),
    _f("StdIn", "", "STDIN", _stdio("stdin")),
    _f("StdOut", "", "STDOUT", _stdio("stdout")),
    _f("SubmitTime", "V", "SUBMIT_TIME", lambda j, v: v.time(j.submit_time)),
    _f("system_comment", "", "SYSTEM_COMMENT", lambda j, v: j.system_comment or _NULL),
    _f("Threads", "J", "THREADS_PER_CORE", lambda j, v: _stars(j.spec.threads_per_core)),
    _f("TimeLeft", "L", "TIME_LEFT", time_left, cut=False),
    _f("TimeLimit", "l", "TIME_LIMIT", lambda j, v: time_limit(j), cut=False),
    _f("TimeUsed", "M", "TIME", lambda j, v: durations.render_short(text.run_seconds(j, v.now)), cut=False),
    _f("tres-alloc", "", "TRES_ALLOC", lambda j, v: text.tres_text(text.job_tres(j)) or _NOT_AVAILABLE, "Tres"),
    _f("tres-bind", "", "TRES_BIND", lambda j, v: j.spec.tres_bind or _NOT_AVAILABLE),
    _f("tres-freq", "", "TRES_FREQ", lambda j, v: j.spec.tres_freq or _NOT_AVAILABLE),
    _f("tres-per-job", "", "TRES_PER_JOB", lambda j, v: j.spec.tres_per_job or _NOT_AVAILABLE),
    _f("tres-per-node", "b", "TRES_PER_NODE", lambda j, v: j.spec.tres_per_node or _NOT_AVAILABLE, "Gres", hidden=True),
    _f("tres-per-socket", "", "TRES_PER_SOCKET", lambda j, v: j.spec.tres_per_socket or _NOT_AVAILABLE),
    _f("tres-per-task", "", "TRES_PER_TASK", lambda j, v: j.spec.tres_per_task or _NOT_AVAILABLE),
    _f("UserId", "U", "UID", lambda j, v: str(j.spec.uid)),
    _f("UserName", "u", "USER", lambda j, v: v.user(j.spec.uid)),
    _f("Wait4Switch", "", "WAIT4SWITCH", lambda j, v: durations.render_short(j.spec.switches_wait)),
    _f("WCKey", "w", "WCKEY", lambda j, v: j.spec.wckey or _NULL),
    _f("WorkDir", "Z", "WORK_DIR", lambda j, v: j.spec.work_dir or _NULL),
)  # fmt: skip

REGISTRY: Registry[Job] = Registry(
    FIELDS,
    complaint="squeue: error: Invalid job format specification: ",
    named_complaint="squeue: error: Invalid job format specification: ",
)

HELP_LETTERS = "aFKBokOIXEexfGgiAWcmdjyNCDhPpQqrRnvYzsHSTtVJLlMUuwZ"
"""Letters in the order of `squeue --helpformat`."""

DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
ONLY_STATE = "%.18i %.2t"
