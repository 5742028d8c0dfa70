"""What is a node to a gang of pods, and what does a task ask of it?

A node counts what is idle now and what is being released; what is promised ("pipelined") takes from what will be free, never
from what is free twice. A fraction is held on a concrete device.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from slurmbridge.sched.queues import Vector


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What one task needs. At most one of `gpus`, `share`, `mib` is set."""

    cpu: float = 0.0
    memory: float = 0.0
    gpus: int = 0  # whole devices
    share: float = 0.0  # part of each of `devices` devices
    mib: int = 0  # memory of each of `devices` devices
    devices: int = 1

    @property
    def shares_devices(self) -> bool:
        """Does it take parts of devices?"""
        return self.share > 0 or self.mib > 0

    @property
    def needs_gpu(self) -> bool:
        """Does it need a device at all?"""
        return self.gpus > 0 or self.shares_devices

    def part(self, device_mib: float) -> float:
        """The part of one device, on a node whose devices have this much memory."""
        if self.mib:
            return self.mib / device_mib if device_mib else 1.0
        return self.share

    def charge(self, device_mib: float) -> Vector:
        """What its queue is charged."""
        gpu = float(self.gpus) if not self.shares_devices else self.part(device_mib) * self.devices
        return self.cpu, self.memory, gpu


class Load(enum.IntEnum):
    """In which way a task burdens a node."""

    ACTIVE = 0
    RELEASING = 1
    PIPELINED = 2


# How much of an ask each load takes from what is idle, and gives to what will be free.
_IDLE = {Load.ACTIVE: -1, Load.RELEASING: -1, Load.PIPELINED: 0}
_FREED = {Load.ACTIVE: 0, Load.RELEASING: 1, Load.PIPELINED: -1}

Room = tuple[float, float, float, float]  # cpu, memory, whole devices, pods
Sharers = tuple[float, int, float, int, float, int]  # part and number of holders, by load
UNSHARED: Sharers = (0.0, 0, 0.0, 0, 0.0, 0)


class PodNode:
    """A node as it is at this point of the pass."""

    __slots__ = ("changed", "device_mib", "freed", "gpus", "idle", "index", "labels", "name", "shared", "size")

    def __init__(
        self, index: int, name: str, *, cpu: float, memory: float, gpus: int, device_mib: float, pods: int,
        labels: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.index = index
        self.name = name
        self.labels = dict(labels)
        self.gpus = gpus
        self.device_mib = device_mib
        self.size: Room = (float(cpu), float(memory), float(gpus), float(pods))
        self.idle: Room = self.size
        self.freed: Room = (0.0, 0.0, 0.0, 0.0)
        self.shared: dict[str, Sharers] = {}  # devices held in parts, by their name
        self.changed: set[int] | None = None  # where to note that this node changed

    def state(self) -> tuple[Room, Room, dict[str, Sharers]]:
        """All that changes, to put back later."""
        return self.idle, self.freed, self.shared

    def put_back(self, state: tuple[Room, Room, dict[str, Sharers]]) -> None:
        """Be again as `state` says."""
        self.idle, self.freed, self.shared = state
        if self.changed is not None:
            self.changed.add(self.index)

    def future(self) -> Room:
        """What is idle or will be, and is promised to nobody."""
        idle, freed = self.idle, self.freed
        return idle[0] + freed[0], idle[1] + freed[1], idle[2] + freed[2], idle[3] + freed[3]

    def shift(self, ask: Ask, labels: tuple[str, ...], load: Load, sign: int) -> None:
        """Add (1) or remove (-1) a task's burden."""
        if self.changed is not None:
            self.changed.add(self.index)
        idle, freed = _IDLE[load] * sign, _FREED[load] * sign
        whole_idle, whole_freed = float(ask.gpus * idle), float(ask.gpus * freed)
        if ask.shares_devices:
            part = ask.part(self.device_mib)
            shared = dict(self.shared)
            for label in labels:
                before = shared.get(label, UNSHARED)
                after = _with(before, part, load, sign)
                had, has = _whole(before), _whole(after)
                whole_idle += has[0] - had[0]
                whole_freed += has[1] - had[1]
                if after == UNSHARED:
                    shared.pop(label, None)
                else:
                    shared[label] = after
            self.shared = shared
        if idle or whole_idle:
            now = self.idle
            self.idle = (now[0] + ask.cpu * idle, now[1] + ask.memory * idle, now[2] + whole_idle, now[3] + idle)
        if freed or whole_freed:
            now = self.freed
            self.freed = (now[0] + ask.cpu * freed, now[1] + ask.memory * freed, now[2] + whole_freed, now[3] + freed)


def _with(sharers: Sharers, part: float, load: Load, sign: int) -> Sharers:
    parts = list(sharers)
    number = sharers[2 * load + 1] + sign
    parts[2 * load + 1] = number
    parts[2 * load] = sharers[2 * load] + part * sign if number else 0.0
    return parts[0], int(parts[1]), parts[2], int(parts[3]), parts[4], int(parts[5])


def _whole(sharers: Sharers) -> tuple[int, int]:
    """What a shared device adds to the node's whole devices: idle, freed."""
    _, active, _, releasing, _, pipelined = sharers
    idle = -1 if active or releasing else 0
    freed = 0
    if not active:
        freed = (1 if releasing else 0) - (1 if pipelined else 0)
    return idle, freed


def part_free(sharers: Sharers) -> tuple[float, float]:
    """What is left of a shared device: now, and once what is being released is gone."""
    later = 1.0 - sharers[0] - sharers[4]
    return later - sharers[2], later


def is_in_use(sharers: Sharers) -> bool:
    """Is the device held, or promised, by somebody who stays?"""
    return bool(sharers[1] or sharers[5])
