"""What stands in sacctmgr's columns? Each entity as a mapping from heading to text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from slurmbridge.commands import quotas
from slurmbridge.commands.accounting_words import known_tres, show_tres
from slurmbridge.lang import durations
from slurmbridge.model.accounts import Account, Accounting, Assoc, Limits, Qos, User
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.tres import Tres, count
from slurmbridge.submit import associations


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What values are computed from, and how much is inherited for display."""

    config: ClusterConfig
    accounting: Accounting
    order: dict[str, int]
    own_limits: bool = False  # WOPLimits: only what is set on the association itself
    parents: bool = True  # False: WOPInfo
    raw_qos: bool = False  # WithRawQOSLevel: changes of what is inherited stand beside it, with + and -

    def tres(self, tres: Tres) -> str:
        return show_tres(tres, self.order)


def source(
    config: ClusterConfig,
    accounting: Accounting,
    *,
    own_limits: bool = False,
    parents: bool = True,
    raw_qos: bool = False,
) -> Source:
    return Source(
        config=config,
        accounting=accounting,
        order=known_tres(config),
        own_limits=own_limits or not parents,
        parents=parents,
        raw_qos=raw_qos,
    )


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _duration(minutes: int | None) -> str:
    return "" if minutes is None else durations.render_elapsed(minutes * 60)


def _part(tres: Tres, name: str) -> str:
    return str(count(tres, name)) if any(key == name for key, _ in tres) else ""


def _limits(limits: Limits, show: Source) -> dict[str, str]:
    return {
        "GrpJobs": _number(limits.grp_jobs),
        "GrpJobsAccrue": _number(limits.grp_jobs_accrue),
        "GrpSubmit": _number(limits.grp_submit),
        "GrpWall": _duration(limits.grp_wall),
        "GrpTRES": show.tres(limits.grp_tres),
        "GrpTRESMins": show.tres(limits.grp_tres_mins),
        "GrpTRESRunMins": show.tres(limits.grp_tres_run_mins),
        "GrpCPUs": _part(limits.grp_tres, "cpu"),
        "GrpMem": _part(limits.grp_tres, "mem"),
        "GrpNodes": _part(limits.grp_tres, "node"),
        "GrpCPUMins": _part(limits.grp_tres_mins, "cpu"),
        "GrpCPURunMins": _part(limits.grp_tres_run_mins, "cpu"),
        "MaxTRES": show.tres(limits.max_tres_per_job),
        "MaxTRESPerNode": show.tres(limits.max_tres_per_node),
        "MaxTRESMins": show.tres(limits.max_tres_mins_per_job),
        "MaxCPUs": _part(limits.max_tres_per_job, "cpu"),
        "MaxNodes": _part(limits.max_tres_per_job, "node"),
        "MaxCPUMins": _part(limits.max_tres_mins_per_job, "cpu"),
        "MaxWall": _duration(limits.max_wall),
    }


def assoc_row(assoc: Assoc, show: Source, depth: int = 0) -> dict[str, str]:
    """`depth`: how far the account's name is set in (tree)."""
    own = show.own_limits
    limits = assoc.limits if own else associations.effective_limits(show.accounting, assoc)
    above = associations.ancestors(show.accounting, assoc)
    chain = (assoc,) if own else (assoc, *above)
    if own:
        qos = tuple(sorted(assoc.qos or ()))
    else:
        read = associations.raw_qos if show.raw_qos else associations.effective_qos
        qos = read(show.accounting, assoc)
    records = associations.index(show.accounting).qos
    numbers = sorted(records[name].qos_id for name in qos if name in records)
    row = {
        "Cluster": show.config.cluster_name,
        "Account": " " * depth + assoc.account,
        "User": assoc.user,
        "Partition": assoc.partition,
        "Share": "parent" if assoc.shares_parent else str(assoc.shares),
        "Priority": next((str(each.priority) for each in chain if each.priority is not None), ""),
        "MaxJobs": _number(limits.max_jobs),
        "MaxJobsAccrue": _number(limits.max_jobs_accrue),
        "MaxSubmit": _number(limits.max_submit),
        "QOS": ",".join(qos),
        "QOS_RAW": ",".join(map(str, numbers)),
        "Def QOS": next((each.default_qos for each in chain if each.default_qos), ""),
        "ID": str(assoc.assoc_id),
        "Lineage": associations.lineage(show.accounting, assoc),
        "Flags": "None",
        "Comment": assoc.comment,
        **quotas.columns(assoc, quotas.order(show.order, show.config))[0],
    }
    if show.parents and above:
        row |= {"ParentID": str(above[0].assoc_id), "ParentName": "" if assoc.user else above[0].account}
    return row | _limits(limits, show)


def user_row(user: User, show: Source) -> dict[str, str]:
    return {
        "User": user.name,
        "Name": user.name,
        "Def Acct": user.default_account,
        "Def WCKey": user.default_wckey,
        "Admin": user.admin_level,
        "Coord Accounts": ",".join(associations.coordinated(show.accounting, user.name)),
    }


def account_row(account: Account) -> dict[str, str]:
    return {
        "Account": account.name,
        "Name": account.name,
        "Descr": account.description,
        "Org": account.organization,
        "Coord Accounts": ",".join(sorted(account.coordinators)),
        "Flags": ",".join(account.flags),
    }


def qos_row(qos: Qos, show: Source) -> Mapping[str, str]:
    exempt = qos.preempt_exempt_time
    return _limits(qos.limits, show) | {
        "Name": qos.name,
        "ID": str(qos.qos_id),
        "Descr": qos.description,
        "Priority": str(qos.priority),
        "GraceTime": durations.render_elapsed(qos.grace_time),
        "Preempt": ",".join(sorted(qos.preempt)),
        "PreemptExemptTime": "" if exempt is None else durations.render_elapsed(exempt),
        "PreemptMode": qos.preempt_mode,
        "Preemptible": "" if qos.preemptible is None else ("yes" if qos.preemptible else "no"),
        "Flags": ",".join(qos.flags),
        "UsageThres": "" if qos.usage_threshold is None else f"{qos.usage_threshold:.6f}",
        "UsageFactor": f"{qos.usage_factor:.6f}",
        "LimitFactor": "" if qos.limit_factor is None else f"{qos.limit_factor:.6f}",
        "MinPrioThres": _number(qos.min_prio_threshold),
        "MinTRES": show.tres(qos.min_tres_per_job),
        "MinCPUs": _part(qos.min_tres_per_job, "cpu"),
        "MaxJobsPU": _number(qos.limits.max_jobs),
        "MaxJobsPA": _number(qos.max_jobs_per_account),
        "MaxJobsAccruePU": _number(qos.limits.max_jobs_accrue),
        "MaxJobsAccruePA": _number(qos.max_jobs_accrue_per_account),
        "MaxSubmitPU": _number(qos.limits.max_submit),
        "MaxSubmitPA": _number(qos.max_submit_per_account),
        "MaxTRESPU": show.tres(qos.max_tres_per_user),
        "MaxTRESPA": show.tres(qos.max_tres_per_account),
        "MaxCPUsPU": _part(qos.max_tres_per_user, "cpu"),
        "MaxNodesPU": _part(qos.max_tres_per_user, "node"),
        "MaxTRESRunMinsPU": show.tres(qos.max_tres_run_mins_per_user),
        "MaxCPURunMinsPU": _part(qos.max_tres_run_mins_per_user, "cpu"),
        "MaxTRESRunMinsPA": show.tres(qos.max_tres_run_mins_per_account),
    }


def cluster_row(show: Source, address: str) -> dict[str, str]:
    """This cluster with its root association."""
    root = associations.index(show.accounting).assocs.get((associations.ROOT, "", ""))
    row = assoc_row(root, show) if root is not None else {}
    return row | {
        "Cluster": show.config.cluster_name,
        "Name": show.config.cluster_name,
        "ControlHost": address,
        "ControlPort": "6817",
        "RPC": "11520",
        "Flags": "",
        "TRES": ",".join(show.order),
        "NodeCount": str(len(show.config.nodes)),
    }
