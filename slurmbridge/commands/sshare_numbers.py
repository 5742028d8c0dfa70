"""What are the numbers of sshare(1)? Shares and use of every association under Fair Tree, and what is still to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobState
from slurmbridge.model.tres import is_gpu
from slurmbridge.sched import fairtree
from slurmbridge.submit import associations


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One association's numbers."""

    raw: float = 0.0
    norm_shares: float = 0.0
    norm_usage: float = 0.0
    effective: float = 0.0
    level: float | None = None  # LevelFS; None for root
    factor: float | None = None  # users only


def compute(accounting: Accounting, usage: Iterable[UsageRow], counted: Iterable[UsageRow]) -> dict[int, Level]:
    """Every association's numbers. Raw use is that of now; what factors are made of is that of the last count."""
    now, then = _totals(accounting, usage), _totals(accounting, counted)
    known = associations.index(accounting)
    factors = fairtree.factors(accounting, then.own)
    found: dict[int, Level] = {}
    whole = 0.0
    for _depth, assoc in associations.tree(accounting):
        own = then.sums[assoc.assoc_id]
        raw = now.sums[assoc.assoc_id]
        if not assoc.user and assoc.account == associations.ROOT:
            whole = own
            found[assoc.assoc_id] = Level(raw=raw, effective=1.0)
            continue
        above = assoc.account if assoc.user else (assoc.parent or associations.ROOT)
        siblings = (*known.users_of.get(above, ()), *known.children_of.get(above, ()))
        shares = sum(0 if each.shares_parent else each.shares for each in siblings)
        used = sum(then.sums[each.assoc_id] for each in siblings)
        norm = assoc.shares / shares if shares and not assoc.shares_parent else 0.0
        effective = own / used if used else 0.0
        if assoc.shares_parent:
            level = float("inf") if assoc.user else 0.0
        else:
            level = norm / effective if effective else float("inf")
        found[assoc.assoc_id] = Level(
            raw=raw,
            norm_shares=norm,
            norm_usage=own / whole if whole else 0.0,
            effective=effective,
            level=level,
            factor=factors.get(assoc.assoc_id) if assoc.user else None,
        )
    return found


class Totals(msgspec.Struct, frozen=True):
    """Billed seconds: of each association itself, and with all below it."""

    own: Mapping[int, float]
    sums: Mapping[int, float]


def _totals(accounting: Accounting, usage: Iterable[UsageRow]) -> Totals:
    own = {row.assoc_id: dict(row.raw).get("billing", 0.0) for row in usage}
    known = associations.index(accounting)
    sums: dict[int, float] = {}
    for _depth, assoc in reversed(list(associations.tree(accounting))):
        sums[assoc.assoc_id] = own.get(assoc.assoc_id, 0.0)
        if not assoc.user:
            below = (*known.users_of.get(assoc.account, ()), *known.children_of.get(assoc.account, ()))
            sums[assoc.assoc_id] += sum(sums[each.assoc_id] for each in below)
    return Totals(own, sums)


_YEAR_S = 365 * 86400


def run_minutes(accounting: Accounting, jobs: Iterable[Job], now: float, unit_s: int = 60) -> dict[int, dict[str, int]]:
    """TRES-minutes (or other units) that running jobs may still use until their limits (a year without one), by
    association and everything above."""
    known = associations.index(accounting)
    found: dict[int, dict[str, int]] = {}
    for job in jobs:
        assoc = known.by_id.get(job.spec.assoc_id)
        if job.state is not JobState.RUNNING or job.allocation is None or assoc is None:
            continue
        start = job.start_time if job.start_time is not None else now
        end = job.time_limit_end if job.time_limit_end is not None else start + _YEAR_S
        left = max(0, int(end - now))
        for each in (assoc, *associations.ancestors(accounting, assoc)):
            sums = found.setdefault(each.assoc_id, {})
            for name, count in job.allocation.tres:
                sums[name] = sums.get(name, 0) + (count // 1000 if is_gpu(name) else count) * left // unit_s
    return found


def used(accounting: Accounting, usage: Iterable[UsageRow]) -> dict[int, dict[str, float]]:
    """TRES-seconds by association, with all below it; of GPUs in whole devices."""
    own = {row.assoc_id: row.raw for row in usage}
    known = associations.index(accounting)
    sums: dict[int, dict[str, float]] = {}
    for _depth, assoc in reversed(list(associations.tree(accounting))):
        total = sums[assoc.assoc_id] = {
            name: amount / 1000 if is_gpu(name) else amount for name, amount in own.get(assoc.assoc_id, ())
        }
        below = (
            () if assoc.user else (*known.users_of.get(assoc.account, ()), *known.children_of.get(assoc.account, ()))
        )
        for each in below:
            for name, amount in sums[each.assoc_id].items():
                total[name] = total.get(name, 0.0) + amount
    return sums
