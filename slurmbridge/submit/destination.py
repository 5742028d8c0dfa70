"""Where may the job go and who pays: partitions, association, QOS, reservation?

Follows what slurmctld checks at submission (sbatch(1), slurm.conf(5) PartitionName, sacctmgr(1)). With
EnforcePartLimits=NO a partition that the job may not use is accepted and the job waits there.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import hostlist
from slurmbridge.model.accounts import Accounting, Assoc, Qos
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.request import JobRequest
from slurmbridge.model.states import Reason
from slurmbridge.model.verdict import Refused
from slurmbridge.submit import associations
from slurmbridge.submit.caller import Caller, Cluster

NORMAL = "normal"


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `partitions` in the user's order, the first decides defaults; `qos` is the record behind the name."""

    partitions: tuple[Partition, ...]
    account: str
    assoc: Assoc | None = None
    qos_name: str = NORMAL
    qos: Qos | None = None
    reason: str = ""
    reason_text: str = ""


def find_partitions(
    request: JobRequest, partitions: Sequence[Partition], *, is_root: bool = False
) -> tuple[Partition, ...] | Refused:
    """The partitions asked for, else the default one."""
    names = [name for name in request.partitions or () if name]
    if not names:
        default = next((each for each in partitions if each.default), None)
        return (default,) if default is not None else Refused(errno=SlurmErrno.NO_DEFAULT_PARTITION)
    by_name = {each.name: each for each in partitions}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        line = f"invalid partition specified: {','.join(unknown)}"
        return Refused(errno=SlurmErrno.INVALID_PARTITION_NAME, before=(line,))
    return tuple(by_name[name] for name in names)


def find_destination(
    request: JobRequest,
    caller: Caller,
    user: str,
    config: ClusterConfig,
    accounting: Accounting,
    partitions: Sequence[Partition],
    cluster: Cluster,
) -> Destination | Refused:
    """Partitions, then account, then QOS, as slurmctld looks them up."""
    found = find_partitions(request, partitions)
    if isinstance(found, Refused):
        return found
    refused = _may_enter(found, caller, user, cluster)
    if refused is not None:
        return refused
    is_enforced = "associations" in config.enforce
    account = request.account.lower() if request.account is not None else None
    assoc = associations.find(accounting, user, account, found[0].name) if account != "" else None
    if assoc is None and (is_enforced or account == ""):
        return Refused(errno=SlurmErrno.INVALID_ACCOUNT)
    charged = assoc.account if assoc is not None else (account or associations.default_account(accounting, user))
    qos = _find_qos(request, accounting, assoc, is_enforced=is_enforced or "qos" in config.enforce)
    if isinstance(qos, Refused):
        return qos
    name, record = qos
    destination = Destination(partitions=found, account=charged, assoc=assoc, qos_name=name, qos=record)
    return _checked(destination, config)


def _may_enter(partitions: Sequence[Partition], caller: Caller, user: str, cluster: Cluster) -> Refused | None:
    """Groups, root-only and AllocNodes are refused whatever EnforcePartLimits says."""
    for each in partitions:
        if each.root_only and caller.uid != 0:
            return Refused(errno=SlurmErrno.ACCESS_DENIED)
        if each.disable_root_jobs and caller.uid == 0:
            return Refused(errno=SlurmErrno.ACCESS_DENIED)
        if each.allow_groups and caller.uid != 0 and not set(each.allow_groups) & set(cluster.groups_of(user)):
            return Refused(errno=SlurmErrno.GROUP_NOT_ALLOWED)
        if not _may_submit_from(each, caller.host):
            return Refused(errno=SlurmErrno.ACCESS_DENIED)
    return None


def _may_submit_from(partition: Partition, host: str) -> bool:
    """AllocNodes: the hosts from which jobs come; a name with and without its domain is the same."""
    if partition.alloc_nodes.upper() in ("", "ALL"):
        return True
    try:
        names = {name.partition(".")[0] for name in hostlist.expand(partition.alloc_nodes)}
    except LangError:
        return False
    return host.partition(".")[0] in names


def _find_qos(
    request: JobRequest, accounting: Accounting, assoc: Assoc | None, *, is_enforced: bool
) -> tuple[str, Qos | None] | Refused:
    known = {each.name.lower(): each for each in accounting.qos}
    if request.qos is None:
        name = associations.default_qos(accounting, assoc) if assoc is not None else NORMAL
        return (name or NORMAL, known.get((name or NORMAL).lower()))
    wanted = request.qos.lower().split(",")
    if any(name not in known for name in wanted):
        return Refused(errno=SlurmErrno.INVALID_QOS)
    if is_enforced and assoc is not None:
        allowed = {name.lower() for name in associations.effective_qos(accounting, assoc)}
        if any(name not in allowed for name in wanted):
            return Refused(errno=SlurmErrno.INVALID_QOS)
    record = known[wanted[0]]
    return record.name, record


def _checked(destination: Destination, config: ClusterConfig) -> Destination | Refused:
    """What a partition allows: a reason to wait, or with EnforcePartLimits a refusal."""
    verdicts = [_policy(each, destination) for each in destination.partitions]
    if config.enforce_part_limits == "ALL":
        bad = next((verdict for verdict in verdicts if verdict is not None), None)
    elif config.enforce_part_limits == "ANY":
        bad = verdicts[0] if all(verdict is not None for verdict in verdicts) else None
    else:
        bad = None
    if bad is not None:
        return Refused(errno=bad[2])
    if verdicts[0] is not None and verdicts[0][1]:
        return msgspec.structs.replace(destination, reason=verdicts[0][0], reason_text=verdicts[0][1])
    return destination


def _policy(partition: Partition, destination: Destination) -> tuple[str, str, SlurmErrno] | None:
    """(reason, its long text, errno) why this partition does not take the job; no text: known only when it is planned."""
    qos, account = destination.qos_name, destination.account
    if partition.allow_qos and qos not in partition.allow_qos:
        allowed = ",".join(partition.allow_qos)
        text = f"Job's QOS not permitted to use this partition ({partition.name} allows {allowed} not {qos})"
        return Reason.QOS_NOT_ALLOWED, text, SlurmErrno.INVALID_QOS
    if partition.deny_qos and not partition.allow_qos and qos in partition.deny_qos:
        denied = ",".join(partition.deny_qos)
        text = f"Job's QOS not permitted to use this partition ({partition.name} denies {denied} including {qos})"
        return Reason.QOS_NOT_ALLOWED, text, SlurmErrno.INVALID_QOS
    if partition.allow_accounts and account not in partition.allow_accounts:
        return Reason.ACCOUNT_NOT_ALLOWED, "", SlurmErrno.INVALID_ACCOUNT
    if partition.deny_accounts and not partition.allow_accounts and account in partition.deny_accounts:
        return Reason.ACCOUNT_NOT_ALLOWED, "", SlurmErrno.INVALID_ACCOUNT
    return None
