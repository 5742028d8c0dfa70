"""`sshare --json` and `--yaml`: the document of data_parser v0.0.45.

An association with quotas has one key more than Slurm's, `quotas`: what the text columns say of each pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slurmbridge.commands import quotas
from slurmbridge.commands.accounting_words import known_tres
from slurmbridge.commands.dump_file import SHARES_OF_PARENT
from slurmbridge.commands.effects import Site
from slurmbridge.commands.sshare_numbers import Level, compute, run_minutes, used
from slurmbridge.fields.structured import Value
from slurmbridge.model.accounts import Assoc
from slurmbridge.model.plan import QueueShare
from slurmbridge.model.tres import Tres, is_gpu
from slurmbridge.submit import associations

_UNSET_SHARE = 1 / 4294967294  # how Slurm prints that root has no part of anything
_INFINITE = float(0xFFFFFFFFFFFFFFFF)
INFINITE = "Dumping (0xffffffffffffffff) as place holder for Infinity"


def document(
    site: Site, chosen: Sequence[Assoc], shares: Iterable[QueueShare], now: float
) -> tuple[Value, tuple[str, ...]]:  # fmt: skip
    """The entry `shares`, and the warnings that belong to it."""
    levels = compute(site.accounting, site.usage(), site.counted_usage())
    running = run_minutes(site.accounting, site.jobs(), now, unit_s=1)
    sums = used(site.accounting, site.usage())
    order = known_tres(site.config)
    by_assoc: dict[int, list[QueueShare]] = {}
    for share in shares:
        by_assoc.setdefault(share.assoc_id, []).append(share)
    records: list[Value] = []
    warnings: list[str] = []
    for assoc in chosen:
        number, level = assoc.assoc_id, levels[assoc.assoc_id]
        if level.level == float("inf") and not assoc.shares_parent:
            warnings.append(INFINITE)
        tres = _tres(assoc, running.get(number, {}), sums.get(number, {}), order)
        extra = {"quotas": _quotas(site, assoc, by_assoc.get(number, ()), order)} if assoc.quotas else {}
        records.append({**_record(site, assoc, level, tres), **extra})
    return {"shares": records, "total_shares": 0}, tuple(warnings)


def _record(site: Site, assoc: Assoc, level: Level, tres: Value) -> dict[str, Value]:
    root = not assoc.user and assoc.account == associations.ROOT
    ranked = level.level is not None and not assoc.shares_parent
    height = level.level if ranked and level.level is not None else 0.0
    return {
        "id": assoc.assoc_id,
        "cluster": site.config.cluster_name,
        "name": assoc.user or assoc.account,
        "parent": assoc.account if assoc.user else assoc.parent,
        "partition": assoc.partition,
        "shares_normalized": _number(_UNSET_SHARE if root else level.norm_shares),
        "shares": _number(0 if root else SHARES_OF_PARENT if assoc.shares_parent else assoc.shares, is_set=not root),
        "tres": tres,
        "effective_usage": _number(level.effective),
        "usage_normalized": _number(level.norm_usage, is_set=not root),
        "usage": int(level.raw),
        "fairshare": {
            "factor": _number(level.factor or 0.0),
            "level": _number(_INFINITE if height == float("inf") else height, is_set=not root),
        },
        "type": ["USER" if assoc.user else "ASSOCIATION"],
    }


def _number(value: float, *, is_set: bool = True, infinite: bool = False) -> dict[str, Value]:
    return {"set": is_set, "infinite": infinite, "number": value}


def _tres(
    assoc: Assoc, running: Mapping[str, int], sums: Mapping[str, float], order: Mapping[str, int]
) -> dict[str, Value]:  # fmt: skip
    limits = {name: count // 1000 if is_gpu(name) else count for name, count in assoc.limits.grp_tres_mins}
    return {
        "run_seconds": [{"name": name, "value": _number(running.get(name, 0))} for name in order],
        "group_minutes": [
            {"name": n, "value": _number(limits.get(n, 0), is_set=n in limits, infinite=n not in limits)} for n in order
        ],
        "usage": [{"name": name, "value": float(sums.get(name, 0.0))} for name in order],
    }


def _quotas(site: Site, assoc: Assoc, shares: Iterable[QueueShare], order: dict[str, int]) -> list[Value]:
    numbers = quotas.order(order, site.config)
    by_pool = {share.pool: share for share in shares}
    found: list[Value] = []
    for pool in site.config.all_pools:
        quota, share = assoc.quota_in(pool.name), by_pool.get(pool.name)
        if quota is None and share is None:
            continue
        weight, priority = (quota.over_quota_weight, quota.priority) if quota is not None else (None, None)
        found.append(
            {
                "pool": pool.name,
                "deserved": _counts(quota.deserved if quota is not None else (), numbers),
                "fair_share": _counts(share.fair_share if share is not None else (), numbers),
                "allocated": _counts(share.allocated if share is not None else (), numbers),
                "firm": _counts(share.allocated_nonpreemptible if share is not None else (), numbers),
                "requested": _counts(share.requested if share is not None else (), numbers),
                "over_quota_weight": _number(weight or 0, is_set=weight is not None),
                "priority": _number(priority or 0, is_set=priority is not None),
            }
        )
    return found


def _counts(tres: Tres, numbers: Mapping[str, int]) -> list[Value]:
    ordered = sorted(tres, key=lambda pair: (numbers.get(pair[0], 1 << 30), pair[0]))
    return [{"name": name, "value": count / 1000 if is_gpu(name) else count} for name, count in ordered]
