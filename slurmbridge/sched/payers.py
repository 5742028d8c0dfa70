"""Which queues could give anything to a queue that reclaims? The rules of `gates` for a first, small piece.

Asked for all queues at once, and kept up to date where something is taken, because most searches end here. A set of victims
is still judged as a whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched import gates
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.market import Market
from slurmbridge.sched.queues import TOLERANCE, Vector, plus
from slurmbridge.sched.shares import allocatable


class Payers:
    """Of one pool in one cycle."""

    def __init__(self, market: Market) -> None:
        self._market = market
        tree = market.pool.tree
        self._size = len(tree)
        self._held = np.array(market.ledger.allocated, dtype=np.float64).reshape(-1, 3)
        bounds = [allocatable(tree, market.shares, queue) for queue in range(self._size)]
        self._bound = np.array(bounds, dtype=np.float64).reshape(-1, 3) + TOLERANCE  # held beyond that may be taken
        self._quota = np.array(tree.quota, dtype=np.float64).reshape(-1, 3) + TOLERANCE
        self._against: dict[int, tuple[Ints, Ints]] = {}

    def changed(self, leaf: int) -> None:
        """What a leaf and the queues above it hold is not what it was."""
        for queue in self._market.pool.tree.paths[leaf]:
            self._held[queue] = self._market.ledger.allocated[queue]

    def among(self, leaf: int, ask: Vector, leaves: Ints, charges: NDArray[np.float64]) -> Bools:
        """By piece of work, given by its leaf and what it holds: whether it may be taken first for a chunk of this size."""
        found = self.of(leaf, ask)[leaves]
        mine, theirs = (column[leaves] for column in self._parting(leaf))
        for resource in range(3):
            if ask[resource] > 0:  # nobody is left below his quota for one who is above it
                held, quota, lost = self._held[:, resource], self._quota[:, resource], charges[:, resource]
                inside = held[mine] + ask[resource] <= quota[mine]
                left = held[theirs] - lost + 2 * TOLERANCE
                found &= inside | (lost <= 0) | np.isinf(quota[theirs]) | (left >= quota[theirs])
        return found

    def of(self, leaf: int, ask: Vector) -> Bools:
        """By queue: whether its work may be taken for a chunk of this size."""
        mine, theirs = self._parting(leaf)
        market = self._market
        tree, ledger, shares = market.pool.tree, market.ledger, market.shares
        barred = np.zeros(self._size, dtype=np.bool_)
        wanted = [resource for resource in range(3) if ask[resource] > 0]
        for queue in tree.paths[leaf]:
            held = plus(ledger.allocated[queue], ask)
            if all(held[resource] <= shares[queue][resource] + TOLERANCE for resource in wanted):
                continue  # nobody is less saturated than he may be
            for sibling in tree.siblings(queue):
                barred[sibling] = not gates.stays_less_saturated(
                    held, shares[queue], ledger.allocated[sibling], shares[sibling], wanted, 1.0
                )
        found = np.zeros(self._size, dtype=np.bool_)
        for resource in wanted:
            held_of, quota = self._held[:, resource], self._quota[:, resource]
            above, over = held_of > self._bound[:, resource], held_of > quota
            inside = held_of + ask[resource] <= quota
            found |= above[theirs] | (over[theirs] & inside[mine])
        return found & (theirs >= 0) & ~barred[theirs]

    def _parting(self, leaf: int) -> tuple[Ints, Ints]:
        """By queue: the ancestors (or selves) in which the leaf and that queue part; -1 for the leaf itself."""
        found = self._against.get(leaf)
        if found is None:
            tree = self._market.pool.tree
            pairs = [tree.where_they_part(leaf, other) if other != leaf else (-1, -1) for other in range(self._size)]
            columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            found = self._against[leaf] = columns[:, 0], columns[:, 1]
        return found
