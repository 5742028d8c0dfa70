"""Whose job is looked at next where queues take turns?

Each leaf has its jobs in the order of priority, or among those of equal partitions and QOS in one that is given; the tree says
which leaf is next, by what its queues hold and deserve (and, where quotas bind, what the job would add). After every start
the leaf's turn is weighed anew, so that no queue runs far ahead of its share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.market import Market
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.order import Queue
from slurmbridge.sched.pending import Floats
from slurmbridge.sched.queue_order import QueueOrder
from slurmbridge.sched.queues import ZERO, Vector

Skip = Callable[[int], bool]
"""Whether the entry at this place needs no look of its own (any more)."""


class Turns:
    """Entries (places in a `Queue`) of one pool, those with the least `first` before others of a leaf. Iterate; before going on,
    whoever started something charges the ledger.

    An entry comes again until `passed` is called for its leaf or `skip` says that it needs no look.
    """

    def __init__(
        self,
        market: Market,
        memo: Memo,
        groups: Ints,
        entries: Queue,
        skip: Skip,
        *,
        first: Floats | None = None,
        among: Bools | None = None,
    ) -> None:
        leaves = memo.queued.leaves[market.pool.number][groups]
        inside = (memo.places.pools[entries.views] == market.pool.number) & (leaves >= 0)
        places = np.flatnonzero(inside if among is None else inside & among)
        if first is not None:
            ranks = -memo.places.tiers[entries.views[places]], -memo.queued.importance[groups[places]]
            by_leaf = places[np.lexsort((places, first[places], *ranks[::-1], leaves[places]))]
        else:
            by_leaf = places[np.argsort(leaves[places], kind="stable")]
        self._places: list[int] = by_leaf.tolist()
        found = leaves[by_leaf]
        edges = np.flatnonzero(np.diff(found, prepend=-2)) if len(found) else np.zeros(0, dtype=np.int64)
        self._ends: dict[int, int] = {}
        self._next: dict[int, int] = {}
        bounds = [*edges.tolist(), len(self._places)]
        for begin, end in zip(bounds, bounds[1:], strict=False):
            leaf = int(found[begin])
            self._next[leaf], self._ends[leaf] = begin, end
        self._groups = groups
        self._vectors = memo.queued.asks
        self._counts_next = memo.queued.has_quotas
        self._skip = skip
        self._order: QueueOrder[int] = QueueOrder(market.ledger, market.shares, market.total, facts=market.facts)
        for leaf in self._next:
            self._push(leaf)

    def __iter__(self) -> Iterator[tuple[int, int, Vector]]:
        """(leaf, place of the entry, what it asks for). It comes again unless `passed` is called."""
        order = self._order
        while len(order):
            leaf, place = order.pop()
            yield leaf, place, self._vectors[self._groups[place]]
            self._push(leaf)

    def drop(self, leaf: int) -> None:
        """Nothing of the leaf is looked at any more."""
        self._next[leaf] = self._ends[leaf]

    def passed(self, leaf: int) -> None:
        """The leaf's present entry is done with."""
        self._next[leaf] += 1

    def _push(self, leaf: int) -> None:
        at, end, places, skip = self._next[leaf], self._ends[leaf], self._places, self._skip
        while at < end and skip(places[at]):
            at += 1
        self._next[leaf] = at
        if at < end:
            place = places[at]
            chunk = self._vectors[self._groups[place]] if self._counts_next else ZERO
            self._order.push(leaf, (0.0,), place, chunk)
