"""EASY backfill, as a baseline (Lifka 1995; Mu'alem and Feitelson 2001).

Jobs start in the order of arrival. The first that does not fit gets a reservation: the earliest time at which it fits once
running jobs have ended by their limits. Later jobs start only if they leave it that start: because they end before it, or
because the first job still fits then beside them. The reservation is made anew whenever something ended.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from slurmbridge.sim.pool import Need, Placement, Pool, Room
from slurmbridge.sim.workload import Machine, TraceJob


class Easy:
    """See the module docstring; a `clock.Policy`."""

    def __init__(self, jobs: Sequence[TraceJob], machines: Sequence[Machine]) -> None:
        self._jobs, self._pool = jobs, Pool(machines)
        self._free = self._pool.room
        self._needs = [self._pool.need(job) for job in jobs]
        self._queue: list[int] = []
        self._seen = 0  # of the queue, those that were looked at since something last ended
        self._running: list[tuple[float, int]] = []  # (end by the limit, place), in order
        self._placed: dict[int, tuple[float, Placement]] = {}
        self._held: _Reservation | None = None

    def submitted(self, place: int) -> None:
        self._queue.append(place)

    def ended(self, place: int) -> None:
        end, placement = self._placed.pop(place)
        self._free.give(placement)
        del self._running[bisect_left(self._running, (end, place))]
        self._seen, self._held = 0, None

    def starts(self, now: float) -> list[int]:
        found: list[int] = []
        queue = self._queue
        if self._held is None:
            head = 0
            while head < len(queue):
                placement = self._pool.place(self._needs[queue[head]], self._free)
                if placement is None:
                    break
                self._start(queue[head], placement, now, found)
                head += 1
            del queue[:head]
            if not queue:
                return found
            self._held = self._reserve(self._needs[queue[0]])
            self._seen = 1
        self._backfill(self._held, now, found)
        return found

    def _start(self, place: int, placement: Placement, now: float, found: list[int]) -> None:
        self._free.take(placement)
        end = now + self._jobs[place].limit_s
        insort(self._running, (end, place))
        self._placed[place] = (end, placement)
        found.append(place)

    def _reserve(self, need: Need) -> _Reservation:
        """The first end after which the job fits. Room only grows from end to end, so it is found by halving."""
        ends = self._running
        placements = [self._placed[place][1] for _, place in ends]

        def after(count: int) -> tuple[Room, Placement | None]:
            room = self._free.with_all(placements[:count])
            return room, self._pool.place(need, room)

        low, high = self._enough(need, placements), len(ends)
        step = 1
        while low + step < high and after(low + step)[1] is None:
            low, step = low + step + 1, step * 2
        high = min(low + step, high)
        while low < high:
            middle = (low + high) // 2
            if after(middle)[1] is None:
                low = middle + 1
            else:
                high = middle
        start = ends[low - 1][0]
        while low < len(ends) and ends[low][0] == start:  # all that end at that moment are gone
            low += 1
        room, placement = after(low)
        if placement is None:
            raise ValueError("a job in the queue does not fit on the empty cluster")
        return _Reservation(self._pool, need, start, room, placement)

    def _enough(self, need: Need, placements: Sequence[Placement]) -> int:
        """How many have to end at least, by the sums alone."""
        cpus, milli = int(self._free.cpus.sum()), int(self._free.milli.sum())
        for count, each in enumerate(placements):
            if cpus >= need.all_cpus and milli >= need.all_milli:
                return max(count, 1)
            cpus += int(each.cpus.sum())
            milli += int(each.milli.sum())
        return max(len(placements), 1)

    def _backfill(self, held: _Reservation, now: float, found: list[int]) -> None:
        queue, kept = self._queue, self._seen
        misfits: set[int] = set()  # shapes that fit nowhere now: room only shrinks
        too_long: set[int] = set()  # shapes that would be in the way; of this state alone
        for at in range(self._seen, len(queue)):
            place = queue[at]
            need = self._needs[place]
            placement = None
            if need.number not in misfits:
                if now + self._jobs[place].limit_s <= held.start:
                    placement = self._pool.place(need, self._free)
                    if placement is None:
                        misfits.add(need.number)
                elif need.number not in too_long:
                    placement = held.place_beside(need, self._free)
                    if placement is None:
                        too_long.add(need.number)
            if placement is None:
                queue[kept] = place
                kept += 1
            else:
                self._start(place, placement, now, found)
                too_long.clear()
        del queue[kept:]
        self._seen = kept


class _Reservation:
    """The promised start of the first job, and what the others may use beyond it."""

    def __init__(self, pool: Pool, need: Need, start: float, room: Room, placement: Placement) -> None:
        self.start = start
        self._pool, self._need, self._room = pool, need, room
        self._beside = room.copy()
        self._beside.take(placement)

    def place_beside(self, need: Need, free: Room) -> Placement | None:
        """Where a job that runs past the start may go now: it counts as started if one is found."""
        placement = self._pool.place(need, free.least(self._beside))
        if placement is not None:
            self._room.take(placement)
            self._beside.take(placement)
            return placement
        placement = self._pool.place(need, free)
        if placement is None:
            return None
        room = self._room.copy()
        room.take(placement)
        again = self._pool.place(self._need, room)
        if again is None:
            return None
        self._room = room
        self._beside = room.copy()
        self._beside.take(again)
        return placement
