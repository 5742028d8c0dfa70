"""Which running jobs could make room on which nodes, and what would be lost?

Columns over those that may be ended at all. What a run loses is what it did: seconds times devices (CPUs where it has none),
more if it is not begun again by itself. Who may take what from whom is asked elsewhere; this module finds the cheapest set on
a node, and what is free without some of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.job import Job
from slurmbridge.model.states import JobState
from slurmbridge.sched.clearing import Entry, Lacking, clear
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.fit import Rules
from slurmbridge.sched.preemption import Rules as Preemption
from slurmbridge.sched.queues import ZERO, Vector
from slurmbridge.sched.room import NO_OWNER, Hold, Room
from slurmbridge.sched.runs import MODES, Runs, ages, costs, endable
from slurmbridge.sched.screen import CPUS, IDLE, MEMORY, MILLI, NODES, WHOLE, hopeless
from slurmbridge.sched.shape import ShapeTable
from slurmbridge.sched.snapshot import Running, Snapshot, Waiting, waiting_of


class Victim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run that may be ended."""

    place: int
    key: int  # its job id, or what `unbegun` calls it
    running: Running
    mode: str  # REQUEUE, CANCEL, SUSPEND
    cost: float
    frees: tuple[Hold, ...]  # a suspended run keeps its memory and devices
    grace_s: int  # between its warning and its end
    starts: bool = False  # it does not run yet, and is not to start after all: see `unbegun`
    leaf: int = -1  # its queue in the pool that is looked at
    charge: Vector = ZERO  # what it counts for there


def frees_of(running: Running, mode: str) -> tuple[Hold, ...]:
    """What its end, or its suspension, gives back."""
    if mode != "SUSPEND":
        return running.holds
    return tuple(
        msgspec.structs.replace(hold, memory=0, devices=(), closes=False, owner=NO_OWNER, stays=True)
        for hold in running.holds
    )


def begun_again(run: Job, shapes: ShapeTable) -> Waiting:
    """A run as it waits once it is ended."""
    job = msgspec.structs.replace(run, state=JobState.PENDING, allocation=None, priority=max(run.priority, 1))
    return waiting_of(job, shapes)


_NONE: Ints = np.zeros(0, dtype=np.int64)


class Charged(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What runs count for in one pool, by row of `Runs`. `alone`: it has nodes in this pool, and in no other; `of`, `device_of`:
    whose each row of what is held is.
    """

    of: Ints
    device_of: Ints
    alone: Bools
    leaves: Ints
    charges: NDArray[np.float64]


def charged(snapshot: Snapshot, runs: Runs, pool_of_node: Ints, number: int) -> Charged:
    """Of the pool with this number."""
    nodes, devices, size = snapshot.held.nodes, snapshot.held.devices, len(runs.rows)
    of, device_of = runs.at(nodes["id"]), runs.at(devices["id"])
    inside, device_inside = pool_of_node[nodes["row"]] == number, pool_of_node[devices["row"]] == number
    holds = np.bincount(of, minlength=size)
    charges = [
        np.bincount(of[inside], weights=nodes["cpus"][inside], minlength=size),
        np.bincount(of[inside], weights=nodes["memory"][inside], minlength=size),
        np.bincount(device_of[device_inside], weights=devices["milli"][device_inside], minlength=size) / 1000,
    ]
    return Charged(
        of=of,
        device_of=device_of,
        alone=(holds > 0) & (np.bincount(of[inside], minlength=size) == holds),
        leaves=runs.leaves[number],
        charges=np.stack(charges, axis=1),
    )


Amounts = NDArray[np.float64] | Ints


class Free(NamedTuple):
    """What each node has, or would have; `milli`: thousandths of its devices."""

    cpus: Amounts
    memory: Amounts
    milli: Amounts
    idle: Bools


class Without(NamedTuple):
    """Nodes with some runs gone. `cheapest`: what the cheapest of these runs there costs; inf where there is none."""

    rows: Ints
    free: Free
    cheapest: NDArray[np.float64]

    def reaching(self, floor: Sequence[int], open_nodes: Bools) -> Without:
        """Those of the open nodes that could have what `floor` asks; some of them may turn out not to."""
        able = (open_nodes[self.rows] & _meeting(floor, self.free)).nonzero()[0]
        return Without(self.rows[able], self.free, self.cheapest[able])


def _meeting(floor: Sequence[int], free: Free) -> Bools:
    """Nodes that have what a floor asks."""
    able: Bools = free.cpus >= floor[CPUS]
    if floor[MEMORY]:
        able &= free.memory >= floor[MEMORY]
    if floor[WHOLE] or floor[MILLI]:
        able &= free.milli >= max(floor[WHOLE] * 1000, floor[MILLI])
    if floor[IDLE]:
        able &= free.idle
    return able


class Victims:
    """All of them, in the order of their ids, with what they hold by node. `alive`: those that are not ended in this plan yet."""

    def __init__(self, snapshot: Snapshot, runs: Runs, now: float, *, rules: Preemption, pool: Charged | None) -> None:
        self._rules = rules
        self.columns = snapshot.columns
        modes, reclaimable = endable(runs.rows, now)
        chosen = np.flatnonzero((modes > 0) if pool is None else (modes > 0) & pool.alone)
        rows = runs.rows[chosen]
        self._running, self._ids, self._known = snapshot.running, rows["id"], dict[int, Victim]()
        self._modes: Ints = modes[chosen]
        self.kind: Ints = rows["kind"]
        self.reclaimable: Bools = reclaimable[chosen]
        self.begin_again: Bools = self._modes == MODES.index("REQUEUE")
        self.starts: Bools = self._ids < 0
        self.alive: Bools = np.ones(len(chosen), dtype=np.bool_)
        self.cost = ages(rows, now) if rules.youngest_first else costs(rows, self._modes, now)
        self.charge: NDArray[np.float64] = np.zeros((len(chosen), 3)) if pool is None else pool.charges[chosen]
        self.leaf: Ints = np.full(len(chosen), -1, dtype=np.int64) if pool is None else pool.leaves[chosen]
        self._dearest: Ints = np.argsort(-self.cost, kind="stable")
        self._rank = np.empty_like(self._dearest)
        self._rank[self._dearest] = np.arange(len(chosen))
        at = (
            (runs.at(snapshot.held.nodes["id"]), runs.at(snapshot.held.devices["id"]))
            if pool is None
            else (pool.of, pool.device_of)
        )
        self._holds(snapshot, chosen, len(runs.rows), *at)
        self._by_leaf: dict[int, Ints] | None = None
        self._costs: list[float] = self.cost.tolist()
        self._keys: list[int] = self._ids.tolist()
        self._sorted: tuple[list[int], list[int]] | None = None  # places of those on nodes, and where each node begins
        self._on_row: dict[int, list[Entry]] = {}

    def _holds(self, snapshot: Snapshot, chosen: Ints, size: int, of_run: Ints, device_of_run: Ints) -> None:
        """Tables of what they give back, by place and node; a suspended run keeps its memory and devices."""
        place = np.full(size, -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        nodes, devices = snapshot.held.nodes, snapshot.held.devices
        of, device_of = place[of_run], place[device_of_run]
        kept = np.flatnonzero(of >= 0)
        kept = kept[np.argsort(of[kept], kind="stable")]
        self._of, self._row = of[kept], nodes["row"][kept]
        stays = self._modes == MODES.index("SUSPEND")
        self._leaves = ~stays[self._of]
        self._cpus = nodes["cpus"][kept].astype(np.float64)
        self._memory = np.where(stays[self._of], 0, nodes["memory"][kept]).astype(np.float64)
        self._first = np.searchsorted(self._of, np.arange(len(chosen) + 1))
        self._count = np.diff(self._first)
        self._one_each = bool((self._count == 1).all())
        mine = np.flatnonzero(device_of >= 0)
        mine = mine[~stays[device_of[mine]]]
        self._device_of, self._device_milli = device_of[mine], devices["milli"][mine]
        self._milli = self._on_nodes(self._device_of, devices["row"][mine], self._device_milli)

    def _on_nodes(self, of: Ints, rows: Ints, amounts: Ints) -> NDArray[np.float64]:
        """Sums by what each of them holds on each node, of amounts that are given by place and node."""
        width = max(self.columns.count, 1)
        cells = self._of * width + self._row
        order = np.argsort(cells)
        at = order[np.searchsorted(cells[order], of * width + rows)] if len(order) else of
        sums: NDArray[np.float64] = np.bincount(at, weights=amounts, minlength=len(cells)).astype(np.float64)
        return sums

    def dearest_first(self, some: Bools) -> Ints:
        """Places of these."""
        return self._dearest[some[self._dearest]]

    def together(self, some: Sequence[Ints]) -> Ints:
        """Places of several such sets, in this order again."""
        if len(some) == 1:
            return some[0]
        places = np.concatenate(some)
        return places[self._rank[places].argsort()]

    def of_leaf(self, queue: int) -> Ints:
        """Places of those of one queue that may be reclaimed, the dearest first."""
        if self._by_leaf is None:
            self._by_leaf = {}
            some = self.dearest_first(self.reclaimable)
            some = some[np.argsort(self.leaf[some], kind="stable")]
            leaves, first = np.unique(self.leaf[some], return_index=True)
            for leaf, places in zip(leaves.tolist(), np.split(some, first[1:]), strict=True):
                self._by_leaf[leaf] = places
        return self._by_leaf.get(queue, _NONE)

    def running(self, place: int) -> Running:
        """One of them as it runs."""
        return self._running[self._keys[place]]

    def victim(self, place: int) -> Victim:
        """One of them."""
        found = self._known.get(place)
        if found is None:
            key, mode = self._keys[place], MODES[int(self._modes[place])]
            running, starts = self._running[key], key < 0
            assert mode is not None
            charge: tuple[float, float, float] = tuple(self.charge[place].tolist())
            found = self._known[place] = Victim(
                place=place,
                running=running,
                mode=mode,
                cost=float(self.cost[place]),
                frees=frees_of(running, mode),
                grace_s=0 if starts else self._rules.grace_s(running.job, mode),
                starts=starts,
                key=key,
                leaf=int(self.leaf[place]),
                charge=charge,
            )
        return found

    def on_row(self, row: int) -> list[Entry]:
        """Those on a node, the cheapest first."""
        found = self._on_row.get(row)
        if found is None:
            if self._sorted is None:
                order = np.lexsort((self._of, self.cost[self._of], self._row))
                first = np.searchsorted(self._row[order], np.arange(self.columns.count + 1))
                self._sorted = self._of[order].tolist(), first.tolist()
            places, edges = self._sorted
            found = self._on_row[row] = []
            for place in places[edges[row] : edges[row + 1]]:
                key, mode = self._keys[place], MODES[int(self._modes[place])]
                assert mode is not None
                for hold in frees_of(self._running[key], mode):
                    if hold.row == row:
                        found.append(Entry(self._costs[place], place, hold))
        return found

    def __len__(self) -> int:
        return len(self.cost)

    def price(self, some: Sequence[int]) -> float:
        """What these cost together."""
        if len(some) < 2:
            return self._costs[some[0]] if some else 0.0
        return float(self.cost[some].sum())

    def mask(self, some: Ints) -> memoryview:
        """By place, whether it is one of these."""
        found = np.zeros(len(self.cost), dtype=np.bool_)
        found[some] = True
        return found.data

    def least_of(self, queues: int) -> NDArray[np.float64]:
        """By resource and queue, the least that one counts for that may be reclaimed; inf where there is none."""
        least = np.full((3, queues), np.inf)
        some = self.alive & self.reclaimable
        for resource in range(3):
            np.minimum.at(least[resource], self.leaf[some], self.charge[some, resource])
        return least

    def could_have(self, room: Room, devices: Ints, floors: Ints, some: Ints) -> Bools:
        """Of many floors at once, those that enough nodes could meet with these gone."""
        usable = self.columns.usable
        every = self.without(room, devices, some, everywhere=True).free
        free = Free(every.cpus[usable], every.memory[usable], every.milli[usable], every.idle[usable])
        enough = [np.count_nonzero(_meeting(floor, free)) >= max(floor[NODES], 1) for floor in floors.tolist()]
        return np.array(enough, dtype=np.bool_)

    def without(self, room: Room, devices: Ints, some: Ints, *, everywhere: bool) -> Without:
        """What nodes would have if these (places, the dearest first) were gone: all nodes, or those alone that one of them is on.

        `devices`: thousandths of devices that are free on each.
        """
        held = self._held_by(some)
        at = self._row[held]
        if everywhere:
            rows = np.arange(self.columns.count)
        else:
            among = np.zeros(self.columns.count, dtype=np.int64)  # by node, its place among `rows`
            among[at] = 1
            rows = among.nonzero()[0]
            among[rows] = np.arange(len(rows))
            at = among[at]
        size = len(rows)
        free = Free(
            room.cpus[rows] + np.bincount(at, weights=self._cpus[held], minlength=size),
            room.memory[rows] + np.bincount(at, weights=self._memory[held], minlength=size),
            devices[rows] + np.bincount(at, weights=self._milli[held], minlength=size),
            np.bincount(at, weights=self._leaves[held], minlength=size) >= room.jobs[rows],
        )
        cheapest = np.full(size, np.inf)
        cheapest[at] = self.cost[self._of[held]]  # the cheapest come last, and so stay
        return Without(rows, free, cheapest)

    def _held_by(self, some: Ints) -> Ints:
        """Rows of the tables of what these hold, in their order."""
        first = self._first[some]
        if self._one_each:
            return first
        count = self._count[some]
        whole = int(count.sum())
        return np.repeat(first - np.cumsum(count) + count, count) + np.arange(whole)

    def movable(self, room: Room, nodes: Bools, rules: Rules) -> Bools:
        """Those that are begun again by themselves and may find as much as they have elsewhere; some may turn out not to."""
        floors = np.zeros((len(self.cost), NODES + 1), dtype=np.int64)
        np.maximum.at(floors[:, CPUS], self._of, self._cpus.astype(np.int64))
        np.maximum.at(floors[:, MEMORY], self._of, self._memory.astype(np.int64))
        whole = self._device_milli >= 1000
        devices = np.bincount(self._device_of[whole], minlength=len(self.cost))
        np.maximum.at(floors[:, MILLI], self._device_of, self._device_milli.astype(np.int64))
        floors[:, NODES] = np.bincount(self._of, minlength=len(self.cost))
        floors[:, WHOLE] = devices // np.maximum(floors[:, NODES], 1)
        kinds, of_kind = np.unique(floors, axis=0, return_inverse=True)
        found: Bools = ~hopeless(kinds, self.columns, room, nodes, rules)[of_kind.reshape(-1)]
        return found & self.begin_again & ~self.starts

    def clear(
        self, row: int, floor: Sequence[int], room: Room, allowed: memoryview, gone: Collection[int] = ()
    ) -> list[int] | None:
        """`clearing.clear` of a node."""
        return clear(self.on_row(row), Lacking(row, floor, room), allowed, gone)
