"""On which nodes had a job of several nodes better be, so that they are near to each other?

Nodes have a domain on each level of their topology: leaf switch or base block on level 0, what holds several of those above.
With a tree a job is tried below the lowest switch that has room for it, the tightest of a level first; in there on as few
leaf switches as possible: the roomiest ones, and for the rest the tightest that will do. With blocks it has to stay inside the
smallest block, or join of blocks, that was planned for its size, segment by segment if it has segments.
Observed on Slurm 26.05 (topology/tree, topology/block); topology.conf(5); sbatch(1) --switches, --segment, --exclusive=topo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from slurmbridge.model.topology import Topology
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.room import Hold
from slurmbridge.sched.shape import Shape

TRIES = 16
"""Domains of one level that are tried."""
NOWHERE = -1


class Near(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A topology as columns."""

    topology: Topology
    names: tuple[str, ...]  # of the nodes, by row
    levels: Ints  # [level, row] -> number of the domain, NOWHERE
    spans: tuple[
        int, ...
    ] = ()  # of blocks: base blocks in a block of each level, the last level apart, which is everything
    optional: bool = False  # only for jobs that ask

    def minds(self, shape: Shape) -> bool:
        """Whether the place of such a job matters."""
        if not self.optional:
            return True
        return bool(shape.segment if self.spans else shape.switches)

    def permits(self, shape: Shape, rows: Sequence[int]) -> bool:
        """Whether the nodes are on few enough leaf switches."""
        if not shape.switches or self.spans:
            return True
        return len(np.unique(self.levels[0][np.array(rows, dtype=np.int64)])) <= shape.switches

    def idle(self, jobs: Ints) -> Bools:
        """Nodes in whose leaf domain nobody is. `jobs`: by row."""
        leaves = self.levels[0]
        taken = np.unique(leaves[(jobs > 0) & (leaves >= 0)])
        free: Bools = (jobs == 0) & ~np.isin(leaves, taken)
        return free

    def beside(self, rows: Sequence[int]) -> list[int]:
        """The other nodes of the leaf domains of these."""
        leaves = self.levels[0]
        mine = leaves[np.array(rows, dtype=np.int64)]
        others = np.isin(leaves, mine[mine >= 0])
        others[list(rows)] = False
        found: list[int] = np.flatnonzero(others).tolist()
        return found

    def orders(
        self, shape: Shape, order: Ints, tasks: Ints, wanted: int, least: int, required: Sequence[int]
    ) -> Iterator[Ints]:
        """Nodes to be filled one after the other: sets to try in turn, best first.

        `order`: rows that are in, best first; `tasks`: room of each row; at least `least` nodes with room for `wanted` tasks.
        """
        if not len(order):
            return
        if self.spans:
            yield from self._blocks(shape, order, tasks, wanted, least, required)
            return
        joined = self.levels[0][order] >= 0
        if self.optional and not shape.switches:
            joined[:] = True
        order = order[joined]
        limit = shape.switches or len(order)
        for level in range(len(self.levels)):
            for members in _tightest(self.levels[level], order, tasks, wanted, least, required):
                arranged, used = _arranged(self.levels[0], members, tasks, wanted, least, required)
                if used <= limit:
                    yield arranged

    def neighbourhoods(self, shape: Shape, rows: Sequence[int], costs: Sequence[float], nodes: int) -> list[list[int]]:
        """Of these rows, cheapest first, those that may serve one job together; that set first in which they cost least."""
        if not rows:
            return []
        places, price = np.array(rows, dtype=np.int64), np.array(costs, dtype=np.float64)
        last = len(self.levels) - 1
        if self.spans:
            levels = range(last if shape.segment else self._level_of(nodes), last + 1)
        else:
            levels = range(1 if shape.switches == 1 else last + 1)
        for level in levels:
            here = self.levels[level][places]
            found, counts = np.unique(here[here >= 0], return_counts=True)
            sets = [np.flatnonzero(here == domain) for domain in found[counts >= nodes].tolist()]
            if sets:
                sets.sort(key=lambda some: float(price[some[:nodes]].sum()))
                return [places[some].tolist() for some in sets]
        return []

    def most(self, shape: Shape, order: Ints) -> int:
        """Of these rows, how many may serve one job."""
        if self.spans or not len(order):
            return len(order)
        best = 0
        top = self.levels[-1][order]
        leaves = self.levels[0][order]
        for domain in np.unique(top[top >= 0]).tolist():
            counts = np.sort(np.bincount(leaves[top == domain]))[::-1]
            best = max(best, int(counts[: shape.switches or len(counts)].sum()))
        return best

    def _blocks(
        self, shape: Shape, order: Ints, tasks: Ints, wanted: int, least: int, required: Sequence[int]
    ) -> Iterator[Ints]:
        order = order[self.levels[0][order] >= 0]
        largest = np.sort(tasks[order])[::-1]
        least = max(least, int(np.searchsorted(np.cumsum(largest), wanted)) + 1)
        if len(order) < least:
            return
        level = self._level_of(least)
        if not shape.segment or shape.segment >= least:
            for members in _tightest(self.levels[level], order, tasks, wanted, least, required, late=True):
                yield _arranged(self.levels[0], members, tasks, wanted, least, required, late=True)[0]
            return
        if least % shape.segment:
            return
        inside = level if shape.consolidate else len(self.levels) - 1
        for members in _tightest(self.levels[inside], order, tasks, wanted, least, required, late=True):
            chosen = self._segments(shape, members, tasks, least, required)
            if chosen is not None:
                yield chosen

    def _level_of(self, nodes: int) -> int:
        """The level of the smallest blocks that are planned for so many nodes."""
        base = max(self.topology.block_sizes[0], 1)
        needed = -(-nodes // base)
        return next((level for level, span in enumerate(self.spans) if span >= needed), len(self.spans))

    def _segments(self, shape: Shape, order: Ints, tasks: Ints, least: int, required: Sequence[int]) -> Ints | None:
        """Whole segments, each in the tightest block that has room for it; required nodes have to be among them."""
        size = shape.segment
        domain, leaves = self.levels[self._level_of(size)], self.levels[0]
        left = order
        chosen: list[Ints] = []
        named = list(required)
        while len(chosen) * size < least:
            here = [row for row in named if row in left][:size]
            mine = [row for row in here if domain[row] == domain[here[0]]] if here else []
            members = next(_tightest(domain, left, tasks, 0, size, mine, late=True), None)
            if members is None:
                return None
            segment = _arranged(leaves, members, tasks, 0, size, mine, late=True)[0]
            segment = np.concatenate([np.array(mine, dtype=np.int64), segment[~np.isin(segment, mine)]])[:size]
            chosen.append(segment)
            gone = np.isin(leaves[left], leaves[segment]) if shape.spread_segments else np.isin(left, segment)
            left = left[~gone]
            named = [row for row in named if row not in segment]
        return None if named else np.concatenate(chosen)


def _tightest(
    domains: Ints, order: Ints, tasks: Ints, wanted: int, least: int, required: Sequence[int], *, late: bool = False
) -> Iterator[Ints]:
    """Rows of each domain that has room enough and all required rows, those with the fewest nodes first."""
    here = domains[order]
    inside = here >= 0
    if required:
        named = np.unique(domains[np.array(required, dtype=np.int64)])
        if len(named) > 1 or named[0] < 0:
            return
        inside &= here == named[0]
    if not inside.any():
        return
    found, place = np.unique(here[inside], return_inverse=True)
    counts = np.bincount(place)
    sums = np.bincount(place, weights=tasks[order[inside]])
    fits = np.flatnonzero((counts >= least) & (sums >= wanted))
    for number in fits[np.lexsort((-fits if late else fits, counts[fits]))][:TRIES].tolist():
        yield order[here == found[number]]


def _arranged(
    leaves: Ints, order: Ints, tasks: Ints, wanted: int, least: int, required: Sequence[int], *, late: bool = False
) -> tuple[Ints, int]:
    """Rows leaf by leaf, so that the first ones that are enough lie on few; and on how many. `late`: of equals the last."""
    found, place = np.unique(leaves[order], return_inverse=True)
    counts, sums = np.bincount(place), np.bincount(place, weights=tasks[order])
    step = -1 if late else 1
    rank = np.full(len(found), len(found), dtype=np.int64)
    free = np.ones(len(found), dtype=np.bool_)
    named = np.unique(leaves[np.array(required, dtype=np.int64)]).tolist() if required else []
    used, nodes_left, tasks_left = 0, least, wanted
    while (nodes_left > 0 or tasks_left > 0 or named) and free.any():
        if named:
            best = int(np.searchsorted(found, named.pop(0)))
        else:
            enough = np.flatnonzero(free & (counts >= nodes_left) & (sums >= tasks_left))
            if len(enough):
                best = int(enough[np.lexsort((step * enough, counts[enough]))[0]])
            else:
                some = np.flatnonzero(free)
                share = np.minimum(counts[some] / max(nodes_left, 1), sums[some] / max(tasks_left, 1))
                best = int(some[np.lexsort((step * some, -share))[0]])
        rank[best], free[best] = used, False
        used += 1
        nodes_left -= int(counts[best])
        tasks_left -= int(sums[best])
    return order[np.argsort(rank[place], kind="stable")], used


def holds_beside(near: Near | None, holds: Sequence[Hold]) -> tuple[Hold, ...]:
    """What a job that has its leaf domains for itself holds of the nodes beside its own: nothing, but nobody may come."""
    if near is None:
        return ()
    return tuple(Hold(row=row, cpus=0, memory=0, closes=True) for row in near.beside([hold.row for hold in holds]))


def near_of(topology: Topology | None, columns: NodeColumns, param: str) -> Near | None:
    """Columns of a topology over the nodes; None where all are equally near."""
    if topology is None or topology.kind == "flat" or not topology.units:
        return None
    is_block = topology.kind == "block"
    return Near(
        topology=topology,
        names=columns.names,
        levels=(_of_blocks if is_block else _of_tree)(topology, columns.rows, columns.count),
        spans=_spans(topology) if is_block else (),
        optional="topooptional" in [word.strip().lower() for word in param.split(",")],
    )


def _spans(topology: Topology) -> tuple[int, ...]:
    return tuple(size // topology.block_sizes[0] for size in topology.block_sizes)


def _of_blocks(topology: Topology, rows: Mapping[str, int], count: int) -> Ints:
    spans = _spans(topology)
    found = np.full((len(spans) + 1, count), NOWHERE, dtype=np.int64)
    bases = [unit for unit in topology.units if unit.level == 0]
    for number, unit in enumerate(bases):
        mine = [rows[name] for name in unit.nodes if name in rows]
        for level, span in enumerate(spans):
            found[level, mine] = number // span
        found[-1, mine] = 0
    return found


def _of_tree(topology: Topology, rows: Mapping[str, int], count: int) -> Ints:
    numbers = {unit.name: number for number, unit in enumerate(topology.units)}
    parent = {child: unit.name for unit in topology.units for child in unit.children}
    depth = 1 + max(unit.level for unit in topology.units)
    found = np.full((depth, count), NOWHERE, dtype=np.int64)
    for unit in topology.units:
        if unit.children:
            continue
        mine = [rows[name] for name in unit.nodes if name in rows]
        above = unit.name
        for level in range(depth):
            found[level, mine] = numbers[above]
            above = parent.get(above, above)
    return found
