"""Who could gain anything if others gave way? Quick answers, before anybody is looked at."""

from __future__ import annotations

import itertools
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
        groups, of_group = np.unique(walk.groups, return_inverse=True)
        leaves, asked = queued.leaves[number][groups], queued.vectors[groups]
        left = np.array(market.shares) - np.array(market.ledger.allocated)
        places = np.flatnonzero((leaves >= 0) & (asked <= left[leaves] + TOLERANCE).all(axis=1))
        asked, leaves, inside = asked[places], leaves[places], groups[places]
        useful = _paid_for(leaves, asked, payers)
        movable = np.flatnonzero(
            ~useful & ~queued.firm[inside] & (asked[:, 2] > 0) & (asked[:, 2] <= free_devices(market))
        )
        if len(movable):
            shapes, of_shape = np.unique(walk.memo.places.shapes[inside[movable]], return_inverse=True)
            useful[movable] = could_move(shapes)[of_shape]
        gains = np.zeros(len(groups), dtype=np.bool_)
        gains[places[useful]] = True
        found = gains[of_group]
    if rules.enabled:
        preempts = np.array([rules.preempts(qos, partitions) for qos, partitions in queued.of_sort], dtype=np.bool_)
        found |= preempts[queued.sorts[walk.groups]]
    return found


def in_line(walk: Walk) -> list[int]:
    """All entries in the order in which room is made for them."""
    found: list[int] = []
    for some in walk.by_rank(np.ones(len(walk.rows), dtype=np.bool_)):
        found += np.flatnonzero(some).tolist()
    return found


def _paid_for(leaves: Ints, asked: NDArray[np.float64], payers: Payers) -> Bools:
    """Whether any queue could give something for what is asked for in a leaf."""
    found = np.zeros(len(leaves), dtype=np.bool_)
    order = np.argsort(leaves, kind="stable")
    edges = [*np.flatnonzero(np.diff(leaves[order], prepend=-1)).tolist(), len(order)]
    for begin, end in itertools.pairwise(edges):
        mine = order[begin:end]
        found[mine] = payers.some(int(leaves[mine[0]]), asked[mine])
    return found


def free_devices(market: Market) -> float:
    """Devices that lie idle, so that moving others could help."""
    free = market.total[2] - sum(market.ledger.allocated[queue][2] for queue in market.pool.tree.roots)
    return free if free > TOLERANCE else 0.0
