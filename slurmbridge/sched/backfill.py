"""When will a blocked job start, and what may others use until then?

Time limits say when running jobs end. A blocked job gets a reservation: the earliest time at which it fits, its nodes
and its length. Work that starts now must leave every reservation what it needs: each reservation keeps the room that is
left at its start (a window), and a job that still runs then has to fit there too. So no reserved start is ever delayed.
Source: EASY backfill (Lifka 1995); slurm.conf(5) SchedulerParameters bf_*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched.columns import Ints, NodeColumns
from slurmbridge.sched.held import OVERRUN_S, Held
from slurmbridge.sched.place import Placement
from slurmbridge.sched.room import NO_OWNER, Hold, Room
from slurmbridge.sched.soonest import Least, bound

PROBES = 64
"""Times that are looked at one by one once a lower bound is known."""


class Reserved(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A promised start."""

    job_id: int
    start: float
    end: float
    placement: Placement


class _Window:
    """Room left at a reservation's start, that reservation taken out."""

    __slots__ = ("room", "start")

    def __init__(self, start: float, room: Room) -> None:
        self.start, self.room = start, room


class Point(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a horizon was like at one moment, beside the amounts of its rooms."""

    started: dict[int, tuple[int, float, Sequence[Hold]]]
    ending: frozenset[int]
    windows: tuple[_Window, ...]
    limits: tuple[Room, ...]
    reserved: tuple[Reserved, ...]


class Releases:
    """What becomes free when: tables ordered by time."""

    def __init__(self, columns: NodeColumns, held: Held, now: float) -> None:
        self._columns = columns
        self.held = held.by_end(now)

    def times(self) -> NDArray[np.float64]:
        """Different finite times at which something ends."""
        ends = self.held.nodes["end"]
        return np.unique(ends[np.isfinite(ends)])

    def room_at(self, now_room: Room, when: float) -> Room:
        """The room once everything that ends by then is gone."""
        room = now_room.copy(with_cpu_numbers=False)
        nodes, devices = self.held.nodes, self.held.devices
        gone = nodes[: int(np.searchsorted(nodes["end"], when, side="right"))]
        if not len(gone):
            return room
        rows, size = gone["row"], self._columns.count
        cpus = _sums(rows, gone["cpus"], size)
        room.cpus += cpus
        room.solid -= cpus
        room.memory += _sums(rows, gone["memory"], size)
        room.jobs -= np.bincount(rows, minlength=size).astype(np.int64)
        if gone["shares"].any():
            shared = _sums(rows, gone["cpus"] * gone["shares"], size)
            room.shared -= shared
            room.solid += shared
        if gone["owned"].any():
            room.owners -= np.bincount(rows[gone["owned"]], minlength=size).astype(np.int64)
        inside = devices[: int(np.searchsorted(devices["end"], when, side="right"))]
        if len(inside):
            shape = room.milli.shape
            cells = inside["row"] * shape[1] + inside["slot"]
            room.milli += _sums(cells, inside["milli"], room.milli.size).reshape(shape)
            room.mib += _sums(cells, inside["mib"], room.mib.size).reshape(shape)
            room.count_whole()
        room.closed &= room.jobs > 0
        room.owner[room.owners <= 0] = NO_OWNER
        room.cpus = np.minimum(room.cpus, self._columns.cpus)
        return room


def _sums(cells: Ints, amounts: Ints, size: int) -> Ints:
    return np.bincount(cells, weights=amounts, minlength=size).astype(np.int64)


class Horizon:
    """The room now and at each promised start. `limits(length)` is what a job of that length may use."""

    def __init__(self, columns: NodeColumns, room: Room, now: float, held: Held) -> None:
        self.room = room
        self._columns, self._now = columns, now
        self._held = held
        self._started: dict[int, tuple[int, float, Sequence[Hold]]] = {}  # by who the holds are
        self._ending: set[int] = set()  # jobs that this cycle ends
        self._releases: Releases | None = None
        self._windows: list[_Window] = []
        self._limits: list[Room] = [room]
        self.reserved: list[Reserved] = []
        self._expected: tuple[float, Room] | None = None  # the room at the time that was found last
        self._stale: set[int] = set()  # nodes of which `_limits` is not in line
        self._point: Point | None = None
        self.grown = 0  # another number whenever there may be more room than before, now or at promised starts

    def mark(self) -> Point:
        """What `restore` goes back to; a new one makes the one before void."""
        for room in (self.room, *(window.room for window in self._windows)):
            room.watch()
        self._point = Point(
            started=dict(self._started),
            ending=frozenset(self._ending),
            windows=tuple(self._windows),
            limits=tuple(self._limits),
            reserved=tuple(self.reserved),
        )
        return self._point

    def restore(self, point: Point) -> None:
        """As it was when the mark was taken. That may be done again."""
        if point is not self._point:
            raise ValueError("another mark was taken since")
        self._started = dict(point.started)
        self._ending = set(point.ending)
        self._windows, self._limits, self.reserved = list(point.windows), list(point.limits), list(point.reserved)
        for room in (self.room, *(window.room for window in self._windows)):
            self._stale.update(room.go_back())
        self._releases = self._expected = None
        self.grown += 1

    def limits(self, length_s: float) -> Room:
        """The least room over the windows that open before a run of this length would end."""
        return self.least(self.reach(length_s))

    def least(self, place: int) -> Room:
        """The least of the room now and those left at the first `place` promised starts."""
        return self._all_limits()[place] if place else self.room

    def rooms(self, place: int) -> list[Room]:
        """The rooms of which `least` is the least."""
        return [self.room, *(window.room for window in self._windows[:place])]

    def _all_limits(self) -> list[Room]:
        """In line with what was taken and given since they were asked for last."""
        if self._stale:
            rows = list(self._stale)
            self._stale.clear()
            for place, window in enumerate(self._windows):
                self._limits[place + 1].lessen(self._limits[place], window.room, rows)
        return self._limits

    def reach(self, length_s: float) -> int:
        """How many promised starts a run of this length would meet."""
        return self._reach(self._now + length_s)

    def _window_at(self, start: float) -> _Window | None:
        return next((window for window in self._windows if window.start == start), None)

    def promised_rooms(self, length_s: float) -> list[tuple[float, Room]]:
        """(start, room that is left then) of the promises that a run of this length would meet."""
        return [(window.start, window.room) for window in self._windows[: self.reach(length_s)]]

    def ends_now(self, job_ids: Iterable[int], ends: Iterable[tuple[float, Hold]]) -> None:
        """These runs are being ended. `ends`: what each of their holds would have lasted to."""
        self._ending.update(job_ids)
        self._releases = self._expected = None
        gone = self._now + OVERRUN_S
        rows = []
        for end, hold in ends:
            for window in self._windows:
                if gone <= window.start < end:
                    window.room.give(hold)
                    rows.append(hold.row)
        self._refresh(rows)

    def room_then(self, when: float) -> Room:
        """What is left at a time, not to be changed; quick where a start is promised then."""
        window = self._window_at(when)
        return window.room if window is not None else self.room_at(when)

    def withdraw(self, job_id: int) -> None:
        """Take back what was promised to a job."""
        rows = []
        for each in [each for each in self.reserved if each.job_id == job_id]:
            self.reserved.remove(each)
            for hold in each.placement.holds:
                rows.append(hold.row)
                for window in self._windows:
                    if each.start <= window.start < each.end:
                        window.room.give(hold)
        self._expected = None
        self._refresh(rows)

    def past_promises(self) -> list[tuple[float, Room]]:
        """(least length of a run that meets it, room that is left to such runs) for each promised start."""
        return [
            (float(np.nextafter(window.start - self._now, math.inf)), room)
            for window, room in zip(self._windows, self._all_limits()[1:], strict=True)
        ]

    def _reach(self, end: float) -> int:
        count = 0
        for window in self._windows:
            if window.start >= end:
                break
            count += 1
        return count

    def start(self, holds: Sequence[Hold], end: float) -> None:
        """A job starts now and runs to `end` at most."""
        self._started[id(holds)] = 0, end, holds
        self._expected = self._releases = None
        windows, room = self._windows, self.room
        for hold in holds:
            room.take(hold)
            if windows:
                self._stale.add(hold.row)
                for window in windows:
                    if window.start >= end:
                        break
                    window.room.take(hold)

    def take_back(self, holds: Sequence[Hold], end: float) -> None:
        """A job that was to start now, and to run to `end` at most, does not. `holds`: the very ones that it had."""
        del self._started[id(holds)]
        self._expected = self._releases = None
        for hold in holds:
            self.room.give(hold)
            for window in self._windows:
                if window.start >= end:
                    break
                window.room.give(hold)
        self._refresh([hold.row for hold in holds])

    def _refresh(self, rows: Sequence[int]) -> None:
        """At these rows something changed, and there may be more room than there was."""
        self._stale.update(rows)
        self.grown += 1

    def _all_releases(self) -> Releases:
        if self._releases is None:
            held = self._held.ending(self._ending).joined(Held.of(self._started.values()))
            self._releases = Releases(self._columns, held, self._now)
        return self._releases

    def room_at(self, when: float) -> Room:
        """What is expected to be free then, promised runs taken out."""
        room = self._all_releases().room_at(self.room, when)
        for each in self.reserved:
            if each.start <= when < each.end:
                for hold in each.placement.holds:
                    room.take(hold)
        return room

    def _room_with(self, reserved: Reserved) -> Room:
        """The room at a start that has just been promised, as far as possible the one in which it was found."""
        if self._expected is None or self._expected[0] != reserved.start:
            return self.room_at(reserved.start)
        room = self._expected[1]
        self._expected = None
        for hold in reserved.placement.holds:
            room.take(hold)
        return room

    def earliest(
        self,
        length_s: float,
        window_s: float,
        fits: Callable[[float, Room, Room], Placement | None],
        *,
        only_grows: bool = True,
        more: Sequence[float] = (),
        least: Least | None = None,
    ) -> tuple[float, Placement] | None:
        """The first time within `window_s` at which `fits(when, room, least room over the run)` gives a placement.

        `more`: times at which it may fit although nothing ends. `least`: what must be free then, where that is known.
        """
        releases = self._all_releases()
        times = np.unique(
            np.concatenate([releases.times(), [each.end for each in self.reserved if math.isfinite(each.end)], more])
        )
        times = times[(times > self._now) & (times <= self._now + window_s) & np.isfinite(times)]
        low, high = 0, len(times) - 1
        if only_grows and least is not None:
            low = int(np.searchsorted(times, bound(least, self._columns, self.room, releases.held)))
        if low > high:
            return None
        # Without promised runs, room only grows: the first time that fits then is a lower bound. (Not so for nodes that
        # are open only while a job of the same user keeps others out, nor around advance reservations.)
        if only_grows:
            low, found = self._first(releases, times, low, fits)
            if found is not None and not self.reserved:
                return float(times[low]), found
        for when in times[low : low + PROBES].tolist():
            room = self.room_at(when)
            narrow = room
            for window in self._windows:
                if when < window.start < when + length_s:
                    narrow = narrow.tightened(window.room)
            placement = fits(when, room, narrow)
            if placement is not None:
                self._expected = when, room
                return when, placement
        self._expected = None
        return None

    def _first(
        self,
        releases: Releases,
        times: NDArray[np.float64],
        low: int,
        fits: Callable[[float, Room, Room], Placement | None],
    ) -> tuple[int, Placement | None]:
        """The place of the first time at which it fits beside nothing but what runs, with what it gets there."""
        high, middle = len(times), low  # the lowest is often right
        found: dict[int, Placement] = {}
        while low < high:
            when = float(times[middle])
            room = releases.room_at(self.room, when)
            placement = fits(when, room, room)
            if placement is not None:
                high, found[middle] = middle, placement
                self._expected = when, room
            else:
                low = middle + 1
            middle = (low + high) // 2
        return low, found.get(low)

    def promise(self, job_id: int, start: float, length_s: float, placement: Placement) -> None:
        """Reserve. Later work sees it through `limits`."""
        reserved = Reserved(job_id=job_id, start=start, end=start + length_s, placement=placement)
        self.reserved.append(reserved)
        for window in self._windows:
            if start <= window.start < reserved.end:
                for hold in placement.holds:
                    window.room.take(hold)
        if self._window_at(start) is not None:  # it is among those that the promise was just taken from
            self._refresh([hold.row for hold in placement.holds])
            return
        self._windows.append(_Window(start, self._room_with(self.reserved[-1])))
        self._windows.sort(key=lambda window: window.start)
        self._limits = [self.room]
        for window in self._windows:
            self._limits.append(self._limits[-1].tightened(window.room))
        self._stale.clear()
        self.grown += 1
