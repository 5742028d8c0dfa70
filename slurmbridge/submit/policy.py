"""Which limit of QOS or association does a job break that Slurm refuses at submission?

Limits on the number of submitted jobs always; all others only for a QOS with DenyOnLimit (sacctmgr(1)); without it the
job waits with the same word as its reason. Names are Slurm's reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.accounts import Accounting, Assoc, Qos
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.request import Memory
from slurmbridge.model.tres import Tres, count, is_gpu
from slurmbridge.model.verdict import Refused
from slurmbridge.submit import associations
from slurmbridge.submit.factors import of_assoc, safe_minutes
from slurmbridge.submit.lifting import lifted_by, without_lifted
from slurmbridge.submit.memory_limits import effective, is_too_much

CountJobs = Callable[[str, str, str], int]
"""(user, account, QOS) -> jobs submitted and not ended, every task of an array; an empty name counts all."""

_WORDS = {"cpu": "Cpu", "node": "Node", "mem": "Mem", "billing": "Billing", "energy": "Energy"}


def _word(name: str, per_job: bool) -> str:
    """Part of a reason that names a TRES."""
    if name in _WORDS:
        return "Memory" if name == "mem" and not per_job else _WORDS[name]
    if is_gpu(name) or name.startswith("gres/"):
        return "GRES"
    return "License" if name.startswith("license/") else "Unknown"


def _minutes_word(name: str) -> str:
    return "CPU" if name == "cpu" else _word(name, per_job=False)


def _reason(scope: str, name: str) -> str:
    """`QOSMaxCpuPerJobLimit`, `QOSMaxGRESPerJob`, `QOSMaxCpuPerUserLimit` ..."""
    word = _word(name, per_job=False)
    limit = "Limit" if name in ("cpu", "node") else ""
    return f"QOSMax{word}Per{scope}{limit}"


def check(
    request_tres: Tres,
    minutes: int | None,
    user: str,
    tasks: int,
    qos: Qos | None,
    assoc: Assoc | None,
    accounting: Accounting,
    config: ClusterConfig,
    count_jobs: CountJobs | None,
) -> Refused | None:
    """`tasks`: jobs that this submission adds (array tasks); `minutes` None: no time limit."""
    if "limits" not in config.enforce:
        return None
    reason = _submit_limit(user, tasks, qos, assoc, accounting, count_jobs) if count_jobs is not None else None
    if reason is None and qos is not None and "DenyOnLimit" in qos.flags:
        counted = minutes
        if minutes is not None and "safe" in config.enforce:
            counted = int(safe_minutes(qos, minutes))
        reason = next(_broken(request_tres, counted, qos), None)
        if reason is None and assoc is not None:
            reason = next(_broken_assoc(request_tres, counted, qos, assoc, accounting), None)
    return Refused(errno=SlurmErrno.ACCOUNTING_POLICY, before=(reason,)) if reason is not None else None


def _submit_limit(
    user: str,
    tasks: int,
    qos: Qos | None,
    assoc: Assoc | None,
    accounting: Accounting,
    count_jobs: CountJobs,
) -> str | None:
    if qos is not None:
        if qos.limits.grp_submit is not None and count_jobs("", "", qos.name) + tasks > qos.limits.grp_submit:
            return "QOSGrpSubmitJobsLimit"
        if qos.limits.max_submit is not None and count_jobs(user, "", qos.name) + tasks > qos.limits.max_submit:
            return "QOSMaxSubmitJobPerUserLimit"
        most = qos.max_submit_per_account
        if most is not None and assoc is not None and count_jobs("", assoc.account, qos.name) + tasks > most:
            return "MaxSubmitJobsPerAccount"
    if assoc is None:
        return None
    most = associations.effective_limits(accounting, assoc).max_submit
    if most is not None and count_jobs(user, assoc.account, "") + tasks > most:
        return "AssocMaxSubmitJobLimit"
    for above in (assoc, *associations.ancestors(accounting, assoc)):
        group = above.limits.grp_submit
        if group is not None:
            accounts = {above.account, *associations.descendants(accounting, above.account)}
            submitted = sum(count_jobs(above.user, account, "") for account in accounts)
            if submitted + tasks > group:
                return "AssocGrpSubmitJobsLimit"
    return None


def _broken(request: Tres, minutes: int | None, qos: Qos) -> Iterator[str]:
    """Reasons of a QOS with DenyOnLimit, the first in Slurm's order first."""
    limits = qos.limits
    nodes = max(count(request, "node"), 1)
    for name, most in limits.max_tres_per_job:
        if most >= 0 and count(request, name) > most:
            yield _reason("Job", name)
    for name, most in limits.max_tres_per_node:
        if most >= 0 and count(request, name) > most * nodes:
            yield f"QOSMax{_word(name, per_job=False)}PerNode"
    for name, most in qos.max_tres_per_user:
        if most >= 0 and count(request, name) > most:
            yield _reason("User", name)
    for name, most in qos.max_tres_per_account:
        if most >= 0 and count(request, name) > most:
            yield f"Max{_word(name, per_job=False)}PerAccount"
    for name, most in limits.grp_tres:
        if most >= 0 and count(request, name) > most:
            yield f"QOSGrp{_word(name, per_job=True)}{'' if _word(name, True) == 'GRES' else 'Limit'}"
    for name, least in qos.min_tres_per_job:
        if least > 0 and count(request, name) < least:
            yield "QOSMinCpuNotSatisfied" if name == "cpu" else f"QOSMin{_word(name, per_job=False)}"
    for name, most in limits.max_tres_mins_per_job:
        if minutes is not None and count(request, name) * minutes > most:
            limit = "Limit" if name == "cpu" else ""
            yield f"QOSMax{_word(name, per_job=False)}MinutesPerJob{limit}"
    for name, most in limits.grp_tres_mins:
        if minutes is not None and count(request, name) * minutes > most:
            yield f"QOSGrp{_minutes_word(name)}Minutes{'Limit' if name == 'cpu' else ''}"
    for name, most in limits.grp_tres_run_mins:
        if minutes is not None and count(request, name) * minutes > most:
            yield f"QOSGrp{_minutes_word(name)}RunMinutes{'Limit' if name == 'cpu' else ''}"
    if limits.max_wall is not None and (minutes is None or minutes > limits.max_wall):
        yield "QOSMaxWallDurationPerJobLimit"
    if limits.grp_wall is not None and minutes is not None and minutes > limits.grp_wall:
        yield "QOSGrpWallLimit"


def _broken_assoc(request: Tres, minutes: int | None, qos: Qos, assoc: Assoc, accounting: Accounting) -> Iterator[str]:
    """The same of associations, but for what the QOS limits itself."""
    bound = {name for name, _ in qos.limits.grp_tres}
    factor = qos.limit_factor
    for each in (assoc, *associations.ancestors(accounting, assoc)):
        for name, most in of_assoc(each.limits, factor).grp_tres:
            if name not in bound and count(request, name) > most:
                yield f"AssocGrp{_word(name, per_job=True)}{'' if _word(name, True) == 'GRES' else 'Limit'}"
    limits = of_assoc(associations.effective_limits(accounting, assoc), factor)
    bound = {name for name, _ in qos.limits.max_tres_per_job}
    nodes = max(count(request, "node"), 1)
    for name, most in limits.max_tres_per_job:
        if name not in bound and count(request, name) > most:
            yield f"AssocMax{_word(name, per_job=True)}PerJob{'Limit' if name in ('cpu', 'node') else ''}"
    for name, most in limits.max_tres_per_node:
        if not qos.limits.max_tres_per_node and count(request, name) > most * nodes:
            yield f"AssocMax{_word(name, per_job=True)}PerNode"
    for name, most in limits.max_tres_mins_per_job:
        if minutes is not None and count(request, name) * minutes > most:
            yield f"AssocMax{_word(name, per_job=True)}MinutesPerJob{'Limit' if name == 'cpu' else ''}"
    if (
        limits.max_wall is not None
        and qos.limits.max_wall is None
        and minutes is not None
        and minutes > limits.max_wall
    ):
        yield "AssocMaxWallDurationPerJobLimit"


def within_partitions(
    minutes: int | None, nodes: int, partitions: tuple[Partition, ...], config: ClusterConfig, qos: Qos | None = None
) -> SlurmErrno | None:
    """EnforcePartLimits: ANY wants one partition whose limits hold, ALL wants all of them. A QOS may lift some."""
    if config.enforce_part_limits == "NO":
        return None
    lifted = lifted_by(qos)
    verdicts = [_partition_limit(minutes, nodes, without_lifted(each, lifted)) for each in partitions]
    broken = [verdict for verdict in verdicts if verdict is not None]
    is_enough = not broken if config.enforce_part_limits == "ALL" else len(broken) < len(verdicts)
    return None if is_enough else broken[0]


def fits_memory(
    memory: Memory | None, cpus_on_node: int, partitions: tuple[Partition, ...], config: ClusterConfig
) -> bool:
    """MaxMemPerNode, with EnforcePartLimits."""
    if config.enforce_part_limits == "NO":
        return True
    fitting = (not is_too_much(memory, cpus_on_node, effective(each, config)) for each in partitions)
    return all(fitting) if config.enforce_part_limits == "ALL" else any(fitting)


def _partition_limit(minutes: int | None, nodes: int, partition: Partition) -> SlurmErrno | None:
    if partition.max_time is not None and (minutes is None or minutes > partition.max_time):
        return SlurmErrno.INVALID_TIME_LIMIT
    most = len(partition.nodes) if partition.max_nodes is None else partition.max_nodes
    if nodes > most or nodes < partition.min_nodes:
        return SlurmErrno.INVALID_NODE_COUNT
    return None
