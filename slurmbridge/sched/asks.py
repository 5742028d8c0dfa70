"""How much does a waiting job ask for, as its queue is charged for it once it runs? CPUs, MiB and devices.

Also where the site does not account for devices. What is not known before a job has its nodes is taken as the least that it may
turn out to be: who has nodes for himself will have at least as much as the smallest node of his partitions. (What others than our
jobs hold of nodes counts as theirs then: it comes and goes, and records alone are asked here.)
"""

from __future__ import annotations

import numpy as np

from slurmbridge.model.cluster import DEFAULT_DEVICE_MIB
from slurmbridge.model.job import GpuScope, JobSpec
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.columns import NodeColumns
from slurmbridge.sched.fit import memory_of_node
from slurmbridge.sched.pools import vector_of
from slurmbridge.sched.queues import Vector
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import Snapshot

_Node = tuple[int, int, int]
"""CPUs that jobs may have, MiB, devices."""
NOTHING: _Node = (0, 0, 0)


class Asks:
    """Of one snapshot's nodes and partitions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._columns = snapshot, snapshot.columns
        self._device_mib = smallest_device(snapshot.columns)
        self._least: dict[tuple[str, ...], _Node] = {}
        self._exclusive: dict[tuple[str, ...], bool] = {}

    def of(self, spec: JobSpec, shape: Shape) -> Vector:
        """What one job asks for. A request by memory counts as the part that it is of the smallest device."""
        cpus, memory, devices = vector_of(spec.req_tres)
        if spec.gpu is not None and (not devices or spec.gpu.mib):
            devices = _devices(spec, self._device_mib)
        if not self._is_whole(spec):
            return cpus, memory, devices
        node, count = self._least_of(spec.partitions), spec.min_nodes
        parts = spec.gpu is not None and (spec.gpu.mib > 0 or spec.gpu.milli < 1000)
        most = node[2] if not parts else 0
        own = memory_of_node(shape, node[0], most, node[1]) if memory else 0
        return max(cpus, float(count * node[0])), max(memory, float(count * own)), max(devices, float(count * most))

    def _is_whole(self, spec: JobSpec) -> bool:
        """Whether it has nodes for itself wherever it starts."""
        if spec.exclusive in (Exclusive.NODE, Exclusive.TOPO):
            return True
        found = self._exclusive.get(spec.partitions)
        if found is None:
            views = [self._snapshot.partitions.get(name) for name in spec.partitions]
            found = bool(views) and all(view is not None and view.exclusive for view in views)
            self._exclusive[spec.partitions] = found
        return found

    def _least_of(self, partitions: tuple[str, ...]) -> _Node:
        found = self._least.get(partitions)
        if found is None:
            columns = self._columns
            inside = np.zeros(columns.count, dtype=np.bool_)
            for view in [self._snapshot.partitions.get(name) for name in partitions]:
                inside |= view.nodes if view is not None else False
            found = NOTHING
            if inside.any():
                kept = np.array([mask.bit_count() for mask in columns.reserved], dtype=np.int64)
                devices = (columns.device_type >= 0).sum(axis=1)
                cpus, memory = (columns.cpus - kept)[inside].min(), columns.memory[inside].min()
                found = int(cpus), int(memory), int(devices[inside].min())
            self._least[partitions] = found
        return found


def _devices(spec: JobSpec, device_mib: int) -> float:
    need = spec.gpu
    assert need is not None
    times = {
        GpuScope.JOB: 1,
        GpuScope.NODE: spec.min_nodes,
        GpuScope.SOCKET: spec.min_nodes * (spec.sockets_per_node or 1),
        GpuScope.TASK: spec.num_tasks,
    }[need.scope]
    each = min(need.mib * 1000 // device_mib, 1000) if need.mib else need.milli
    return need.count * max(times, 1) * each / 1000


def smallest_device(columns: NodeColumns) -> int:
    """Its MiB; a part of memory is the largest part of this one."""
    there = columns.device_mib[columns.shared]
    return int(there.min()) if there.size else DEFAULT_DEVICE_MIB
