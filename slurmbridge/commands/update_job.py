"""What may `scontrol update job` change of a job, who may, and what is the job afterwards?

A table: key as scontrol takes it -> how its text becomes a typed value (`parse_field`, run where the command is parsed),
who may set it and when, and the change of the record (`apply_update`, run by the controller). Follows scontrol(1),
"Specifications for update command, jobs". Rights over the job itself are checked by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from slurmbridge.commands.update_tally import retally
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import constraints, dependencies, durations, gres, hostlist, licenses, mail, sizes
from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import GpuNeed, GpuScope, Job, JobSpec
from slurmbridge.model.request import GresRequest, Memory, MemoryPer
from slurmbridge.model.states import Reason
from slurmbridge.model.units import UNLIMITED
from slurmbridge.submit import associations

MAX_NICE = 0x7FFFFFFD
Answer = Job | SlurmErrno


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a change may look at besides the job."""

    config: ClusterConfig
    accounting: Accounting
    now: float
    is_operator: bool


class JobField(msgspec.Struct, frozen=True, kw_only=True):
    """One key. `typed`: "text", "count", "range", "minutes", "seconds", "mib", "flag", "nice", "moment", "switches", "mail"."""

    key: str
    typed: str
    apply: Callable[[Job, Any, Context], Answer]
    pending: bool = False  # only while the job waits
    operator: bool = False
    least: int = 3  # shortest unique beginning that scontrol takes


def _spec(job: Job, **changes: Any) -> Job:
    return replace(job, spec=replace(job.spec, **changes))


def _set(field: str) -> Callable[[Job, Any, Context], Answer]:
    """Plain copies into JobSpec."""

    def apply(job: Job, value: Any, context: Context) -> Answer:
        return _spec(job, **{field: value})

    return apply


def _set_request(field: str) -> Callable[[Job, Any, Context], Answer]:
    """Values that live in the request alone."""

    def apply(job: Job, value: Any, context: Context) -> Answer:
        return _spec(job, request=replace(job.spec.request, **{field: value}))

    return apply


def _set_job(field: str) -> Callable[[Job, Any, Context], Answer]:
    def apply(job: Job, value: Any, context: Context) -> Answer:
        return replace(job, **{field: value})

    return apply


def _time_limit(job: Job, minutes: int, context: Context) -> Answer:
    old = UNLIMITED if job.spec.time_limit is None else job.spec.time_limit
    if job.is_finished:
        return SlurmErrno.JOB_FINISHED
    if not context.is_operator:
        if not job.is_pending and minutes > old:
            return SlurmErrno.ACCESS_DENIED
    limit = None if minutes == UNLIMITED else minutes
    changed = _spec(job, time_limit=limit)
    if job.is_pending or job.start_time is None:
        return changed
    end = None if limit is None else job.start_time + job.pre_suspend_s + limit * 60
    return replace(changed, time_limit_end=end)


def _priority(job: Job, priority: int, context: Context) -> Answer:
    if priority == UNLIMITED:
        return _release(job, context)
    if priority == 0:
        held = "admin" if context.is_operator else "user"
        reason = Reason.HELD_ADMIN if context.is_operator else Reason.HELD_USER
        return replace(job, priority=0, held_by=held, reason=reason, reason_text="")
    if not context.is_operator:
        if job.priority == 0:
            return SlurmErrno.JOB_HELD
        if priority > job.priority:
            return SlurmErrno.ACCESS_DENIED
    changed = _spec(job, request=replace(job.spec.request, priority=priority))
    if job.priority == 0:
        return replace(changed, priority=priority, held_by="", reason=Reason.NONE, reason_text="")
    return replace(changed, priority=priority)


def _release(job: Job, context: Context) -> Answer:
    if job.held_by == "admin" and not context.is_operator:
        return SlurmErrno.ACCESS_DENIED
    return replace(job, priority=max(job.priority, 1), held_by="", reason=Reason.NONE, reason_text="")


def _nice(job: Job, nice: int, context: Context) -> Answer:
    if nice < 0 and not context.is_operator:
        return SlurmErrno.ACCESS_DENIED
    moved = max(job.priority + job.spec.nice - nice, 1) if job.priority else 0
    return replace(_spec(job, nice=nice), priority=moved)


def _partition(job: Job, names: str, context: Context) -> Answer:
    wanted = tuple(name for name in names.split(",") if name)
    if not wanted or any(context.config.partition(name) is None for name in wanted):
        return SlurmErrno.INVALID_PARTITION_NAME
    return _spec(job, partitions=wanted)


def _account(job: Job, account: str, context: Context) -> Answer:
    found = associations.find(context.accounting, job.spec.user, account)
    if found is None:
        return SlurmErrno.INVALID_ACCOUNT
    return _spec(job, account=found.account, assoc_id=found.assoc_id)


def _qos(job: Job, qos: str, context: Context) -> Answer:
    if not any(each.name == qos.lower() for each in context.accounting.qos):
        return SlurmErrno.INVALID_QOS
    found = associations.find(context.accounting, job.spec.user, job.spec.account)
    if found is not None and not context.is_operator:
        if qos.lower() not in associations.effective_qos(context.accounting, found):
            return SlurmErrno.INVALID_QOS
    return _spec(job, qos=qos.lower())


def _nodes(job: Job, bounds: tuple[int, int], context: Context) -> Answer:
    if not job.is_pending:
        return SlurmErrno.NOT_SUPPORTED
    least, most = bounds
    if most and most < least:
        return SlurmErrno.INVALID_NODE_COUNT
    changed = _spec(job, min_nodes=least, max_nodes=most or None, node_counts=())
    spec = changed.spec
    if not spec.ntasks_given and spec.num_tasks < least:
        spec = replace(spec, num_tasks=least, min_cpus=max(spec.min_cpus, least * spec.cpus_per_task))
    return replace(changed, spec=retally(spec, context.config))


def _tasks(job: Job, tasks: int, context: Context) -> Answer:
    spec = replace(job.spec, num_tasks=tasks, ntasks_given=True)
    cpus = 1 if spec.overcommit else tasks * spec.cpus_per_task
    return replace(job, spec=retally(replace(spec, min_cpus=max(cpus, spec.min_nodes)), context.config))


def _cpus(job: Job, bounds: tuple[int, int], context: Context) -> Answer:
    return replace(job, spec=retally(replace(job.spec, min_cpus=bounds[0]), context.config))


def _cpus_per_task(job: Job, count: int, context: Context) -> Answer:
    spec = replace(
        job.spec, cpus_per_task=count, cpus_per_task_given=True, min_cpus=job.spec.num_tasks * count,
        pn_min_cpus=max(count * max(job.spec.ntasks_per_node, 1), 1),
    )  # fmt: skip
    return replace(job, spec=retally(spec, context.config))


def _tasks_per_node(job: Job, count: int, context: Context) -> Answer:
    spec = job.spec
    return _spec(job, ntasks_per_node=count, pn_min_cpus=max(spec.pn_min_cpus, count * spec.cpus_per_task))


def _memory(per: MemoryPer) -> Callable[[Job, int, Context], Answer]:
    def apply(job: Job, mib: int, context: Context) -> Answer:
        return replace(job, spec=retally(replace(job.spec, memory=Memory(per, mib)), context.config))

    return apply


def _gres_at(scope: GpuScope) -> Callable[[Job, str, Context], Answer]:
    fields = {GpuScope.JOB: "tres_per_job", GpuScope.NODE: "tres_per_node", GpuScope.SOCKET: "tres_per_socket",
              GpuScope.TASK: "tres_per_task"}  # fmt: skip

    def apply(job: Job, text: str, context: Context) -> Answer:
        if not text or text.lower() == "none":
            return replace(job, spec=retally(replace(job.spec, **{fields[scope]: ""}, gpu=None), context.config))
        try:
            asked: GresRequest = gres.parse_gres(text, "tres" if text.startswith("gres") else "gres")
        except LangError:
            return SlurmErrno.INVALID_GRES
        if any(term.name not in context.config.gres_types for term in asked.terms):
            return SlurmErrno.INVALID_GRES
        need = _gpu_need(asked, scope)
        return replace(job, spec=retally(replace(job.spec, **{fields[scope]: asked.text}, gpu=need), context.config))

    return apply


def _gpu_need(asked: GresRequest, scope: GpuScope) -> GpuNeed | None:
    """Whole devices, or one device in part."""
    for term in asked.terms:
        if term.name == "gpu":
            whole, part = divmod(term.milli, 1000)
            return GpuNeed(scope=scope, count=whole or 1, type=term.type, milli=part if part and not whole else 1000)
    return None


def _features(job: Job, text: str, context: Context) -> Answer:
    if text:
        try:
            names = constraints.names(constraints.parse(text))
        except LangError:
            return SlurmErrno.INVALID_FEATURE
        known = {feature for node in context.config.nodes for feature in node.features}
        if not names <= known:
            return SlurmErrno.INVALID_FEATURE
    return _spec(job, features=text or None)


def _prefer(job: Job, text: str, context: Context) -> Answer:
    answer = _features(job, text, context)
    if isinstance(answer, SlurmErrno):
        return SlurmErrno.INVALID_PREFER
    return _spec(job, prefer=text or None)


def _node_names(field: str) -> Callable[[Job, str, Context], Answer]:
    def apply(job: Job, text: str, context: Context) -> Answer:
        try:
            names = tuple(hostlist.expand(text)) if text else ()
        except LangError:
            return SlurmErrno.INVALID_NODE_NAME
        known = {node.name for node in context.config.nodes}
        if not set(names) <= known:
            return SlurmErrno.INVALID_NODE_NAME
        return _spec(job, **{field: names})

    return apply


def _begin(job: Job, moment: int, context: Context) -> Answer:
    if moment <= context.now:
        begin = None
        eligible = context.now if job.priority else None
    else:
        begin, eligible = moment, None
    request = replace(job.spec.request, begin=begin)
    return replace(_spec(job, begin=begin, request=request), eligible_time=eligible, accrue_time=eligible)


def _deadline(job: Job, moment: int, context: Context) -> Answer:
    return SlurmErrno.INVALID_TIME_LIMIT if 0 < moment <= context.now else _spec(job, deadline=moment or None)


def _dependency(job: Job, text: str, context: Context) -> Answer:
    if not text:
        return replace(_spec(job, dependency=None), dep_done=frozenset(), dep_failed=frozenset(), reason=_unblocked(job))
    try:
        parsed = dependencies.parse(text)
    except LangError:
        return SlurmErrno.DEPENDENCY
    if any(term.job_id == job.job_id for term in parsed.terms):
        return SlurmErrno.DEPENDENCY
    return replace(_spec(job, dependency=parsed), dep_done=frozenset(), dep_failed=frozenset())


def _unblocked(job: Job) -> str:
    waits = (Reason.DEPENDENCY, Reason.DEPENDENCY_NEVER)
    return Reason.NONE if job.reason in waits else job.reason


def _licenses(job: Job, text: str, context: Context) -> Answer:
    if not text:
        return replace(job, spec=retally(replace(job.spec, licenses="", license_terms=(), licenses_any_of=False), context.config))
    try:
        terms, any_of = licenses.parse(text)
    except LangError:
        return SlurmErrno.INVALID_LICENSES
    totals = {each.name: each.total for each in context.config.licenses}
    if any(term.count > totals.get(term.name, 0) for term in terms):
        return SlurmErrno.INVALID_LICENSES
    spec = replace(job.spec, licenses=text, license_terms=terms, licenses_any_of=any_of)
    return replace(job, spec=retally(spec, context.config))


def _throttle(job: Job, limit: int, context: Context) -> Answer:
    return SlurmErrno.INVALID_JOB_ID if not job.array_job_id else replace(job, array_limit=limit)


def _requeue(job: Job, value: bool, context: Context) -> Answer:
    return _spec(job, requeue=value, request=replace(job.spec.request, requeue=value))


def _output(field: str) -> Callable[[Job, str, Context], Answer]:
    def apply(job: Job, text: str, context: Context) -> Answer:
        path = text if text.startswith("/") else f"{job.spec.work_dir}/{text}"
        return _spec(job, request=replace(job.spec.request, **{field.replace("_", ""): text}), **{field: path})

    return apply


def _switches(job: Job, value: tuple[int, int], context: Context) -> Answer:
    return _spec(job, switches=value[0], switches_wait=value[1])


def _mail(job: Job, text: str, context: Context) -> Answer:
    return _spec(job, mail_type=mail.parse(text) if text else ())


def _reset_accrue(job: Job, value: bool, context: Context) -> Answer:
    return replace(job, accrue_time=context.now if job.accrue_time is not None else None)


FIELDS: tuple[JobField, ...] = (
    JobField(key="AdminComment", typed="text", apply=_set_job("admin_comment"), operator=True),
    JobField(key="ArrayTaskThrottle", typed="count", apply=_throttle, least=10),
    JobField(key="Comment", typed="text", apply=_set("comment")),
    JobField(key="DelayBoot", typed="seconds", apply=_set("delay_boot"), pending=True, least=5),
    JobField(key="Extra", typed="text", apply=_set("extra"), pending=True),
    JobField(key="TimeLimit", typed="minutes", apply=_time_limit),
    JobField(key="TimeMin", typed="minutes", apply=_set("time_min"), pending=True),
    JobField(key="Priority", typed="priority", apply=_priority, pending=True),
    JobField(key="Nice", typed="nice", apply=_nice),
    JobField(key="CPUsPerTask", typed="count", apply=_cpus_per_task, pending=True, least=9),
    JobField(key="NumCPUs", typed="range", apply=_cpus, pending=True, least=6),
    JobField(key="NumTasks", typed="count", apply=_tasks, pending=True, least=8),
    JobField(key="ReqProcs", typed="count", apply=_tasks, pending=True, least=8),
    JobField(key="Requeue", typed="flag", apply=_requeue, least=4),
    JobField(key="ReqNodes", typed="range", apply=_nodes, least=8),
    JobField(key="NumNodes", typed="range", apply=_nodes, least=8),
    JobField(key="MinNodes", typed="range", apply=_nodes, least=8),
    JobField(key="ReqSockets", typed="count", apply=_set("sockets_per_node"), pending=True, least=4),
    JobField(key="ReqCores", typed="count", apply=_set("cores_per_socket"), pending=True, least=4),
    JobField(key="TasksPerNode", typed="count", apply=_tasks_per_node, pending=True, least=2),
    JobField(key="ReqThreads", typed="count", apply=_set("threads_per_core"), pending=True, least=4),
    JobField(key="MinCPUsNode", typed="count", apply=_set("pn_min_cpus"), pending=True, least=4),
    JobField(key="MinMemoryNode", typed="mib", apply=_memory(MemoryPer.NODE), pending=True, least=10),
    JobField(key="MinMemoryCPU", typed="mib", apply=_memory(MemoryPer.CPU), pending=True, least=10),
    JobField(key="MinTmpDiskNode", typed="mib", apply=_set("pn_min_tmp_mib"), pending=True, least=5),
    JobField(key="Partition", typed="text", apply=_partition, pending=True),
    JobField(key="QOS", typed="text", apply=_qos, least=2),
    JobField(key="ReservationName", typed="text", apply=_set("reservation"), pending=True),
    JobField(key="Name", typed="text", apply=_set("name"), least=2),
    JobField(key="JobName", typed="text", apply=_set("name"), least=4),
    JobField(key="WCKey", typed="text", apply=_set("wckey")),
    JobField(key="StdErr", typed="text", apply=_output("std_err"), pending=True, least=4),
    JobField(key="StdIn", typed="text", apply=_output("std_in"), pending=True, least=4),
    JobField(key="StdOut", typed="text", apply=_output("std_out"), pending=True, least=4),
    JobField(key="Switches", typed="switches", apply=_switches, pending=True, least=5),
    JobField(key="wait-for-switch", typed="seconds", apply=_set("switches_wait"), pending=True, least=5),
    JobField(key="OverSubscribe", typed="flag", apply=_set("oversubscribe"), pending=True, least=2),
    JobField(key="Shared", typed="flag", apply=_set("oversubscribe"), pending=True, least=2),
    JobField(key="Contiguous", typed="flag", apply=_set("contiguous"), pending=True),
    JobField(key="CoreSpec", typed="count", apply=_set_request("core_spec"), pending=True, least=4),
    JobField(key="ThreadSpec", typed="count", apply=_set_request("thread_spec"), pending=True, least=4),
    JobField(key="TresBind", typed="text", apply=_set("tres_bind"), pending=True, least=5),
    JobField(key="TresFreq", typed="text", apply=_set("tres_freq"), pending=True, least=5),
    JobField(key="TresPerJob", typed="text", apply=_gres_at(GpuScope.JOB), pending=True, least=8),
    JobField(key="TresPerNode", typed="text", apply=_gres_at(GpuScope.NODE), pending=True, least=8),
    JobField(key="TresPerSocket", typed="text", apply=_gres_at(GpuScope.SOCKET), pending=True, least=8),
    JobField(key="TresPerTask", typed="text", apply=_gres_at(GpuScope.TASK), pending=True, least=8),
    JobField(key="ExcNodeList", typed="text", apply=_node_names("exc_nodes"), pending=True, least=2),
    JobField(key="NodeList", typed="text", apply=_node_names("req_nodes"), pending=True, least=8),
    JobField(key="ReqNodeList", typed="text", apply=_node_names("req_nodes"), pending=True, least=8),
    JobField(key="Features", typed="text", apply=_features, pending=True, least=1),
    JobField(key="Prefer", typed="text", apply=_prefer, pending=True, least=6),
    JobField(key="Gres", typed="text", apply=_gres_at(GpuScope.NODE), pending=True, least=2),
    JobField(key="Account", typed="text", apply=_account, pending=True, least=2),
    JobField(key="Dependency", typed="text", apply=_dependency, pending=True, least=1),
    JobField(key="Licenses", typed="text", apply=_licenses, least=1),
    JobField(key="EligibleTime", typed="moment", apply=_begin, pending=True, least=2),
    JobField(key="StartTime", typed="moment", apply=_begin, pending=True, least=2),
    JobField(key="Reboot", typed="flag", apply=_set_request("reboot"), pending=True, operator=True),
    JobField(key="Deadline", typed="moment", apply=_deadline, least=3),
    JobField(key="WorkDir", typed="text", apply=_set("work_dir"), pending=True, least=2),
    JobField(key="MailType", typed="text", apply=_mail, least=5),
    JobField(key="MailUser", typed="text", apply=_set("mail_user"), least=5),
    JobField(key="ResetAccrueTime", typed="flag", apply=_reset_accrue, least=5),
)
BY_KEY = {field.key: field for field in FIELDS}
_EARLY = ("Partition", "Account", "QOS")


def find_field(text: str) -> JobField | None:
    """By name or a beginning that is long enough; case does not count."""
    word = text.lower()
    for field in FIELDS:
        if field.key.lower() == word:
            return field
    for field in FIELDS:
        if len(word) >= field.least and field.key.lower().startswith(word):
            return field
    return None


def apply_update(
    job: Job,
    fields: Sequence[tuple[str, Any]],
    config: ClusterConfig,
    accounting: Accounting,
    now: float,
    is_operator: bool,
) -> Answer:
    """The job after all changes, or the first refusal: then nothing changes. Keys are those of FIELDS."""
    context = Context(config=config, accounting=accounting, now=now, is_operator=is_operator)
    if job.is_finished:
        return SlurmErrno.JOB_FINISHED
    changed = job
    for key, value in sorted(fields, key=lambda pair: pair[0] not in _EARLY):
        field = BY_KEY.get(key)
        if field is None:
            return SlurmErrno.NOT_SUPPORTED
        if field.operator and not is_operator:
            return SlurmErrno.ACCESS_DENIED
        if field.pending and not job.is_pending:
            return SlurmErrno.JOB_NOT_PENDING
        answer = field.apply(changed, value, context)
        if isinstance(answer, SlurmErrno):
            return answer
        changed = answer
    return changed


def parse_value(field: JobField, text: str, parse_moment: Callable[[str], int]) -> Any:
    """The typed value of what stands behind `=`. Raises LangError with scontrol's words."""
    parsers: dict[str, Callable[[str], Any]] = {
        "text": str,
        "count": _read_count,
        "priority": _read_priority,
        "range": _read_range,
        "minutes": durations.parse_minutes,
        "seconds": _read_seconds,
        "mib": _read_mib,
        "flag": _read_flag,
        "nice": _read_nice,
        "moment": parse_moment,
        "switches": _read_switches,
    }
    try:
        return parsers[field.typed](text)
    except (LangError, ValueError) as error:
        raise LangError(_complaint(field, text), text=text) from error


def _complaint(field: JobField, text: str) -> str:
    if field.key in ("TimeLimit", "TimeMin", "DelayBoot", "ArrayTaskThrottle"):
        return f"Invalid {field.key} value"
    return f"Invalid {field.key} value: {text}"


def _read_count(text: str) -> int:
    if not text.isdigit() or len(text) > 10:
        raise ValueError(text)
    return int(text)


def _read_priority(text: str) -> int:
    return UNLIMITED if text.upper() in ("INFINITE", "UNLIMITED") else _read_count(text)


def _read_range(text: str) -> tuple[int, int]:
    """`2`, `2-4`: (least, most); one number is both, most 0 = no upper bound."""
    least, dash, most = text.partition("-")
    low = _read_count(least)
    return low, _read_count(most) if dash else low


def _read_seconds(text: str) -> int:
    return durations.parse_seconds(text)


def _read_mib(text: str) -> int:
    return sizes.parse_mib(text)


def _read_flag(text: str) -> bool:
    word = text.lower()
    if word in ("1", "yes", "y"):
        return True
    if word in ("0", "no", "n"):
        return False
    raise ValueError(text)


def _read_nice(text: str) -> int:
    value = int(text) if text else 100
    if abs(value) > MAX_NICE:
        raise ValueError(text)
    return value


def _read_switches(text: str) -> tuple[int, int]:
    count, at, wait = text.partition("@")
    return _read_count(count), durations.parse_minutes(wait) * 60 if at else 0


__all__ = ["BY_KEY", "FIELDS", "JobField", "JobSpec", "apply_update", "find_field", "parse_value"]
