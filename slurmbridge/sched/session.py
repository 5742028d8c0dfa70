"""One cycle's working state: try a job in a partition, take what it gets, promise a start to the first that is blocked.

Answers for equal shapes are remembered within the cycle: free space only shrinks in it, so a shape that did not fit for
some length does not fit for that length or a longer one later on.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive, LicenseTerm
from slurmbridge.model.states import JobFlag, JobState, Reason
from slurmbridge.sched import reasons
from slurmbridge.sched.backfill import Horizon, expected_end
from slurmbridge.sched.choose import choose
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked, ends_too_late, of_partition, time_limit
from slurmbridge.sched.fit import Rules, capacity, fits_one, rules_of
from slurmbridge.sched.limits import Counters, LimitBook
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.place import Placement, place
from slurmbridge.sched.places import Site, find, may_use, open_nodes
from slurmbridge.sched.room import NO_OWNER, Hold, Room, empty_room
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting

_LIMITED = frozenset({"limits", "safe"})
RESERVED = "ReqNodeNotAvail, May be reserved for other job"
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
    cpus_of: dict[int, Ints]


class Session:
    def __init__(self, snapshot: Snapshot, config: ClusterConfig, now: float, memo: Memo) -> None:
        self.snapshot, self.now = snapshot, now
        self._memo = memo
        self._settings = Settings.of(config.scheduler_parameters)
        self._rules = rules_of(config)
        self._tracked = frozenset(config.accounting_tres)
        self._limited = bool(config.enforce & _LIMITED) and memo.book is not None and memo.book.any
        self._counters = memo.counters.copy() if self._limited and memo.counters is not None else None
        self._safe = "safe" in config.enforce
        if self._counters is not None and memo.book is not None and memo.book.any_run_minutes:
            self._count_run_minutes(self._counters, memo.book)
        self._licenses = _free_licenses(snapshot, config)
        self.horizon = Horizon(snapshot.columns, snapshot.room.copy(), now, self._entries)
        self._owned = bool((snapshot.room.owner != NO_OWNER).any())
        self.settled: dict[int, Blocked] = {}  # group and partition: what stopped one stops its equals
        self._too_long: dict[_Key, float] = {}
        self._waiting_for: set[int] = set()
        self._promised: dict[int, int] = {}
        self._has_promise: set[int] = set()
        self._empty: Room | None = None
        self._cpus_of: dict[int, Ints] = {}  # partition -> CPUs it uses on each node, where that is bounded

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
            if self.snapshot.reservations and not shape.reservation:
                room, limits = self.horizon.room, self.horizon.limits(length)
                kept = self._place(job, shape, view, room, limits, licenses, length, None, ignore_reservations=True)
                if kept is not None:
                    return Blocked(Reason.REQ_NODE_NOT_AVAIL, RESERVED)
            self._too_long[key] = length
        return self._misfit(job, shape, view)

    def _key(self, job: Job, shape: Shape, view: PartitionView) -> _Key:
        return shape.number, view.number, job.spec.uid if self._owned or view.partition.exclusive_user else -1

    def start(self, waiting: Waiting, view: PartitionView, placement: Placement) -> None:
        """The job has this now."""
        length = self.length(waiting.job, view)
        self.horizon.start(placement.holds, self.now + length)
        self._owned = self._owned or any(hold.owner != NO_OWNER for hold in placement.holds)
        used = self._cpus_of.get(view.number)
        if used is not None:
            for hold in placement.holds:
                used[hold.row] += hold.cpus
        for term in placement.allocation.licenses:
            self._licenses[term.name] -= term.count
        if self._counters is not None and self._memo.book is not None:
            keys = self._memo.book.keys(waiting.job, view.partition.qos)
            self._counters.add(keys, placement.allocation.tres)
            self._counters.add_minutes(keys, placement.allocation.tres, length / 60)

    def mark(self) -> Mark:
        """What `restore` goes back to. Taken before a group is tried."""
        return Mark(
            horizon=self.horizon.copy(),
            licenses=dict(self._licenses),
            counters=self._counters.copy() if self._counters is not None else None,
            owned=self._owned,
            cpus_of={number: used.copy() for number, used in self._cpus_of.items()},
        )

    def restore(self, mark: Mark) -> None:
        """Forget the starts since the mark, and what did not fit because of them."""
        self.horizon = mark.horizon.copy()
        self._licenses = dict(mark.licenses)
        self._counters = mark.counters.copy() if mark.counters is not None else None
        self._owned = mark.owned
        self._too_long.clear()
        self.settled.clear()
        self._cpus_of = {number: used.copy() for number, used in mark.cpus_of.items()}

    def wait(
        self, waiting: Waiting, view: PartitionView, blocked: Blocked
    ) -> tuple[Blocked, float | None, tuple[str, ...]]:
        """What a misfit means in its place of the order: (reason, promised start, nodes)."""
        if blocked.reason != Reason.RESOURCES or blocked.detail:
            return blocked, None, ()
        first = view.number not in self._waiting_for
        self._waiting_for.add(view.number)
        reason = Blocked(Reason.RESOURCES if first else Reason.PRIORITY)
        if waiting.job.job_id in self._has_promise or self._promised.get(view.number, 0) >= self._settings.reserve:
            return reason, None, ()
        self._promised[view.number] = self._promised.get(view.number, 0) + 1
        found = self.promise(waiting, view)
        if found is None:
            return reason, None, ()
        self._has_promise.add(waiting.job.job_id)
        start, placement = found
        return reason, start, tuple(node.node for node in placement.allocation.nodes)

    def promised_enough(self, view: PartitionView, blocked: Blocked) -> bool:
        """Whether no later job that is blocked like this gets a promise in this partition."""
        if blocked.reason != Reason.RESOURCES or blocked.detail:
            return True
        return self._promised.get(view.number, 0) >= self._settings.reserve

    def promise(self, waiting: Waiting, view: PartitionView) -> tuple[float, Placement] | None:
        """Reserve the earliest start."""
        job, shape = waiting.job, waiting.shape
        length = self.length(job, view)

        def fits(when: float, room: Room, least: Room) -> Placement | None:
            return self._place(job, shape, view, room, least, (), length, None, when)

        steady = not (self._owned or self.snapshot.reservations)
        found = self.horizon.earliest(length, self._settings.window_s, fits, only_grows=steady)
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

    def _most_cpus(self, view: PartitionView) -> Ints | None:
        """CPUs that the partition may still use on each node (MaxCPUsPerNode)."""
        bound = view.partition.max_cpus_per_node
        if bound is None:
            return None
        used = self._cpus_of.get(view.number)
        if used is None:
            used = self._cpus_of[view.number] = np.zeros(self.snapshot.columns.count, dtype=np.int64)
            for each in self.snapshot.running.values():
                if each.job.allocation is not None and each.job.allocation.partition == view.partition.name:
                    for hold in each.holds:
                        used[hold.row] += hold.cpus
        return np.maximum(bound - used, 0)

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
        when: float | None = None,
        *,
        ignore_reservations: bool = False,
    ) -> Placement | None:
        site = self.site(shape, view)
        if site.unknown:
            return None
        begin = self.now if when is None else when
        opened = None if ignore_reservations else open_nodes(self.snapshot, shape.reservation, begin, length)
        rules = self._rules_for(job, shape, view)
        for each in site.alternatives:
            if opened is not None:
                each = each.within(opened)
            if without is not None:
                each = each.within(~without)
            placement = place(
                shape,
                view,
                self.snapshot.columns,
                room,
                limits,
                each,
                site.required,
                rules,
                licenses,
                self._tracked,
                self._most_cpus(view),
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
                    view.bounds,
                    empty.cpus,
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
        return self._memo.book.refusal(job, view.partition.qos, tres, minutes, self._counters, safe=self._safe)

    def _count_run_minutes(self, counters: Counters, book: LimitBook) -> None:
        """What running jobs may still use: TRES x minutes left of their limits."""
        for each in self.snapshot.running.values():
            allocation, end = each.job.allocation, each.job.time_limit_end
            if allocation is not None and end is not None and not each.job.state.is_finished:
                view = self.snapshot.partitions.get(allocation.partition)
                keys = book.keys(each.job, view.partition.qos if view else "")
                counters.add_minutes(keys, allocation.tres, max(end - self.now, 0.0) / 60)

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
