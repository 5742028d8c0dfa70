"""Where could a run that gives way begin again at once?

Asked for one run, and for many: those that are alike (they ask for the same, for as long, in the same partitions) have the same
answer, and room only shrinks while room is made, so who is known to have no other place is not asked again.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from slurmbridge.sched.columns import Ints
from slurmbridge.sched.evictable import Victims, begun_again
from slurmbridge.sched.order import ACROSS
from slurmbridge.sched.place import Placement
from slurmbridge.sched.snapshot import PartitionView, Running, Waiting
from slurmbridge.sched.walk import Walk

_Kind = tuple[Hashable, float]
"""What a run asks for and where, and the minutes of its limit."""


class Elsewhere:
    """One cycle's answers."""

    def __init__(self, walk: Walk) -> None:
        self._walk, self._session, self._known = walk, walk.session, walk.memo.again
        snapshot = walk.snapshot
        self._by_who = bool(self._session.counts_limits or self._session.finder.owned or snapshot.reservations)
        self._has_place: dict[_Kind, bool] = {}

    def place_of(self, running: Running) -> tuple[Waiting, PartitionView, Placement] | None:
        """Where a run could begin again now, beside what it has."""
        job, places = running.job, self._walk.memo.places
        again = begun_again(job, self._walk.snapshot.shapes)
        for name in job.spec.partitions:
            for view in places.by_number:
                if view.partition.name != name or places.pools[view.number] == ACROSS:
                    continue
                found = self._session.attempt(again, view)
                if isinstance(found, Placement):
                    return again, view, found
        return None

    def has_none(self, running: Running) -> None:
        """Note that a run has no other place any more."""
        self._has_place[self._kind(running)] = False

    def among(self, some: Ints, victims: Victims) -> Ints:
        """Of these places of victims, those that could begin again elsewhere, as far as that is known now."""
        runs = [victims.running(place) for place in some.tolist()]
        kinds = [self._kind(running) for running in runs]
        alike: dict[Hashable, dict[float, tuple[_Kind, Running]]] = {}
        for kind, running in zip(kinds, runs, strict=True):
            if kind not in self._has_place:
                alike.setdefault(kind[0], {}).setdefault(kind[1], (kind, running))
        for by_limit in alike.values():
            self._learn([by_limit[limit] for limit in sorted(by_limit)])
        has = self._has_place
        return some[np.array([has[kind] for kind in kinds], dtype=np.bool_)]

    def _learn(self, kinds: list[tuple[_Kind, Running]]) -> None:
        """Of kinds that differ in how long they run, the shortest first: who has no place for a while has none for longer."""
        low, high = 0, len(kinds)  # below `low` all have one, from `high` on nobody
        at = 0
        while low < high:
            if self.place_of(kinds[at][1]) is None:
                high = at
            else:
                low = at + 1
            at = high - 1 if low == 1 else (low + high) // 2  # mostly all are alike
        for place, (kind, _) in enumerate(kinds):
            self._has_place[kind] = place < low

    def _kind(self, running: Running) -> _Kind:
        """Equal for runs that have the same answer."""
        job = running.job
        spec = job.spec
        known = self._known.get(job.job_id)
        if known is None or known[0] is not spec:
            shape = self._walk.snapshot.shapes.of(spec)
            likes = shape.number, spec.partitions, spec.time_min, spec.deadline
            limit = math.inf if spec.time_limit is None else float(spec.time_limit)
            known = self._known[job.job_id] = spec, (likes, limit)
        if self._by_who:
            return (known[1][0], spec.uid, spec.assoc_id, spec.qos), known[1][1]
        return known[1]
