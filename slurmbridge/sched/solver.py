"""Who has to make room so that a gang can start, if anybody can?

The gang's tasks are solved one more at a time, so that what did not work for the first is not tried for all. For each number
the victims that were found before are tried first, then one more chunk of a victim at a time, in the order of the queues
reversed. In every scenario the victims of one node are evicted, then the gang and all victims are placed again in the normal
order: a victim that fits elsewhere is moved, one that fits where it was stays. What is left without a place is what the gang
would cost; the action's own rule says whether it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.pod_allocate import allocate_gang
from slurmbridge.sched.pod_chunks import asked, held, next_to_go, next_to_start
from slurmbridge.sched.pod_fit import free_devices
from slurmbridge.sched.pod_queue import key_of
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang, PodNode, PodTask
from slurmbridge.sched.queue_order import QueueOrder
from slurmbridge.sched.queues import TOLERANCE, Vector


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A way to start a gang, as it is shown to the rule of the action."""

    gang: Gang
    ask: Vector  # of the tasks placed
    before: Ledger  # how the queues stood before anybody lost anything
    lost: list[PodTask]  # evicted and without another place, in the order they were taken
    moved: list[PodTask]  # placed elsewhere


Rule = Callable[[Scenario], bool]
CHEAPER_TRIES = 32  # other sets of victims that are looked at, at most


def solve(session: PodSession, gang: Gang, victims: Sequence[Gang], rule: Rule, most: int | None = None) -> bool:
    """Evict and place so that the next step of `gang` is promised room. On failure nothing is changed.

    `victims`: gangs that may lose tasks; `most`: how many chunks of them a scenario may hold.
    """
    chunk = next_to_start(gang)
    if not chunk:
        return False
    start, before = session.mark(), session.ledger.copy()
    recorded: list[PodTask] = []
    for count in range(1, len(chunk) + 1):
        search = _Search(session, gang, chunk[:count], recorded, before)
        if not search.run(victims, rule, most):
            session.restore(start)
            return False
        if count < len(chunk):
            recorded = [task for task in search.taken if task.evicted]
            session.restore(start)
        elif session.policy.cheapest_victims:
            search.cheapen(victims, rule, start)
    return True


class _Search:
    """The scenarios for one number of tasks."""

    def __init__(
        self, session: PodSession, gang: Gang, tasks: Sequence[PodTask], recorded: list[PodTask], before: Ledger
    ) -> None:
        self.session = session
        self.gang = gang
        self.tasks = tasks
        self.recorded = recorded
        self.before = before
        self.ask = asked(tasks, session.device_mib)
        self.taken: list[PodTask] = []  # evicted in the scenario that is tried, in order
        self.nodes = _feasible(session, gang)
        for task in recorded:
            self._open(task.node)
        self.free = free_devices(session.nodes)

    def _open(self, node: PodNode | None) -> None:
        if node is not None:
            self.nodes[node.index] = node

    def run(self, victims: Sequence[Gang], rule: Rule, most: int | None) -> bool:
        """Try scenarios until one is valid; it is then what the session shows."""
        mark = self.session.mark()
        if self.recorded and self._try(self.recorded, rule) is True:
            return True
        self.session.restore(mark)
        chunks: list[list[PodTask]] = []
        gained = held(self.recorded)[2] + self.free
        for chunk in _victim_chunks(self.session, victims, self.recorded):
            if most is not None and len(chunks) >= most:
                return False
            chunks.append(chunk)
            gained += held(chunk)[2]
            if gained < self.ask[2] - TOLERANCE:
                continue
            for node in _nodes_of(chunk):
                self._open(node)
                extra = _on_node(chunks, node)
                verdict = self._try([*self.recorded, *extra], rule)
                if verdict is True:
                    return True
                self.session.restore(mark)
                if verdict is False:
                    break
        return False

    def cheapen(self, victims: Sequence[Gang], rule: Rule, start: tuple[int, int]) -> None:
        """Replace the victims found by cheaper ones of the same queues and no higher priority, if the rule allows.

        Tried are: one chunk of a single gang, the cheapest first; then the victims found without one of their gangs.
        """
        lost = _lost(self.taken)
        if not lost:
            return
        best, least = list(self.taken), cost(self.session, lost)
        fewer = self._without_one(lost)
        self.session.restore(start)
        for evict in [*self._single_victims(victims, lost, least), *fewer]:
            self.session.restore(start)
            for node in _nodes_of(evict):
                self._open(node)
            if self._try(evict, rule) is True:
                price = cost(self.session, _lost(self.taken))
                if price < least:
                    best, least = list(evict), price
                    break
        self.session.restore(start)
        self._try(best, rule)

    def _single_victims(
        self, victims: Sequence[Gang], lost: Sequence[PodTask], least: tuple[float, int]
    ) -> list[list[PodTask]]:
        lowest: dict[int, int] = {}
        for task in lost:
            gang = task.gang
            lowest[gang.leaf] = min(gang.priority, lowest.get(gang.leaf, gang.priority))
        found: list[tuple[tuple[float, int], int, list[PodTask]]] = []
        for gang in victims:
            if gang.priority <= lowest.get(gang.leaf, gang.priority - 1):
                chunk = next_to_go([task for task in gang.tasks if task.here])
                price = cost(self.session, chunk)
                if price < least and self.free + held(chunk)[2] >= self.ask[2] - TOLERANCE:
                    found.append((price, -gang.rank, chunk))
        found.sort(key=lambda entry: entry[:2])
        return [chunk for _, _, chunk in found[:CHEAPER_TRIES]]

    def _without_one(self, lost: Sequence[PodTask]) -> list[list[PodTask]]:
        gangs = {id(task.gang): task.gang for task in lost}
        if len(gangs) < 2:
            return []
        by_price = sorted(
            gangs.values(),
            key=lambda gang: cost(self.session, [task for task in lost if task.gang is gang]),
            reverse=True,
        )
        return [[task for task in self.taken if task.gang is not gang] for gang in by_price[:CHEAPER_TRIES]]

    def _try(self, evict: Sequence[PodTask], rule: Rule) -> bool | None:
        """True: valid. False: the gang has room, but the rule forbids it. None: no room."""
        session = self.session
        self.taken = list(evict)
        for task in evict:
            session.evict(task)
        if not self._place_again():
            return None
        lost = _lost(self.taken)
        moved = [task for task in self.taken if task.evicted and task.target is not None]
        return rule(Scenario(gang=self.gang, ask=self.ask, before=self.before, lost=lost, moved=moved))

    def _place_again(self) -> bool:
        """The gang and its victims in the normal order, as promises only. Does the gang have its place?"""
        session = self.session
        order: QueueOrder[Gang] = QueueOrder(session.ledger, session.shares, session.total)
        order.push(self.gang.leaf, key_of(self.gang), self.gang, self.ask)
        waiting: dict[int, list[PodTask]] = {}
        owners: dict[int, Gang] = {}
        for task in self.taken:
            waiting.setdefault(id(task.gang), []).append(task)
            owners[id(task.gang)] = task.gang
        for key, owner in owners.items():
            step = _back_again(waiting[key])
            order.push(owner.leaf, key_of(owner), owner, asked(step, session.device_mib))
        nodes = [self.nodes[index] for index in sorted(self.nodes)]
        placed = False
        while len(order):
            leaf, gang = order.pop()
            if gang is self.gang and not placed:
                if not allocate_gang(session, gang, nodes, promise=True, tasks=self.tasks):
                    return False
                placed = True
            elif id(gang) in waiting:
                step = _back_again(waiting[id(gang)])
                if allocate_gang(session, gang, nodes, promise=True, tasks=step):
                    left = [task for task in waiting[id(gang)] if task.evicted and task.target is None]
                    waiting[id(gang)] = left
                    if left:
                        order.push(leaf, key_of(gang), gang, asked(_back_again(left), session.device_mib))
            order.touch(leaf)
        return placed


def _lost(tasks: Iterable[PodTask]) -> list[PodTask]:
    return [task for task in tasks if task.evicted and task.target is None]


def cost(session: PodSession, lost: Iterable[PodTask]) -> tuple[float, int]:
    """What it costs to end tasks: device-seconds to be done again (CPU-only work counts a thousandth), then gangs hit."""
    seconds = 0.0
    gangs: set[int] = set()
    for task in lost:
        weight = task.charged[2] if task.ask.needs_gpu else 0.001
        seconds += weight * (task.gang.ran_s + session.policy.restart_s)
        gangs.add(id(task.gang))
    return seconds, len(gangs)


def _feasible(session: PodSession, gang: Gang) -> dict[int, PodNode]:
    """Nodes on which the gang could find something: for one that needs devices throughout, those with any to come."""
    if not all(task.ask.needs_gpu for task in gang.tasks):
        return {node.index: node for node in session.nodes}
    return {node.index: node for node in session.nodes if free_devices([node]) > TOLERANCE}


def _back_again(tasks: Sequence[PodTask]) -> list[PodTask]:
    """Of evicted tasks of one gang, those to place in one step: what the minimum lacks, then one by one."""
    left = sorted(tasks, key=lambda task: (-task.order, task.index))
    step: list[PodTask] = []
    missing: dict[int, int] = {}
    for task in left:
        lacking = missing.setdefault(id(task.pods), task.pods.minimum - task.pods.active)
        if lacking > 0:
            step.append(task)
            missing[id(task.pods)] -= 1
    return step or left[:1]


def _victim_chunks(
    session: PodSession, victims: Iterable[Gang], recorded: Sequence[PodTask]
) -> Iterator[list[PodTask]]:
    """What is taken next, as long as something is left, in the order of the queues reversed."""
    known = {id(task) for task in recorded}
    ledger = session.ledger.copy()
    for task in recorded:
        ledger.add(task.gang.leaf, task.charged, task.gang.preemptible, -1)
    order: QueueOrder[tuple[Gang, list[PodTask]]] = QueueOrder(ledger, session.shares, session.total, reverse=True)

    def push(gang: Gang, left: list[PodTask]) -> None:
        if left:
            key = (float(gang.priority), -float(_fullness(left)), -float(gang.rank))
            order.push(gang.leaf, key, (gang, left), held(next_to_go(left)))

    for gang in victims:
        push(gang, [task for task in gang.tasks if task.here and id(task) not in known])
    for _, (gang, left) in order:
        chunk = next_to_go(left)
        taken = {id(task) for task in chunk}
        push(gang, [task for task in left if id(task) not in taken])
        yield chunk


def _fullness(left: Sequence[PodTask]) -> int:
    counts: dict[int, int] = {}
    for task in left:
        counts[id(task.pods)] = counts.get(id(task.pods), 0) + 1
    spare = [counts[id(task.pods)] - task.pods.minimum for task in left]
    if min(spare) < 0:
        return 0
    return 2 if max(spare) > 0 else 1


def _nodes_of(tasks: Iterable[PodTask]) -> list[PodNode]:
    """Their nodes, each once."""
    return list({task.node.index: task.node for task in tasks if task.node is not None}.values())


def _on_node(chunks: Iterable[Sequence[PodTask]], node: PodNode) -> list[PodTask]:
    """All the tasks taken so far from every gang that has one on the node."""
    taken: dict[int, list[PodTask]] = {}
    for chunk in chunks:
        for task in chunk:
            taken.setdefault(id(task.gang), []).append(task)
    return [task for tasks in taken.values() if any(each.node is node for each in tasks) for task in tasks]
