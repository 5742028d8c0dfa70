"""Who could gain anything if others gave way? Quick answers, before anybody is looked at."""

from __future__ import annotations

import numpy as np

from slurmbridge.sched.columns import Bools
from slurmbridge.sched.market import Market
from slurmbridge.sched.preemption import Rules
from slurmbridge.sched.queues import TOLERANCE, fits
from slurmbridge.sched.shares import allocatable
from slurmbridge.sched.walk import Walk


def worthwhile(market: Market) -> bool:
    """Whether any queue could get anything by its share: one holds less, and another more, or devices lie scattered."""
    over = under = False
    for queue in range(len(market.pool.tree)):
        held, share = market.ledger.allocated[queue], market.shares[queue]
        over = over or not fits(held, allocatable(market.pool.tree, market.shares, queue))
        under = under or any(held[r] < share[r] - TOLERANCE for r in range(3))
    return under and (over or _scattered(market))


def entries(walk: Walk, market: Market, rules: Rules) -> Bools:
    """Entries of queues that stay inside their share with what is asked for, or that may preempt."""
    leaves = walk.memo.queued.leaves[market.pool.number][walk.groups]
    left = np.array(market.shares) - np.array(market.ledger.allocated)
    asked = walk.memo.queued.vectors[walk.groups]
    found: Bools = (leaves >= 0) & (asked <= left[leaves] + TOLERANCE).all(axis=1)
    if rules.enabled:
        samples = walk.snapshot.shapes.samples
        by_group = np.array([rules.preempts(spec.qos, spec.partitions) for spec, _ in samples], dtype=np.bool_)
        found |= by_group[walk.groups]
    return found


def _scattered(market: Market) -> bool:
    """Whether devices lie idle, so that moving others could help."""
    return market.total[2] > sum(market.ledger.allocated[queue][2] for queue in market.pool.tree.roots) + TOLERANCE
