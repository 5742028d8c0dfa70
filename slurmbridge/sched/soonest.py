"""Before when can a job certainly not start? A bound from columns alone, so that few times are looked at closely.

For each node: when running work will have left what the job asks of a node at least. As many nodes as it asks for must be
that far, and there must be CPUs for all of its tasks. Nothing is placed, so the job may still start later than that.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.fit import Rules, cpus_of_task
from slurmbridge.sched.held import Held
from slurmbridge.sched.room import Room
from slurmbridge.sched.screen import CPUS, MEMORY, NODES, WHOLE, floor_of
from slurmbridge.sched.shape import Shape

Floats = NDArray[np.float64]


class Least(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What must be free: of each node (a floor of `screen`), and CPUs in all. `nodes`: those that count."""

    floor: tuple[int, ...]
    cpus: int
    nodes: Bools


def least_of(shape: Shape, nodes: Bools, rules: Rules) -> Least:
    """What a shape needs before it can start on some of these nodes."""
    floor = list(floor_of(shape))
    if not rules.counts_memory:
        floor[MEMORY] = 0
    tasks = max(shape.tasks, shape.min_nodes) if shape.tasks_given and not shape.overcommit else 0
    return Least(floor=tuple(floor), cpus=tasks * cpus_of_task(shape), nodes=nodes)


def bound(least: Least, columns: NodeColumns, room: Room, held: Held) -> float:
    """See the module docstring. `held`: ordered by end; inf where it never has enough, -inf where it may have now."""
    if held.nodes["shares"].any():
        return -math.inf  # CPUs that are given out twice do not add up
    nodes = least.nodes & columns.usable
    count = least.floor[NODES]
    if int(nodes.sum()) < count:
        return math.inf
    when = np.where(nodes, -math.inf, math.inf)
    table = held.nodes
    for name, free, asked in (("cpus", room.cpus, least.floor[CPUS]), ("memory", room.memory, least.floor[MEMORY])):
        if (nodes & (free < asked)).any():
            when = np.maximum(when, _enough(table["row"], table["end"], table[name], free, asked))
    whole = least.floor[WHOLE]
    if whole and (nodes & (room.whole < whole)).any():
        when = np.maximum(when, _devices(held, room, whole))
    found = float(np.partition(when, count - 1)[count - 1])
    missing = least.cpus - int(room.cpus[nodes].sum())
    if missing > 0:
        freed = np.cumsum(np.where(nodes[table["row"]], table["cpus"], 0))
        place = int(np.searchsorted(freed, missing))
        found = max(found, float(table["end"][place]) if place < len(freed) else math.inf)
    return found


def _enough(rows: Ints, ends: Floats, amounts: Ints, free: Ints, asked: int) -> Floats:
    """By node: when so much is free."""
    when = np.where(free >= asked, -math.inf, math.inf)
    order = np.argsort(rows, kind="stable")
    rows, ends = rows[order], ends[order]
    sums = np.cumsum(amounts[order])
    first = np.searchsorted(rows, rows, side="left")
    before = np.concatenate([np.zeros(1, dtype=np.int64), sums])[first]
    reached = free[rows] + sums - before >= asked
    np.minimum.at(when, rows[reached], np.where(free[rows[reached]] >= asked, -math.inf, ends[reached]))
    return when


def _devices(held: Held, room: Room, count: int) -> Floats:
    """By node: when so many devices are nobody's."""
    width = room.milli.shape[1]
    if count > width:
        return np.full(len(room.milli), math.inf)
    last = np.where(room.milli >= 1000, -math.inf, math.inf)  # inf: no device, or nothing that ends holds it
    table = held.devices
    ends = np.full(room.milli.shape, -math.inf)
    np.maximum.at(ends, (table["row"], table["slot"]), table["end"])
    waits = np.isinf(last) & (last > 0) & (ends > -math.inf)
    last[waits] = ends[waits]
    found: Floats = np.sort(last, axis=1)[:, count - 1]
    return found
