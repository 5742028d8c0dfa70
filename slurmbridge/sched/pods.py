"""What is a gang of pods? The objects that a pass over gangs changes while it tries things.

A gang has pod sets with a minimum each, perhaps in nested groups with wishes about topology. Below its minimum a set starts
with all missing tasks or none; above it, tasks come and go one by one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from slurmbridge.sched.pod_node import Ask, PodNode
from slurmbridge.sched.queues import Vector


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How close together tasks must or should be: levels of a topology by their index, outermost 0."""

    topology: str
    required: int | None = None
    preferred: int | None = None


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """A tree of domains, told by labels of nodes."""

    name: str
    levels: tuple[str, ...]  # node labels, outermost first


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
        "affinity", "ask", "charged", "evicted", "gang", "index", "kept", "kept_labels", "labels", "name", "node", "order", "pods",
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
        self.kept_labels: tuple[str, ...] = ()
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
