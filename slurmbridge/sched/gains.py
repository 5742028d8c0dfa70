"""Who could gain anything if others gave way? Quick answers, before anybody is looked at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.market import Market
from slurmbridge.sched.payers import Payers
from slurmbridge.sched.preemption import Rules
from slurmbridge.sched.queues import TOLERANCE
from slurmbridge.sched.walk import Walk


def worthwhile(market: Market, payers: Payers) -> bool:
    """Whether any queue could get anything by its share: one holds less, and another more, or devices lie scattered."""
    under = bool((np.array(market.ledger.allocated) < np.array(market.shares) - TOLERANCE).any())
    return under and (payers.any_above or free_devices(market) > 0)


def entries(walk: Walk, market: Market, rules: Rules, payers: Payers, could_move: Callable[[Ints], Bools]) -> Bools:
    """Entries whose queues stay inside their share with what is asked for, at the cost of others or where moving runs could
    bring enough together (`could_move`: for which shapes); and those that may preempt.
    """
    queued, number = walk.memo.queued, market.pool.number
    found = np.zeros(len(walk.groups), dtype=np.bool_)
    if queued.has_quotas:
        leaves = queued.leaves[number][walk.groups]
        left = np.array(market.shares) - np.array(market.ledger.allocated)
        asked = queued.vectors[walk.groups]
        places = np.flatnonzero((leaves >= 0) & (asked <= left[leaves] + TOLERANCE).all(axis=1))
        asked, leaves, groups = asked[places], leaves[places], walk.groups[places]
        useful = _paid_for(leaves, asked, payers)
        movable = np.flatnonzero(
            ~useful & ~queued.firm[groups] & (asked[:, 2] > 0) & (asked[:, 2] <= free_devices(market))
        )
        if len(movable):
            shapes, of_shape = np.unique(walk.memo.places.shapes[groups[movable]], return_inverse=True)
            useful[movable] = could_move(shapes)[of_shape]
        found[places[useful]] = True
    if rules.enabled:
        preempts = np.array([rules.preempts(qos, partitions) for qos, partitions in queued.of_sort], dtype=np.bool_)
        found |= preempts[queued.sorts[walk.groups]]
    return found


def _paid_for(leaves: Ints, asked: NDArray[np.float64], payers: Payers) -> Bools:
    """Whether any queue could give something for the least that is asked for in a leaf."""
    wanted = (asked > 0) @ np.array([1, 2, 4])
    keys, of_key = np.unique(leaves * 8 + wanted, return_inverse=True)
    least = np.full((len(keys), 3), np.inf)
    np.minimum.at(least, of_key, asked)
    found = [
        bool(payers.of(key // 8, (cpus, memory, gpus)).any())
        for key, (cpus, memory, gpus) in zip(keys.tolist(), least.tolist(), strict=True)
    ]
    paid: Bools = np.array(found, dtype=np.bool_)[of_key]
    return paid


def free_devices(market: Market) -> float:
    """Devices that lie idle, so that moving others could help."""
    free = market.total[2] - sum(market.ledger.allocated[queue][2] for queue in market.pool.tree.roots)
    return free if free > TOLERANCE else 0.0
