"""One cycle's working state: try a job in a partition, take what it gets, promise a start to the first that is blocked.

Answers for equal shapes are remembered within the cycle: free space only shrinks in it, so a shape that did not fit for
some length does not fit for that length or a longer one later on.
"""

from __future__ import annotations

import math

import msgspec

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive, LicenseTerm
from slurmbridge.model.states import JobFlag, JobState, Reason
from slurmbridge.sched import reasons
from slurmbridge.sched.backfill import Horizon, expected_end
from slurmbridge.sched.choose import choose
from slurmbridge.sched.columns import Bools
from slurmbridge.sched.eligibility import Blocked, ends_too_late, of_partition, time_limit
from slurmbridge.sched.fit import Rules, capacity, could_fit, fits_one, rules_of
from slurmbridge.sched.limits import Counters
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.place import Placement, place
from slurmbridge.sched.places import Site, find, may_use, open_nodes
from slurmbridge.sched.room import NO_OWNER, Hold, Room, empty_room
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting

_LIMITED = frozenset({"limits", "safe"})
_Key = tuple[int, int, int]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What SchedulerParameters says."""

    reserve: int = 1  # promised starts a partition
    window_s: float = 86400.0

    @classmethod
    def of(cls, text: str) -> Settings:
        values = dict(part.strip().partition("=")[::2] for part in text.split(",") if part.strip())

        def number(name: str, default: int) -> int:
            value = values.get(name, "")
            return int(value) if value.isdigit() else default

        return cls(
            reserve=min(max(number("bf_job_part_count_reserve", 1), 1), 32),
            window_s=60.0 * max(number("bf_window", 1440), 1),
        )


class Mark(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A session's changing parts at one moment."""

    horizon: Horizon
    licenses: dict[str, int]
    counters: Counters | None
    owned: bool


class Session:
    def __init__(self, snapshot: Snapshot, config: ClusterConfig, now: float, memo: Memo) -> None:
        self.snapshot, self.now = snapshot, now
        self._memo = memo
        self._settings = Settings.of(config.scheduler_parameters)
        self._rules = rules_of(config)
        self._tracked = frozenset(config.accounting_tres)
        self._limited = bool(config.enforce & _LIMITED) and memo.book is not None and memo.book.any
        self._counters = memo.counters.copy() if self._limited and memo.counters is not None else None
        self._licenses = _free_licenses(snapshot, config)
        self.horizon = Horizon(snapshot.columns, snapshot.room.copy(), now, self._entries)
        self._owned = bool((snapshot.room.owner != NO_OWNER).any())
        self._too_long: dict[_Key, float] = {}
        self._waiting_for: set[int] = set()
        self._promised: dict[int, int] = {}
        self._empty: Room | None = None

    def _entries(self) -> list[tuple[float, Hold]]:
        found: list[tuple[float, Hold]] = []
        for each in self.snapshot.running.values():
            job = each.job
            assert job.allocation is not None
            view = self.snapshot.partitions.get(job.allocation.partition)
            limit = time_limit(job, view.partition) if view is not None else job.spec.time_limit
            completing = JobFlag.COMPLETING in job.flags or job.state is not JobState.RUNNING
            length = math.inf if limit is None else 60.0 * limit
            end = expected_end(job, length, self.now, completing=completing)
            found.extend((end, hold) for hold in each.holds)
        return found

    def length(self, job: Job, view: PartitionView) -> float:
        """Seconds a run may take at most."""
        limit = time_limit(job, view.partition)
        return math.inf if limit is None else 60.0 * limit

    def attempt(self, waiting: Waiting, view: PartitionView, without: Bools | None = None) -> Placement | Blocked:
        """Where the job could start now in this partition (on other nodes than `without`), or why not."""
        job, shape = waiting.job, waiting.shape
        partition = view.partition
        blocked = of_partition(job, partition, view.size)
        if blocked is None and ends_too_late(job, partition, self.now):
            blocked = Blocked(Reason.DEADLINE)
        if blocked is not None:
            return blocked
        if self._counters is not None:
            refused = self._refused(job, view, job.spec.req_tres)
            if refused:
                return Blocked(refused)
        licenses = self._take_licenses(job, shape)
        if licenses is None:
            return Blocked(Reason.LICENSES)
        if shape.reservation:
            blocked = self._reservation(job)
            if blocked is not None:
                return blocked
        length = self.length(job, view)
        key = self._key(job, shape, view)
        known = self._too_long.get(key) if without is None else None
        if known is not None and length >= known:
            return self._misfit(job, shape, view)
        placement = self._place(
            job, shape, view, self.horizon.room, self.horizon.limits(length), licenses, length, without
        )
        if placement is not None:
            if self._counters is not None:
                refused = self._refused(job, view, placement.allocation.tres)
                if refused:
                    return Blocked(refused)
            return placement
        if without is None:
            self._too_long[key] = length
        return self._misfit(job, shape, view)

    def _key(self, job: Job, shape: Shape, view: PartitionView) -> _Key:
        return shape.number, view.number, job.spec.uid if self._owned or view.partition.exclusive_user else -1

    def start(self, waiting: Waiting, view: PartitionView, placement: Placement) -> None:
        """The job has this now."""
        length = self.length(waiting.job, view)
        self.horizon.start(placement.holds, self.now + length)
        self._owned = self._owned or any(hold.owner != NO_OWNER for hold in placement.holds)
        for term in placement.allocation.licenses:
            self._licenses[term.name] -= term.count
        if self._counters is not None and self._memo.book is not None:
            keys = self._memo.book.keys(waiting.job, view.partition.qos)
            self._counters.add(keys, placement.allocation.tres)

    def mark(self) -> Mark:
        """What `restore` goes back to. Taken before a group is tried."""
        return Mark(
            horizon=self.horizon.copy(),
            licenses=dict(self._licenses),
            counters=self._counters.copy() if self._counters is not None else None,
            owned=self._owned,
        )

    def restore(self, mark: Mark) -> None:
        """Forget the starts since the mark, and what did not fit because of them."""
        self.horizon = mark.horizon.copy()
        self._licenses = dict(mark.licenses)
        self._counters = mark.counters.copy() if mark.counters is not None else None
        self._owned = mark.owned
        self._too_long.clear()

    def wait(
        self, waiting: Waiting, view: PartitionView, blocked: Blocked
    ) -> tuple[Blocked, float | None, tuple[str, ...]]:
        """What a misfit means in its place of the order: (reason, promised start, nodes)."""
        if blocked.reason != Reason.RESOURCES or blocked.detail:
            return blocked, None, ()
        first = view.number not in self._waiting_for
        self._waiting_for.add(view.number)
        reason = Blocked(Reason.RESOURCES if first else Reason.PRIORITY)
        if self._promised.get(view.number, 0) >= self._settings.reserve:
            return reason, None, ()
        self._promised[view.number] = self._promised.get(view.number, 0) + 1
        found = self.promise(waiting, view)
        if found is None:
            return reason, None, ()
        start, placement = found
        return reason, start, tuple(node.node for node in placement.allocation.nodes)

    def promise(self, waiting: Waiting, view: PartitionView) -> tuple[float, Placement] | None:
        """Reserve the earliest start."""
        job, shape = waiting.job, waiting.shape
        length = self.length(job, view)

        def fits(room: Room, least: Room) -> Placement | None:
            return self._place(job, shape, view, room, least, (), length, None)

        found = self.horizon.earliest(length, self._settings.window_s, fits)
        if found is not None:
            self.horizon.promise(job.job_id, found[0], length, found[1])
            self._owned = self._owned or any(hold.owner != NO_OWNER for hold in found[1].holds)
        return found

    def site(self, shape: Shape, view: PartitionView) -> Site:
        key = (view.number, shape.features, shape.prefer, shape.req_nodes, shape.exc_nodes)
        found = self._memo.sites.get(key)
        if found is None:
            found = self._memo.sites[key] = find(shape, view, self.snapshot.columns)
        return found

    def _rules_for(self, job: Job, shape: Shape, view: PartitionView) -> Rules:
        owned = shape.exclusive is Exclusive.USER or view.partition.exclusive_user
        shares = view.share > 1 and (view.forced or shape.oversubscribe)
        if not (owned or shares or view.exclusive or self._owned):
            return self._rules
        return msgspec.structs.replace(
            self._rules,
            share=view.share if shares else 1,
            exclusive=view.exclusive,
            uid=job.spec.uid,
            owns=owned,
            owner_matters=self._owned,
        )

    def _place(
        self,
        job: Job,
        shape: Shape,
        view: PartitionView,
        room: Room,
        limits: Room,
        licenses: tuple[LicenseTerm, ...],
        length: float,
        without: Bools | None,
    ) -> Placement | None:
        site = self.site(shape, view)
        if site.unknown:
            return None
        opened = open_nodes(self.snapshot, shape.reservation, self.now, length)
        rules = self._rules_for(job, shape, view)
        for each in site.alternatives:
            allowed = each.nodes
            if opened is not None:
                allowed = allowed & opened
            if without is not None:
                allowed = allowed & ~without
            placement = place(
                shape,
                view,
                self.snapshot.columns,
                room,
                limits,
                allowed,
                site.required,
                rules,
                licenses,
                self._tracked,
            )
            if placement is not None:
                return placement
        return None

    def _misfit(self, job: Job, shape: Shape, view: PartitionView) -> Blocked:
        """Why it does not fit. Depends on what is fixed alone, so the memo keeps it."""
        found = self._memo.misfits.get((shape.number, view.number))
        if found is not None:
            return found
        site, columns = self.site(shape, view), self.snapshot.columns
        if self._empty is None:
            self._empty = empty_room(columns)
        empty, rules = self._empty, self._rules_for(job, shape, view)

        def fits_empty(usable_only: bool) -> bool:
            if usable_only and fits_one(shape, columns, site.alternatives[0].nodes):
                return True
            return any(
                choose(
                    shape,
                    columns,
                    capacity(shape, columns, empty, each.nodes, rules),
                    site.required,
                    view.partition.max_nodes,
                )
                is not None
                for each in (site.alternatives if usable_only else site.anywhere)
            )

        found = reasons.of_misfit(site, columns, fits_empty)
        self._memo.misfits[shape.number, view.number] = found
        return found

    def _refused(self, job: Job, view: PartitionView, tres: tuple[tuple[str, int], ...]) -> str:
        assert self._memo.book is not None and self._counters is not None
        minutes = time_limit(job, view.partition)
        return self._memo.book.refusal(job, view.partition.qos, tres, minutes, self._counters)

    def _take_licenses(self, job: Job, shape: Shape) -> tuple[LicenseTerm, ...] | None:
        """The licences that the job would get; None when they are not free."""
        if not shape.licenses:
            return ()
        free = [LicenseTerm(name=name, count=count) for name, count in shape.licenses]
        fitting = [term for term in free if self._licenses.get(term.name, 0) >= term.count]
        if shape.any_license:
            return tuple(fitting[:1]) or None
        return tuple(free) if len(fitting) == len(free) else None

    def _reservation(self, job: Job) -> Blocked | None:
        names = job.spec.reservation.split(",")
        known = [each for each in self.snapshot.reservations if each.name in names]
        if not known:
            return Blocked("ReservationDeleted")
        mine = [each for each in known if may_use(each, job)]
        if any(each.start_time <= self.now < each.end_time for each in mine):
            return None
        return Blocked(
            Reason.RESERVATION,
            until=min((each.start_time for each in mine if each.start_time > self.now), default=None),
        )


def _free_licenses(snapshot: Snapshot, config: ClusterConfig) -> dict[str, int]:
    free = {each.name: each.total for each in config.licenses}
    if free:
        for running in snapshot.running.values():
            allocation = running.job.allocation
            if allocation is not None and not running.job.state.is_finished:
                for term in allocation.licenses:
                    free[term.name] = free.get(term.name, 0) - term.count
    return free
