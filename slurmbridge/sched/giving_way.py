"""Which jobs get room that others hold? After everything that fits has started.

preempt: what the site's preemption lets one job take from another. reclaim: a queue that stays inside its share takes what
others hold beyond theirs, each run judged before it is taken, in the order in which they would lose. consolidate: runs are
moved so that scattered room comes together; nobody is left without a place. Each job tries them in this order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from slurmbridge.model.job import Job
from slurmbridge.model.plan import Eviction, Nomination
from slurmbridge.sched import gains, gates, reclaiming
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import NO_ROOM
from slurmbridge.sched.elsewhere import Elsewhere
from slurmbridge.sched.evictable import Victim, Victims, charged
from slurmbridge.sched.kept import nomination_of
from slurmbridge.sched.laid_out import LaidOut
from slurmbridge.sched.making_room import Found, RoomMaker, Rule
from slurmbridge.sched.market import Market
from slurmbridge.sched.payers import AllPayers
from slurmbridge.sched.place import Placement
from slurmbridge.sched.preemptable import Preemptable
from slurmbridge.sched.preemption import REQUEUE, Rules
from slurmbridge.sched.queues import TOLERANCE, Vector, fits, plus
from slurmbridge.sched.snapshot import PartitionView, Running, Waiting
from slurmbridge.sched.turns import Turns
from slurmbridge.sched.unbegun import counted_in, place_of
from slurmbridge.sched.walk import Walk

ALL = -1
"""Instead of a pool's number: all nodes."""
MOST = 4096
"""Jobs that room is sought for in one cycle."""
SERVED, PART_SERVED = 256, 10
"""Jobs that room is made for in one cycle, or runs ended for them: others see what came of it first. What ends calls for
the next cycle. Of large clusters as many as a tenth of their nodes, so that they settle in as many cycles whatever their size."""
MISSES = 8
"""A queue for whose first kinds of jobs so many searches found nothing is not looked at further in a cycle."""
CONSOLIDATION_VICTIMS = 16


_Wanted = tuple[bool, bool, bool]


def _wanted(ask: Vector) -> _Wanted:
    return ask[0] > 0, ask[1] > 0, ask[2] > 0


class Ways(msgspec.Struct, kw_only=True):
    """What a cycle takes from whom."""

    evictions: list[Eviction] = msgspec.field(default_factory=list)
    nominations: list[Nomination] = msgspec.field(default_factory=list)


class GivingWay:
    """One cycle's search."""

    def __init__(self, walk: Walk, rules: Rules) -> None:
        self.walk, self.rules, self.session = walk, rules, walk.session
        self.ways = Ways()
        self._laid_out = LaidOut(self.session)
        self._present = walk.snapshot, walk.memo.runs  # with what starts and may be taken back
        self._failed: set[int] = set()  # group and partition
        self._served: set[int] = set()  # jobs for whom others are on their way out
        self._made: dict[int, int] = {}  # row -> for how many jobs of it room is made
        self._looks = self._begun = 0  # searches; jobs that begin in the place of what would have started
        self._most = max(SERVED, walk.snapshot.columns.count // PART_SERVED)
        self._kinds: dict[object, int] = {}
        self._preemptable: dict[int, Preemptable] = {}  # by pool, ALL without pools
        self._payers = AllPayers(walk)
        self._elsewhere = Elsewhere(walk)
        self._movable: dict[int, Ints] = {}  # by pool: places of victims that may find another place
        self._unmovable: set[tuple[int, int]] = (
            set()
        )  # (shape, partition) for which nothing can be moved out of the way

    def seek(self) -> Ways:
        """Through everything that waits for room."""
        quotas = self.walk.memo.queued.has_quotas
        if not (quotas or self.rules.enabled):
            return self.ways
        self._served = self.walk.memo.runs.served()
        self._present = counted_in(self.walk, self.rules)
        for row in self.walk.held:
            self._done_with(row)
        if self.walk.markets:
            for market in self.walk.markets:
                self._pool(market)
        else:
            maker = self._maker(None)
            if len(maker.victims):
                for place in gains.in_line(self.walk):
                    while self._goes_on() and not self._skip(place) and self._preempt(place, maker, None):
                        pass  # of an array the next task
        return self.ways

    def _goes_on(self) -> bool:
        """Whether one more search is within the bounds of a cycle."""
        self._looks += 1
        served = sum(self._made.values()) + self._begun
        return self._looks <= MOST and max(served, len(self.ways.evictions)) < self._most

    def _skip(self, place: int) -> bool:
        """Only entries that nothing but missing room stopped are worth a look."""
        walk, row = self.walk, self.walk.rows[place]
        if row in walk.done or walk.keys[place] in self._failed:
            return True
        if walk.id(place) in self._served and row not in walk.held:
            return True
        if walk.roomless[place]:
            return False
        blocked = walk.stopped.get(walk.keys[place])
        return blocked is None or not blocked.lacks_room

    def _done_with(self, row: int) -> None:
        """Note if every job of a row that may start has its room."""
        waiting = self.walk.snapshot.waiting[int(self.walk.snapshot.pending.rows["id"][row])]
        if self.walk.starts.left(waiting) <= self.walk.held.get(row, 0) + self._made.get(row, 0):
            self.walk.done.add(row)

    def _maker(self, market: Market | None) -> RoomMaker:
        """Victims of a pool, or of all nodes."""
        snapshot, runs = self._present
        pool = None
        if market is not None:
            pool = charged(snapshot, runs, self.walk.memo.queued.pool_of_node, market.pool.number)
        victims = Victims(snapshot, runs, self.session.now, rules=self.rules, pool=pool)
        return RoomMaker(self.session, victims)

    # ---- one pool ----

    def _pool(self, market: Market) -> None:
        if not (self.rules.enabled or gains.worthwhile(market, self._payers.of(market))):
            return
        maker = self._maker(market)
        if not len(maker.victims):
            return
        shapes = self.walk.snapshot.shapes.shapes

        def could_move(numbers: Ints) -> Bools:
            return maker.could_have([shapes[number] for number in numbers.tolist()], self._movable_of(market, maker))

        self._payers.of(market).runs_are(maker.victims.least_of(len(market.pool.tree)))
        among = gains.entries(self.walk, market, self.rules, self._payers.of(market), could_move)
        if not among.any():
            return
        walk, missed = self.walk, dict[int, int]()  # by leaf
        for some in walk.by_rank(among):
            turns = Turns(market, walk.memo, walk.groups, walk.entries, self._skip, among=some)
            for leaf, place, ask in turns:
                if not self._goes_on():
                    return
                if missed.get(leaf, 0) < MISSES and self._one(market, maker, leaf, place, ask):
                    continue  # of an array the next task has its turn later
                self._failed.add(walk.keys[place])
                missed[leaf] = missed.get(leaf, 0) + 1
                if missed[leaf] >= MISSES:
                    turns.drop(leaf)

    def _one(self, market: Market, maker: RoomMaker, leaf: int, place: int, ask: Vector) -> bool:
        if self.rules.enabled and self._preempt(place, maker, market):
            return True
        if not self.walk.memo.queued.has_quotas:
            return False
        each = self.walk.waiting(place)
        may_go = self.walk.preemptible(each.job)
        if gates.may_reclaim(market.ledger, market.shares, leaf, ask, may_go):
            if self._reclaim(market, maker, leaf, place, ask, may_go):
                return True
        return may_go and self._consolidate(market, maker, leaf, place, ask)

    def _reclaim(self, market: Market, maker: RoomMaker, leaf: int, place: int, ask: Vector, may_go: bool) -> bool:
        each, view = self.walk.waiting(place), self.walk.view(place)
        kind: tuple[object, ...] = "reclaim", leaf, may_go, _wanted(ask)
        job = self._with_priority(place) if self.rules.enabled else None
        if job is not None:
            kind += job.spec.qos, job.priority if self.rules.by_priority else 0
        number, payers = self._kind(*kind), self._payers.of(market)
        if maker.is_hopeless(each, view, number) or not payers.any(leaf, ask):
            return False
        victims = maker.victims
        allowed = payers.among(leaf, ask, victims)
        if job is not None:
            allowed = allowed[~self._rules_of(maker, market).outranking(job, view.partition.name)[allowed]]
        if not maker.may_find(each, view, allowed, number):
            return False
        rule = reclaiming.judge(market, leaf, ask, may_go, self.walk.memo.queued.pool_of_node)
        mild = victims.starts[allowed]
        begun = allowed[~mild]
        mild[~mild] = payers.leave_enough(leaf, ask, victims.leaf[begun], victims.charge[begun])
        gently = allowed if np.count_nonzero(mild) == len(mild) else allowed[mild]
        tries = (
            (gently, reclaiming.mildly(market, leaf, ask, rule), self._kind("mildly", *kind)),
            (allowed, rule, number),
        )
        found = maker.find(each, view, tries)
        if found is None:
            return False
        self._take(place, found, maker, "reclaim")
        return True

    def _kind(self, *key: object) -> int:
        return self._kinds.setdefault(key, len(self._kinds))

    # ---- preemption ----

    def _preempt(self, place: int, maker: RoomMaker, market: Market | None) -> bool:
        each, view = self.walk.waiting(place), self.walk.view(place)
        allowed = self._rules_of(maker, market).by(self._with_priority(place), view.partition.name)
        if not len(allowed):
            return False
        kind = self._kind("preempt", each.group, view.number)
        found = maker.find(each, view, ((allowed, self._preemption_rule(each.job), kind),))
        if found is None:
            if market is None:
                self._failed.add(self.walk.keys[place])
            return False
        self._take(place, found, maker, "preempt")
        return True

    def _with_priority(self, place: int) -> Job:
        """An entry's job as rules of preemption ask for it: with its priority of now, where that matters."""
        if not self.rules.by_priority:
            return self.walk.waiting(place).job
        priority = int(self.walk.snapshot.pending.rows["priority"][self.walk.rows[place]])
        return msgspec.structs.replace(self.walk.waiting(place).job, priority=priority)

    def _rules_of(self, maker: RoomMaker, market: Market | None) -> Preemptable:
        number = ALL if market is None else market.pool.number
        known = self._preemptable.get(number)
        if known is None:
            known = self._preemptable[number] = Preemptable(self.rules, maker.victims, self.session.now)
        return known

    def _preemption_rule(self, job: Job) -> Rule:
        """Quotas stay the ceiling of what may not be ended."""

        def allowed(_: Sequence[Victim], placement: Placement | None) -> bool:
            return placement is None or self.walk.starts.books.refusal(job, placement.holds) is None

        return allowed

    # ---- consolidation ----

    def _consolidate(self, market: Market, maker: RoomMaker, leaf: int, place: int, ask: Vector) -> bool:
        """Only runs that are begun again by themselves are moved, and only where all of them have another place."""
        each, view = self.walk.waiting(place), self.walk.view(place)
        free = gains.free_devices(market)
        key = each.shape.number, view.number
        if not ask[2] or free < ask[2] - TOLERANCE or key in self._unmovable or not self._inside(market, leaf, ask):
            return False
        if maker.is_hopeless(each, view, self._kind("consolidate")):
            return False
        allowed = self._movable_of(market, maker)

        def rule(victims: Sequence[Victim], placement: Placement | None) -> bool:
            return len(victims) <= CONSOLIDATION_VICTIMS

        found = maker.find(each, view, ((allowed, rule, self._kind("consolidate")),))
        if found is None or found.cost > self._worth(each, view, ask):
            return False
        if not self._inside(
            market, leaf, reclaiming.amount(market, found.placement, self.walk.memo.queued.pool_of_node)
        ):
            return False
        stuck = [each.running for each in found.victims if self._elsewhere.place_of(each.running) is None]
        if stuck:
            for running in stuck:
                self._elsewhere.has_none(running)
            self._movable[market.pool.number] = self._elsewhere.among(allowed, maker.victims)
            self._unmovable.add(key)
            return False
        mark = self.session.mark()
        start = maker.take(found, each, view)
        moved = {victim.place: self._other_place(victim.running, start) for victim in found.victims}
        if None in moved.values():
            self._unmovable.add(key)  # others would find even less
            self.session.restore(mark)
            maker.give_back(found)
            return False
        self._note(place, found, start, "consolidate", moved)
        self._payers.charge(each.job, found.placement.holds)
        return True

    def _movable_of(self, market: Market, maker: RoomMaker) -> Ints:
        found = self._movable.get(market.pool.number)
        if found is None:
            movable = maker.victims.movable(self.session.horizon.room, market.pool.nodes, self.session.rules)
            some = maker.victims.dearest_first(movable & maker.victims.reclaimable)
            found = self._elsewhere.among(some, maker.victims)
        alive = maker.victims.alive[found]
        found = self._movable[market.pool.number] = found if alive.all() else found[alive]
        return found

    def _inside(self, market: Market, leaf: int, ask: Vector) -> bool:
        return fits(plus(market.ledger.allocated[leaf], ask), market.shares[leaf])

    def _worth(self, each: Waiting, view: PartitionView, ask: Vector) -> float:
        """Device-seconds that the job asks for: moving others must not lose more."""
        return ask[2] * self.session.fate(each, view).length

    def _other_place(self, running: Running, start: float) -> Placement | None:
        """Promise a run that is ended another place, in one pool; None: there is none."""
        found = self._elsewhere.place_of(running)
        if found is None:
            return None
        again, view, placement = found
        self.session.horizon.promise(again.job.job_id, start, self.session.fate(again, view).length, placement)
        self.session.promised_to(again.job.job_id)
        return placement

    # ---- what was found ----

    def _take(self, place: int, found: Found, maker: RoomMaker, reason: str) -> None:
        each, view = self.walk.waiting(place), self.walk.view(place)
        runs = [victim for victim in found.victims if not victim.starts]
        for victim in found.victims:
            if victim.starts:
                self.walk.take_back(place_of(victim.key))
                self._payers.changed(victim.running.job, victim.running.holds)
        if not runs and self.walk.begin(place, functools.partial(self._laid_out.start_at, holds=found.placement.holds)):
            maker.taken(found)
            self._begun += 1
            self._payers.changed(each.job, found.placement.holds)
            return
        start = maker.take(found, each, view)
        for victim in runs:
            self._payers.charge(victim.running.job, victim.running.holds, -1)
        self._payers.charge(each.job, found.placement.holds)
        moved: dict[int, Placement | None] = {}
        for victim in runs:
            other = moved[victim.place] = self._other_place(victim.running, start) if victim.mode == REQUEUE else None
            if other is not None:
                self._payers.charge(victim.running.job, other.holds)
        self._note(place, found, start, reason, moved)

    def _note(self, place: int, found: Found, start: float, reason: str, moved: Mapping[int, Placement | None]) -> None:
        """`moved`: by victim, where it is to begin again; None: nowhere certain."""
        job_id, row = self.walk.id(place), self.walk.rows[place]
        runs = [victim for victim in found.victims if not victim.starts]
        for victim in runs:
            job, other = victim.running.job, moved[victim.place]
            self.ways.evictions.append(
                Eviction(
                    job_id=job.job_id,
                    mode=victim.mode,
                    for_job=job_id,
                    grace_s=victim.grace_s,
                    reason=reason,
                    moved=other is not None,
                    restarts=job.restarts,
                )
            )
            if other is not None:
                self.ways.nominations.append(nomination_of(job.job_id, start, other.allocation))
        victims = tuple(victim.key for victim in runs)
        nomination = nomination_of(job_id, start, found.placement.allocation, victims)
        self.ways.nominations.append(nomination)
        if not (row in self._made or row in self.walk.held):
            self.walk.board.serve(row, self.walk.board.code(NO_ROOM), start, nomination.nodes)
        self._made[row] = self._made.get(row, 0) + 1
        self._done_with(row)
