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

from slurmbridge.model.job import Job
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.fit import Free, free_of
from slurmbridge.sched.place import Placement
from slurmbridge.sched.room import NO_OWNER, Hold, Room

OVERRUN_S = 30.0
"""A run past its limit, or one that is being ended, is expected to be gone so much later."""
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


class Releases:
    """What becomes free when: one entry a job and node, ordered by time."""

    def __init__(self, columns: NodeColumns, entries: Sequence[tuple[float, Hold]]) -> None:
        ordered = sorted(entries, key=lambda entry: entry[0])
        self._columns = columns
        self._holds = [hold for _, hold in ordered]
        self.ends: NDArray[np.float64] = np.array([end for end, _ in ordered], dtype=np.float64)
        self._rows = np.array([hold.row for hold in self._holds], dtype=np.int64)
        self._cpus = np.array([hold.cpus for hold in self._holds], dtype=np.int64)
        self._memory = np.array([hold.memory for hold in self._holds], dtype=np.int64)
        slots = columns.device_type.shape[1]
        flat = [
            (place, hold.row * slots + device.slot, device.milli, device.mib)
            for place, hold in enumerate(self._holds)
            for device in hold.devices
        ]
        table = np.array(flat, dtype=np.int64).reshape(len(flat), 4)
        self._device_place, self._device_cell = table[:, 0], table[:, 1]
        self._device_milli, self._device_mib = table[:, 2], table[:, 3]
        self._odd = [
            place for place, hold in enumerate(self._holds) if hold.closes or hold.owner != NO_OWNER or hold.shares
        ]

    def times(self) -> NDArray[np.float64]:
        """Different finite times at which something ends."""
        return np.unique(self.ends[np.isfinite(self.ends)])

    def room_at(self, now_room: Room, when: float) -> Room:
        """The room once everything that ends by then is gone."""
        room = now_room.copy(with_cpu_numbers=False)
        gone = int(np.searchsorted(self.ends, when, side="right"))
        if not gone:
            return room
        rows, size = self._rows[:gone], self._columns.count
        room.cpus += _sums(rows, self._cpus[:gone], size)
        room.solid -= _sums(rows, self._cpus[:gone], size)
        room.memory += _sums(rows, self._memory[:gone], size)
        room.jobs -= np.bincount(rows, minlength=size).astype(np.int64)
        inside = self._device_place < gone
        if inside.any():
            cells, shape = self._device_cell[inside], room.milli.shape
            room.milli += _sums(cells, self._device_milli[inside], room.milli.size).reshape(shape)
            room.mib += _sums(cells, self._device_mib[inside], room.mib.size).reshape(shape)
        for place in self._odd:
            hold = self._holds[place]
            if place >= gone:
                continue
            if hold.shares:
                room.shared[hold.row] -= hold.cpus
                room.solid[hold.row] += hold.cpus
            if hold.owner != NO_OWNER:
                room.owners[hold.row] -= 1
        room.closed &= room.jobs > 0
        room.owner[room.owners <= 0] = NO_OWNER
        room.cpus = np.minimum(room.cpus, self._columns.cpus)
        return room


def _sums(cells: Ints, amounts: Ints, size: int) -> Ints:
    return np.bincount(cells, weights=amounts, minlength=size).astype(np.int64)


def expected_end(job: Job, limit_s: float, now: float, *, completing: bool) -> float:
    """When a running job is gone at the latest, as far as anybody knows. inf without limit."""
    if completing:
        return now + OVERRUN_S
    if job.time_limit_end is not None:
        end = job.time_limit_end
    elif math.isinf(limit_s) or job.start_time is None:
        return math.inf
    else:
        end = job.start_time + limit_s
    return max(end, now + OVERRUN_S) if end <= now else end


class Horizon:
    """The room now and at each promised start. `limits(length)` is what a job of that length may use."""

    def __init__(
        self, columns: NodeColumns, room: Room, now: float, entries: Callable[[], list[tuple[float, Hold]]]
    ) -> None:
        self.room = room
        self._columns, self._now = columns, now
        self._entries = entries
        self._started: list[tuple[float, Hold]] = []
        self._releases: Releases | None = None
        self._windows: list[_Window] = []
        self._limits: list[Room] = [room]
        self.reserved: list[Reserved] = []
        self._free: dict[tuple[int, int], Free] = {}

    def copy(self) -> Horizon:
        """Independent from now on."""
        other = Horizon(self._columns, self.room.copy(), self._now, self._entries)
        other._started, other.reserved = list(self._started), list(self.reserved)
        other._windows = [_Window(each.start, each.room.copy()) for each in self._windows]
        other._limits = [other.room, *(room.copy() for room in self._limits[1:])]
        return other

    def limits(self, length_s: float) -> Room:
        """The least room over the windows that open before a run of this length would end."""
        return self._limits[self._reach(self._now + length_s)]

    def free(self, number: int, nodes: Bools, length_s: float) -> Free:
        """`limits` of a partition (by its number and nodes) in short."""
        key = number, self._reach(self._now + length_s)
        found = self._free.get(key)
        if found is None:
            found = self._free[key] = free_of(self._limits[key[1]], nodes)
        return found

    def _reach(self, end: float) -> int:
        count = 0
        for window in self._windows:
            if window.start >= end:
                break
            count += 1
        return count

    def start(self, holds: Iterable[Hold], end: float) -> None:
        """A job starts now and runs to `end` at most."""
        rows = []
        for hold in holds:
            self.room.take(hold)
            self._started.append((end, hold))
            rows.append(hold.row)
            for window in self._windows:
                if window.start < end:
                    window.room.take(hold)
        self._releases = None
        self._free.clear()
        self._refresh(rows)

    def _refresh(self, rows: Sequence[int]) -> None:
        for place, window in enumerate(self._windows):
            before, here = self._limits[place], self._limits[place + 1]
            for row in rows:
                _copy_row(before, here, row)
            here.tighten(window.room, rows)

    def _all_releases(self) -> Releases:
        if self._releases is None:
            self._releases = Releases(self._columns, [*self._entries(), *self._started])
        return self._releases

    def room_at(self, when: float) -> Room:
        """What is expected to be free then, promised runs taken out."""
        room = self._all_releases().room_at(self.room, when)
        for each in self.reserved:
            if each.start <= when < each.end:
                for hold in each.placement.holds:
                    room.take(hold)
        return room

    def earliest(
        self,
        length_s: float,
        window_s: float,
        fits: Callable[[float, Room, Room], Placement | None],
        *,
        only_grows: bool = True,
    ) -> tuple[float, Placement] | None:
        """The first time within `window_s` at which `fits(when, room, least room over the run)` gives a placement."""
        releases = self._all_releases()
        times = np.unique(
            np.concatenate([releases.times(), [each.end for each in self.reserved if math.isfinite(each.end)]])
        )
        times = times[(times > self._now) & (times <= self._now + window_s)]
        low, high = 0, len(times) - 1
        if high < 0:
            return None
        # Without promised runs, room only grows: the first time that fits then is a lower bound. (Not so for nodes that
        # are open only while a job of the same user keeps others out, nor around advance reservations.)
        while only_grows and low < high:
            middle = (low + high) // 2
            when = float(times[middle])
            room = releases.room_at(self.room, when)
            if fits(when, room, room) is not None:
                high = middle
            else:
                low = middle + 1
        for when in times[low : low + PROBES].tolist():
            room = self.room_at(when)
            least = room
            for window in self._windows:
                if when < window.start < when + length_s:
                    least = least.tightened(window.room)
            placement = fits(when, room, least)
            if placement is not None:
                return when, placement
        return None

    def promise(self, job_id: int, start: float, length_s: float, placement: Placement) -> None:
        """Reserve. Later work sees it through `limits`."""
        reserved = Reserved(job_id=job_id, start=start, end=start + length_s, placement=placement)
        self.reserved.append(reserved)
        for window in self._windows:
            if start <= window.start < reserved.end:
                for hold in placement.holds:
                    window.room.take(hold)
        self._windows.append(_Window(start, self.room_at(start)))
        self._windows.sort(key=lambda window: window.start)
        self._free.clear()
        self._limits = [self.room]
        for window in self._windows:
            self._limits.append(self._limits[-1].tightened(window.room))


def _copy_row(source: Room, target: Room, row: int) -> None:
    for name in ("cpus", "memory", "jobs", "closed", "owner", "owners", "solid", "shared", "milli", "mib"):
        getattr(target, name)[row] = getattr(source, name)[row]
