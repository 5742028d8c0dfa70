"""Free CPUs, memory and devices of all nodes as arrays: what the baselines place jobs on.

Written apart from the scheduler core, so that a comparison with it means something. Placing: on the nodes where the least
is left over; a part of a device on the fullest device that holds it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.sim.workload import DEVICE_MIB, Machine, TraceJob

Ints = NDArray[np.int64]


class Need(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What all jobs of a shape ask for. `milli`: [node, slot], of each device; beyond 1000 where it may not go."""

    number: int
    nodes: int
    cpus: int
    mem: int
    gpus: int
    shares: bool
    milli: Ints | None
    all_cpus: int
    all_milli: int


class Placement(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Rows and what is taken of each; `cells` are device slots in the flattened table."""

    rows: Ints
    cpus: Ints
    mem: Ints
    cells: Ints
    milli: Ints


class Room:
    """Free amounts; changed in place."""

    __slots__ = ("cpus", "mem", "milli")

    def __init__(self, cpus: Ints, mem: Ints, milli: Ints) -> None:
        self.cpus, self.mem, self.milli = cpus, mem, milli

    def copy(self) -> Room:
        return Room(self.cpus.copy(), self.mem.copy(), self.milli.copy())

    def least(self, other: Room) -> Room:
        """What is free in both."""
        return Room(
            np.minimum(self.cpus, other.cpus), np.minimum(self.mem, other.mem), np.minimum(self.milli, other.milli)
        )

    def take(self, placement: Placement) -> None:
        self.cpus[placement.rows] -= placement.cpus
        self.mem[placement.rows] -= placement.mem
        self.milli.reshape(-1)[placement.cells] -= placement.milli

    def give(self, placement: Placement) -> None:
        self.cpus[placement.rows] += placement.cpus
        self.mem[placement.rows] += placement.mem
        self.milli.reshape(-1)[placement.cells] += placement.milli

    def with_all(self, placements: Sequence[Placement]) -> Room:
        """The room once all these are gone."""
        room = self.copy()
        if placements:
            rows = np.concatenate([each.rows for each in placements])
            np.add.at(room.cpus, rows, np.concatenate([each.cpus for each in placements]))
            np.add.at(room.mem, rows, np.concatenate([each.mem for each in placements]))
            cells = np.concatenate([each.cells for each in placements])
            np.add.at(room.milli.reshape(-1), cells, np.concatenate([each.milli for each in placements]))
        return room


class Pool:
    """All nodes, and the shapes of the jobs that come."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        each = [machine for machine in machines for _ in range(machine.count)]
        self._slots = max((machine.gpus for machine in each), default=0)
        self._counts_memory = np.array([machine.mem_mib > 0 for machine in each], dtype=np.bool_)
        self.devices = np.array([machine.gpus for machine in each], dtype=np.int64)
        self._kinds = [machine.gpu_type for machine in each]
        self._device_mib = np.array([machine.gpu_mem_mib or DEVICE_MIB for machine in each], dtype=np.int64)
        milli = np.zeros((len(each), self._slots), dtype=np.int64)
        for row, machine in enumerate(each):
            milli[row, : machine.gpus] = 1000
        memory = np.array([machine.mem_mib or 1 << 40 for machine in each], dtype=np.int64)
        self.room = Room(np.array([machine.cpus for machine in each], dtype=np.int64), memory, milli)
        self.all_cpus, self.all_gpus = int(self.room.cpus.sum()), int(self.devices.sum())
        self._plain_first = np.lexsort((np.arange(len(each)), self.devices))
        self._needs: dict[tuple[object, ...], Need] = {}

    def need(self, job: TraceJob) -> Need:
        key = (job.nodes, job.cpus, job.mem_mib, job.gpus, job.gpu_milli, job.gpu_mem_mib, job.gpu_type)
        found = self._needs.get(key)
        if found is None:
            found = self._needs[key] = self._made(job, len(self._needs))
        return found

    def _made(self, job: TraceJob, number: int) -> Need:
        milli = None
        each = job.gpu_milli
        if job.gpus:
            if job.gpu_mem_mib:
                wanted = -(-job.gpu_mem_mib * 1000 // self._device_mib)
            else:
                wanted = np.full(len(self._device_mib), job.gpu_milli, dtype=np.int64)
            if job.gpu_type:
                wanted = np.where([kind == job.gpu_type for kind in self._kinds], wanted, 1_000_000)
            milli = np.repeat(wanted.reshape(-1, 1), self._slots, axis=1).astype(np.int64)
            each = int(wanted.min()) if len(wanted) else each
        return Need(
            number=number,
            nodes=job.nodes,
            cpus=job.cpus,
            mem=job.mem_mib,
            gpus=job.gpus,
            shares=bool(job.gpus) and each < 1000,
            milli=milli,
            all_cpus=job.all_cpus,
            all_milli=max(job.nodes, 1) * job.gpus * min(each, 1000) if job.gpus else 0,
        )

    def place(self, need: Need, room: Room) -> Placement | None:
        """Where it fits, or None."""
        if not need.nodes:
            return self._anywhere(need, room)
        fits = room.cpus >= need.cpus
        if need.mem:
            fits &= room.mem >= need.mem
        if need.milli is None:
            rows = np.flatnonzero(fits)
            if len(rows) < need.nodes:
                return None
            best = rows[np.lexsort((room.cpus[rows], self.devices[rows]))[: need.nodes]]
            return self._placement(need, best, _NONE, _NONE)
        slots = room.milli >= need.milli
        count = slots.sum(axis=1)
        fits &= count >= need.gpus
        rows = np.flatnonzero(fits)
        if len(rows) < need.nodes:
            return None
        if need.shares:
            tightest = np.where(slots[rows], room.milli[rows], 10_000)
            best = rows[np.lexsort((room.cpus[rows], count[rows], tightest.min(axis=1)))[: need.nodes]]
        else:
            best = rows[np.lexsort((room.cpus[rows], count[rows]))[: need.nodes]]
        order = np.argsort(np.where(slots[best], room.milli[best], 10_000), axis=1, kind="stable")[:, : need.gpus]
        cells = (best.reshape(-1, 1) * self._slots + order).reshape(-1)
        return self._placement(need, best, cells, need.milli.reshape(-1)[cells])

    def _placement(self, need: Need, rows: Ints, cells: Ints, milli: Ints) -> Placement:
        memory = np.where(self._counts_memory[rows], need.mem, 0)
        return Placement(rows=rows, cpus=np.full(len(rows), need.cpus), mem=memory, cells=cells, milli=milli)

    def _anywhere(self, need: Need, room: Room) -> Placement | None:
        order = self._plain_first
        free = room.cpus[order]
        counted = self._counts_memory[order] if need.mem else None
        if counted is not None:
            free = np.where(counted, np.minimum(free, room.mem[order] // need.mem), free)
        after = np.cumsum(free)
        if not len(after) or after[-1] < need.cpus:
            return None
        last = int(np.searchsorted(after, need.cpus))
        taken = free[: last + 1].copy()
        taken[last] -= after[last] - need.cpus
        used = taken > 0
        rows, cpus = order[: last + 1][used], taken[used]
        memory = np.where(self._counts_memory[rows], cpus * need.mem, 0)
        return Placement(rows=rows, cpus=cpus, mem=memory, cells=_NONE, milli=_NONE)


_NONE = np.zeros(0, dtype=np.int64)
