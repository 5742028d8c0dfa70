"""`sacctmgr --json show associations`: limits as data_parser v0.0.45 lays them out.

An association that has quotas has one key more than Slurm's, `quotas`; the others look the same as Slurm's own.
"""

from __future__ import annotations

from typing import Any

from slurmbridge.commands.accounting_words import known_tres
from slurmbridge.commands.dump_file import SHARES_OF_PARENT
from slurmbridge.commands.effects import Site
from slurmbridge.commands.quotas import order
from slurmbridge.model.accounts import Assoc, Limits, Quota
from slurmbridge.model.tres import Tres, is_gpu
from slurmbridge.submit import associations

Document = dict[str, Any]


def json_assoc(site: Site, assoc: Assoc, *, own_limits: bool = False) -> Document:
    """`own_limits`: only what is set on the association itself."""
    accounting = site.accounting
    known = associations.index(accounting)
    limits = assoc.limits if own_limits else associations.effective_limits(accounting, assoc)
    above = () if own_limits else associations.ancestors(accounting, assoc)
    chain = (assoc, *above)
    qos = (assoc.qos or ()) if own_limits else associations.effective_qos(accounting, assoc)
    found: Document = {
        "accounting": [],
        "account": assoc.account,
        "cluster": site.config.cluster_name,
        "comment": assoc.comment,
        "default": {"qos": next((each.default_qos for each in chain if each.default_qos), "")},
        "flags": [],
        "max": _limits(limits, order(known_tres(site.config), site.config)),
        "id": assoc.assoc_id,
        "is_default": assoc.is_default,
        "lineage": associations.lineage(accounting, assoc),
        "min": {"priority_threshold": number(None)},
        "parent_account": "" if assoc.user else assoc.parent,
        "partition": assoc.partition,
        "priority": number(next((each.priority for each in chain if each.priority is not None), None)),
        "qos": sorted(qos, key=lambda name: known.qos[name].qos_id if name in known.qos else 0),
        "shares_raw": SHARES_OF_PARENT if assoc.shares_parent else assoc.shares,
        "user": assoc.user,
    }
    if assoc.quotas:
        numbers = order(known_tres(site.config), site.config)
        found["quotas"] = [_quota(quota, numbers) for quota in assoc.quotas]
    return found


def _limits(limits: Limits, numbers: dict[str, int]) -> Document:
    return {
        "jobs": {
            "per": {
                "count": number(limits.grp_jobs),
                "accruing": number(limits.grp_jobs_accrue),
                "submitted": number(limits.grp_submit),
                "wall_clock": number(limits.max_wall),
            },
            "active": number(limits.max_jobs),
            "accruing": number(limits.max_jobs_accrue),
            "total": number(limits.max_submit),
        },
        "tres": {
            "total": tres_list(limits.grp_tres, numbers),
            "group": {
                "minutes": tres_list(limits.grp_tres_mins, numbers),
                "active": tres_list(limits.grp_tres_run_mins, numbers),
            },
            "minutes": {"total": [], "per": {"job": tres_list(limits.max_tres_mins_per_job, numbers)}},
            "per": {
                "job": tres_list(limits.max_tres_per_job, numbers),
                "node": tres_list(limits.max_tres_per_node, numbers),
            },
        },
        "per": {"account": {"wall_clock": number(limits.grp_wall)}},
    }


def _quota(quota: Quota, numbers: dict[str, int]) -> Document:
    return {
        "pool": quota.pool,
        "deserved": tres_list(quota.deserved, numbers),
        "over_quota_weight": number(quota.over_quota_weight),
        "priority": number(quota.priority),
    }


def number(value: float | None) -> Document:
    """Set, or infinite."""
    return {"set": value is not None, "infinite": value is None, "number": 0 if value is None else value}


def tres_list(tres: Tres, numbers: dict[str, int]) -> list[Document]:
    """By id; GPUs as devices, parts of one as a decimal."""
    found = []
    for name, count in sorted(tres, key=lambda pair: (numbers.get(pair[0], 1 << 30), pair[0])):
        kind, _, rest = name.partition("/")
        whole, part = divmod(count, 1000) if is_gpu(name) else (count, 0)
        amount = count / 1000 if part else whole
        found.append({"type": kind, "name": rest, "id": numbers.get(name, 0), "count": amount})
    return found
