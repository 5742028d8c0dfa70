"""Who is looked at before everybody else? Jobs for whom room was made, then jobs that were promised a start.

What was freed for a job is held for it as it was laid out (`kept`). Whose place is free starts there before anything else is
looked at. The others are promised theirs, all of them, and only then looked at in turn, each without its own: whoever finds
room elsewhere meanwhile takes it, but nobody takes what is being freed for somebody else. A place that can no longer be had
(its node went away) is given up, and its job looked at as any other that comes first.

Where queues take turns, jobs with a promise come next: it outlasts changes of order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import msgspec
import numpy as np

from slurmbridge.model.job import Allocation
from slurmbridge.model.plan import Nomination
from slurmbridge.sched.eligibility import NO_ROOM, Blocked
from slurmbridge.sched.evictable import begun_again
from slurmbridge.sched.held import OVERRUN_S
from slurmbridge.sched.kept import Kept
from slurmbridge.sched.laid_out import LaidOut
from slurmbridge.sched.place import Placement
from slurmbridge.sched.promised import by_start, gives_precedence
from slurmbridge.sched.room import Hold
from slurmbridge.sched.snapshot import PartitionView, Waiting
from slurmbridge.sched.walk import Walk

NOT_WAITING = -1


class _Held(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A place that is promised to whom it is being freed for."""

    kept: Kept
    view: PartitionView
    start: float
    placement: Placement


class _Claim(msgspec.Struct, kw_only=True, eq=False):
    """Whom something is kept for. `left`: what has not become a start in this cycle; `held`: what is promised of it."""

    job_id: int
    waiting: Waiting
    row: int  # NOT_WAITING: it still runs, and is to be moved
    places: list[int]  # its entries
    left: Sequence[Kept]
    held: list[_Held]


class Firsts:
    """`standing`: those for whom room was made in earlier cycles, and who do not start yet. `rows`: those that were looked at."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.session, self.snapshot = walk, walk.session, walk.snapshot
        self.standing: list[Nomination] = []
        self.rows: set[int] = set()
        self._laid_out = LaidOut(self.session)

    def look(self) -> None:
        """Start whom it is time for, and promise the others their places."""
        claims = self._claims()
        for claim in claims:
            claim.left = [each for each in claim.left if not self._begins(claim, each)]
        claims = [claim for claim in claims if claim.left]
        for claim in claims:
            self._hold(claim)
        for claim in claims:
            if claim.row == NOT_WAITING:
                self._stands(claim)
            elif claim.row not in self.walk.done:
                self._look_at(claim)
        self.rows = {claim.row for claim in claims}

    def promised(self) -> None:
        """Where queues take turns: look at jobs that were promised a start."""
        if not self.walk.markets:
            return
        for row, mine in by_start(self.walk, self.rows).items():
            self._try(row, mine, yields=True)

    def _claims(self) -> list[_Claim]:
        """Those whose room was to be free first come first, runs that gave way after those for whom they did."""
        walk, snapshot, entries = self.walk, self.snapshot, self.walk.entries
        if not snapshot.kept:
            return []
        ids = np.array(sorted(snapshot.kept), dtype=np.int64)
        places: dict[int, list[int]] = {}
        for place in np.flatnonzero(np.isin(snapshot.pending.rows["id"][entries.rows], ids)).tolist():
            if walk.has_part(place):
                places.setdefault(walk.id(place), []).append(place)
        found = []
        for job_id, left in snapshot.kept.items():
            mine, runs = places.get(job_id, []), snapshot.running.get(job_id)
            if mine:
                waiting, row = walk.waiting(mine[0]), walk.rows[mine[0]]
            elif runs is not None and runs.job.evicted is not None:
                waiting, row = begun_again(runs.job, snapshot.shapes), NOT_WAITING
            else:
                continue
            found.append(_Claim(job_id=job_id, waiting=waiting, row=row, places=mine, left=left, held=[]))
        found.sort(
            key=lambda claim: (
                claim.left[0].since,
                claim.waiting.job.evicted is not None,
                claim.places[0] if claim.places else math.inf,
            )
        )
        return found

    # ---- places as they were laid out ----

    def _begins(self, claim: _Claim, kept: Kept) -> bool:
        """Start a job, or a task, in its place."""
        if kept.allocation is None or claim.row == NOT_WAITING or claim.row in self.walk.done:
            return False
        holds = self._holds(claim, kept.allocation)
        place = next((each for each in claim.places if _inside(self.walk.view(each), kept.allocation, holds)), None)
        return place is not None and self.walk.begin(place, functools.partial(self._laid_out.start_at, holds=holds))

    def _hold(self, claim: _Claim) -> None:
        """Promise a job its places for when they should be free."""
        walk, session, horizon = self.walk, self.session, self.session.horizon
        if claim.row in walk.done:
            return
        for kept in claim.left:
            holds = self._holds(claim, kept.allocation) if kept.allocation is not None else ()
            view = self._view(claim, kept.allocation, holds) if kept.allocation is not None else None
            if view is None or not self._may(claim, view):
                continue
            start, length = max(kept.since, session.now + OVERRUN_S), session.fate(claim.waiting, view).length
            room = horizon.room_then(start)
            for when, window in horizon.promised_rooms(start - session.now + length):
                room = room.tightened(window) if when > start else room
            found = self._laid_out.place(claim.waiting, view, room, holds, length, ())
            if found is not None:
                self._promise(claim, _Held(kept=kept, view=view, start=start, placement=found))

    def _promise(self, claim: _Claim, held: _Held) -> None:
        claim.held.append(held)
        length = self.session.fate(claim.waiting, held.view).length
        self.session.horizon.promise(claim.job_id, held.start, length, held.placement)
        self.session.promised_to(claim.job_id)
        self._count(claim, held)

    def _count(self, claim: _Claim, held: _Held, sign: int = 1) -> None:
        """For limits, licences and the ceiling of work that may not be ended: nobody is ended for what they would not let start."""
        if claim.row == NOT_WAITING:
            return
        length = self.session.fate(claim.waiting, held.view).length
        self.session.allowances.count(claim.waiting, held.view, held.placement, length, sign=sign)
        if not self.walk.preemptible(claim.waiting.job):
            self.walk.starts.books.charge(claim.waiting.job, held.placement.holds, sign)

    def _holds(self, claim: _Claim, allocation: Allocation) -> tuple[Hold, ...]:
        return self.snapshot.as_if_running(claim.waiting.job, allocation).holds

    def _view(self, claim: _Claim, allocation: Allocation, holds: Sequence[Hold]) -> PartitionView | None:
        """The partition, or its part of a pool, in which such a place is; None: there is none any more."""
        among = self.walk.memo.places.by_number
        if claim.row != NOT_WAITING:
            among = tuple(self.walk.view(place) for place in claim.places)
        return next((view for view in among if _inside(view, allocation, holds)), None)

    def _may(self, claim: _Claim, view: PartitionView) -> bool:
        """Whether nothing but missing room stops a job that waits."""
        if claim.row == NOT_WAITING:
            return True
        most = self.walk.starts.left(claim.waiting)
        if len(claim.held) >= most or isinstance(self.session.admits(claim.waiting, view), Blocked):
            return False
        return all(self.walk.refusal(place) is None for place in claim.places if self.walk.view(place) is view)

    # ---- looks ----

    def _look_at(self, claim: _Claim) -> None:
        """A job that has not begun in its place: it may start elsewhere."""
        walk, held = self.walk, claim.held
        if held:
            self.session.horizon.withdraw(claim.job_id)
            for each in held:
                self._count(claim, each, -1)
        self._try(claim.row, claim.places)
        if claim.row in walk.done:
            return
        claim.held = []
        for each in held[: walk.starts.left(claim.waiting)]:
            if self._may(claim, each.view):
                self._promise(claim, each)
        self._stands(claim)

    def _stands(self, claim: _Claim) -> None:
        """What is still held for a job is told, and what it was promised instead."""
        walk, row = self.walk, claim.row
        for each in claim.held:
            names = tuple(node.node for node in each.placement.allocation.nodes)
            self.standing.append(
                Nomination(
                    job_id=claim.job_id,
                    start=each.start,
                    since=each.kept.since,
                    nodes=names,
                    allocation=each.kept.allocation,
                )
            )
            if row != NOT_WAITING and row not in walk.held:
                walk.board.serve(row, walk.board.code(NO_ROOM), each.start, names)
                walk.tally.promises += 1
            if row != NOT_WAITING:
                walk.held[row] = walk.held.get(row, 0) + 1
        promised = walk.board.promised(row) if row != NOT_WAITING and not claim.held else None
        if promised is not None:
            start, nodes = promised
            self.standing.append(Nomination(job_id=claim.job_id, start=start, since=claim.left[0].since, nodes=nodes))
        if claim.held and row != NOT_WAITING and not claim.waiting.job.is_array_record:
            walk.done.add(row)

    def _try(self, row: int, places: list[int], *, yields: bool = False) -> None:
        """One job: where it may start at once comes before where it would only be promised a start."""
        if len(places) > 1:
            places.sort(key=lambda place: not self._may_start(place))
        for place in places:
            if row in self.walk.done:
                return
            market, leaf, ask = self.walk.queue_of(place)
            if yields and gives_precedence(self.walk, place):
                continue
            if self.walk.look(place, market, leaf, ask):
                return  # of an array one task

    def _may_start(self, place: int) -> bool:
        each = self.walk.waiting(place)
        return not each.job.het_job_id and isinstance(self.session.attempt(each, self.walk.view(place)), Placement)


def _inside(view: PartitionView, allocation: Allocation, holds: Sequence[Hold]) -> bool:
    """Whether a place is in this partition, or this part of it, with all its nodes."""
    whole = view.partition.name == allocation.partition and len(holds) >= len(allocation.nodes)
    return whole and all(view.nodes[hold.row] for hold in holds)
