"""What do sacctmgr's words for quotas mean? `DeservedTRES`, `OverQuotaWeight`, `QueuePriority`, each for a node pool.

Quotas are this program's own: Slurm has limits and shares, and no words for what an account is promised. Of what a pool
has, CPUs, memory and GPUs (of any or of one type) can be promised, GPUs in parts of devices. -1 clears a setting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from slurmbridge.lang.tres import render_count
from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.tres import Tres

FIELDS: Final = {"deserved": "DeservedTRES", "over_quota_weight": "OverQuotaWeight", "priority": "QueuePriority"}
"""Field of `Quota` -> word."""
WORDS: Final = frozenset(FIELDS.values())
COLUMNS: Final = WORDS | {"Pool"}
SHOWN_BY_POOL: Final = "bypool"
"""A switch of `sacctmgr show` that its columns set: one row for each quota."""
NOT_OF_ROOT: Final = (
    "sacctmgr: error: root has the whole of every pool: DeservedTRES, OverQuotaWeight and QueuePriority are set on the "
    "accounts below it"
)
NOT_ONES_OWN: Final = (
    "sacctmgr: error: an account's quota is a part of its parent's: operators and coordinators of the parent may set it"
)
_KEPT: Final = ("cpu", "mem", "gres/gpu")


def countable(config: ClusterConfig) -> tuple[str, ...]:
    """The TRES that can be promised: types of GPUs are those of the nodes and of AccountingStorageTRES."""
    types = {f"gres/gpu:{device.type}" for node in config.nodes for device in node.devices if device.type}
    types.update(name for name in config.accounting_tres if name.startswith("gres/gpu:"))
    return (*_KEPT, *sorted(types))


def order(known: Mapping[str, int], config: ClusterConfig) -> dict[str, int]:
    """Numbers to sort by: those of the TRES that are accounted, then the rest."""
    last = max(known.values(), default=0)
    extra = [name for name in countable(config) if name not in known]
    return {**known, **{name: last + at for at, name in enumerate(extra, 1)}}


def not_countable(name: str, config: ClusterConfig) -> str:
    return f"sacctmgr: error: DeservedTRES counts {', '.join(countable(config))}, and not '{name}'"


def read_weight(text: str) -> float | str | None:
    """A weight, None to clear it, or what is wrong."""
    if text == "-1":
        return None
    if not re.fullmatch(r"\d{1,9}(\.\d{1,6})?|\.\d{1,6}", text):
        return f"sacctmgr: error: Invalid value for OverQuotaWeight ({text}): a number from 0 up, or -1"
    return float(text)


def unknown_pools(names: Sequence[str], config: ClusterConfig) -> list[str]:
    """Complaints about names that are no pools."""
    there = [pool.name for pool in config.all_pools]
    return [
        f"sacctmgr: error: there is no node pool '{name}'; pools are {','.join(there)}"
        for name in names
        if name not in there
    ]


def refusal(
    words: Collection[str], targets: Sequence[Assoc], may_change: Callable[[Sequence[str]], bool]
) -> str | None:  # fmt: skip
    """Why these words may not be set on these accounts; `may_change`: whether the caller has a say in accounts."""
    if WORDS.isdisjoint(words):
        return None
    if any(not assoc.user and not assoc.parent for assoc in targets):
        return NOT_OF_ROOT
    return None if may_change([assoc.parent for assoc in targets]) else NOT_ONES_OWN


def without_pool(accounting: Accounting, config: ClusterConfig) -> list[tuple[str, str]]:
    """(account or user@account, pool) of quotas of pools that are not declared any more: they count for nothing."""
    there = {pool.name for pool in config.all_pools} | {""}
    return [
        (f"{assoc.user}@{assoc.account}" if assoc.user else assoc.account, quota.pool)
        for assoc in accounting.assocs
        for quota in assoc.quotas
        if quota.pool not in there
    ]


def put(assoc: Assoc, pools: Sequence[str], field: str, change: Any) -> Assoc:
    """`change`: value before -> value. A quota in which nothing is left is dropped."""
    by_pool = {quota.pool: quota for quota in assoc.quotas}
    for pool in pools or ("",):
        quota = by_pool.get(pool, Quota(pool=pool))
        by_pool[pool] = replace(quota, **{field: change(getattr(quota, field))})
    kept = (quota for _, quota in sorted(by_pool.items()) if quota != Quota(pool=quota.pool))
    return replace(assoc, quotas=tuple(kept))


def value(assoc: Assoc, pools: Sequence[str], field: str) -> Any:
    """Of the first of these pools."""
    pool = pools[0] if pools else ""
    quota = next((each for each in assoc.quotas if each.pool == pool), Quota())
    return getattr(quota, field)


def weight_text(weight: float | None) -> str:
    return "" if weight is None else f"{weight:.6f}".rstrip("0").rstrip(".")


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One quota's texts, as columns show them."""

    pool: str = ""
    deserved: str = ""
    over_quota_weight: str = ""
    priority: str = ""


def show(quota: Quota, numbers: Mapping[str, int]) -> Shown:
    return Shown(
        pool=quota.pool,
        deserved=show_deserved(quota.deserved, numbers),
        over_quota_weight=weight_text(quota.over_quota_weight),
        priority="" if quota.priority is None else str(quota.priority),
    )


def show_deserved(tres: Tres, numbers: Mapping[str, int]) -> str:
    ordered = sorted(tres, key=lambda pair: (numbers.get(pair[0], 1 << 30), pair[0]))
    return ",".join(f"{name}={render_count(name, count)}" for name, count in ordered)


def columns(assoc: Assoc, numbers: Mapping[str, int]) -> list[dict[str, str]]:
    """The texts of sacctmgr's columns, one row for each quota; a blank one when there is none."""
    rows = []
    for quota in assoc.quotas or (Quota(),):
        shown = show(quota, numbers)
        rows.append(
            {
                "Pool": shown.pool,
                "DeservedTRES": shown.deserved,
                "OverQuotaWeight": shown.over_quota_weight,
                "QueuePriority": shown.priority,
            }
        )
    return rows


def dump_words(assoc: Assoc) -> list[tuple[str, str]]:
    """For a line of a dump file: `Pool` says of which pool the words after it are."""
    words: list[tuple[str, str]] = []
    for quota in assoc.quotas:
        shown = show(quota, {"cpu": 1, "mem": 2, "gres/gpu": 3})
        if quota.pool:
            words.append(("Pool", f"'{quota.pool}'"))
        pairs = zip(FIELDS.values(), (shown.deserved, shown.over_quota_weight, shown.priority), strict=True)
        words += [(word, text) for word, text in pairs if text]
    return words
