"""The rules about gangs once more, read word by word: nothing is skipped, kept or searched cleverly, so all of it is slow.

What the scheduler decides is compared with this. One pass of the policy `kai` over whole devices, CPUs and memory: fair shares
once, then the actions of the case. There are no parts of devices and no topologies here.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from slurmbridge.sim.case_file import Case
from tests.sched.plain_queues import NONE, SLIGHTLY, Amounts, Gang, Order, Queues, Task, gang_of, inside, less, summed

MOST_MOVED = 16  # chunks of victims of one consolidation
Item = tuple[Order, Amounts, Gang]
Saved = list[tuple[str, str | None, bool, str | None]]
Rule = Callable[[Gang, Amounts, list[Task], dict[bool, dict[str, Amounts]]], bool]


class World:
    """The case, and what became of it so far."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.queues = Queues(case.queues)
        self.gangs = [gang_of(row, age) for age, row in enumerate(case.jobs)]
        self.tasks = [task for gang in self.gangs for task in gang.tasks]
        self.total = summed((node.cpu_milli, node.memory_bytes, float(node.gpus)) for node in case.nodes)
        wanted = [task for task in self.tasks if task.active or task.waits]
        self.queues.divide(self.total, {name: self.of(name, wanted) for name in self.queues.rows})

    def of(self, name: str, tasks: Sequence[Task]) -> Amounts:
        """What those of the tasks ask for that belong to the queue or one below it."""
        return summed(task.ask for task in tasks if name in self.queues.path(task.gang.row.queue))

    def held(self, name: str, *, fixed: bool = False) -> Amounts:
        return self.of(name, [task for task in self.tasks if task.active and not (fixed and task.gang.row.preemptible)])

    def saved(self) -> Saved:
        return [(task.status, task.node, task.evicted, task.target) for task in self.tasks]

    def put_back(self, saved: Saved) -> None:
        for task, state in zip(self.tasks, saved, strict=True):
            task.status, task.node, task.evicted, task.target = state

    # ------------------------------------------------------------------ placing
    def room(self, name: str) -> tuple[list[float], list[float]]:
        """CPU, memory, devices and pods of a node: idle now, and once everybody has left who is leaving."""
        node = next(node for node in self.case.nodes if node.name == name)
        now = [node.cpu_milli, node.memory_bytes, float(node.gpus), float(node.max_pods)]
        later = list(now)
        for task in self.tasks:
            here = task.node == name and task.status != "pending"
            stays = here and task.status != "leaving" and not task.evicted
            for place, amount in enumerate((*task.ask, 1.0)):
                now[place] -= amount * here
                later[place] -= amount * (stays + (task.target == name))
        return now, later

    def best(self, task: Task, nodes: Sequence[str]) -> tuple[str, bool] | None:
        """The node for the task, and whether there is room on it now."""
        found: list[tuple[Order, str, bool]] = []
        wanted = (*task.ask, 1.0)
        for place, node in enumerate(self.case.nodes):
            now, later = self.room(node.name)
            if node.name not in nodes or any(a > b + SLIGHTLY for a, b in zip(wanted, later, strict=True)):
                continue
            at_once = all(a <= b + SLIGHTLY for a, b in zip(wanted, now, strict=True))
            wasted = bool(node.gpus) and not task.ask[2]
            found.append(((not at_once, wasted, later[2 if task.ask[2] else 0], place), node.name, at_once))
        return min(found)[1:] if found else None

    def allowed(self, gang: Gang, ask: Amounts) -> bool:
        """Limits, and quotas for what is fixed, here and above."""
        for name in self.queues.path(gang.row.queue):
            for resource in (each for each in range(3) if ask[each] > 0):
                held, fixed = self.held(name)[resource], self.held(name, fixed=True)[resource]
                if held + ask[resource] > self.queues.limit[name][resource] + SLIGHTLY:
                    return False
                if not gang.row.preemptible and fixed + ask[resource] > self.queues.quota[name][resource] + SLIGHTLY:
                    return False
        return True

    def place(self, gang: Gang, chunk: Sequence[Task], nodes: Sequence[str], *, promise: bool) -> bool:
        """All or nothing."""
        before = self.saved()
        if not self.allowed(gang, summed(task.ask for task in chunk)):
            return False
        for task in (each for name in gang.least for each in chunk if each.set == name):
            found = self.best(task, nodes)
            if found is None:
                self.put_back(before)
                return False
            node, at_once = found
            if task.evicted and task.node == node:
                task.evicted = False
            elif promise or not at_once:
                task.target = node
            else:
                task.status, task.node = "started", node
        for name, least in () if promise else gang.least.items():
            waiting = sum(task.target is not None for task in gang.tasks if task.set == name)
            if waiting and gang.running(name) - waiting < least:
                for task in (task for task in gang.tasks if task.status == "started"):
                    task.status, task.node, task.target = "pending", None, task.node
        return True

    # ------------------------------------------------------------------ actions
    def run(self) -> dict[str, list[tuple[str, str | None]]]:
        """Job -> decision and node of each task."""
        for name in self.case.session.actions:
            {"allocate": self.allocate, "reclaim": self.reclaim, "preempt": self.preempt,
             "consolidation": self.consolidation}[name]()  # fmt: skip
        return {gang.row.name: [task.fate for task in gang.tasks] for gang in self.gangs}

    def line(self) -> Line:
        line = Line(self)
        for gang in self.gangs:
            line.add_step(gang)
        return line

    def allocate(self) -> None:
        for gang in (line := self.line()):
            if self.place(gang, gang.chunk(), [node.name for node in self.case.nodes], promise=False):
                line.add_step(gang)

    def consolidation(self) -> None:
        """Everybody who can be moved, wherever he is; nobody may lose anything."""
        failed: list[Counter[object]] = []
        for gang in self.line():
            free = sum(max(0.0, self.room(node.name)[1][2]) for node in self.case.nodes)
            if not gang.row.preemptible or gang.ask[2] > free + SLIGHTLY or hopeless(gang, failed):
                continue
            others = [other for other in self.gangs if other is not gang]
            if not self.solve(gang, others, lambda _gang, _ask, lost, _held: not lost, MOST_MOVED):
                failed.append(gang.kind())

    def reclaim(self) -> None:
        """Other queues pay for who stays inside his share."""
        failed: dict[str, list[Counter[object]]] = {}
        for gang in self.line():
            queue = gang.row.queue
            fixed = summed([self.held(queue, fixed=True), gang.ask])
            if not inside(summed([self.held(queue), gang.ask]), self.queues.share[queue]):
                continue
            if not gang.row.preemptible and not inside(fixed, self.queues.quota[queue]):
                continue
            others = [other for other in self.gangs if other.row.queue != queue]
            known = failed.setdefault(queue, [])
            if not hopeless(gang, known) and not self.solve(gang, others, self.may_take):
                known.append(gang.kind())

    def preempt(self) -> None:
        """Lower priorities of the same queue pay."""
        failed: dict[str, list[Counter[object]]] = {}
        for gang in self.line():
            queue, known = gang.row.queue, failed.setdefault(gang.row.queue, [])
            lower = [each for each in self.gangs if each.row.queue == queue and each.row.priority < gang.row.priority]
            fixed = not gang.row.preemptible and not self.allowed_fixed(gang)
            if not fixed and not hopeless(gang, known) and not self.solve(gang, lower, lambda *_: True):
                known.append(gang.kind())

    def allowed_fixed(self, gang: Gang) -> bool:
        for name in self.queues.path(gang.row.queue):
            then = summed([self.held(name, fixed=True), gang.ask])
            if any(gang.ask[each] > 0 and then[each] > self.queues.quota[name][each] + SLIGHTLY for each in range(3)):
                return False
        return True

    # ------------------------------------------------------------------ who makes room
    def solve(self, gang: Gang, others: Sequence[Gang], rule: Rule, most: int | None = None) -> bool:
        """Room for one task more at a time; nothing is changed where it is not found."""
        start, chunk = self.saved(), gang.chunk()
        nodes = {
            node.name
            for node in self.case.nodes
            if self.room(node.name)[1][2] > SLIGHTLY or not all(task.ask[2] for task in gang.tasks)
        }
        held = {fixed: {name: self.held(name, fixed=fixed) for name in self.queues.rows} for fixed in (False, True)}
        recorded: list[Task] = []

        def judge(lost: list[Task], ask: Amounts) -> bool:
            return rule(gang, ask, lost, held)

        for count in range(1, len(chunk) + 1):
            found = self.search(gang, chunk[:count], others, recorded, nodes, judge, most)
            if found is None:
                self.put_back(start)
                return False
            if count < len(chunk):
                recorded = [task for task in found if task.evicted]
                self.put_back(start)
        return True

    def search(
        self, gang: Gang, part: list[Task], others: Sequence[Gang], recorded: list[Task], nodes: set[str],
        judge: Callable[[list[Task], Amounts], bool], most: int | None,
    ) -> list[Task] | None:  # fmt: skip
        """Those taken for fewer tasks alone, then one chunk of victims more at a time, on each node of the latest."""
        start, taken = self.saved(), list[list[Task]]()
        nodes = nodes | {task.node for task in recorded if task.node}
        if recorded and self.attempt(gang, part, recorded, nodes, judge):
            return recorded
        self.put_back(start)
        for chunk in itertools.islice(self.victims(others, recorded), most):
            taken.append(chunk)
            nodes = nodes | {task.node for task in chunk if task.node}
            for home in dict.fromkeys(task.node for task in chunk):
                gangs = dict.fromkeys(task.gang for each in taken for task in each)
                hit = [each for each in gangs if any(t.node == home for c in taken for t in c if t.gang is each)]
                evicted = recorded + [t for each in hit for c in taken for t in c if t.gang is each]
                verdict = self.attempt(gang, part, evicted, nodes, judge)
                if verdict:
                    return evicted
                self.put_back(start)
                if verdict is False:
                    break
        return None

    def victims(self, others: Sequence[Gang], recorded: list[Task]) -> Iterator[list[Task]]:
        """The chunks in the order they would give way."""
        line, left = Line(self, gone=recorded), dict[Gang, list[Task]]()

        def add(gang: Gang) -> None:
            if left[gang]:
                line.add(gang.row.queue, gang.giving(left[gang]), NONE, gang)

        for gang in others:
            if gang.row.preemptible and not any(task.target for task in gang.tasks):
                here = [task for task in gang.tasks if task.status == "running" and not task.evicted]
                left[gang] = [task for task in here if task not in recorded]
                add(gang)
        for gang in line:
            chunk = gang.next_to_go(left[gang])
            left[gang] = [task for task in left[gang] if task not in chunk]
            line.gone += chunk
            add(gang)
            yield chunk

    def attempt(
        self, gang: Gang, part: list[Task], evicted: list[Task], nodes: set[str],
        judge: Callable[[list[Task], Amounts], bool],
    ) -> bool | None:  # fmt: skip
        """Evict, place all again in the normal order, ask the rule. None: there is no room."""
        for task in evicted:
            task.evicted = True
        line, ask = Line(self), summed(task.ask for task in part)
        line.add(gang.row.queue, gang.order(), ask, gang)
        back = {each: each.step_back(evicted) for each in dict.fromkeys(task.gang for task in evicted)}
        for each, step in back.items():
            line.add(each.row.queue, each.order(), summed(task.ask for task in step), each)
        for each in line:
            if each is gang:
                if not self.place(gang, part, list(nodes), promise=True):
                    return None
            elif self.place(each, each.step_back(evicted), list(nodes), promise=True) and each.step_back(evicted):
                step = each.step_back(evicted)
                line.add(each.row.queue, each.order(), summed(task.ask for task in step), each)
        return judge([task for task in evicted if task.evicted and task.target is None], ask)

    def may_take(self, gang: Gang, ask: Amounts, lost: list[Task], held: dict[bool, dict[str, Amounts]]) -> bool:
        """Is every piece taken from a queue above its share, or above its quota for one inside his, and then the order kept?"""
        queues, left = self.queues, dict(held[False])
        up, losers = queues.path(gang.row.queue), set[str]()
        used = {each for each in range(3) if ask[each] > 0}
        for leaf, piece in (found for each in dict.fromkeys(task.gang for task in lost) for found in each.pieces(lost)):
            down = queues.path(leaf)
            mine, theirs = next(pair for pair in zip(reversed(up), reversed(down), strict=False) if pair[0] != pair[1])
            within = inside(summed([held[False][mine], ask]), queues.quota[mine])
            above_quota = not inside(left[theirs], queues.quota[theirs])
            if inside(left[theirs], queues.may_hold(theirs)) and not (within and above_quota):
                return False
            losers.update(down)
            left.update({name: less(left[name], piece) for name in down})
            used |= {each for each in range(3) if piece[each] > 0}
        for name in up:
            if not gang.row.preemptible and not inside(summed([held[True][name], ask]), queues.quota[name]):
                return False
            for sibling in losers.intersection(queues.children[queues.rows[name].parent]) - {name}:
                for each in used:
                    share = queues.share[sibling][each]
                    ours = saturation(left[name][each] + ask[each], queues.share[name][each])
                    if ours > 1 + SLIGHTLY and share > 0 and ours >= saturation(left[sibling][each], share) - SLIGHTLY:
                        return False
        return True


class Line:
    """Whose turn it is. How a queue stands is looked at again when something of it was taken, not when others changed.

    `gone`: for those who give way, the other way round: what was taken already.
    """

    def __init__(self, world: World, *, gone: Sequence[Task] | None = None) -> None:
        self.world = world
        self.giving, self.gone = gone is not None, list(gone or ())
        self.items: dict[str, list[Item]] = {}
        self.standing: dict[str, Order] = {}
        self.stale: set[str] = set()

    def add(self, leaf: str, order: Order, chunk: Amounts, gang: Gang) -> None:
        self.items.setdefault(leaf, []).append((order, chunk, gang))
        self.stale.add(leaf)

    def add_step(self, gang: Gang) -> None:
        if gang.chunk():
            self.add(gang.row.queue, gang.order(), gang.ask, gang)

    def __iter__(self) -> Iterator[Gang]:
        queues = self.world.queues
        while True:
            stale = {above for leaf in self.stale for above in queues.path(leaf)}
            for name in sorted(stale, key=lambda each: -len(queues.path(each))):
                if (front := self.front(name)) is not None:
                    self.standing[name] = self.look(name, front[1])
            self.stale.clear()
            if (found := self.front(None)) is None:
                return
            self.items[found[2].row.queue].remove(found)
            self.stale.add(found[2].row.queue)
            yield found[2]

    def front(self, name: str | None) -> Item | None:
        """The first of a queue and all below it; None: of all there are."""
        if name is not None and self.items.get(name):
            return min(self.items[name], key=lambda item: item[0])
        below = [child for child in self.world.queues.children.get(name, []) if self.front(child)]
        return self.front(min(below, key=lambda child: self.standing[child])) if below else None

    def look(self, name: str, chunk: Amounts) -> Order:
        """How the queue stands with its first chunk: smaller is sooner."""
        queues, rank = self.world.queues, self.world.queues.rows[name].creation_rank
        held = less(self.world.held(name), self.world.of(name, self.gone))
        then, most = summed([held, chunk]), queues.may_hold(name)
        bounds = [whole if each == math.inf else each for each, whole in zip(most, self.world.total, strict=True)]

        def dominant(amounts: Amounts) -> float:
            return round(max(a / b if b > 0 else a * 1000 for a, b in zip(amounts, bounds, strict=True)), 8)

        order = (
            all(have > share + SLIGHTLY for have, share in zip(held, queues.share[name], strict=True)),
            not inside(then, queues.quota[name]),
            -queues.rows[name].priority,
            any(each == 0 and amount > SLIGHTLY for each, amount in zip(most, then, strict=True)),
            dominant(then),
            dominant(held),
            most[2],  # CPU and memory are bounded for nobody here
            rank,
            sorted(queues.rows).index(name),
        )
        return tuple(-each for each in order) if self.giving else order


def hopeless(gang: Gang, failed: list[Counter[object]]) -> bool:
    """Did somebody who asks for the same or less fail?"""
    return any(set(kind) == set(gang.kind()) and kind <= gang.kind() for kind in failed)


def saturation(held: float, share: float) -> float:
    return held / share if share > 0 else math.inf if held > SLIGHTLY else 0.0
