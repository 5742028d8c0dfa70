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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.queues import TOLERANCE, ZERO, Vector, plus
from slurmbridge.sched.shares import allocatable

Item = TypeVar("Item")
Key = tuple[float, ...]

_DIGITS = 9  # closer than this is equal
_FINE = 10.0**_DIGITS


class QueueOrder(Generic[Item]):
    """Items waiting in the leaves of a tree.

    `push` an item with its key (smaller = first inside the leaf) and chunk; `pop` the next one. Whoever changes the ledger
    calls `touch` with the leaf; `pop` does so itself for the leaf it took from.
    """

    def __init__(
        self,
        ledger: Ledger,
        shares: Sequence[Vector],
        total: Vector,
        *,
        reverse: bool = False,
        facts: dict[int, QueueFacts] | None = None,
    ) -> None:
        """`facts`: kept between orders of the same tree and shares, to save time."""
        self.ledger = ledger
        self.shares = shares
        self.total = total
        self.reverse = reverse
        self._tree = ledger.tree
        self._items: defaultdict[int, list[tuple[Key, int, Item, Vector]]] = defaultdict(list)
        self._below: defaultdict[int, list[tuple[Key, int, int]]] = defaultdict(list)  # by parent; -1: the roots
        self._version: defaultdict[int, int] = defaultdict(int)
        self._dirty: set[int] = set()
        self._given: dict[int, Vector] = {}  # reversed: what was popped, by queue
        self._count = 0
        self._size = 0
        self._facts = facts if facts is not None else {}

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

    def pop(self) -> tuple[int, Item]:
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
        queue = self._top(-1)
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
        parent, items, below, version = self._tree.parent, self._items, self._below, self._version
        if len(self._dirty) == 1:  # nearly always: the leaf something was just popped from
            waiting: Sequence[int] = self._tree.paths[self._dirty.pop()]
        else:
            waiting = sorted({queue for leaf in self._dirty for queue in self._tree.paths[leaf]}, reverse=True)
            self._dirty.clear()
        for queue in waiting:  # children have larger indices than their parents
            version[queue] += 1
            best = queue
            while not items[best]:
                heap = below[best]
                while heap and heap[0][1] != version[heap[0][2]]:
                    heapq.heappop(heap)
                if not heap:
                    break
                best = heap[0][2]
            else:
                key = self._key(queue, items[best][0][3])
                heapq.heappush(below[parent[queue]], (key, version[queue], queue))

    def _key(self, queue: int, chunk: Vector) -> Key:
        facts = self._facts.get(queue) or self._learn(queue)
        cpu, memory, gpu = self.ledger.allocated[queue]
        if self.reverse:
            given = self._given.get(queue, ZERO)
            cpu, memory, gpu = cpu - given[0], memory - given[1], gpu - given[2]
            chunk = ZERO
        share, quota, per = facts.share, facts.quota, facts.per_unit
        over = cpu > share[0] and memory > share[1] and gpu > share[2]
        without = max(cpu * per[0], memory * per[1], gpu * per[2])
        if chunk is not ZERO:
            cpu, memory, gpu = cpu + chunk[0], memory + chunk[1], gpu + chunk[2]
        inside = cpu <= quota[0] and memory <= quota[1] and gpu <= quota[2]
        dominant = without if chunk is ZERO else max(cpu * per[0], memory * per[1], gpu * per[2])
        beyond = facts.nothing_of and any((cpu, memory, gpu)[resource] > TOLERANCE for resource in facts.nothing_of)
        key = (
            over,
            not inside,
            facts.unimportance,
            bool(beyond),
            (dominant * _FINE + 0.5) // 1.0,
            (without * _FINE + 0.5) // 1.0,
            facts.strength,
            facts.rank,
            queue,
        )
        return tuple(-part for part in key) if self.reverse else key

    def _learn(self, queue: int) -> QueueFacts:
        """What stays the same about a queue, tolerance included."""
        tree = self._tree
        most = allocatable(tree, self.shares, queue)
        bound = tuple(whole if m == math.inf else m for m, whole in zip(most, self.total, strict=True))
        per_unit = tuple(1.0 / m if m > 0 else 1000.0 for m in bound)
        facts = self._facts[queue] = QueueFacts(
            share=_raised(self.shares[queue]),
            quota=_raised(tree.quota[queue]),
            per_unit=(per_unit[0], per_unit[1], per_unit[2]),
            nothing_of=tuple(resource for resource in range(3) if most[resource] <= 0),
            strength=_strength(most, self.total),
            unimportance=-tree.priority[queue],
            rank=tree.rank[queue],
        )
        return facts


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the order needs to know of a queue and stays the same during a pass."""

    share: Vector
    quota: Vector
    per_unit: Vector
    nothing_of: tuple[int, ...]
    strength: float
    unimportance: int
    rank: int


def _raised(row: Vector) -> Vector:
    return row[0] + TOLERANCE, row[1] + TOLERANCE, row[2] + TOLERANCE


def _strength(bound: Vector, total: Vector) -> float:
    """One figure that is smaller for whoever may hold less of everything."""
    figure = 0.0
    for most, whole in zip(bound, total, strict=True):
        figure += 1e6 if most == math.inf else most / (whole or 1.0)
    return round(figure, _DIGITS)
