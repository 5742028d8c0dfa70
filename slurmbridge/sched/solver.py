"""Who has to make room so that a gang can start, if anybody can?

The gang's tasks are solved one more at a time, so that what did not work for the first is not tried for all. For each number
the victims that were found before are tried first, then one more chunk of a victim at a time, in the order of the queues
reversed. In every scenario the victims of one node are evicted, then the gang and all victims are placed again in the normal
order: a victim that fits elsewhere is moved, one that fits where it was stays. What is left without a place is what the gang
would cost; the action's own rule says whether it may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.pod_allocate import allocate_gang
from slurmbridge.sched.pod_chunks import asked, held, next_to_start
from slurmbridge.sched.pod_fit import copies
from slurmbridge.sched.pod_node import Ask
from slurmbridge.sched.pod_queue import key_of
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang, PodTask
from slurmbridge.sched.queue_order import QueueOrder
from slurmbridge.sched.queues import TOLERANCE, Vector
from slurmbridge.sched.victims import (
    Taken,
    Victims,
    cheaper_singles,
    lost_of,
    nodes_of,
    price_of,
    victim_chunks,
    without_one,
)

CHEAPER_TRIES = 32  # other sets of victims of either kind that are looked at, at most


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A way to start a gang, as it is shown to the rule of the action."""

    gang: Gang
    ask: Vector  # of the tasks placed
    before: Ledger  # how the queues stood before anybody lost anything
    lost: list[PodTask]  # evicted and without another place, in the order they were taken
    moved: list[PodTask]  # placed elsewhere


Rule = Callable[[Scenario], bool]


def solve(session: PodSession, gang: Gang, victims: Victims, rule: Rule, most: int | None = None) -> bool:
    """Evict and place so that the next step of `gang` is promised room. On failure nothing is changed.

    `victims`: who may lose tasks; `most`: how many chunks of them a scenario may hold.
    """
    chunk = next_to_start(gang)
    if not chunk:
        return False
    start = session.mark()
    ground = _Ground(session, gang)
    recorded: list[PodTask] = []
    for count in range(1, len(chunk) + 1):
        search = _Search(session, gang, chunk[:count], recorded, ground)
        if not search.run(victims, rule, most):
            session.restore(start)
            return False
        if count < len(chunk):
            recorded = [task for task in search.taken if task.evicted]
            session.restore(start)
            continue
        if session.policy.cheapest_victims:
            search.cheapen(victims, rule, start)
        victims.pool.changed([*search.taken, *chunk])
    return True


class _Ground:
    """How things stand before anybody is evicted: the same for every number of tasks."""

    def __init__(self, session: PodSession, gang: Gang) -> None:
        self.session = session
        self.before = session.ledger.copy()
        free = session.columns.free_devices()
        self.free = float(free.sum())
        self.feasible = session.nodes
        if all(task.ask.needs_gpu for task in gang.tasks):  # where anything is to come at all
            self.feasible = [session.nodes[index] for index in (free > TOLERANCE).nonzero()[0].tolist()]
        self._copies: dict[Ask, list[int]] = {}

    def copies(self, ask: Ask) -> list[int]:
        """How many such tasks each node holds without any victim. Only before one is evicted."""
        found = self._copies.get(ask)
        if found is None:
            found = self._copies[ask] = self.session.columns.copies(ask)
        return found


class _Search:
    """The scenarios for one number of tasks."""

    def __init__(
        self, session: PodSession, gang: Gang, tasks: Sequence[PodTask], recorded: list[PodTask], ground: _Ground
    ) -> None:
        self.session = session
        self.gang = gang
        self.tasks = tasks
        self.recorded = recorded
        self.ground = ground
        self.ask = asked(tasks, session.device_mib)
        self.least = asked(tasks, session.largest_mib)[2]  # devices, whatever nodes are chosen
        self.taken: list[PodTask] = []  # evicted in the scenario that is tried, in order
        self.nodes = {node.index: node for node in ground.feasible}
        for node in nodes_of(recorded):
            self.nodes[node.index] = node
        self.largest = max(tasks, key=lambda task: (task.ask.gpus, task.ask.share, task.ask.mib, task.ask.cpu)).ask
        self.needed = sum(task.ask == self.largest for task in tasks)
        self.held = ground.copies(self.largest)
        self.holds = sum(self.held)

    def run(self, victims: Victims, rule: Rule, most: int | None) -> bool:
        """Try scenarios until one is valid; it is then what the session shows."""
        mark = self.session.mark()
        if self.recorded and self._try(self.recorded, rule) is True:
            return True
        self.session.restore(mark)
        taken, count = Taken(), 0
        gained = held(self.recorded)[2] + self.ground.free
        for chunk in victim_chunks(self.session, victims, self.recorded):
            if most is not None and count >= most:
                return False
            taken.add(chunk)
            count += 1
            gained += held(chunk)[2]
            homes = nodes_of(chunk)
            self.nodes.update((node.index, node) for node in homes)
            if gained < self.least - TOLERANCE:
                continue
            for node in homes:
                verdict = self._try([*self.recorded, *taken.of_node(node)], rule)
                if verdict is True:
                    return True
                self.session.restore(mark)
                if verdict is False:
                    break
        return False

    def cheapen(self, victims: Victims, rule: Rule, start: tuple[int, int]) -> None:
        """Replace the victims found by cheaper ones of the same queues and no higher priority, if the rule allows.

        Tried are: one chunk of a single gang, the cheapest first; then the victims found without one of their gangs.
        """
        session, best, lost = self.session, self.taken, lost_of(self.taken)
        if not lost:
            return
        least = price_of(session, lost)
        fewer = without_one(session, best, lost)
        session.restore(start)
        missing = self.least - self.ground.free - TOLERANCE
        for evict in [*cheaper_singles(session, victims, lost, missing)[:CHEAPER_TRIES], *fewer[:CHEAPER_TRIES]]:
            for node in nodes_of(evict):
                self.nodes[node.index] = node
            if self._try(evict, rule) is True and price_of(session, lost_of(self.taken)) < least:
                return
            session.restore(start)
        self._try(best, rule)

    def _try(self, evict: Sequence[PodTask], rule: Rule) -> bool | None:
        """True: valid. False: the gang has room, but the rule forbids it. None: no room."""
        session = self.session
        self.taken = list(evict)
        for task in evict:
            session.evict(task)
        if not self._may_hold(evict) or not self._place_again():
            return None
        lost = lost_of(self.taken)
        moved = [task for task in self.taken if task.evicted and task.target is not None]
        return rule(Scenario(gang=self.gang, ask=self.ask, before=self.ground.before, lost=lost, moved=moved))

    def _may_hold(self, evicted: Sequence[PodTask]) -> bool:
        """Quickly: could the largest of the tasks have room now that all victims are gone?"""
        more = sum(copies(node, self.largest) - self.held[node.index] for node in nodes_of(evicted))
        return self.holds + more >= self.needed

    def _place_again(self) -> bool:
        """The gang and its victims in the normal order, as promises only. Does the gang have its place?"""
        session = self.session
        order: QueueOrder[Gang] = QueueOrder(session.ledger, session.shares, session.total, facts=session.facts)
        order.push(self.gang.leaf, key_of(self.gang), self.gang, self.ask)
        waiting: dict[int, list[PodTask]] = {}
        for task in self.taken:
            waiting.setdefault(id(task.gang), []).append(task)
        for tasks in waiting.values():
            owner = tasks[0].gang
            order.push(owner.leaf, key_of(owner), owner, asked(_back_again(tasks), session.device_mib))
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
                    left = lost_of(waiting[id(gang)])
                    waiting[id(gang)] = left
                    if left:
                        order.push(leaf, key_of(gang), gang, asked(_back_again(left), session.device_mib))
            order.touch(leaf)
        return placed


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
