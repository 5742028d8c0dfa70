"""Who has to give way so that a waiting job can start, and is it worth it?

For one job at a time, in the order in which jobs were looked at: the nodes on which it could have room if everything that may
be taken were gone; of them those on which least would be lost; the smallest set of runs there; and whether the rules of the
queues allow just that set. What is freed is promised to the job, so nobody else takes it meanwhile. Nothing is ended without a
start in return.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from slurmbridge.sched.choose import Part
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.evictable import Victim, Victims, Without
from slurmbridge.sched.held import OVERRUN_S
from slurmbridge.sched.one_node import OneNode, part_of_one
from slurmbridge.sched.place import Placement
from slurmbridge.sched.room import Room
from slurmbridge.sched.rows import least_first, sum_of_rows
from slurmbridge.sched.screen import NODES
from slurmbridge.sched.session import Session
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Waiting

LOOKS = 16
"""Nodes that are looked at closely for a job of one node; for a gang four times as many as it wants, if that is more."""
MANY = 256
"""Sets of so many victims are known by what they are kept as, not by their members."""
TRIES = 8
"""Sets of victims that the rules are asked about."""

NEIGHBOURHOODS = 4
"""Sets of nodes near to each other that are tried for a gang, that first on which least is lost."""

Rule = Callable[[Sequence[Victim], Placement | None], bool]
"""Whether the job may have its room at the cost of these: what it asks for (None), then what it would get."""


Try = tuple[Ints, Rule, int]
"""Places of victims that may be taken, the dearest first; the rule; and a number for jobs that may take the same ones."""


class Found(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A way to make room."""

    victims: tuple[Victim, ...]
    placement: Placement
    cost: float

    @property
    def delay_s(self) -> float:
        """How long it takes until they are gone."""
        return gone_in_s(self.victims)


class _Wish(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Whom room is sought for."""

    waiting: Waiting
    view: PartitionView
    length: float
    floor: Sequence[int]
    allowed: Ints  # places of victims that may be taken for it
    rule: Rule


class RoomMaker:
    """The search over one set of victims. A shape for which there was no way is not tried again for jobs of its kind."""

    def __init__(self, session: Session, victims: Victims) -> None:
        self._session = session
        self.victims = victims
        self._room = session.horizon.room.copy(with_cpu_numbers=False)  # with what was taken so far gone
        self._hopeless: set[tuple[int, int, int]] = set()  # what is taken only leaves less for others
        self._one = OneNode(session.snapshot.columns, self._room)
        self._devices = _devices(self._room)
        self._without: dict[
            tuple[bool, bytes | int], tuple[Ints, Without]
        ] = {}  # by who may go; until something is taken

    def is_hopeless(self, waiting: Waiting, view: PartitionView, kind: int) -> bool:
        """Whether no way was found for such a job before."""
        return (waiting.shape.number, view.number, kind) in self._hopeless

    def could_have(self, shapes: Sequence[Shape], allowed: Ints) -> Bools:
        """Of these shapes, those for which enough nodes could have room if all the allowed ones were gone; some may turn out
        not to.
        """
        floors = np.array([self._session.floor(shape) for shape in shapes], dtype=np.int64)
        return self.victims.could_have(self._room, self._devices, floors, allowed)

    def may_find(self, waiting: Waiting, view: PartitionView, allowed: Ints, kind: int) -> bool:
        """A quick look, as `find` would begin: whether enough nodes could have room without all of these."""
        some = self._alive(allowed)
        if not len(some):
            return False
        floor = self._session.floor(waiting.shape)
        if len(self._reaching(waiting, view, floor, some).rows) >= max(floor[NODES], 1):
            return True
        self._hopeless.add((waiting.shape.number, view.number, kind))
        return False

    def _alive(self, some: Ints) -> Ints:
        alive = self.victims.alive[some]
        return some if np.count_nonzero(alive) == len(some) else some[alive]

    def find(self, waiting: Waiting, view: PartitionView, tries: Sequence[Try]) -> Found | None:
        """By the first of some ways that there is."""
        session, shape, number = self._session, waiting.shape, view.number
        admitted = False
        for allowed, rule, kind in tries:
            key = shape.number, number, kind
            if key in self._hopeless:
                continue
            some = self._alive(allowed)
            if not len(some):
                continue
            if not admitted and isinstance(session.admits(waiting, view), Blocked):
                return None
            admitted = True
            length, floor = session.fate(waiting, view).length, session.floor(shape)
            found = self._search(_Wish(waiting=waiting, view=view, length=length, floor=floor, allowed=some, rule=rule))
            if found is not None:
                return found
            self._hopeless.add(key)
        return None

    def _search(self, wish: _Wish) -> Found | None:
        shape, view, nodes = wish.waiting.shape, wish.view, max(wish.floor[NODES], 1)
        near = view.near if nodes > 1 and view.near is not None and view.near.minds(shape) else None
        most = max(LOOKS, 4 * nodes)
        rows, least = self._rows(wish, most if near is None else self._session.snapshot.columns.count)
        if near is None:
            if len(rows) < nodes:
                return None
            return self._single(wish, rows, least) if nodes == 1 else self._gang(wish, rows)
        for some in near.neighbourhoods(shape, rows, least, nodes)[:NEIGHBOURHOODS]:
            found = self._gang(wish, some[:most])
            if found is not None:
                return found
        return None

    def _rows(self, wish: _Wish, most: int) -> tuple[list[int], list[float]]:
        """Nodes that could have room, those first on which the cheapest victim is cheapest; and what that one costs."""
        rows, _, least = self._reaching(wish.waiting, wish.view, wish.floor, wish.allowed)
        if len(rows) < wish.floor[NODES]:
            return [], []
        least = np.where(least < np.inf, least, 0.0)
        order = least_first(least, most)
        return rows[order].tolist(), least[order].tolist()

    def _reaching(self, waiting: Waiting, view: PartitionView, floor: Sequence[int], allowed: Ints) -> Without:
        """Nodes that could have room without all of these."""
        inside, several = self._session.site(waiting.shape, view).alternatives[0].nodes, floor[NODES] > 1
        mark = several, allowed.tobytes() if len(allowed) < MANY else id(allowed)
        known = self._without.get(mark)
        if known is None:  # a job of one node that found no room has it nowhere but where somebody goes
            known = allowed, self.victims.without(self._room, self._devices, allowed, everywhere=several)
            self._without[mark] = known
        return known[1].reaching(floor, inside)

    def _single(self, wish: _Wish, rows: Sequence[int], least: Sequence[float]) -> Found | None:
        """The cheapest set that the rules allow; no node is looked at whose cheapest victim costs more than the set found."""
        priced: list[tuple[float, int, list[int]]] = []
        allowed = self.victims.mask(wish.allowed)
        tried = at = 0
        while tried < TRIES:
            while at < len(rows) and (not priced or least[at] < priced[0][0]):
                chosen = self.victims.clear(rows[at], wish.floor, self._room, allowed)
                if chosen:
                    heapq.heappush(priced, (self.victims.price(chosen), rows[at], chosen))
                at += 1
            if not priced:
                return None
            cost, row, chosen = heapq.heappop(priced)
            tried += 1
            found = self._judged(wish, chosen, cost, row)
            if found is not None:
                return found
        return None

    def _gang(self, wish: _Wish, rows: Sequence[int]) -> Found | None:
        """Node after node, those first on which least more is lost, until the gang fits."""
        victims, allowed = self.victims, self.victims.mask(wish.allowed)
        chosen: list[int] = []
        left, wanted = list(rows), max(wish.floor[NODES], 1)
        while left:
            best: tuple[float, int, list[int]] | None = None
            for row in left[:LOOKS]:
                more = victims.clear(row, wish.floor, self._room, allowed, chosen)
                if more is None:
                    continue
                price = victims.price(more)
                if best is None or price < best[0]:
                    best = price, row, more
                if price == 0.0:
                    break
            if best is None:
                return None
            left.remove(best[1])
            chosen += best[2]
            wanted -= 1
            if chosen and wanted <= 0:
                found = self._judged(wish, chosen, victims.price(chosen))
                if found is not None:
                    return found
        return None

    def _judged(self, wish: _Wish, chosen: Sequence[int], cost: float, row: int | None = None) -> Found | None:
        """`row`: of the only node that they make room on."""
        taken = tuple(self.victims.victim(place) for place in chosen)
        if not wish.rule(taken, None):
            return None
        part = part_of_one(self._session, wish.waiting, wish.view) if row is not None else None
        if part is not None and row is not None:
            placement = self._fits_on(wish, taken, Part(row, part.tasks, part.devices))
        else:
            placement = self._fits(wish, taken)
        if placement is None or not wish.rule(taken, placement):
            return None
        if isinstance(self._session.within_limits(wish.waiting, wish.view, placement), Blocked):
            return None
        return Found(victims=taken, placement=placement, cost=cost)

    def _fits_on(self, wish: _Wish, taken: Sequence[Victim], part: Part) -> Placement | None:
        """The same for a job of one node that nothing else could have room on."""
        session, one, row = self._session, self._one, part.row
        one.begin(row, self._room, [hold for victim in taken for hold in victim.frees])
        for start, window in session.horizon.promised_rooms(gone_in_s(taken) + wish.length):
            one.meets(row, window, [hold for each in taken if each.running.end > start for hold in each.frees])
        return one.place(session, wish.waiting.shape, wish.view, part)

    def _fits(self, wish: _Wish, taken: Sequence[Victim]) -> Placement | None:
        """Where the job fits once these are gone, promises to others kept."""
        session = self._session
        room = self._room.copy(with_cpu_numbers=False)
        _give(room, taken)
        limits = room
        for start, window in session.horizon.promised_rooms(gone_in_s(taken) + wish.length):
            then = window.copy(with_cpu_numbers=False)
            _give(then, [victim for victim in taken if victim.running.end > start])
            limits = limits.tightened(then)
        return session.place_later(wish.waiting, wish.view, room, limits, wish.length)

    def take(self, found: Found, waiting: Waiting, view: PartitionView) -> float:
        """Promise the job what is freed; its expected start. What only starts is taken back by who calls."""
        session = self._session
        job_id, length = waiting.job.job_id, session.fate(waiting, view).length
        runs = [victim for victim in found.victims if not victim.starts]
        session.horizon.ends_now(
            [victim.key for victim in runs],
            [(victim.running.end, hold) for victim in runs for hold in victim.frees],
        )
        start = session.now + found.delay_s
        session.horizon.promise(job_id, start, length, found.placement)
        self.taken(found)
        session.promised_to(job_id)
        session.allowances.count(waiting, view, found.placement, length)
        return start

    def taken(self, found: Found) -> None:
        """Others find the victims gone, and the job in its place."""
        for victim in found.victims:
            self.victims.alive[victim.place] = False
        _give(self._room, found.victims)
        for hold in found.placement.holds:
            self._room.take(hold)
        self._count_again(found)

    def give_back(self, found: Found) -> None:
        """Undo `take`, but for what the session keeps."""
        for hold in found.placement.holds:
            self._room.give(hold)
        for victim in found.victims:
            self.victims.alive[victim.place] = True
            for hold in victim.frees:
                self._room.take(hold)
        self._count_again(found)

    def _count_again(self, found: Found) -> None:
        """Free devices of the nodes that are concerned."""
        holds = [hold for victim in found.victims for hold in victim.frees]
        rows = list({hold.row for hold in (*holds, *found.placement.holds)})
        self._without.clear()
        self._devices[rows] = np.maximum(self._room.milli[rows], 0).sum(axis=1)


def gone_in_s(victims: Sequence[Victim]) -> float:
    """Seconds until these are gone once they are told to end."""
    return max((victim.grace_s for victim in victims), default=0) + OVERRUN_S


def _devices(room: Room) -> Ints:
    """Thousandths of devices that are free on each node."""
    return sum_of_rows(np.maximum(room.milli, 0))


def _give(room: Room, victims: Sequence[Victim]) -> None:
    for victim in victims:
        for hold in victim.frees:
            room.give(hold)
