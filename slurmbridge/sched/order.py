"""In which order are jobs looked at? Priority tier of the partition, then priority, then submission.

A job with several partitions comes once for each. Source: slurm.conf(5), PriorityTier.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.shape import ShapeTable
from slurmbridge.sched.snapshot import PartitionView, Snapshot

ACROSS = -1
"""Instead of a pool: the whole of a partition that lies in several, for jobs that no single pool could ever hold."""


class Places(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The partitions of each group as one flat column: those of group g are views[first[g] : first[g + 1]].

    `tiers` is by a partition's number. Good as long as `key` is the same objects.
    """

    key: tuple[object, ...]
    first: Ints
    views: Ints
    shapes: Ints  # number of the shape of each group
    tiers: Ints
    pools: Ints  # number of the node pool, by a partition's number; 0 where pools do not matter, ACROSS where it has several
    by_number: tuple[PartitionView, ...]

    @classmethod
    def none(cls) -> Places:
        nothing = np.zeros(0, dtype=np.int64)
        return cls(
            key=(),
            first=np.zeros(1, dtype=np.int64),
            views=nothing,
            shapes=nothing,
            tiers=nothing,
            pools=nothing,
            by_number=(),
        )


class Queue(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Entries in the order in which they are looked at: rows of pending jobs, and numbers of partitions."""

    rows: Ints
    views: Ints
    pairs: Ints  # places of (group, partition) in the flat columns of `Places`


def split(snapshot: Snapshot, pools: Sequence[Bools]) -> tuple[list[PartitionView], list[int]]:
    """Partitions, then those that span several pools once for each of them under numbers of their own; and their pools."""
    views = list(snapshot.partitions.values())
    if len(pools) < 2:
        return views, [0] * len(views)
    numbers: list[int] = []
    parts: list[tuple[PartitionView, int]] = []
    for view in views:
        inside = [number for number, nodes in enumerate(pools) if (view.nodes & nodes).any()]
        numbers.append(ACROSS if len(inside) > 1 else (inside or [0])[0])
        parts += [(view, number) for number in inside] if len(inside) > 1 else []
    for view, number in parts:
        nodes = view.nodes & pools[number]
        part = {"number": len(views), "nodes": nodes, "size": int(nodes.sum())}
        views.append(msgspec.structs.replace(view, **part))
        numbers.append(number)
    return views, numbers


def places_of(snapshot: Snapshot, before: Places, pools: Sequence[Bools] = ()) -> Places:
    """Where each group may be tried; what was known of groups is kept where nothing it follows from changed."""
    shapes: ShapeTable = snapshot.shapes
    key = (snapshot.partitions, shapes, *pools)
    same = len(before.key) == len(key) and all(one is other for one, other in zip(key, before.key, strict=True))
    if not same:
        by_number, numbers = split(snapshot, pools)
        tiers = np.array([view.partition.priority_tier for view in by_number], dtype=np.int64)
        before = msgspec.structs.replace(
            Places.none(), key=key, tiers=tiers, by_number=tuple(by_number), pools=np.array(numbers, dtype=np.int64)
        )
    by_name: dict[str, list[int]] = {}
    whole = len(snapshot.partitions)
    for view in (*before.by_number[whole:], *before.by_number[:whole]):  # parts before the whole
        by_name.setdefault(view.partition.name, []).append(view.number)
    known = len(before.first) - 1
    if known == len(shapes.samples):
        return before
    counts: list[int] = []
    views: list[int] = []
    shape_numbers = [shape.number for _, shape in shapes.samples[known:]]
    for spec, _ in shapes.samples[known:]:
        found = [number for name in spec.partitions for number in by_name.get(name, ())]
        counts.append(len(found))
        views += found
    first = before.first[-1] + np.cumsum(np.array(counts, dtype=np.int64))
    return msgspec.structs.replace(
        before,
        first=np.concatenate([before.first, first]),
        views=np.concatenate([before.views, np.array(views, dtype=np.int64)]),
        shapes=np.concatenate([before.shapes, np.array(shape_numbers, dtype=np.int64)]),
    )


def queue(snapshot: Snapshot, priorities: Ints, ready: Bools, places: Places) -> Queue:
    """Entries of the rows that are ready. Ties: lower job id, then the user's order of partitions."""
    rows = np.flatnonzero(ready)
    groups = snapshot.pending.rows["group"][rows]
    start = places.first[groups]
    counts = places.first[groups + 1] - start
    position = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    pairs = np.repeat(start, counts) + position
    views = places.views[pairs]
    rows = np.repeat(rows, counts)
    ranks = np.lexsort((position, rows, -priorities[rows], -places.tiers[views]))
    return Queue(rows=rows[ranks], views=views[ranks], pairs=pairs[ranks])
