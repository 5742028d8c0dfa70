"""One cycle's working state: try a job in a partition, take what it gets, promise a start to the first that is blocked.

Answers for equal shapes are remembered within the cycle: free space only shrinks in it, so a shape that did not fit for
some length does not fit for that length or a longer one later on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.request import LicenseTerm
from slurmbridge.model.states import Reason
from slurmbridge.sched.allowances import Allowances, Spent
from slurmbridge.sched.backfill import Horizon, Point
from slurmbridge.sched.choose import Part
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import NO_ROOM, Blocked, ends_too_late
from slurmbridge.sched.fates import Fate, cuts, fate_of, length_of
from slurmbridge.sched.finder import Finder
from slurmbridge.sched.first_node import FirstNode
from slurmbridge.sched.fit import rules_of
from slurmbridge.sched.loans import lent
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.pending import switch_wait_end
from slurmbridge.sched.place import Placement
from slurmbridge.sched.places import Site
from slurmbridge.sched.portion import ANY, Portions
from slurmbridge.sched.room import NO_OWNER, Room
from slurmbridge.sched.screen import MEMORY, MILLI, floor_of, hopeless
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting
from slurmbridge.sched.soonest import least_of
from slurmbridge.sched.terms import Settings, reservation_gate

RESERVED = "ReqNodeNotAvail, May be reserved for other job"
_Key = tuple[int, int, int]


IN_VAIN = 4
"""After so many jobs of a partition whose start lies beyond bf_window nobody else there is promised one in a cycle."""


class Mark(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A session's changing parts at one moment."""

    horizon: Point
    spent: Spent
    owned: bool
    cpus_of: dict[int, Ints]
    too_long: dict[_Key, float]
    least: dict[int, NDArray[np.float64]]
    until: NDArray[np.float64] | None  # of the nodes, where those in use for longest come first


class Session:
    def __init__(self, snapshot: Snapshot, config: ClusterConfig, now: float, memo: Memo) -> None:
        self.snapshot, self.now = snapshot, now
        self._memo = memo
        self._settings = Settings.of(config)
        self.rules = rules_of(config)
        self.tracked = frozenset(config.accounting_tres)
        self.finder = Finder(snapshot, memo, now, self.rules, self.tracked)
        self.allowances = Allowances(snapshot, config, now, memo)
        self.lent = lent(snapshot)
        self.horizon = Horizon(snapshot.columns, snapshot.room.copy(), now, snapshot.held.ending(self.lent))
        self._too_long: dict[_Key, float] = {}
        self._first_node = FirstNode(snapshot, self.finder, self.rules, self.tracked, memo.portions)
        self._floors: dict[int, list[int]] = {}
        self.misses = 0  # shapes that were looked at closely for nothing since the last screening
        self._least: dict[int, NDArray[np.float64]] = {}
        self._screened: dict[int, tuple[Ints, PartitionView]] = {}
        self._waiting_for: set[int] = set()
        self._promised: dict[int, int] = {}
        self._in_vain: dict[int, int] = {}  # by partition: jobs whose start lies too far ahead for a promise
        self._has_promise: set[int] = set()
        self.promised_out: set[int] = set()  # partitions in which nobody else gets a promise

    def fate(self, waiting: Waiting, view: PartitionView) -> Fate:
        """Kept by the memo for all jobs of the group."""
        key = waiting.group, view.number
        found = self._memo.fates.get(key)
        if found is None:
            found = self._memo.fates[key] = fate_of(waiting.job, waiting.shape, view, self._memo.alones)
        return found

    def certainly_blocked(self, waiting: Waiting, view: PartitionView) -> Blocked | None:
        """A quick look: why a job cannot start now, when that is known without looking at nodes."""
        fate = self.fate(waiting, view)
        if fate.blocked is not None:
            return fate.blocked
        shape = waiting.shape
        if not fate.plain or self.counts_limits:
            return None
        known = self._too_long.get(self._key(waiting.job, shape, view))
        if known is not None and fate.length >= known:
            return self.finder.misfit(waiting.job, shape, view)
        return None

    def screen(self, shapes: Ints, view: PartitionView) -> None:
        """Note which of these shapes (by number) fit nowhere in a partition, before any is looked at closely.

        A promise screens those again that are known then: a run that reaches past it has less room.
        """
        if view.share > 1 or self.finder.owned or view.partition.exclusive_user or not len(shapes):
            return
        self._screened[view.number] = shapes, view
        self._screen(shapes, view, self.horizon.room, 0.0)

    def _screen(self, shapes: Ints, view: PartitionView, room: Room, length: float) -> None:
        asked = self._memo.floors[shapes]
        none = hopeless(asked, self.snapshot.columns, room, view.nodes, self.rules)
        least = self.too_long(view)
        least[shapes[none]] = np.fmin(least[shapes[none]], length)
        for number in shapes[none].tolist():
            key = number, view.number, -1
            self._too_long[key] = min(self._too_long.get(key, math.inf), length)

    def too_long(self, view: PartitionView) -> NDArray[np.float64]:
        """By the shape's number: runs of this length, or longer ones, certainly find no room in a partition now."""
        found = self._least.get(view.number)
        if found is None:
            found = self._least[view.number] = np.full(len(self._memo.floors), math.nan)  # nan: not known
        return found

    def misfit(self, waiting: Waiting, view: PartitionView) -> Blocked:
        """Why a shape that finds no room finds none."""
        return self.finder.misfit(waiting.job, waiting.shape, view)

    @property
    def counts_limits(self) -> bool:
        """Whether limits of associations or QOS could stop somebody."""
        return self.allowances.counts_limits

    def screen_again(self) -> None:
        """Once more: starts and promises since have left less room."""
        self.misses = 0
        for shapes, view in self._screened.values():
            known = self.too_long(view)[shapes] <= 0
            self._screen(shapes[~known], view, self.horizon.room, 0.0)
        self._screen_again()

    def _screen_again(self) -> None:
        for shapes, view in self._screened.values():
            known = [self._too_long.get((number, view.number, -1), math.inf) > 0 for number in shapes.tolist()]
            for length, room in self.horizon.past_promises():
                self._screen(shapes[np.array(known, dtype=np.bool_)], view, room, length)

    def admits(self, waiting: Waiting, view: PartitionView) -> tuple[LicenseTerm, ...] | Blocked:
        """The licences that the job would get, or why it may not start now in this partition whatever is free."""
        job, shape = waiting.job, waiting.shape
        blocked = self.fate(waiting, view).blocked
        if blocked is not None:
            return blocked
        if job.spec.deadline is not None and ends_too_late(job, view.partition, self.now):
            return Blocked(Reason.DEADLINE)
        refused = self.allowances.refusal(waiting, view, job.spec.req_tres)
        if refused:
            return Blocked(refused)
        licenses = self.allowances.licenses(shape)
        if licenses is None:
            return Blocked(Reason.LICENSES)
        return (reservation_gate(self.snapshot, job, self.now) if shape.reservation else None) or licenses

    def within_limits(self, waiting: Waiting, view: PartitionView, placement: Placement) -> Placement | Blocked:
        """The same placement, or the limit that it would pass."""
        refused = self.allowances.refusal(waiting, view, placement.allocation.tres)
        return Blocked(refused) if refused else placement

    def attempt(self, waiting: Waiting, view: PartitionView, without: Bools | None = None) -> Placement | Blocked:
        """Where the job could start now in this partition (on other nodes than `without`), or why not."""
        job, shape = waiting.job, waiting.shape
        licenses = self.admits(waiting, view)
        if isinstance(licenses, Blocked):
            return licenses
        fate = self.fate(waiting, view)
        length = fate.length
        key = self._key(job, shape, view)
        known = self._too_long.get(key) if without is None else None
        if known is not None and length >= known:
            return self.finder.misfit(job, shape, view)
        if fate.whole > length:
            placement = self._shortened(job, shape, view, fate, licenses, without)
        elif fate.alone is not None and without is None and not self.finder.owned and not self.snapshot.reservations:
            floor = self._floor(shape)
            placement = self._first_node.place(waiting, view, fate, licenses, self.horizon, floor)
        else:
            room, limits = self.horizon.room, self.horizon.limits(length)
            placement = self.finder.place(job, shape, view, room, limits, licenses, length, without)
        if placement is not None:
            return self.within_limits(waiting, view, placement)
        if without is None:
            if self.snapshot.reservations and not shape.reservation:
                room, limits = self.horizon.room, self.horizon.limits(length)
                kept = self.finder.place(
                    job, shape, view, room, limits, licenses, length, None, ignore_reservations=True
                )
                if kept is not None:
                    return Blocked(Reason.REQ_NODE_NOT_AVAIL, RESERVED)
            self._too_long[key] = length
            self.misses += 1
            least = self.too_long(view)
            if key[2] == -1 and shape.number < len(least):  # else a shape that only a question has
                least[shape.number] = np.fmin(least[shape.number], length)
        return self.finder.misfit(job, shape, view)

    def _shortened(
        self,
        job: Job,
        shape: Shape,
        view: PartitionView,
        fate: Fate,
        licenses: tuple[LicenseTerm, ...],
        without: Bools | None,
    ) -> Placement | None:
        """A job with --time-min: for its whole limit where that fits, else for the longest time that does."""
        for length in cuts(job, fate, self.now, self._stops()):
            limits = self.horizon.limits(length)
            found = self.finder.place(job, shape, view, self.horizon.room, limits, licenses, length, without)
            if found is not None:
                return found if length >= fate.whole else msgspec.structs.replace(found, minutes=int(length // 60))
        return None

    def _stops(self) -> list[float]:
        """When something begins that a run may have to be gone for."""
        reservations = [each.start_time for each in self.snapshot.reservations]
        return [*reservations, *(each.start for each in self.horizon.reserved)]

    def _key(self, job: Job, shape: Shape, view: PartitionView) -> _Key:
        return shape.number, view.number, job.spec.uid if self.finder.owned or view.partition.exclusive_user else -1

    def start(self, waiting: Waiting, view: PartitionView, placement: Placement) -> None:
        """The job has this now."""
        length = self.runs_for(waiting, view, placement)
        self.horizon.start(placement.holds, min(self.now + length, placement.until))
        if self.finder.lasting is not None:
            for hold in placement.holds:
                self.finder.lasting.started(hold.row, self.now + length)
        self.finder.owned = self.finder.owned or any(hold.owner != NO_OWNER for hold in placement.holds)
        used = self.finder.cpus_of.get(view.number)
        if used is not None:
            for hold in placement.holds:
                used[hold.row] += hold.cpus
        self.allowances.count(waiting, view, placement, length)

    def take_back(self, waiting: Waiting, view: PartitionView, placement: Placement) -> None:
        """The job that has this since `start` does not start after all. What is known to find no room stays so."""
        length = self.runs_for(waiting, view, placement)
        self.horizon.take_back(placement.holds, min(self.now + length, placement.until))
        used = self.finder.cpus_of.get(view.number)
        if used is not None:
            for hold in placement.holds:
                used[hold.row] -= hold.cpus
        self._first_node.forget()
        self.allowances.count(waiting, view, placement, length, sign=-1)

    def runs_for(self, waiting: Waiting, view: PartitionView, placement: Placement) -> float:
        """Seconds that a job has there at most."""
        return self.fate(waiting, view).whole if placement.minutes is None else 60.0 * placement.minutes

    def mark(self) -> Mark:
        """What `restore` goes back to. Taken before a group is tried."""
        return Mark(
            horizon=self.horizon.mark(),
            spent=self.allowances.mark(),
            owned=self.finder.owned,
            cpus_of={number: used.copy() for number, used in self.finder.cpus_of.items()},
            too_long=dict(self._too_long),
            least={number: least.copy() for number, least in self._least.items()},
            until=self.finder.lasting.until.copy() if self.finder.lasting is not None else None,
        )

    def restore(self, mark: Mark) -> None:
        """Forget the starts since the mark, and what did not fit because of them."""
        self.horizon.restore(mark.horizon)
        self.allowances.restore(mark.spent)
        self.finder.owned = mark.owned
        self._too_long = dict(mark.too_long)
        self._least = {number: least.copy() for number, least in mark.least.items()}
        if self.finder.lasting is not None and mark.until is not None:
            self.finder.lasting.until = mark.until.copy()
        self._first_node.forget()
        self.finder.cpus_of = {number: used.copy() for number, used in mark.cpus_of.items()}

    def wait(
        self, waiting: Waiting, view: PartitionView, blocked: Blocked
    ) -> tuple[Blocked, float | None, tuple[str, ...]]:
        """What a misfit means in its place of the order: (reason, promised start, nodes)."""
        if not blocked.lacks_room:
            return blocked, None, ()
        first = view.number not in self._waiting_for
        self._waiting_for.add(view.number)
        reason = NO_ROOM if first else Blocked(Reason.PRIORITY)
        if self._memo.book is not None and not self._memo.book.reserves(waiting.job):
            return reason, None, ()
        if waiting.job.job_id in self._has_promise or view.number in self.promised_out:
            return reason, None, ()
        found = self.promise(waiting, view)
        if found is None:
            self._count(self._in_vain, view, IN_VAIN)
            return reason, None, ()
        self._count(self._promised, view, self._settings.reserve)
        self._has_promise.add(waiting.job.job_id)
        start, placement = found
        return reason, start, tuple(node.node for node in placement.allocation.nodes)

    def _count(self, counts: dict[int, int], view: PartitionView, most: int) -> None:
        counts[view.number] = counts.get(view.number, 0) + 1
        if counts[view.number] >= most:
            self.promised_out.add(view.number)

    def _floor(self, shape: Shape) -> list[int]:
        """`floor`, of memory nothing where it is not counted; of devices that are shared by MiB, the least part."""
        found = self._floors.get(shape.number)
        if found is None:
            found = self._floors[shape.number] = list(self.floor(shape))
            if not self.rules.counts_memory:
                found[MEMORY] = ANY
            if shape.gpu is not None and shape.gpu.mib:
                found[MILLI] = shape.gpu.mib * 1000 // max(int(self.snapshot.columns.device_mib.max(initial=0)), 1)
        return found

    def floor(self, shape: Shape) -> Sequence[int]:
        """The least that each node must give: see `screen`."""
        if shape.number >= len(self._memo.floors):  # a shape that only a question has
            return floor_of(shape)
        found: list[int] = self._memo.floors[shape.number].tolist()
        return found

    def place_later(
        self,
        waiting: Waiting,
        view: PartitionView,
        room: Room,
        limits: Room,
        length: float,
        without: Bools | None = None,
    ) -> Placement | None:
        """Where the job fits in another room than the present one (on other nodes than `without`); CPU numbers are left open."""
        job, shape = waiting.job, waiting.shape
        licenses = self.allowances.licenses(shape)
        if licenses is None:
            return None
        return self.finder.place(job, shape, view, room, limits, licenses, length, without)

    def promised_to(self, job_id: int, view: PartitionView | None = None) -> None:
        """A job got a promise outside of the usual order. `view`: it is one of those that a partition has to give."""
        self._has_promise.add(job_id)
        if view is not None:
            self._count(self._promised, view, self._settings.reserve)
        self._first_node.forget()

    def promise(self, waiting: Waiting, view: PartitionView) -> tuple[float, Placement] | None:
        """Reserve the earliest start."""
        job, shape = waiting.job, waiting.shape
        length = length_of(job, view)
        gives_up = switch_wait_end(job) if shape.switches else math.inf
        looser = msgspec.structs.replace(shape, switches=0) if gives_up < math.inf else shape

        def fits(when: float, room: Room, least: Room) -> Placement | None:
            wish = shape if when < gives_up else looser
            return self.finder.place(job, wish, view, room, least, (), length, None, when)

        steady = not (self.finder.owned or self.snapshot.reservations)
        least = least_of(shape, view.nodes, self.rules) if gives_up == math.inf else None
        window = self._settings.window_s
        found = self.horizon.earliest(length, window, fits, only_grows=steady, more=(gives_up,), least=least)
        if found is not None:
            self.horizon.promise(job.job_id, found[0], length, found[1])
            self._screen_again()
            self.finder.owned = self.finder.owned or any(hold.owner != NO_OWNER for hold in found[1].holds)
        return found

    def portions(self, shape: Shape, view: PartitionView, part: Part) -> Portions | None:
        """What a job takes of a node that must give this part, where that is plain numbers on whichever node."""
        return self._first_node.portions(shape, view, part) if view.placing is None else None

    def site(self, shape: Shape, view: PartitionView) -> Site:
        """The nodes that a shape may have in a partition."""
        return self.finder.site(shape, view)

    def fits_never(self, waiting: Waiting, view: PartitionView) -> bool:
        """Whether nothing that ends could make room for the job there."""
        found = self.fate(waiting, view).blocked or self.finder.misfit(waiting.job, waiting.shape, view)
        return not found.lacks_room
