"""What becomes of a job when one key of `scontrol update job` gets a new value?

One function for each kind of change: the record, the typed value and the controller's context give the changed record
or the refusal. Which key means which function is in `update_job`. Follows scontrol(1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from slurmbridge.commands.update_tally import retally
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import constraints, dependencies, gres, hostlist, licenses
from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import GpuNeed, GpuScope, Job
from slurmbridge.model.request import GresRequest, Memory, MemoryPer
from slurmbridge.model.states import Reason
from slurmbridge.model.units import UNLIMITED
from slurmbridge.model.verdict import Refused
from slurmbridge.submit import associations
from slurmbridge.submit.devices import need_of

Answer = Job | SlurmErrno


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a change may look at besides the job."""

    config: ClusterConfig
    accounting: Accounting
    now: float
    is_operator: bool
    reservations: Collection[str] = ()  # names


def _spec(job: Job, **changes: Any) -> Job:
    return replace(job, spec=replace(job.spec, **changes))


def copy_to_spec(field: str) -> Callable[[Job, Any, Context], Answer]:
    """Plain copies into JobSpec."""

    def apply(job: Job, value: Any, context: Context) -> Answer:
        return _spec(job, **{field: value})

    return apply


def copy_to_request(field: str) -> Callable[[Job, Any, Context], Answer]:
    """Values that live in the request alone."""

    def apply(job: Job, value: Any, context: Context) -> Answer:
        return _spec(job, request=replace(job.spec.request, **{field: value}))

    return apply


def copy_to_job(field: str) -> Callable[[Job, Any, Context], Answer]:
    def apply(job: Job, value: Any, context: Context) -> Answer:
        return replace(job, **{field: value})

    return apply


def change_time_limit(job: Job, minutes: int, context: Context) -> Answer:
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
    end = None if limit is None else job.start_time + job.suspended_s + limit * 60
    return replace(changed, time_limit_end=end)


def refuse(errno: SlurmErrno) -> Callable[[Job, Any, Context], Answer]:
    """Keys that Slurm knows and that mean nothing here."""

    def apply(job: Job, value: Any, context: Context) -> Answer:
        return errno

    return apply


def change_time_min(job: Job, minutes: int, context: Context) -> Answer:
    limit = UNLIMITED if job.spec.time_limit is None else job.spec.time_limit
    return SlurmErrno.INVALID_TIME_MIN if minutes > limit else _spec(job, time_min=minutes or None)


def change_end(job: Job, moment: int, context: Context) -> Answer:
    """Of a running job: the time limit that ends it then."""
    if job.is_pending or job.start_time is None:
        return SlurmErrno.JOB_NOT_RUNNING
    minutes = max(int(moment - job.start_time - job.suspended_s), 0) // 60
    return change_time_limit(job, minutes, context)


def change_reservation(job: Job, name: str, context: Context) -> Answer:
    if name and name not in context.reservations:
        return SlurmErrno.RESERVATION_INVALID
    return _spec(job, reservation=name)


def change_node_cpus(job: Job, count: int, context: Context) -> Answer:
    return _spec(job, pn_min_cpus=count) if count else job


def change_work_dir(job: Job, folder: str, context: Context) -> Answer:
    """Relative paths of output files move with it."""
    old, spec = job.spec.work_dir, job.spec
    moved = {
        field: folder + path[len(old) :]
        for field, path in (("std_out", spec.std_out), ("std_err", spec.std_err))
        if path and path.startswith(old + "/")
    }
    return _spec(job, work_dir=folder, **moved)


def change_priority(job: Job, priority: int, context: Context) -> Answer:
    if priority == UNLIMITED:
        return _release(job, context)
    if priority == 0:
        held = "admin" if context.is_operator else "user"
        reason = Reason.HELD_ADMIN if context.is_operator else Reason.HELD_USER
        return replace(job, priority=0, held_by=held, reason=reason, reason_text="")
    if job.priority == 0:
        return SlurmErrno.JOB_HELD
    if not context.is_operator and priority > job.priority:
        return SlurmErrno.ACCESS_DENIED
    changed = _spec(job, request=replace(job.spec.request, priority=priority))
    return replace(changed, priority=priority)


def _release(job: Job, context: Context) -> Answer:
    if job.held_by == "admin" and not context.is_operator:
        return SlurmErrno.ACCESS_DENIED
    return replace(job, priority=max(job.priority, 1), held_by="", reason=Reason.NONE, reason_text="")


def change_nice(job: Job, nice: int, context: Context) -> Answer:
    if nice < 0 and not context.is_operator:
        return SlurmErrno.ACCESS_DENIED
    moved = max(job.priority + job.spec.nice - nice, 1) if job.priority else 0
    return replace(_spec(job, nice=nice), priority=moved)


def change_partition(job: Job, names: str, context: Context) -> Answer:
    wanted = tuple(name for name in names.split(",") if name)
    if not names:
        wanted = tuple(each.name for each in context.config.partitions if each.default)[:1]
    if not wanted or any(context.config.partition(name) is None for name in wanted):
        return SlurmErrno.INVALID_PARTITION_NAME
    return _spec(job, partitions=wanted)


def change_account(job: Job, account: str, context: Context) -> Answer:
    found = associations.find(context.accounting, job.spec.user, account)
    if found is None:
        return SlurmErrno.INVALID_ACCOUNT
    return _spec(job, account=found.account, assoc_id=found.assoc_id)


def change_qos(job: Job, qos: str, context: Context) -> Answer:
    found = associations.find(context.accounting, job.spec.user, job.spec.account)
    if not qos and found is not None:
        qos = associations.default_qos(context.accounting, found)
    if not any(each.name == qos.lower() for each in context.accounting.qos):
        return SlurmErrno.INVALID_QOS
    if found is not None and not context.is_operator:
        if qos.lower() not in associations.effective_qos(context.accounting, found):
            return SlurmErrno.INVALID_QOS
    return _spec(job, qos=qos.lower())


def change_nodes(job: Job, bounds: tuple[int, int], context: Context) -> Answer:
    if not job.is_pending:
        return SlurmErrno.NOT_SUPPORTED
    least, most = bounds
    if not least or (most and most < least):
        return SlurmErrno.INVALID_NODE_COUNT
    changed = _spec(job, min_nodes=least, max_nodes=most or None, node_counts=())
    spec = changed.spec
    if not spec.ntasks_given and spec.num_tasks < least:
        spec = replace(spec, num_tasks=least, min_cpus=max(spec.min_cpus, least * spec.cpus_per_task))
    spec = replace(spec, min_cpus=max(spec.min_cpus, least))
    return replace(changed, spec=retally(spec, context.config))


def change_tasks(job: Job, tasks: int, context: Context) -> Answer:
    if not tasks:
        return SlurmErrno.INVALID_CPU_COUNT
    spec = replace(job.spec, num_tasks=tasks, ntasks_given=True)
    cpus = 1 if spec.overcommit else tasks * spec.cpus_per_task
    if spec.max_cpus is not None and cpus > spec.max_cpus:
        return SlurmErrno.INVALID_CPU_COUNT
    return replace(job, spec=retally(replace(spec, min_cpus=max(cpus, spec.min_nodes)), context.config))


def change_cpus(job: Job, bounds: tuple[int, int], context: Context) -> Answer:
    least, most = bounds
    if not least or (most and most < least):
        return SlurmErrno.INVALID_CPU_COUNT
    spec = replace(job.spec, min_cpus=least, max_cpus=most if most > least else None)
    return replace(job, spec=retally(spec, context.config))


def spec_resources(field: str) -> Callable[[Job, Any, Context], Answer]:
    """Where AllowSpecResourcesUsage says so."""

    def apply(job: Job, count: int, context: Context) -> Answer:
        if not context.config.allow_spec_resources:
            return SlurmErrno.ACCESS_DENIED
        return _spec(job, request=replace(job.spec.request, **{field: count}))

    return apply


def change_cpus_per_task(job: Job, count: int, context: Context) -> Answer:
    if not count:
        return SlurmErrno.INVALID_CPU_COUNT
    spec = replace(
        job.spec,
        cpus_per_task=count,
        cpus_per_task_given=True,
        min_cpus=min(job.spec.num_tasks * count, job.spec.max_cpus or UNLIMITED),
    )
    return replace(job, spec=retally(spec, context.config))


def change_tasks_per_node(job: Job, count: int, context: Context) -> Answer:
    spec = job.spec
    return _spec(job, ntasks_per_node=count, pn_min_cpus=max(spec.pn_min_cpus, count * spec.cpus_per_task))


def memory_per(per: MemoryPer) -> Callable[[Job, int, Context], Answer]:
    def apply(job: Job, mib: int, context: Context) -> Answer:
        return replace(job, spec=retally(replace(job.spec, memory=Memory(per, mib)), context.config))

    return apply


def gres_in(scope: GpuScope) -> Callable[[Job, str, Context], Answer]:
    fields = {GpuScope.JOB: "tres_per_job", GpuScope.NODE: "tres_per_node", GpuScope.SOCKET: "tres_per_socket",
              GpuScope.TASK: "tres_per_task"}  # fmt: skip

    def apply(job: Job, text: str, context: Context) -> Answer:
        if not text:
            return replace(job, spec=retally(replace(job.spec, **{fields[scope]: ""}, gpu=None), context.config))
        if text.lower() == "none":
            return SlurmErrno.INVALID_GRES
        try:
            asked: GresRequest = gres.parse_gres(text, "tres" if text.startswith("gres") else "gres")
        except LangError:
            return SlurmErrno.INVALID_GRES
        if any(term.name not in context.config.gres_types for term in asked.terms):
            return SlurmErrno.INVALID_GRES
        need = _gpu_need(asked, scope)
        if isinstance(need, SlurmErrno):
            return need
        if need is not None and scope is GpuScope.JOB and need.count < job.spec.min_nodes:
            return SlurmErrno.INVALID_GRES
        return replace(job, spec=retally(replace(job.spec, **{fields[scope]: asked.text}, gpu=need), context.config))

    return apply


def _gpu_need(asked: GresRequest, scope: GpuScope) -> GpuNeed | SlurmErrno | None:
    """As at submission."""
    by_type = {term.type: term.milli for term in asked.terms if term.name == "gpu" and term.milli}
    if not by_type:
        return None
    if "" in by_type and len(by_type) > 1:
        return SlurmErrno.INVALID_GRES_MIX
    need = need_of(scope, tuple(by_type.items()))
    return need.errno if isinstance(need, Refused) else need


def change_features(job: Job, text: str, context: Context) -> Answer:
    if text:
        try:
            names = constraints.names(constraints.parse(text))
        except LangError:
            return SlurmErrno.INVALID_FEATURE
        known = {feature for node in context.config.nodes for feature in node.features}
        if not names <= known:
            return SlurmErrno.INVALID_FEATURE
    return _spec(job, features=text or None)


def change_prefer(job: Job, text: str, context: Context) -> Answer:
    answer = change_features(job, text, context)
    if isinstance(answer, SlurmErrno):
        return SlurmErrno.INVALID_PREFER
    return _spec(job, prefer=text or None)


def node_list_in(field: str) -> Callable[[Job, str, Context], Answer]:
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


def change_begin(job: Job, moment: int, context: Context) -> Answer:
    if moment <= context.now:
        begin, eligible = None, context.now
    else:
        begin, eligible = moment, None
    request = replace(job.spec.request, begin=begin)
    return replace(_spec(job, begin=begin, request=request), eligible_time=eligible, accrue_time=eligible)


def change_deadline(job: Job, moment: int, context: Context) -> Answer:
    if 0 < moment <= context.now:
        return SlurmErrno.INVALID_TIME_VALUE
    return _spec(job, deadline=moment or None) if context.is_operator else SlurmErrno.ACCESS_DENIED


def change_dependency(job: Job, text: str, context: Context) -> Answer:
    if not text:
        return replace(
            _spec(job, dependency=None), dep_done=frozenset(), dep_failed=frozenset(), reason=_unblocked(job)
        )
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


def change_licenses(job: Job, text: str, context: Context) -> Answer:
    if not text:
        return replace(
            job, spec=retally(replace(job.spec, licenses="", license_terms=(), licenses_any_of=False), context.config)
        )
    try:
        terms, any_of = licenses.parse(text)
    except LangError:
        return SlurmErrno.INVALID_LICENSES
    totals = {each.name: each.total for each in context.config.licenses}
    if any(term.count > totals.get(term.name, 0) for term in terms):
        return SlurmErrno.INVALID_LICENSES
    spec = replace(job.spec, licenses=text, license_terms=terms, licenses_any_of=any_of)
    return replace(job, spec=retally(spec, context.config))


def change_throttle(job: Job, limit: int, context: Context) -> Answer:
    return SlurmErrno.NOT_SUPPORTED if not job.array_job_id else replace(job, array_limit=limit)


def change_requeue(job: Job, value: bool, context: Context) -> Answer:
    return _spec(job, requeue=value, request=replace(job.spec.request, requeue=value))


def output_in(field: str) -> Callable[[Job, str, Context], Answer]:
    def apply(job: Job, text: str, context: Context) -> Answer:
        joined = bool(text) and not text.startswith("/") and job.spec.work_dir.startswith("/")
        path = f"{job.spec.work_dir}/{text}" if joined else text
        return _spec(job, request=replace(job.spec.request, **{field.replace("_", ""): text}), **{field: path})

    return apply


def change_switches(job: Job, value: tuple[int, int], context: Context) -> Answer:
    return _spec(job, switches=value[0], switches_wait=value[1])


def change_mail(job: Job, events: tuple[str, ...], context: Context) -> Answer:
    return _spec(job, mail_type=events)


def change_reset_accrue(job: Job, value: bool, context: Context) -> Answer:
    return replace(job, accrue_time=context.now if job.accrue_time is not None else None)
