"""Who could make room, in which order, and what would it cost?

The order is that of the queues reversed: who holds most of what it may hold gives first; in a queue the lowest priority, then
gangs that are above a minimum, then the youngest. A gang above a minimum gives one task at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from slurmbridge.sched.pod_chunks import held, next_to_go
from slurmbridge.sched.pod_node import PodNode
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang, PodTask
from slurmbridge.sched.queue_order import Key, QueueOrder
from slurmbridge.sched.queues import ZERO, Vector

Price = tuple[float, int]
CPU_WEIGHT = 0.001  # of the time of work that holds no device


class Taken:
    """The chunks of victims taken so far, by gang and by node."""

    def __init__(self) -> None:
        self._by_gang: dict[int, list[PodTask]] = {}
        self._on_node: dict[int, dict[int, None]] = {}  # gangs with a task there, in the order they came
        self._place: dict[int, int] = {}

    def add(self, chunk: Iterable[PodTask]) -> None:
        """One more chunk."""
        for task in chunk:
            gang = id(task.gang)
            self._place.setdefault(gang, len(self._place))
            self._by_gang.setdefault(gang, []).append(task)
            if task.node is not None:
                self._on_node.setdefault(task.node.index, {})[gang] = None

    def of_node(self, node: PodNode) -> list[PodTask]:
        """All the tasks taken from every gang that lost one on the node, in the order the gangs were taken."""
        gangs = sorted(self._on_node.get(node.index, ()), key=self._place.__getitem__)
        return [task for gang in gangs for task in self._by_gang[gang]]


class Entry(msgspec.Struct, frozen=True):
    """A gang that could lose something: its place in the leaf, the tasks it has left, and what the first chunk frees."""

    key: Key
    gang: Gang
    left: list[PodTask]
    frees: Vector


class VictimPool:
    """All gangs that may be interrupted and run, in order, by leaf; kept up to date while an action goes on."""

    def __init__(self, session: PodSession) -> None:
        self.session = session
        self._gangs: dict[int, list[Gang]] = {}
        for gang in session.gangs:
            own = not session.tree.children[gang.leaf]
            if own and gang.preemptible and any(task.here for task in gang.tasks):
                self._gangs.setdefault(gang.leaf, []).append(gang)
        self._entries: dict[int, list[Entry]] = {}

    def leaves(self) -> list[int]:
        """Where somebody could lose something."""
        return list(self._gangs)

    def entries(self, leaf: int) -> list[Entry]:
        """The gangs of a leaf, who gives first in front."""
        found = self._entries.get(leaf)
        if found is None:
            made = (_entry(gang, _takeable(gang)) for gang in self._gangs.get(leaf, ()))
            found = self._entries[leaf] = sorted((entry for entry in made if entry.left), key=lambda entry: entry.key)
        return found

    def changed(self, tasks: Iterable[PodTask]) -> None:
        """These tasks were evicted or promised a place for good."""
        for leaf in {task.gang.leaf for task in tasks}:
            self._entries.pop(leaf, None)


class Victims(msgspec.Struct, frozen=True):
    """Those of a pool that may be taken for one gang."""

    pool: VictimPool
    leaves: tuple[int, ...]
    may_lose: Callable[[Gang], bool]

    def entries(self, leaf: int) -> Iterator[Entry]:
        """Of one leaf, in order."""
        return (entry for entry in self.pool.entries(leaf) if self.may_lose(entry.gang))


def victim_chunks(session: PodSession, victims: Victims, recorded: Sequence[PodTask]) -> Iterator[list[PodTask]]:
    """What is taken next, as long as something is left; `recorded` counts as taken."""
    known = {id(task) for task in recorded}
    touched = {id(task.gang) for task in recorded}
    ledger = session.ledger.copy()
    for task in recorded:
        ledger.add(task.gang.leaf, task.charged, task.gang.preemptible, -1)
    order: QueueOrder[tuple[Entry, bool]] = QueueOrder(
        ledger, session.shares, session.total, reverse=True, facts=session.facts
    )
    streams = {leaf: victims.entries(leaf) for leaf in victims.leaves}

    def next_of(leaf: int) -> None:
        """The front of the leaf's stream is always in the order; what is left of a gang may come before it or after."""
        for entry in streams[leaf]:
            if id(entry.gang) not in touched:
                order.push(leaf, entry.key, (entry, True), entry.frees)
                return
            left = _entry(entry.gang, [task for task in entry.left if id(task) not in known])
            if left.left:  # what follows may come first now
                order.push(leaf, left.key, (left, False), left.frees)

    for leaf in victims.leaves:
        next_of(leaf)
    while len(order):
        leaf, (entry, streamed) = order.pop()
        if streamed:
            next_of(leaf)
        chunk = next_to_go(entry.left)
        if len(chunk) < len(entry.left):
            taken = {id(task) for task in chunk}
            rest = _entry(entry.gang, [task for task in entry.left if id(task) not in taken])
            order.push(leaf, rest.key, (rest, False), rest.frees)
        yield chunk


def _takeable(gang: Gang) -> list[PodTask]:
    """What runs; nothing of a gang that was promised something: with the rest gone, the promise would make no sense."""
    if any(task.target is not None for task in gang.tasks):
        return []
    return [task for task in gang.tasks if task.here]


def _entry(gang: Gang, left: list[PodTask]) -> Entry:
    if not left:
        return Entry((), gang, left, ZERO)
    key = (float(gang.priority), -float(_fullness(left)), -float(gang.rank))
    return Entry(key, gang, left, held(next_to_go(left)))


def nodes_of(tasks: Iterable[PodTask]) -> list[PodNode]:
    """Their nodes, each once."""
    return list({task.node.index: task.node for task in tasks if task.node is not None}.values())


def lost_of(tasks: Iterable[PodTask]) -> list[PodTask]:
    """Those that were evicted and have no other place."""
    return [task for task in tasks if task.evicted and task.target is None]


def price_of(session: PodSession, lost: Iterable[PodTask]) -> Price:
    """What it costs to end tasks: device-seconds to be done again, then gangs hit."""
    seconds = 0.0
    gangs: set[int] = set()
    for task in lost:
        weight = task.charged[2] if task.ask.needs_gpu else CPU_WEIGHT
        seconds += weight * (task.gang.ran_s + session.policy.restart_s)
        gangs.add(id(task.gang))
    return seconds, len(gangs)


def cheaper_singles(
    session: PodSession, victims: Victims, lost: Sequence[PodTask], devices: float
) -> list[list[PodTask]]:
    """One chunk of one gang that would free `devices` for less than `lost` costs, the cheapest first.

    Of the queues that `lost` is taken from, and of no higher priority there: which queue pays is a matter of shares.
    """
    least = price_of(session, lost)
    lowest: dict[int, int] = {}
    for task in lost:
        lowest[task.gang.leaf] = min(task.gang.priority, lowest.get(task.gang.leaf, task.gang.priority))
    found: list[tuple[Price, int, list[PodTask]]] = []
    for leaf, priority in lowest.items():
        for entry in victims.entries(leaf):
            if entry.gang.priority <= priority and entry.frees[2] >= devices:
                chunk = next_to_go(entry.left)
                price = price_of(session, chunk)
                if price < least:
                    found.append((price, -entry.gang.rank, chunk))
    found.sort(key=lambda entry: entry[:2])
    return [chunk for _, _, chunk in found]


def without_one(session: PodSession, taken: Sequence[PodTask], lost: Sequence[PodTask]) -> list[list[PodTask]]:
    """`taken` without one of the gangs that lose something, the dearest left out first."""
    gangs = {id(task.gang): task.gang for task in lost}
    if len(gangs) < 2:
        return []
    prices = {key: price_of(session, [task for task in lost if task.gang is gang]) for key, gang in gangs.items()}
    return [
        [task for task in taken if task.gang is not gangs[key]]
        for key in sorted(gangs, key=lambda key: prices[key], reverse=True)
    ]


def _fullness(left: Sequence[PodTask]) -> int:
    counts: dict[int, int] = {}
    for task in left:
        counts[id(task.pods)] = counts.get(id(task.pods), 0) + 1
    spare = [counts[id(task.pods)] - task.pods.minimum for task in left]
    if min(spare) < 0:
        return 0
    return 2 if max(spare) > 0 else 1
