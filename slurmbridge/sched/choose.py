"""Which nodes, and how many tasks and devices on each? All or nothing.

Order: required nodes, then by weight and configuration order. One node that holds everything comes before a split;
a split fills nodes in order and leaves one task for each further node; with a range of node counts as many as can start
now. Observed on Slurm 26.05 (select/cons_tres): `-N2 -n6` on idle nodes of 8 gives 5,1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from slurmbridge.model.job import GpuScope
from slurmbridge.sched import gpus
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.fit import MANY, Capacity, devices_of_node
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.topology import Near
from slurmbridge.submit.lifting import MAX_NODES, MIN_NODES


class Part(msgspec.Struct, frozen=True):
    """One node of a choice."""

    row: int
    tasks: int
    devices: int
    kinds: tuple[int, ...] = ()  # of each type, where those of a whole job are of several


class Bounds(msgspec.Struct, frozen=True):
    """What a partition says: MinNodes, MaxNodes, and whether the least loaded nodes come first (LLN)."""

    min_nodes: int = 0
    max_nodes: int | None = None
    least_loaded: bool = False


class Range(msgspec.Struct, frozen=True):
    """Node counts that may be tried: at least, at most, and whether more are better."""

    low: int
    high: int
    greedy: bool


def ranges(shape: Shape, required: int, bounds: Bounds) -> Iterator[Range]:
    """The node counts of a shape under a partition's bounds, best first."""
    least = 0 if MIN_NODES in shape.lifted else bounds.min_nodes
    low = max(shape.min_nodes, required, least, 1)
    max_nodes = None if MAX_NODES in shape.lifted else bounds.max_nodes
    high = min(bound for bound in (shape.max_nodes, max_nodes, MANY) if bound is not None)
    if shape.tasks_given:
        if shape.tasks_per_node:
            low = max(low, -(-shape.tasks // shape.tasks_per_node))
        high = min(high, max(shape.tasks, low))
    if shape.gpu is not None and shape.gpu.scope is GpuScope.JOB:
        most = min((count for _, count in shape.gpu.kinds), default=shape.gpu.count)
        high = min(high, max(most, low))
    if shape.max_nodes is not None:
        low = min(low, max(shape.max_nodes, shape.min_nodes))
    if shape.node_counts:
        counts = sorted((count for count in shape.node_counts if low <= count <= high), reverse=not shape.use_min_nodes)
        yield from (Range(count, count, False) for count in counts)
    elif low <= high:
        yield Range(low, high, (shape.max_nodes is not None and not shape.use_min_nodes) or shape.spread)


def alone(shape: Shape, bounds: Bounds) -> Part | None:
    """What one node must give (row -1) when the first node that has it is the choice; None where it is not so simple."""
    if shape.contiguous or shape.req_nodes or bounds.least_loaded:
        return None
    first = next(ranges(shape, 0, bounds), None)
    if first is None or first.low > 1 or (first.greedy and first.high > 1):
        return None
    tasks = _wanted_tasks(shape, 1)
    need = shape.gpu
    devices = need.count if need is not None and need.scope is GpuScope.JOB else _devices(shape, tasks)
    if first.high > 1:
        return None
    if need is not None and need.scope is GpuScope.JOB and shape.tasks_given and devices == max(shape.tasks, 1):
        tasks = devices
    return Part(-1, tasks, devices)


def with_counts(
    required: Sequence[int], counts: Sequence[tuple[Bools, int]], capacity: Capacity, order: Ints
) -> list[int] | None:
    """The required nodes with the first of each kind that the job must have; None when there are too few."""
    found = list(required)
    for nodes, count in counts:
        candidates = order[(nodes & (capacity.tasks > 0))[order]].tolist()
        have = sum(1 for row in found if nodes[row])
        more = [row for row in candidates if row not in found][: max(count - have, 0)]
        if have + len(more) < count:
            return None
        found += more
    return found


def choose(
    shape: Shape,
    columns: NodeColumns,
    capacity: Capacity,
    required: Sequence[int],
    bounds: Bounds,
    free: Ints,
    near: Near | None = None,
    order: Ints | None = None,
) -> list[Part] | None:
    """Parts by row number, or None. `free`: CPUs, for partitions that want the least loaded nodes; `order`: of the nodes,
    where it is not by weight and configuration.
    """
    if any(capacity.tasks[row] <= 0 for row in required):
        return None
    order = columns.order if order is None else order
    if bounds.least_loaded:
        order = np.lexsort((order, -free * 1000 // np.maximum(columns.cpus, 1))).astype(np.int64)
    for each in ranges(shape, len(required), bounds):
        if shape.contiguous and (near is None or not near.spans):  # blocks do not know neighbours
            for run in _stretches(shape, near, capacity.tasks):
                inside = np.zeros_like(capacity.tasks)
                inside[run] = capacity.tasks[run]
                if all(inside[row] for row in required):
                    part = _try(shape, order, inside, capacity, required, each)
                    if part is not None:
                        return part
        else:
            if near is not None and each.high > 1 and near.minds(shape):
                part = _together(shape, near, order, capacity, required, each)
            else:
                part = _try(shape, order, capacity.tasks, capacity, required, each)
            if part is not None:
                return part
    return None


def _together(
    shape: Shape, near: Near, order: Ints, capacity: Capacity, required: Sequence[int], counts: Range
) -> list[Part] | None:
    """`_try` on nodes that are near to each other."""
    tasks = capacity.tasks
    if counts.low <= 1 and not counts.greedy and not required:
        single = _try(shape, order, tasks, capacity, required, Range(1, 1, False))
        if single is not None:
            return single
    rows = order[tasks[order] > 0]
    tries = [Range(counts.low, counts.high, False)]
    if counts.greedy and not near.spans:
        most = min(counts.high, near.most(shape, rows))
        if most > counts.low:
            tries.insert(0, Range(most, most, False))
    for each in tries:
        for some in near.orders(shape, rows, tasks, _wanted_tasks(shape, each.low), each.low, required):
            found = _try(shape, some, tasks, capacity, required, each)
            if found is not None and near.permits(shape, [part.row for part in found]):
                return found
    return None


def _stretches(shape: Shape, near: Near | None, tasks: Ints) -> Iterator[slice]:
    """`_runs`, each below as few leaf switches as the job wants."""
    for run in _runs(tasks):
        if near is None or not shape.switches:
            yield run
            continue
        leaves = near.levels[0][run]
        edges = [run.start, *(run.start + 1 + np.flatnonzero(leaves[1:] != leaves[:-1])).tolist(), run.stop]
        for place in range(len(edges) - 1):
            yield slice(edges[place], edges[min(place + shape.switches, len(edges) - 1)])


def _runs(tasks: Ints) -> Iterator[slice]:
    """Stretches of neighbouring nodes that are in."""
    start = None
    for row, count in enumerate([*tasks.tolist(), 0]):
        if count > 0 and start is None:
            start = row
        elif count <= 0 and start is not None:
            yield slice(start, row)
            start = None


def _try(
    shape: Shape, order: Ints, tasks: Ints, capacity: Capacity, required: Sequence[int], counts: Range
) -> list[Part] | None:
    order = order[tasks[order] > 0]
    if required:
        head = np.array(required, dtype=np.int64)
        order = np.concatenate([head, order[~np.isin(order, head)]])
    if len(order) < counts.low:
        return None
    asked = _asked_of_all(shape, capacity)
    wanted = _wanted_tasks(shape, counts.low)
    rows = _pick_rows(order, tasks, asked, wanted, counts, len(required))
    if rows is None:
        return None
    spreads: list[list[int]] = []
    for devices, count in asked:
        spread = gpus.spread(count, [int(devices[row]) for row in rows])
        if spread is None:
            return None
        spreads.append(spread)
    given = [sum(each) for each in zip(*spreads, strict=True)]
    layout = _layout(shape, [int(tasks[row]) for row in rows], given)
    if layout is None:
        return None
    parts = [
        Part(
            row,
            count,
            given[place] if given else _devices(shape, count),
            tuple(spread[place] for spread in spreads) if len(spreads) > 1 else (),
        )
        for place, (row, count) in enumerate(zip(rows, layout, strict=True))
    ]
    return sorted(parts, key=lambda part: part.row)


def _asked_of_all(shape: Shape, capacity: Capacity) -> list[tuple[Ints, int]]:
    """Devices that the job wants in all, of each type: what each node could give, and how many."""
    need = shape.gpu
    if need is None or need.scope is not GpuScope.JOB:
        return []
    if need.kinds:
        return [(free, count) for free, (_, count) in zip(capacity.kinds, need.kinds, strict=True)]
    assert capacity.devices is not None
    return [(capacity.devices, need.count)]


def _wanted_tasks(shape: Shape, nodes: int) -> int:
    if shape.tasks_given:
        return max(shape.tasks, nodes)
    return nodes * max(shape.tasks_per_node, 1)


def _devices(shape: Shape, tasks: int) -> int:
    need = shape.gpu
    if need is None:
        return 0
    return tasks * need.count if need.scope is GpuScope.TASK else devices_of_node(shape)


def _pick_rows(
    order: Ints, tasks: Ints, asked: Sequence[tuple[Ints, int]], wanted: int, counts: Range, required: int
) -> list[int] | None:
    """Rows in the order in which they are filled."""
    if counts.low <= 1 and not required and (not counts.greedy or counts.high == 1):
        alone = tasks[order] >= wanted
        for devices, count in asked:
            alone &= devices[order] >= count
        hits = np.flatnonzero(alone)
        if len(hits):
            return [int(order[hits[0]])]
    for candidates in (order, _largest_first(order, tasks, required)):
        limit = min(counts.high, len(candidates))
        enough = _enough(tasks[candidates], wanted)
        for devices, count in asked:
            enough = max(enough, _enough(devices[candidates], count))
        if enough <= limit:
            size = limit if counts.greedy else max(enough, counts.low)
            return [int(row) for row in candidates[: max(size, counts.low)]]
    return None


def _largest_first(order: Ints, tasks: Ints, required: int) -> Ints:
    rest = order[required:]
    return np.concatenate([order[:required], rest[np.argsort(-tasks[rest], kind="stable")]])


def _enough(amounts: Ints, wanted: int) -> int:
    """How many of the first are needed for the sum."""
    return int(np.searchsorted(np.cumsum(amounts), wanted)) + 1


def _layout(shape: Shape, room: list[int], devices: list[int]) -> list[int] | None:
    """Tasks of each node."""
    if not shape.tasks_given:
        each = max(shape.tasks_per_node, 1)
        return [each] * len(room) if min(room) >= each else None
    left = max(shape.tasks, len(room))
    if devices and sum(devices) == left and all(count <= most for count, most in zip(devices, room, strict=True)):
        return devices
    layout = []
    for place, most in enumerate(room):
        count = min(most, left - (len(room) - place - 1))
        layout.append(count)
        left -= count
    return layout if left == 0 and min(layout) >= 1 else None
