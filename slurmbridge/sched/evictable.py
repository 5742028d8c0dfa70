"""Which running jobs could make room on which nodes, and what would be lost?

Columns over those that may be ended at all. What a run loses is what it did: seconds times devices (CPUs where it has none),
more if it is not begun again by itself. Who may take what from whom is asked elsewhere; this module finds the cheapest set on
a node, and what is free without some of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.fit import Rules
from slurmbridge.sched.held import Held
from slurmbridge.sched.queues import ZERO, Vector
from slurmbridge.sched.room import NO_OWNER, Hold, Room
from slurmbridge.sched.screen import CPUS, IDLE, MEMORY, MILLI, NODES, WHOLE, hopeless
from slurmbridge.sched.snapshot import Running

RESTART_S = 60.0
"""What beginning again costs beside the work that is lost."""
CPU_PART = 1 / 64
"""A CPU beside a device."""
FOR_GOOD = 4.0
"""A run that is not begun again loses so much more."""


class Victim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run that may be ended."""

    place: int
    running: Running
    mode: str  # REQUEUE, CANCEL, SUSPEND
    cost: float
    frees: tuple[Hold, ...]  # a suspended run keeps its memory and devices
    reclaimable: bool = True  # may be ended for another queue's due, not only by the site's preemption
    leaf: int = -1  # its queue in the pool that is looked at
    charge: Vector = ZERO  # what it counts for there


def frees_of(running: Running, mode: str) -> tuple[Hold, ...]:
    """What its end, or its suspension, gives back."""
    if mode != "SUSPEND":
        return running.holds
    return tuple(
        msgspec.structs.replace(hold, memory=0, devices=(), closes=False, owner=NO_OWNER) for hold in running.holds
    )


def cost_of(running: Running, mode: str, now: float) -> float:
    """Lost device-seconds."""
    job = running.job
    ran = max(now - (job.start_time if job.start_time is not None else now), 0.0)
    devices = sum(device.milli for hold in running.holds for device in hold.devices) / 1000
    weight = devices + CPU_PART * sum(hold.cpus for hold in running.holds)
    if mode == "SUSPEND":
        return weight * RESTART_S
    return weight * (ran + RESTART_S) * (FOR_GOOD if mode == "CANCEL" else 1.0)


def age_of(running: Running, now: float) -> float:
    """What counts instead where the youngest run goes first: how long it has run, whatever it holds."""
    start = running.job.start_time
    return 1.0 + max(now - start if start is not None else 0.0, 0.0)


class Victims:
    """All of them, with what they hold by node. `alive`: those that are not ended in this plan yet."""

    def __init__(self, victims: Sequence[Victim], columns: NodeColumns) -> None:
        self.all = victims
        self.columns = columns
        self.cost: NDArray[np.float64] = np.array([each.cost for each in victims], dtype=np.float64)
        self.reclaimable: Bools = np.array([each.reclaimable for each in victims], dtype=np.bool_)
        self.charge: NDArray[np.float64] = np.array([each.charge for each in victims], dtype=np.float64).reshape(-1, 3)
        self.leaf: Ints = np.array([each.leaf for each in victims], dtype=np.int64)
        self.alive: Bools = np.ones(len(victims), dtype=np.bool_)
        self.begin_again: Bools = np.array([each.mode == "REQUEUE" for each in victims], dtype=np.bool_)
        held = Held.of((each.place, 0.0, each.frees) for each in victims)
        nodes, devices = held.nodes, held.devices
        self._of, self._row = nodes["id"].copy(), nodes["row"].copy()
        self._cpus, self._memory = nodes["cpus"].astype(np.float64), nodes["memory"].astype(np.float64)
        self._device_of, self._device_row = devices["id"].copy(), devices["row"].copy()
        self._device_milli = devices["milli"].astype(np.float64)
        self._cost_of_row = self.cost[self._of]
        self.on_row: dict[int, list[tuple[float, int, Hold]]] = {}
        for each in victims:
            for hold in each.frees:
                self.on_row.setdefault(hold.row, []).append((each.cost, each.place, hold))
        for found in self.on_row.values():
            found.sort(key=lambda entry: entry[:2])

    def __len__(self) -> int:
        return len(self.all)

    def reaching(self, room: Room, floor: Sequence[int], allowed: Bools) -> Bools:
        """Nodes that could have what `floor` asks if all the allowed ones were gone; some of them may turn out not to."""
        size, some = self.columns.count, allowed[self._of].astype(np.float64)

        def freed(amounts: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.bincount(self._row, weights=amounts, minlength=size).astype(np.float64)

        able: Bools = self.columns.usable & (room.cpus + freed(self._cpus * some) >= floor[CPUS])
        if floor[MEMORY]:
            able &= room.memory + freed(self._memory * some) >= floor[MEMORY]
        if floor[WHOLE] or floor[MILLI]:
            weights = self._device_milli * allowed[self._device_of]
            free = np.bincount(self._device_row, weights=weights, minlength=size)
            able &= free + np.maximum(room.milli, 0).sum(axis=1) >= max(floor[WHOLE] * 1000, floor[MILLI])
        if floor[IDLE]:
            able &= freed(some) >= room.jobs
        return able

    def movable(self, room: Room, nodes: Bools, rules: Rules) -> Bools:
        """Those that are begun again by themselves and may find as much as they have elsewhere; some may turn out not to."""
        floors = np.zeros((len(self.all), NODES + 1), dtype=np.int64)
        np.maximum.at(floors[:, CPUS], self._of, self._cpus.astype(np.int64))
        np.maximum.at(floors[:, MEMORY], self._of, self._memory.astype(np.int64))
        whole = self._device_milli >= 1000
        devices = np.bincount(self._device_of[whole], minlength=len(self.all))
        np.maximum.at(floors[:, MILLI], self._device_of, self._device_milli.astype(np.int64))
        floors[:, NODES] = np.bincount(self._of, minlength=len(self.all))
        floors[:, WHOLE] = devices // np.maximum(floors[:, NODES], 1)
        kinds, of_kind = np.unique(floors, axis=0, return_inverse=True)
        found: Bools = ~hopeless(kinds, self.columns, room, nodes, rules)[of_kind.reshape(-1)]
        return found & self.begin_again

    def cheapest_on(self, allowed: Bools) -> NDArray[np.float64]:
        """Cost of the cheapest victim on each node; inf where there is none."""
        least = np.full(self.columns.count, np.inf)
        some = allowed[self._of]
        np.minimum.at(least, self._row[some], self._cost_of_row[some])
        return least

    def clear(
        self, row: int, floor: Sequence[int], room: Room, allowed: Bools, gone: Iterable[int], most: float = math.inf
    ) -> list[int] | None:
        """The victims on a node, cheapest first, without whom it has what `floor` asks; those `gone` are gone already.

        None: not even without all of them, or only at a cost above `most`.
        """
        need = _Need(row, floor, room, self.columns)
        before = set(gone)
        chosen: list[tuple[float, int, Hold]] = []
        price = 0.0
        for entry in self.on_row.get(row, ()):
            if entry[1] in before:
                need.give(entry[2])
        for entry in self.on_row.get(row, ()):
            if need.met():
                break
            if entry[1] in before or not allowed[entry[1]] or not need.wants(entry[2]):
                continue
            price += entry[0]
            need.give(entry[2])
            chosen.append(entry)
        if not need.met():
            return None
        for entry in chosen[-2::-1]:  # the dearest that the last one made needless
            need.give(entry[2], -1)
            if need.met():
                chosen.remove(entry)
                price -= entry[0]
            else:
                need.give(entry[2])
        return [place for _, place, _ in chosen] if price <= most else None


class _Need:
    """What a node still lacks, in plain numbers."""

    __slots__ = ("_floor", "_part", "_whole", "cpus", "jobs", "memory", "milli")

    def __init__(self, row: int, floor: Sequence[int], room: Room, columns: NodeColumns) -> None:
        self._floor = floor
        self.cpus, self.memory, self.jobs = int(room.cpus[row]), int(room.memory[row]), int(room.jobs[row])
        self.milli: list[int] = room.milli[row].tolist()  # slots without a device have nothing free
        self._whole = sum(1 for free in self.milli if free >= 1000)
        self._part = not floor[MILLI] or max(self.milli, default=0) >= floor[MILLI]

    def give(self, hold: Hold, sign: int = 1) -> None:
        self.cpus += sign * hold.cpus
        self.memory += sign * hold.memory
        self.jobs -= sign
        if hold.devices:
            milli = self.milli
            for device in hold.devices:
                milli[device.slot] += sign * device.milli
            floor = self._floor
            self._whole = sum(1 for free in milli if free >= 1000)
            self._part = not floor[MILLI] or max(milli) >= floor[MILLI]

    def wants(self, hold: Hold) -> bool:
        """Whether this one's going helps with anything that is lacking."""
        floor = self._floor
        if floor[IDLE] or (hold.devices and (self._whole < floor[WHOLE] or not self._part)):
            return True
        return (hold.cpus > 0 and self.cpus < floor[CPUS]) or (hold.memory > 0 and self.memory < floor[MEMORY])

    def met(self) -> bool:
        floor = self._floor
        return (
            self.cpus >= floor[CPUS]
            and self.memory >= floor[MEMORY]
            and self._whole >= floor[WHOLE]
            and self._part
            and (not floor[IDLE] or self.jobs <= 0)
        )
