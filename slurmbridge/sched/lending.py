"""Who may use what is kept for a promised start, and who gives it back?

A promise keeps nodes idle until the last of them falls free, mostly long before the time limits say. Where the site lends it
(`promised: lent`), work that may be ended and begins again by itself starts there although it may run past the promised start,
if a fair part of its limit lies before it. Such a run says whose start it has (`Allocation.lent_to`): while that job waits, plans
count it as gone by then, and as soon as the job can start without it, it is ended.

Other work that may be ended gives way to a promised job, too, but only to a large one, and only where little is lost: much less
than the job would do until its promised start. Draining many nodes for one long run costs more than that run is worth.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.plan import Eviction
from slurmbridge.model.states import Reason
from slurmbridge.sched.backfill import Reserved
from slurmbridge.sched.claims import part_of
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.held import OVERRUN_S
from slurmbridge.sched.market import Market
from slurmbridge.sched.pending import NEVER
from slurmbridge.sched.place import Placement
from slurmbridge.sched.preemption import REQUEUE, Rules, is_evictable
from slurmbridge.sched.room import Room
from slurmbridge.sched.runs import CPU_PART, MODES, costs
from slurmbridge.sched.snapshot import PartitionView, Running, Waiting
from slurmbridge.sched.turns import Turns
from slurmbridge.sched.walk import Walk

BEFORE = 0.25
"""This part of a limit must lie before the promised start. Most limits are several times what the run takes."""
LITTLE = 0.03
"""What may be lost: this part of what the promised job would do until its promised start."""
LARGE = 0.125
"""Other work gives way to jobs of more than this part of their pool. For small ones room is found soon anyway."""
RESTARTS = 3
"""A job that was begun again so often is lent nothing, and gives way to nobody by these rules."""
WAITS = Blocked(Reason.RESOURCES)


class _Loan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run that may be ended for a promised job. `cost`: device-seconds that are lost."""

    running: Running
    lent: bool
    cost: float


class Lending:
    """One cycle's. `evictions`: of those that give way."""

    def __init__(self, walk: Walk, rules: Rules) -> None:
        self._walk, self._session, self._rules = walk, walk.session, rules
        snapshot, quotas = walk.snapshot, walk.memo.queued.has_quotas
        lends = snapshot.config.scheduling.promised == "lent" and not (quotas or rules.enabled)
        self._lends = lends and bool(walk.markets)  # else others decide who gives way to whom
        self.evictions: list[Eviction] = []

    # ---- before anything is promised anew ----

    def recall(self) -> None:
        """End what keeps a promised job from starting now, if it may be ended."""
        if not self._lends:
            return
        walk, rows = self._walk, self._walk.snapshot.pending.rows
        chosen = (rows["start"] != NEVER) & (rows["code"] != walk.snapshot.pending.codes.begin_time)
        places = np.flatnonzero(chosen[walk.entries.rows])
        done: set[int] = set()
        for place in places[np.argsort(rows["start"][walk.entries.rows[places]], kind="stable")].tolist():
            if walk.rows[place] not in done and walk.has_part(place) and self._recalls(place):
                done.add(walk.rows[place])

    def _recalls(self, place: int) -> bool:
        """For one entry. Whether its job can start now, or as soon as others are gone."""
        walk, session = self._walk, self._session
        waiting, view = walk.waiting(place), walk.view(place)
        if waiting.job.het_job_id or walk.refusal(place) is not None:
            return False
        found = session.attempt(waiting, view)
        if isinstance(found, Placement):
            return True
        if found.reason != Reason.RESOURCES or found.detail:
            return False
        loans = self._loans(waiting.job.job_id)
        own = [each for each in loans if each.lent]
        for those in (own, loans) if len(own) < len(loans) and self._is_large(place) else (own,):
            victims = self._in_the_way(waiting, view, those) if those else None
            if victims is not None and self._is_worth_it(place, victims):
                self._end(waiting, victims)
                return True
        return False

    def _loans(self, job_id: int) -> list[_Loan]:
        """All runs that may give way, the dearest first."""
        runs, snapshot, now = self._walk.memo.runs.rows, self._walk.snapshot, self._session.now
        chosen = runs[~runs["firm"] & runs["counts"]]
        found = []
        for number, cost in zip(
            chosen["id"].tolist(), costs(chosen, _requeued(len(chosen)), now).tolist(), strict=True
        ):
            running = snapshot.running[number]
            job, allocation = running.job, running.job.allocation
            if allocation is None or not is_evictable(job) or not job.may_requeue:
                continue
            mine = allocation.lent_to == job_id
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

    def _in_the_way(self, waiting: Waiting, view: PartitionView, loans: Sequence[_Loan]) -> list[_Loan] | None:
        """Those that must go, as few and cheap as can be told quickly; None: the job does not fit even without them all."""
        session = self._session
        room = session.horizon.room_at(session.now + OVERRUN_S)
        at_end = {each.running.job.job_id for each in loans if each.lent}  # gone by then as the horizon has it
        loss = np.zeros(len(view.nodes))
        for each in loans:
            for hold in each.running.holds:
                loss[hold.row] += each.cost
                if each.running.job.job_id not in at_end:
                    room.give(hold)
        placement = self._cheapest(waiting, view, room, loss)
        if placement is None:
            return None
        for hold in placement.holds:
            room.take(hold)
        return [each for each in loans if not _stays(each.running, room)]

    def _cheapest(
        self, waiting: Waiting, view: PartitionView, room: Room, loss: NDArray[np.float64]
    ) -> Placement | None:
        """Where the job fits on nodes on which the least is lost."""
        order = np.argsort(loss, kind="stable")

        def on_first(count: int) -> Placement | None:
            without = np.ones(len(order), dtype=np.bool_)
            without[order[:count]] = False
            return self._session.place_later(waiting, view, room, room, length, without)

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

    def _end(self, waiting: Waiting, victims: Iterable[_Loan]) -> None:
        ids, ends = [], []
        for each in victims:
            job = each.running.job
            ids.append(job.job_id)
            ends += [(each.running.end, hold) for hold in each.running.holds]
            self.evictions.append(
                Eviction(
                    job_id=job.job_id,
                    mode=REQUEUE,
                    for_job=waiting.job.job_id,
                    grace_s=self._rules.grace_s(job),
                    reason="preempt",
                    restarts=job.restarts,
                )
            )
        self._session.horizon.ends_now(ids, ends)

    # ---- after everything that fits has started ----

    def lend(self) -> None:
        """Start in what is kept for promised jobs, in the queues' turns."""
        promises = {each.placement.allocation.partition: each for each in self._session.horizon.reserved}
        if not self._lends or not promises:
            return
        among = self._takers(promises)
        if not among.any():
            return
        for market in self._walk.markets:
            self._in_turn(market, among, promises)

    def _takers(self, promises: dict[str, Reserved]) -> Bools:
        """Entries of jobs that may be ended again, and have some time before the promised start of their partition."""
        walk, now = self._walk, self._session.now
        starts = np.array(
            [
                promises[view.partition.name].start if view.partition.name in promises else now
                for view in walk.memo.places.by_number
            ]
        )[walk.entries.views]
        lengths = walk.memo.pairs.lengths[walk.entries.pairs]
        among: Bools = ~walk.memo.queued.firm[walk.groups]
        among &= (BEFORE * lengths <= starts - now) & (now + lengths > starts)
        return among

    def _in_turn(self, market: Market, among: Bools, promises: dict[str, Reserved]) -> None:
        walk, misfits = self._walk, set[int]()

        def skip(place: int) -> bool:
            job = walk.waiting(place).job
            if walk.rows[place] in walk.done or walk.keys[place] in misfits or job.restarts >= RESTARTS:
                return True
            return bool(job.het_job_id or job.array_limit or not job.may_requeue or job.job_id in mine)

        mine = {each.job_id for each in promises.values()}
        turns = Turns(market, walk.memo, walk.groups, walk.entries, skip, first=walk.order_inside(), among=among)
        for leaf, place, _ in turns:
            promise = promises[walk.view(place).partition.name]
            if not walk.begin(place, functools.partial(self._start_beside, promise=promise)):
                misfits.add(walk.keys[place])
                turns.passed(leaf)

    def _start_beside(self, waiting: Waiting, view: PartitionView, *, promise: Reserved) -> Placement | Blocked:
        """Where a job fits now if only the promises of others count."""
        session = self._session
        licenses = session.admits(waiting, view)
        if isinstance(licenses, Blocked):
            return licenses
        length = session.fate(waiting, view).length
        room = limits = session.horizon.room
        for start, other in session.horizon.promised_rooms(length):
            if start != promise.start:
                limits = limits.tightened(other)
        found = session.finder.place(waiting.job, waiting.shape, view, room, limits, licenses, length, None)
        if found is None:
            return WAITS
        allocation = msgspec.structs.replace(found.allocation, lent_to=promise.job_id)
        given = msgspec.structs.replace(found, allocation=allocation, until=promise.start)
        return session.within_limits(waiting, view, given)


def _requeued(count: int) -> Ints:
    """How each of so many runs is ended, as `runs` counts it."""
    return np.full(count, MODES.index(REQUEUE), dtype=np.int64)


def _stays(running: Running, room: Room) -> bool:
    """Whether there is room for a run after all: it is taken then."""
    for hold in running.holds:
        room.take(hold)
    if not any(_is_short(room, row) for row in _rows(running)):
        return True
    for hold in running.holds:
        room.give(hold)
    return False


def _rows(running: Running) -> Iterator[int]:
    return (hold.row for hold in running.holds)


def _is_short(room: Room, row: int) -> bool:
    """Whether more is given out of a node than there is."""
    return bool(room.cpus[row] < 0 or room.memory[row] < 0 or (room.milli[row] < 0).any() or (room.mib[row] < 0).any())
