"""Whose turn is it? The queues of a tree, and in each leaf its items, as heaps that are put right where something changed.

Queues that share a parent are compared by their own figures and the best item below them; the first difference decides:

1. who holds more than its share of everything comes last;  2. who is inside its quota even with the next chunk comes first;
3. higher queue priority;  4. who would hold what it may hold nothing of comes last;
5. smaller dominant share with the chunk;  6. without it;  7. less allocatable (the weaker queue);  8. the older queue.

Inside a leaf the items' own keys decide. Reversed, the same order tells who gives something back first: the figures are then
those after all that was already popped.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from slurmbridge.sched.gates import dominant_share, over_utilised, overcommitted
from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.queues import ZERO, Vector, fits, minus, plus
from slurmbridge.sched.shares import allocatable

Item = TypeVar("Item")
Key = tuple[float, ...]

_DIGITS = 9  # closer than this is equal


class QueueOrder(Generic[Item]):
    """Items waiting in the leaves of a tree.

    `push` an item with its key (smaller = first inside the leaf) and chunk; `pop` the next one. Whoever changes the ledger
    calls `touch` with the leaf; `pop` does so itself for the leaf it took from.
    """

    def __init__(self, ledger: Ledger, shares: Sequence[Vector], total: Vector, *, reverse: bool = False) -> None:
        self.ledger = ledger
        self.shares = shares
        self.total = total
        self.reverse = reverse
        tree = ledger.tree
        self._tree = tree
        self._items: list[list[tuple[Key, int, Item, Vector]]] = [[] for _ in range(len(tree))]
        self._below: list[list[tuple[Any, int, int]]] = [[] for _ in range(len(tree) + 1)]  # last: the roots
        self._version = [0] * len(tree)
        self._dirty: set[int] = set()
        self._given: dict[int, Vector] = {}  # reversed: what was popped, by queue
        self._count = 0
        self._size = 0
        self._bounds: dict[int, tuple[Vector, float]] = {}

    def __len__(self) -> int:
        return self._size

    def push(self, leaf: int, key: Key, item: Item, chunk: Vector = ZERO) -> None:
        """Add an item."""
        self._count += 1
        self._size += 1
        heapq.heappush(self._items[leaf], (key, self._count, item, chunk))
        self._dirty.add(leaf)

    def touch(self, leaf: int) -> None:
        """The figures of this leaf changed."""
        self._dirty.add(leaf)

    def pop(self, limit: int | None = None) -> tuple[int, Item]:
        """The leaf and the item whose turn it is. IndexError: none is left."""
        leaf = self._next_leaf()
        _, _, item, chunk = heapq.heappop(self._items[leaf])
        self._size -= 1
        if self.reverse:
            for queue in self._tree.paths[leaf]:
                self._given[queue] = plus(self._given.get(queue, ZERO), chunk)
        self._dirty.add(leaf)
        return leaf, item

    def drop(self, leaf: int) -> None:
        """Take every item out of a leaf."""
        self._size -= len(self._items[leaf])
        self._items[leaf].clear()
        self._dirty.add(leaf)

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        """Pop until none is left."""
        while self._size:
            yield self.pop()

    def _next_leaf(self) -> int:
        if not self._size:
            raise IndexError("no item is left")
        self._refresh()
        queue = self._top(len(self._tree))
        while not self._items[queue]:
            queue = self._top(queue)
        return queue

    def _top(self, parent: int) -> int:
        """The child that comes first; outdated entries are thrown away."""
        heap = self._below[parent]
        while heap and heap[0][1] != self._version[heap[0][2]]:
            heapq.heappop(heap)
        if not heap:
            raise IndexError("no item is left")
        return heap[0][2]

    def _refresh(self) -> None:
        """Bring the heaps above every changed leaf up to date, lowest first."""
        waiting = {queue for leaf in self._dirty for queue in self._tree.paths[leaf]}
        self._dirty.clear()
        for queue in sorted(waiting, reverse=True):  # children have larger indices than their parents
            self._version[queue] += 1
            best = self._best(queue)
            if best is None:
                continue
            above = self._tree.parent[queue]
            key = self._key(queue, best)
            heap = self._below[above if above >= 0 else len(self._tree)]
            heapq.heappush(heap, (key, self._version[queue], queue))

    def _best(self, queue: int) -> Vector | None:
        """The chunk of the best item below `queue`; None where nothing waits."""
        while not self._items[queue]:
            heap = self._below[queue]
            while heap and heap[0][1] != self._version[heap[0][2]]:
                heapq.heappop(heap)
            if not heap:
                return None
            queue = heap[0][2]
        return self._items[queue][0][3]

    def _key(self, queue: int, chunk: Vector) -> Key:
        held = self.ledger.allocated[queue]
        if self.reverse:
            held = minus(held, self._given.get(queue, ZERO))
            chunk = ZERO
        wanted = plus(held, chunk)
        tree = self._tree
        bound = self._bounds.get(queue)
        if bound is None:
            most = allocatable(tree, self.shares, queue)
            bound = self._bounds[queue] = most, _strength(most, self.total)
        key = (
            float(_over(held, self.shares[queue]))
            if self.reverse
            else float(over_utilised(self.ledger, self.shares, queue)),
            0.0 if fits(wanted, tree.quota[queue]) else 1.0,
            -float(tree.priority[queue]),
            float(overcommitted(wanted, bound[0])),
            round(dominant_share(wanted, bound[0], self.total), _DIGITS),
            round(dominant_share(held, bound[0], self.total), _DIGITS),
            bound[1],
            float(tree.rank[queue]),
            float(queue),
        )
        return tuple(-part for part in key) if self.reverse else key


def _over(held: Vector, share: Vector) -> bool:
    return share[0] < held[0] and share[1] < held[1] and share[2] < held[2]


def _strength(bound: Vector, total: Vector) -> float:
    """One figure that is smaller for whoever may hold less of everything."""
    figure = 0.0
    for most, whole in zip(bound, total, strict=True):
        figure += 1e6 if most == math.inf else most / (whole or 1.0)
    return round(figure, _DIGITS)
