"""Who gives way so that a promised job can start now?

What was lent goes as soon as the job can start without it (see `lending`): whoever was promised a start there. Other work that may
be ended gives way, too, but only to a large job, and only where little is lost: much less than the job would do until its
promised start. Draining many nodes for one long run costs more than that run is worth.

Promised jobs are gone through as they are looked at after that, each beside what those before it get. What is freed is held for
whom it is freed (see `firsts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.plan import Eviction, Nomination
from slurmbridge.sched.claims import part_of
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.eligibility import NO_ROOM
from slurmbridge.sched.held import OVERRUN_S
from slurmbridge.sched.kept import nomination_of
from slurmbridge.sched.loans import RESTARTS, lends
from slurmbridge.sched.place import Placement
from slurmbridge.sched.preemption import REQUEUE, Rules, is_evictable
from slurmbridge.sched.promised import by_start, gives_precedence
from slurmbridge.sched.room import Room
from slurmbridge.sched.runs import CPU_PART, MODES, costs
from slurmbridge.sched.snapshot import PartitionView, Running, Waiting
from slurmbridge.sched.walk import Walk

LITTLE = 0.03
"""What may be lost: this part of what the promised job would do until its promised start."""
LARGE = 0.125
"""Other work gives way to jobs of more than this part of their pool. For small ones room is found soon anyway."""


class _Loan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run that may be ended for a promised job. `cost`: device-seconds that are lost."""

    running: Running
    lent: bool
    cost: float


class _Recall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Who goes for a promised job, and the place that it gets then."""

    place: int  # its entry
    waiting: Waiting
    view: PartitionView
    start: float
    placement: Placement
    victims: Sequence[_Loan]


class Recalls:
    """One cycle's. `evictions`: of those that give way; `nominations`: for whom."""

    def __init__(self, walk: Walk, rules: Rules) -> None:
        self._walk, self._session, self._rules = walk, walk.session, rules
        self._lends = lends(walk.snapshot, walk.memo)
        self._served = walk.memo.runs.served() if self._lends else set[int]()
        self._importance = {qos.name: qos.priority for qos in walk.snapshot.accounting.qos}
        self._ending: set[int] = set()
        self.evictions: list[Eviction] = []
        self.nominations: list[Nomination] = []

    def seek(self, looked_at: set[int]) -> None:
        """End what keeps promised jobs from starting now, if it may be ended. `looked_at`: rows that need no look. All but the ends
        is forgotten again.
        """
        if not self._lends:
            return
        session, rows, found = self._session, list(by_start(self._walk, looked_at).values()), list[_Recall]()
        if not rows:
            return
        mark = session.mark()
        for number, places in enumerate(rows, start=1):
            self._try(places, found, is_last=number == len(rows))
        session.restore(mark)
        for recall in found:
            self._take(recall)
            self._end(recall)

    def _try(self, places: Sequence[int], found: list[_Recall], *, is_last: bool) -> None:
        """For one job: it starts, or others go so that it can, or it is promised a start as late as ever."""
        walk, session = self._walk, self._session
        roomless = []
        for place in places:
            waiting, view = walk.waiting(place), walk.view(place)
            if waiting.job.het_job_id or walk.refusal(place) is not None or gives_precedence(walk, place):
                continue
            start = session.attempt(waiting, view)
            if isinstance(start, Placement):
                session.start(waiting, view, start)
                return
            if start.lacks_room:
                roomless.append(place)
        for place in roomless:
            recall = self._recall(place)
            if recall is not None:
                self._take(recall)
                found.append(recall)
                return
        for place in roomless if not is_last else ():
            if session.promise(walk.waiting(place), walk.view(place)) is not None:
                return

    def _recall(self, place: int) -> _Recall | None:
        """Who has to go so that the job of an entry can start, if that is worth it."""
        if self._walk.id(place) in self._served:
            return None
        loans = [each for each in self._loans() if each.lent or not self._comes_before(each, place)]
        own = [each for each in loans if each.lent]
        for those in (own, loans) if len(own) < len(loans) and self._is_large(place) else (own,):
            found = self._in_the_way(place, those) if those else None
            if found is not None and self._is_worth_it(place, found.victims):
                return found
        return None

    def _comes_before(self, loan: _Loan, place: int) -> bool:
        """Whether a run would be more important in the queue of an entry, were it to wait there."""
        walk, job = self._walk, loan.running.job
        market, leaf, _ = walk.queue_of(place)
        important = self._importance.get(job.spec.qos, 0) > walk.memo.queued.importance[walk.groups[place]]
        return bool(important) and market is not None and market.pool.leaf(job.spec.assoc_id) == leaf

    def _take(self, recall: _Recall) -> None:
        """Hold for it what others leave."""
        session, waiting, placement = self._session, recall.waiting, recall.placement
        length = session.fate(waiting, recall.view).length
        leaving = [each.running for each in recall.victims]
        self._ending.update(each.job.job_id for each in leaving)
        session.horizon.ends_now(
            [each.job.job_id for each in leaving], [(each.end, hold) for each in leaving for hold in each.holds]
        )
        session.horizon.promise(waiting.job.job_id, recall.start, length, placement)
        session.allowances.count(waiting, recall.view, placement, length)

    def _loans(self) -> list[_Loan]:
        """All runs that may give way, the dearest first. What is lent to one is lent to everybody who was promised a start: plans
        count it as gone.
        """
        runs, snapshot, now = self._walk.memo.runs.rows, self._walk.snapshot, self._session.now
        chosen = runs[~runs["firm"] & runs["counts"]]
        found = []
        for number, cost in zip(
            chosen["id"].tolist(), costs(chosen, _requeued(len(chosen)), now).tolist(), strict=True
        ):
            running = snapshot.running[number]
            job, allocation = running.job, running.job.allocation
            if allocation is None or not is_evictable(job) or not job.may_requeue or number in self._ending:
                continue
            mine = number in self._session.lent
            if mine or (job.restarts < RESTARTS and self._rules.exempt_until(job) <= now):
                found.append(_Loan(running=running, lent=mine, cost=cost))
        found.sort(key=lambda each: (each.lent, -each.cost, each.running.job.job_id))
        return found

    def _is_large(self, place: int) -> bool:
        market, _, ask = self._walk.queue_of(place)
        if market is None or ask is None:
            return False
        return part_of(ask, market.total) > LARGE

    def _is_worth_it(self, place: int, victims: Sequence[_Loan]) -> bool:
        lost = sum([each.cost for each in victims if not each.lent])
        cpus, _, devices = self._walk.memo.queued.vectors[int(self._walk.groups[place])].tolist()
        told = float(self._walk.snapshot.pending.rows["start"][self._walk.rows[place]])
        would_do: float = (devices + CPU_PART * cpus) * max(told - self._session.now, 0.0)
        return lost <= LITTLE * would_do

    def _in_the_way(self, place: int, loans: Sequence[_Loan]) -> _Recall | None:
        """Those that must go, as few and cheap as can be told quickly; None: the job does not fit even without them all."""
        session, waiting, view = self._session, self._walk.waiting(place), self._walk.view(place)
        horizon, length = session.horizon, session.fate(waiting, view).length
        room, gone_in_s = horizon.room_at(session.now + OVERRUN_S), self._gone_in_s(loans)
        windows = [
            (start, window.copy(with_cpu_numbers=False)) for start, window in horizon.promised_rooms(gone_in_s + length)
        ]

        def frees(loan: _Loan) -> list[Room]:
            """Where its end gives room; what is lent is gone already as the horizon has it."""
            until = session.now if loan.lent else loan.running.end
            return [window for start, window in windows if session.now + OVERRUN_S <= start < until]

        loss = np.zeros(len(view.nodes))
        for each in loans:
            for hold in each.running.holds:
                loss[hold.row] += each.cost
                for given in (*([] if each.lent else [room]), *frees(each)):
                    given.give(hold)
        limits = room
        for _, window in windows:
            limits = limits.tightened(window)
        placement = self._cheapest(waiting, view, room, limits, loss)
        if placement is None:
            return None
        for hold in placement.holds:
            room.take(hold)
            for _, window in windows:
                window.take(hold)
        victims = [each for each in loans if not _stays(each.running, (room, *frees(each)))]
        if not victims:  # what it waits for goes by itself
            return None
        start = session.now + self._gone_in_s(victims)
        return _Recall(place=place, waiting=waiting, view=view, start=start, placement=placement, victims=victims)

    def _gone_in_s(self, loans: Sequence[_Loan]) -> float:
        return OVERRUN_S + max((self._rules.grace_s(each.running.job) for each in loans), default=0)

    def _cheapest(
        self, waiting: Waiting, view: PartitionView, room: Room, limits: Room, loss: NDArray[np.float64]
    ) -> Placement | None:
        """Where the job fits on nodes on which the least is lost."""
        order = np.argsort(loss, kind="stable")

        def on_first(count: int) -> Placement | None:
            without = np.ones(len(order), dtype=np.bool_)
            without[order[:count]] = False
            return self._session.place_later(waiting, view, room, limits, length, without)

        length, low, high = self._session.fate(waiting, view).length, max(waiting.shape.min_nodes, 1), len(order)
        found = on_first(high)
        while found is not None and low < high:
            middle = (low + high) // 2
            closer = on_first(middle)
            if closer is None:
                low = middle + 1
            else:
                high, found = middle, closer
        return found

    def _end(self, recall: _Recall) -> None:
        """Say who goes, and for whom."""
        walk, place, job_id = self._walk, recall.place, recall.waiting.job.job_id
        for each in recall.victims:
            job = each.running.job
            self.evictions.append(
                Eviction(
                    job_id=job.job_id,
                    mode=REQUEUE,
                    for_job=job_id,
                    grace_s=self._rules.grace_s(job),
                    reason="preempt",
                    restarts=job.restarts,
                )
            )
        victims = tuple(each.running.job.job_id for each in recall.victims)
        nomination = nomination_of(job_id, recall.start, recall.placement.allocation, victims)
        self.nominations.append(nomination)
        self._session.promised_to(job_id, recall.view)
        walk.board.serve(walk.rows[place], walk.board.code(NO_ROOM), recall.start, nomination.nodes)
        walk.tally.promises += 1
        if not recall.waiting.job.is_array_record:
            walk.done.add(walk.rows[place])


def _requeued(count: int) -> Ints:
    """How each of so many runs is ended, as `runs` counts it."""
    return np.full(count, MODES.index(REQUEUE), dtype=np.int64)


def _stays(running: Running, rooms: Sequence[Room]) -> bool:
    """Whether there is room for a run after all, at each of some times: it is taken then."""
    for room in rooms:
        for hold in running.holds:
            room.take(hold)
    if not any(_is_short(room, row) for room in rooms for row in _rows(running)):
        return True
    for room in rooms:
        for hold in running.holds:
            room.give(hold)
    return False


def _rows(running: Running) -> Iterator[int]:
    return (hold.row for hold in running.holds)


def _is_short(room: Room, row: int) -> bool:
    """Whether more is given out of a node than there is."""
    return bool(room.cpus[row] < 0 or room.memory[row] < 0 or (room.milli[row] < 0).any() or (room.mib[row] < 0).any())
