"""Who may use what is kept for a promised start?

A promise keeps nodes idle until the last of them falls free, mostly long before the time limits say. Where the site lends it
(`promised: lent`), work that may be ended and begins again by itself starts there although it may run past the promised start,
if a fair part of its limit lies before it. Such a run says whose start it has (`Allocation.lent_to`): while that job waits, plans
count it as gone by then, and as soon as the job can start without it, it is ended (see `recalls`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import msgspec
import numpy as np

from slurmbridge.model.plan import Nomination
from slurmbridge.sched.backfill import Reserved
from slurmbridge.sched.columns import Bools
from slurmbridge.sched.eligibility import NO_ROOM, Blocked
from slurmbridge.sched.loans import RESTARTS, lends
from slurmbridge.sched.market import Market
from slurmbridge.sched.place import Placement
from slurmbridge.sched.snapshot import PartitionView, Waiting
from slurmbridge.sched.turns import Turns
from slurmbridge.sched.walk import Walk

BEFORE = 0.25
"""This part of a limit must lie before the promised start. Most limits are several times what the run takes."""


def lend(walk: Walk, waited_for: Iterable[Nomination]) -> None:
    """Start in what is kept for promised jobs, in the queues' turns, after everything that fits has started.

    `waited_for`: jobs for whom somebody is on his way out; nobody else comes in between.
    """
    if lends(walk.snapshot, walk.memo):
        _Lending(walk).lend({each.job_id for each in waited_for})


class _Lending:
    def __init__(self, walk: Walk) -> None:
        self._walk, self._session = walk, walk.session

    def lend(self, but: set[int]) -> None:
        """`but`: jobs of whose room nothing is lent."""
        reserved = [each for each in self._session.horizon.reserved if each.job_id not in but]
        promises = {each.placement.allocation.partition: each for each in reserved}
        if not promises:
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
        for start, then in session.horizon.promised_rooms(length):
            if start == promise.start:  # several may be promised the same start
                then = then.copy(with_cpu_numbers=False)
                for hold in promise.placement.holds:
                    then.give(hold)
            limits = limits.tightened(then)
        found = session.finder.place(waiting.job, waiting.shape, view, room, limits, licenses, length, None)
        if found is None:
            return NO_ROOM
        allocation = msgspec.structs.replace(found.allocation, lent_to=promise.job_id)
        given = msgspec.structs.replace(found, allocation=allocation, until=promise.start)
        return session.within_limits(waiting, view, given)
