"""Who has to give way so that a waiting job can start, and is it worth it?

For one job at a time, in the order in which jobs were looked at: what would be free if everything that may be taken were
gone (if the job does not fit even then, nothing is taken); the nodes on which least would be lost; the smallest set of runs on
them; and whether the rules of the queues allow just that set. What is freed is promised to the job, so nobody else takes it
meanwhile, and a run that fits elsewhere is to start there again. Nothing is ended without a start in return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from slurmbridge.sched.columns import Bools
from slurmbridge.sched.held import OVERRUN_S
from slurmbridge.sched.place import Placement
from slurmbridge.sched.room import Room
from slurmbridge.sched.session import Session
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Waiting
from slurmbridge.sched.evictable import Victim, Victims

LOOKS = 16
"""Nodes that are looked at closely for a job of one node; a gang's are so many more."""
TRIES = 8
"""Sets of victims that the rules are asked about."""

Rule = Callable[[Sequence[Victim]], bool]
"""Whether the job may have its room at the cost of these."""


class Found(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A way to make room."""

    victims: tuple[Victim, ...]
    placement: Placement
    cost: float


class RoomMaker:
    """The search over one set of victims. What did not help for a shape is not tried again until something changed."""

    def __init__(self, session: Session, victims: Victims) -> None:
        self._session = session
        self.victims = victims
        self._hopeless: set[tuple[int, int, int, int]] = set()

    def find(self, waiting: Waiting, view: PartitionView, allowed: Bools, rule: Rule, kind: int) -> Found | None:
        """`allowed`: which victims may be taken for this job. `kind`: a number for equal sets of them."""
        session, victims, shape = self._session, self.victims, waiting.shape
        allowed = allowed & victims.alive
        key = shape.number, view.number, kind, int(allowed.sum())
        if key in self._hopeless or not allowed.any():
            return None
        gone = ~victims.alive
        length = session.fate(waiting, view).length
        best = self._fits(waiting, view, gone | allowed, length)
        if best is None:
            self._hopeless.add(key)
            return None
        return self._cheapest(waiting, view, shape, allowed, rule, length)

    def _cheapest(
        self, waiting: Waiting, view: PartitionView, shape: Shape, allowed: Bools, rule: Rule, length: float
    ) -> Found | None:
        session, victims = self._session, self.victims
        floor = session.floor(shape)
        room = victims.without(session.horizon.limits(length), ~victims.alive)
        least = victims.cheapest_on(allowed)
        inside = session.site(shape, view).alternatives[0].nodes
        order = [
            int(row)
            for row in np.argsort(np.where(inside, least, np.inf), kind="stable")
            if inside[row] and least[row] < np.inf
        ]
        nodes = max(floor[-1], 1)
        looks = order[: max(LOOKS, 4 * nodes)]
        priced: list[tuple[float, int, list[int]]] = []
        for row in looks:
            chosen = victims.clear(row, floor, room, allowed, ())
            if chosen:
                priced.append((float(victims.cost[chosen].sum()), row, chosen))
        priced.sort(key=lambda each: each[:2])
        if nodes == 1:
            for cost, _, chosen in priced[:TRIES]:
                found = self._judged(waiting, view, chosen, cost, rule, length)
                if found is not None:
                    return found
            return None
        return self._gang(waiting, view, floor, room, allowed, rule, length, [row for _, row, _ in priced], nodes)

    def _gang(
        self,
        waiting: Waiting,
        view: PartitionView,
        floor: Sequence[int],
        room: Room,
        allowed: Bools,
        rule: Rule,
        length: float,
        rows: Sequence[int],
        nodes: int,
    ) -> Found | None:
        """Node after node, those first on which least more is lost, until the gang fits."""
        victims = self.victims
        chosen: list[int] = []
        left = list(rows)
        while left:
            best: tuple[float, int, list[int]] | None = None
            for row in left[:LOOKS]:
                more = victims.clear(row, floor, room, allowed, chosen)
                if more is None:
                    continue
                price = float(victims.cost[more].sum()) if more else 0.0
                if best is None or price < best[0]:
                    best = price, row, more
            if best is None:
                return None
            left.remove(best[1])
            chosen += [place for place in best[2] if place not in chosen]
            if chosen and len(rows) - len(left) >= 1:
                found = self._judged(waiting, view, chosen, float(victims.cost[chosen].sum()), rule, length)
                if found is not None:
                    return found
        return None

    def _judged(
        self, waiting: Waiting, view: PartitionView, chosen: Sequence[int], cost: float, rule: Rule, length: float
    ) -> Found | None:
        gone = ~self.victims.alive
        gone = gone.copy()
        gone[list(chosen)] = True
        placement = self._fits(waiting, view, gone, length)
        if placement is None:
            return None
        taken = tuple(self.victims.all[place] for place in chosen)
        return Found(victims=taken, placement=placement, cost=cost) if rule(taken) else None

    def _fits(self, waiting: Waiting, view: PartitionView, gone: Bools, length: float) -> Placement | None:
        """Where the job fits once these are gone, promises to others kept."""
        session, victims = self._session, self.victims
        room = victims.without(session.horizon.room, gone)
        limits = session.horizon.limits_after(length, room, lambda window: victims.without(window, gone))
        return session.place_later(waiting, view, room, limits, length)

    def take(self, found: Found, job_id: int, length: float, grace_s: float) -> float:
        """Promise the job what is freed; its expected start."""
        session = self._session
        for victim in found.victims:
            self.victims.alive[victim.place] = False
        session.horizon.ends_now(
            [victim.running.job.job_id for victim in found.victims],
            [(victim.running.end, hold) for victim in found.victims for hold in victim.frees],
        )
        start = session.now + max(grace_s, 0.0) + OVERRUN_S
        session.horizon.promise(job_id, start, length, found.placement)
        session.promised_to(job_id)
        return start
