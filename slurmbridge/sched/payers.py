"""Which queues could give anything to a queue that reclaims? The rules of `gates.may_take` for a first, small piece.

Asked for all queues at once, and kept up to date where something is taken, because most searches end here. A set of victims
is still judged as a whole.
"""

from __future__ import annotations

import numpy as np

from slurmbridge.sched import gates
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.market import Market
from slurmbridge.sched.queues import TOLERANCE, Vector, fits, plus


class Payers:
    """Of one pool in one cycle."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._size = len(market.pool.tree)
        self._above = np.zeros(self._size, dtype=np.bool_)  # holds more than it keeps in any case
        self._over = np.zeros(self._size, dtype=np.bool_)  # holds more than its quota
        self._against: dict[int, tuple[Ints, Ints]] = {}
        for queue in range(self._size):
            self._look(queue)

    def changed(self, leaf: int) -> None:
        """What a leaf and the queues above it hold is not what it was."""
        for queue in self._market.pool.tree.paths[leaf]:
            self._look(queue)

    def of(self, leaf: int, ask: Vector) -> Bools:
        """By queue: whether its work may be taken for a chunk of this size."""
        mine, theirs = self._parting(leaf)
        market = self._market
        tree, ledger, shares = market.pool.tree, market.ledger, market.shares
        starved = np.zeros(self._size, dtype=np.bool_)
        barred = np.zeros(self._size, dtype=np.bool_)
        involved = [resource for resource in range(3) if ask[resource] > 0]
        for queue in tree.paths[leaf]:
            starved[queue] = gates.starved(ledger, queue, ask)
            held = plus(ledger.allocated[queue], ask)
            if all(held[resource] <= shares[queue][resource] + TOLERANCE for resource in involved):
                continue  # nobody is less saturated than he may be
            for sibling in tree.siblings(queue):
                barred[sibling] = not gates.stays_less_saturated(
                    held, shares[queue], ledger.allocated[sibling], shares[sibling], involved, 1.0
                )
        found: Bools = (theirs >= 0) & (self._above[theirs] | (self._over[theirs] & starved[mine])) & ~barred[theirs]
        return found

    def _look(self, queue: int) -> None:
        market = self._market
        held = market.ledger.allocated[queue]
        self._above[queue] = gates.keeps_fair_share(market.pool.tree, market.shares, queue, held)
        self._over[queue] = not fits(held, market.pool.tree.quota[queue])

    def _parting(self, leaf: int) -> tuple[Ints, Ints]:
        """By queue: the ancestors (or selves) in which the leaf and that queue part; -1 for the leaf itself."""
        found = self._against.get(leaf)
        if found is None:
            tree = self._market.pool.tree
            pairs = [tree.where_they_part(leaf, other) if other != leaf else (-1, -1) for other in range(self._size)]
            columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            found = self._against[leaf] = columns[:, 0], columns[:, 1]
        return found
