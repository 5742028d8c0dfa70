"""What is a gang of pods, and what is a node to it? The objects that a pass over gangs changes while it tries things.

A gang has pod sets with a minimum each, perhaps in nested groups with wishes about topology. Below its minimum a set starts
with all missing tasks or none; above it, tasks come and go one by one. A node counts what is idle now and what is being
released; what is promised ("pipelined") takes from what will be free, never from what is free twice. A fraction is held on a
concrete device.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

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


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How close together tasks must or should be: levels of a topology by their index, outermost 0."""

    topology: str
    required: int | None = None
    preferred: int | None = None


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """A tree of domains, told by labels of nodes."""

    name: str
    levels: tuple[str, ...]  # node labels, outermost first


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


class Status(enum.IntEnum):
    """Where a task is in the pass."""

    PENDING = 0
    RUNNING = 1  # since before the pass
    STARTED = 2  # placed by it
    RELEASING = 3  # going away since before
    FAILED = 4


# status, evicted, node, labels, target, its labels, charged, how many of its set are active
TaskState = tuple[Status, bool, PodNode | None, tuple[str, ...], PodNode | None, tuple[str, ...], Vector, int]


class PodTask:
    """One pod of a gang. `node`: where it is; `target`: where it is promised to be once others are gone."""

    __slots__ = (
        "affinity", "ask", "charged", "evicted", "gang", "index", "kept", "labels", "name", "node", "order", "pods",
        "status", "target", "target_labels",
    )  # fmt: skip

    def __init__(self, gang: Gang, pods: PodSet, index: int, name: str, ask: Ask, *, order: int = 0,
                 affinity: frozenset[str] = frozenset()) -> None:  # fmt: skip
        self.gang = gang
        self.pods = pods
        self.index = index
        self.name = name
        self.ask = ask
        self.order = order  # larger comes first
        self.affinity = affinity  # label values, one of which the node must have; empty = any
        self.status = Status.PENDING
        self.evicted = False  # by this pass
        self.node: PodNode | None = None
        self.labels: tuple[str, ...] = ()
        self.target: PodNode | None = None
        self.target_labels: tuple[str, ...] = ()
        self.kept: PodNode | None = None  # where an earlier pass promised it room
        self.charged: Vector = (0.0, 0.0, 0.0)

    def state(self) -> TaskState:
        """All that a pass changes, to put back later."""
        return (
            self.status, self.evicted, self.node, self.labels, self.target, self.target_labels, self.charged,
            self.pods.active,
        )  # fmt: skip

    def put_back(self, state: TaskState) -> None:
        """Be again as `state` says."""
        (
            self.status, self.evicted, self.node, self.labels, self.target, self.target_labels, self.charged,
            self.pods.active,
        ) = state  # fmt: skip

    @property
    def active(self) -> bool:
        """Does it run, or is it to run, when the pass is over?"""
        return self.target is not None or (self.status in (Status.RUNNING, Status.STARTED) and not self.evicted)

    @property
    def here(self) -> bool:
        """Does it hold something that could be taken from it?"""
        return self.status == Status.RUNNING and not self.evicted

    def waits(self, virtual: bool) -> bool:
        """Could it be placed? `virtual`: tasks evicted by the pass too."""
        if self.target is not None:
            return False
        return self.status == Status.PENDING or (virtual and self.evicted)


class PodSet:
    """Tasks that are alike to the gang, of which at least `minimum` run."""

    __slots__ = ("active", "minimum", "name", "tasks", "wish")

    def __init__(self, name: str, minimum: int, wish: Wish | None = None) -> None:
        self.name = name
        self.minimum = minimum
        self.wish = wish
        self.tasks: list[PodTask] = []
        self.active = 0


class PodGroup:
    """Pod sets and groups that wish to be close together."""

    __slots__ = ("groups", "name", "sets", "wish")

    def __init__(self, name: str, groups: list[PodGroup], sets: list[PodSet], wish: Wish | None = None) -> None:
        self.name = name
        self.groups = groups
        self.sets = sets
        self.wish = wish

    def all_sets(self) -> Iterator[PodSet]:
        """Its own and those of the groups inside."""
        for group in self.groups:
            yield from group.all_sets()
        yield from self.sets


class Gang:
    """A job of pods."""

    __slots__ = (
        "leaf", "name", "preemptible", "priority", "ran_s", "rank", "root", "sets", "stale_s", "tasks", "waited_s",
    )  # fmt: skip

    def __init__(self, rank: int, name: str, leaf: int, *, priority: int, preemptible: bool, root: PodGroup,
                 stale_s: float | None = None, ran_s: float = 0.0, waited_s: float = 0.0) -> None:  # fmt: skip
        self.rank = rank  # smaller is older
        self.name = name
        self.leaf = leaf
        self.priority = priority
        self.preemptible = preemptible
        self.root = root
        self.sets = list(root.all_sets())
        self.tasks: list[PodTask] = []
        self.stale_s = stale_s  # for how long it has been incomplete
        self.ran_s = ran_s  # what it would lose if it had to start over
        self.waited_s = waited_s

    def add(self, task: PodTask) -> None:
        """Make a task a member."""
        self.tasks.append(task)
        task.pods.tasks.append(task)

    @property
    def incomplete(self) -> bool:
        """Do some of its tasks run although a set is below its minimum?"""
        return any(pods.active for pods in self.sets) and any(pods.active < pods.minimum for pods in self.sets)

    def fullness(self) -> int:
        """0: below a minimum, 1: at all of them, 2: above one."""
        if any(pods.active < pods.minimum for pods in self.sets):
            return 0
        return 2 if any(pods.active > pods.minimum for pods in self.sets) else 1
