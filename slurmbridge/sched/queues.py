"""Which queues share a node pool, and who is above whom?

A tree of any depth over three resources: CPU, memory, GPU, in whatever units the caller counts (devices for GPUs: shares
are given in whole ones). Rows are plain tuples of floats, because the questions asked of them (three numbers, three levels)
are far smaller than what numpy is good at. `math.inf` = unlimited.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Vector = tuple[float, float, float]  # cpu, memory, gpu

RESOURCES = ("cpu", "memory", "gpu")
CPU, MEMORY, GPU = 0, 1, 2
ZERO: Vector = (0.0, 0.0, 0.0)
UNLIMITED: Vector = (math.inf, math.inf, math.inf)
EVEN: Vector = (1.0, 1.0, 1.0)

# What sums of fractions of devices may be off by and still count as equal.
TOLERANCE = 1e-6


def plus(one: Vector, two: Vector) -> Vector:
    """Sum by resource."""
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]


def minus(one: Vector, two: Vector) -> Vector:
    """Difference by resource."""
    return one[0] - two[0], one[1] - two[1], one[2] - two[2]


def fits(small: Vector, large: Vector) -> bool:
    """Is no resource of `small` above that of `large`?"""
    return small[0] <= large[0] + TOLERANCE and small[1] <= large[1] + TOLERANCE and small[2] <= large[2] + TOLERANCE


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """One queue as a caller describes it."""

    name: str
    parent: str | None = None
    priority: int = 0
    rank: int = 0  # order of creation: smaller is older
    quota: Vector = UNLIMITED
    ceiling: Vector | None = None  # of work that may not be ended; None: the quota
    limit: Vector = UNLIMITED
    weight: Vector = EVEN  # of what is left over when every quota is served


class QueueTree(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of the tree, by queue index; parents come before their children."""

    names: tuple[str, ...]
    parent: tuple[int, ...]  # -1: at the root
    children: tuple[tuple[int, ...], ...]  # in order of creation
    roots: tuple[int, ...]  # in order of creation
    priority: tuple[int, ...]
    rank: tuple[int, ...]
    quota: tuple[Vector, ...]
    ceiling: tuple[Vector, ...]
    limit: tuple[Vector, ...]
    weight: tuple[Vector, ...]
    paths: tuple[tuple[int, ...], ...]  # itself, its parent, ... the queue at the root
    index: dict[str, int]

    @classmethod
    def build(cls, queues: Iterable[Queue]) -> QueueTree:
        """The tree of `queues`, given in any order. KeyError: a parent that is none of them; ValueError: a ring."""
        given = {queue.name: queue for queue in queues}
        below: dict[str | None, list[Queue]] = {}
        for queue in given.values():
            if queue.parent is not None and queue.parent not in given:
                raise KeyError(queue.parent)
            below.setdefault(queue.parent, []).append(queue)
        for siblings in below.values():
            siblings.sort(key=lambda queue: (queue.rank, queue.name))
        ordered = list(below.get(None, ()))
        for queue in ordered:  # grows while it is walked: breadth first
            ordered.extend(below.get(queue.name, ()))
        if len(ordered) != len(given):
            raise ValueError("queues are each other's parents")
        index = {queue.name: place for place, queue in enumerate(ordered)}
        parent = tuple(-1 if queue.parent is None else index[queue.parent] for queue in ordered)
        paths: list[tuple[int, ...]] = []
        for place, above in enumerate(parent):
            paths.append((place,) if above < 0 else (place, *paths[above]))
        return cls(
            names=tuple(queue.name for queue in ordered),
            parent=parent,
            children=tuple(tuple(index[q.name] for q in below.get(queue.name, ())) for queue in ordered),
            roots=tuple(index[queue.name] for queue in below.get(None, ())),
            priority=tuple(queue.priority for queue in ordered),
            rank=tuple(queue.rank for queue in ordered),
            quota=tuple(queue.quota for queue in ordered),
            ceiling=tuple(queue.quota if queue.ceiling is None else queue.ceiling for queue in ordered),
            limit=tuple(queue.limit for queue in ordered),
            weight=tuple(queue.weight for queue in ordered),
            paths=tuple(paths),
            index=index,
        )

    def __len__(self) -> int:
        return len(self.names)

    def siblings(self, queue: int) -> tuple[int, ...]:
        """The queues that share its parent, itself included."""
        above = self.parent[queue]
        return self.roots if above < 0 else self.children[above]

    def where_they_part(self, one: int, two: int) -> tuple[int, int]:
        """The first ancestors (or selves), from the root down, in which two different leaves differ."""
        up_one, up_two = self.paths[one], self.paths[two]
        for first, second in zip(reversed(up_one), reversed(up_two), strict=False):
            if first != second:
                return first, second
        return one, two

    def summed(self, leaves: Sequence[Vector]) -> list[Vector]:
        """Rows given by queue, each with the rows of all queues below it added."""
        total = list(leaves)
        for queue in range(len(self.names) - 1, -1, -1):
            above = self.parent[queue]
            if above >= 0:
                total[above] = plus(total[above], total[queue])
        return total


class Partings:
    """`QueueTree.where_they_part` of one leaf and every queue at once; -1 for the leaf itself."""

    def __init__(self, tree: QueueTree) -> None:
        self._levels = np.full((max(map(len, tree.paths), default=1), len(tree)), -1, dtype=np.int64)
        for queue, path in enumerate(tree.paths):
            self._levels[: len(path), queue] = path[::-1]
        self._known: dict[int, tuple[Ints, Ints]] = {}

    def of(self, leaf: int) -> tuple[Ints, Ints]:
        """By queue: on the leaf's side, and on the other."""
        found = self._known.get(leaf)
        if found is None:
            levels = self._levels
            queues = np.arange(levels.shape[1])
            first = (levels != levels[:, leaf : leaf + 1]).argmax(axis=0)
            mine, theirs = levels[first, leaf], levels[first, queues]
            above = (mine < 0) | (theirs < 0)  # one of them is above the other
            mine, theirs = np.where(above, leaf, mine), np.where(above, queues, theirs)
            mine[leaf] = theirs[leaf] = -1
            found = self._known[leaf] = mine, theirs
        return found
