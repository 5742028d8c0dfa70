"""Gangs and queues of the rules as they are written: who comes next in a gang, and what each queue deserves.

For `plain_rules`, which says what this is good for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slurmbridge.sim.case_file import JobRow, QueueRow, TaskRow

Amounts = tuple[float, float, float]  # cpu, memory, devices
Order = tuple[float, ...]
NONE: Amounts = (0.0, 0.0, 0.0)
SLIGHTLY = 1e-6


def summed(amounts: Iterable[Amounts]) -> Amounts:
    cpu, memory, devices = NONE
    for each in amounts:
        cpu, memory, devices = cpu + each[0], memory + each[1], devices + each[2]
    return cpu, memory, devices


def less(one: Amounts, two: Amounts) -> Amounts:
    return one[0] - two[0], one[1] - two[1], one[2] - two[2]


def inside(small: Amounts, large: Amounts) -> bool:
    return all(one <= two + SLIGHTLY for one, two in zip(small, large, strict=True))


@dataclass(eq=False)
class Task:
    """A pod. `node`: where it runs; `target`: where it is promised to be."""

    row: TaskRow
    gang: Gang
    set: str
    status: str  # pending, running, started, leaving
    node: str | None
    evicted: bool = False
    target: str | None = None

    @property
    def ask(self) -> Amounts:
        request = self.row.request
        return request.cpu_milli, request.memory_bytes, request.gpus if request.kind == "whole" else 0.0

    @property
    def active(self) -> bool:
        return self.target is not None or (self.status in ("running", "started") and not self.evicted)

    @property
    def waits(self) -> bool:
        return self.status == "pending" and self.target is None

    @property
    def fate(self) -> tuple[str, str | None]:
        """Decision and node, in the words of the cases."""
        if self.target is not None:
            return "move_pipeline" if self.evicted else "pipeline", self.target
        words = {"pending": "stay_pending", "running": "keep", "started": "start", "leaving": "releasing"}
        return "evict" if self.evicted else words[self.status], self.node


@dataclass(eq=False)
class Gang:
    row: JobRow
    age: int  # smaller is older
    least: dict[str, int]  # by pod set
    tasks: list[Task] = field(default_factory=list)

    def running(self, name: str) -> int:
        return sum(task.active for task in self.tasks if task.set == name)

    @property
    def short(self) -> list[str]:
        return [name for name, least in self.least.items() if self.running(name) < least]

    def order(self) -> Order:
        """Higher priority; below the minimum, at it, above it; older."""
        above = any(self.running(name) > least for name, least in self.least.items())
        return -self.row.priority, 0 if self.short else 2 if above else 1, self.age

    def chunk(self) -> list[Task]:
        """The next step: what the sets below their minimum lack, or one task."""
        waiting = {name: [task for task in self.tasks if task.set == name and task.waits] for name in self.least}
        if self.short:
            lacking = {name: self.least[name] - self.running(name) for name in self.short}
            enough = all(len(waiting[name]) >= count for name, count in lacking.items())
            return [task for name, count in lacking.items() for task in waiting[name][:count]] if enough else []
        names = sorted((name for name in self.least if waiting[name]), key=lambda n: self.running(n) / self.least[n])
        return waiting[names[0]][:1] if names else []

    @property
    def ask(self) -> Amounts:
        return summed(task.ask for task in self.chunk())

    def kind(self) -> Counter[object]:
        """What makes two gangs alike, if neither runs."""
        owner = self if any(task.active for task in self.tasks) else None
        return Counter((self.row.preemptible, owner, len(self.least), task.ask) for task in self.chunk())

    # ------------------------------------------------------------------ giving way
    def giving(self, left: list[Task]) -> Order:
        """The order of those who give way, in figures that a line turns round no more."""
        counts = Counter(task.set for task in left)
        spare = [count - self.least[name] for name, count in counts.items()]
        fullness = 0 if min(spare) < 0 else 2 if max(spare) > 0 else 1
        return self.row.priority, -fullness, -self.age

    def next_to_go(self, left: list[Task]) -> list[Task]:
        """One task of the fullest set above its minimum, else all."""
        counts = Counter(task.set for task in left)
        above = [name for name in counts if counts[name] > self.least[name]]
        if not above:
            return left
        name = max(above, key=lambda each: counts[each] / self.least[each])
        return [task for task in left if task.set == name][-1:]

    def step_back(self, evicted: list[Task]) -> list[Task]:
        """Of its evicted tasks those to place next: what the minimum lacks, else one."""
        gone = [task for task in self.tasks if task in evicted and task.evicted and task.target is None]
        step: list[Task] = []
        for name, least in self.least.items():
            step += [task for task in gone if task.set == name][: max(0, least - self.running(name))]
        return [task for task in self.tasks if task in step] or gone[:1]

    def pieces(self, lost: list[Task]) -> list[tuple[str, Amounts]]:
        """What it loses: tasks above a minimum one by one, then the rest as one."""
        found, core = list[tuple[str, Amounts]](), list[Task]()
        for name in dict.fromkeys(task.set for task in lost if task.gang is self):
            mine = [task for task in lost if task.gang is self and task.set == name]
            spare = len(mine) - max(0, min(len(mine), self.least[name] - self.running(name)))
            found += [(self.row.queue, task.ask) for task in mine[:spare]]
            core += mine[spare:]
        return [*found, (self.row.queue, summed(task.ask for task in core))] if core else found


def gang_of(row: JobRow, age: int) -> Gang:
    sets = row.root.pod_sets if row.root else []
    gang = Gang(row, age, {each.name: each.min_available for each in sets})
    states = {"Running": "running", "Pending": "pending", "Releasing": "leaving"}
    for task in row.tasks:
        name = task.subgroup or next(iter(gang.least))
        gang.tasks.append(Task(task, gang, name, states[task.state], task.node))
    return gang


def figures(row: QueueRow, field: Literal["quota", "limit", "over_quota_weight"]) -> Amounts:
    """Of a queue; infinite where nothing bounds it."""
    cpu, memory, gpu = (getattr(resource, field) for resource in (row.cpu, row.memory, row.gpu))
    return tuple(math.inf if each < 0 else float(each) for each in (cpu, memory, gpu))  # type: ignore[return-value]


class Queues:
    """The tree, and the fair share of each queue."""

    def __init__(self, rows: Sequence[QueueRow]) -> None:
        self.rows = {row.name: row for row in rows}
        self.children: dict[str | None, list[str]] = {}
        for row in rows:
            self.children.setdefault(row.parent, []).append(row.name)
        self.quota = {row.name: figures(row, "quota") for row in rows}
        self.limit = {row.name: figures(row, "limit") for row in rows}
        self.share: dict[str, Amounts] = {}

    def path(self, name: str | None) -> list[str]:
        """From the queue up to the root."""
        found = []
        while name is not None:
            found.append(name)
            name = self.rows[name].parent
        return found

    def may_hold(self, name: str) -> Amounts:
        """Up to where nothing is asked back."""
        return tuple(
            limit if quota == math.inf else min(limit, max(quota, share))
            for quota, limit, share in zip(self.quota[name], self.limit[name], self.share[name], strict=True)
        )  # type: ignore[return-value]

    def divide(self, total: Amounts, asked: dict[str, Amounts]) -> None:
        """Find the shares."""
        columns = []
        for resource in range(3):
            share: dict[str, float] = {}
            self._among(None, total[resource], resource, {name: each[resource] for name, each in asked.items()}, share)
            columns.append(share)
        self.share = {name: (columns[0][name], columns[1][name], columns[2][name]) for name in self.rows}

    def _among(
        self, parent: str | None, total: float, resource: int, asked: dict[str, float], share: dict[str, float]
    ) -> None:
        """Quotas, then what is over by priority and weight in whole units, then what rounding left."""
        siblings = self.children.get(parent, [])
        most = {name: min(self.limit[name][resource], asked[name]) for name in siblings}
        for name in siblings:
            quota = self.quota[name][resource]
            share[name] = min(total if quota == math.inf else quota, most[name])
        over = total - sum(share[name] for name in siblings)
        rests: dict[str, float] = {}
        for priority in sorted({self.rows[name].priority for name in siblings}, reverse=True):
            again = True
            while again and over > SLIGHTLY:
                again, at_start = False, over
                weights = {
                    name: figures(self.rows[name], "over_quota_weight")[resource]
                    for name in siblings
                    if self.rows[name].priority == priority and most[name] > share[name] + SLIGHTLY
                }
                for name, weight in weights.items():
                    part, need = at_start * weight / (sum(weights.values()) or 1), most[name] - share[name]
                    if need <= part + SLIGHTLY:
                        given = need
                        again = again or need < part - SLIGHTLY
                        rests.pop(name, None)
                    else:
                        given = float(math.floor(part + SLIGHTLY))
                        rests.update({name: part - given} if part - given > SLIGHTLY else {})
                    share[name] += given
                    over -= given
        for name in sorted(
            rests,
            key=lambda each: (-self.rows[each].priority, -round(rests[each], 6), self.rows[each].creation_rank, each),
        ):
            given = max(0.0, min(1.0, over))
            share[name] += given
            over -= given
        for name in siblings:
            self._among(name, share[name], resource, asked, share)
