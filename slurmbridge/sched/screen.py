"""Which shapes certainly fit nowhere now? One comparison of all shapes with all nodes, before any is looked at closely.

A floor is what a shape needs at least of every node that it uses. Too few nodes with that much free: hopeless. The others
may fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurmbridge.model.job import GpuScope
from slurmbridge.model.request import MemoryPer
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.fit import Rules, cpus_of_task, devices_of_node, is_whole
from slurmbridge.sched.room import Room
from slurmbridge.sched.rows import most_of_rows
from slurmbridge.sched.shape import Shape

CPUS, MEMORY, WHOLE, MILLI, IDLE, NODES = range(6)
"""Columns of a floor: CPUs, MiB, free devices, thousandths of one device, 1 = nobody else there, least nodes."""
CHUNK = 4_000_000
"""Comparisons at a time: bounds the memory of one."""


def floor_of(shape: Shape) -> tuple[int, ...]:
    """The least that each node must have free."""
    alone = shape.max_nodes == 1 and shape.tasks_given
    per_task = 1 if shape.overcommit else cpus_of_task(shape)
    cpus = max(per_task * (shape.tasks if alone and not shape.overcommit else 1), shape.node_cpus, 1)
    memory = 0
    if shape.memory is not None and shape.memory.mib:
        if shape.memory.per is MemoryPer.NODE:
            memory = shape.memory.mib
        elif shape.memory.per is MemoryPer.CPU:
            memory = shape.memory.mib * cpus
    whole = milli = 0
    need = shape.gpu
    if need is not None:
        count = need.count if need.scope is GpuScope.TASK or alone else devices_of_node(shape)
        if need.milli >= 1000 and not need.mib:
            whole, milli = count, 1000
        elif count:
            milli = 0 if need.mib else need.milli
    idle = int(is_whole(shape, Rules()))
    return cpus, memory, whole, milli, idle, max(shape.min_nodes, 1)


def floors(shapes: Sequence[Shape], known: Ints) -> Ints:
    """One row a shape; those that are known are kept."""
    if len(known) == len(shapes):
        return known
    fresh = np.array([floor_of(shape) for shape in shapes[len(known) :]], dtype=np.int64).reshape(-1, NODES + 1)
    return np.concatenate([known.reshape(-1, NODES + 1), fresh])


def hopeless(asked: Ints, columns: NodeColumns, room: Room, nodes: Bools, rules: Rules) -> Bools:
    """Of these floors, those that too few of the nodes can meet."""
    open_nodes = nodes & columns.usable & ~room.closed & (room.cpus > 0)
    free = np.zeros((int(open_nodes.sum()), NODES), dtype=np.int64)
    free[:, CPUS] = room.cpus[open_nodes]
    free[:, MEMORY] = room.memory[open_nodes] if rules.counts_memory else np.iinfo(np.int64).max
    if columns.device_type.shape[1]:
        free[:, WHOLE] = room.whole[open_nodes]
        free[:, MILLI] = most_of_rows(room.milli[open_nodes])
    free[:, IDLE] = room.jobs[open_nodes] == 0
    step = max(CHUNK // max(len(free), 1), 1)
    found = np.ones(len(asked), dtype=np.bool_)
    for first in range(0, len(asked), step):
        some = asked[first : first + step]
        fits = np.ones((len(some), len(free)), dtype=np.bool_)
        for column in range(NODES):
            if some[:, column].any():
                fits &= free[None, :, column] >= some[:, column, None]
        found[first : first + step] = fits.sum(axis=1) < some[:, NODES]
    return found
