"""Would a cycle be in vain? Told from columns alone, for whoever may leave out cycles in which nothing starts.

Where a start is promised already, nobody gives way and nothing is reserved, a cycle changes nothing unless somebody fits: all
who wait after runs have ended, else those that came. It would only tell priorities and reasons anew. Where promised room is lent,
and some run may be ended, no cycle is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slurmbridge.sched import screen
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.fit import Rules
from slurmbridge.sched.market import Preemptible
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.pending import NEVER
from slurmbridge.sched.room import NO_OWNER
from slurmbridge.sched.shape import ShapeTable
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sched.soonest import least_of


class Vain:
    """The question, asked again and again on one site. `rules`: how its nodes are given out."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._shapes: ShapeTable | None = None
        self._groups: list[int] = []  # number of the shape, by group
        self._floors: Ints = np.zeros((0, screen.NODES + 1), dtype=np.int64)
        self._cpus: list[int] = []  # by shape: CPUs in all

    def is_vain(self, snapshot: Snapshot, memo: Memo, came: Iterable[int] | None) -> bool:
        """Whether a cycle would certainly start nothing. `came`: jobs since that was last so, or the last cycle; None: runs have
        ended since then.
        """
        rows = snapshot.pending.rows
        if not self._is_simple(snapshot, memo) or (rows["start"] == NEVER).all():
            return False
        if snapshot.config.scheduling.promised == "lent" and self._some_may_be_ended(snapshot, memo):
            return False
        self._learn(snapshot)
        if came is None:
            groups = np.unique(rows["group"]).tolist()
        else:
            groups = [snapshot.waiting[job_id].group for job_id in came]
        shapes = sorted({self._groups[group] for group in groups})
        room, columns = snapshot.room, snapshot.columns
        free = int(room.cpus[columns.usable].sum())
        shapes = [number for number in shapes if self._cpus[number] <= free]
        if not shapes:
            return True
        everywhere = np.ones(columns.count, dtype=np.bool_)
        return bool(screen.hopeless(self._floors[shapes], columns, room, everywhere, self._rules).all())

    def _some_may_be_ended(self, snapshot: Snapshot, memo: Memo) -> bool:
        may_be_ended = Preemptible(snapshot, memo)
        return any(may_be_ended(each.job) for each in snapshot.running.values())

    def _is_simple(self, snapshot: Snapshot, memo: Memo) -> bool:
        if memo.rules is None or memo.rules.enabled or memo.queued.has_quotas or snapshot.reservations:
            return False
        if (snapshot.room.owner != NO_OWNER).any():
            return False
        return all(view.share == 1 and not view.partition.exclusive_user for view in snapshot.partitions.values())

    def _learn(self, snapshot: Snapshot) -> None:
        table = snapshot.shapes
        if table is not self._shapes:
            self._shapes, self._groups, self._cpus, self._floors = table, [], [], self._floors[:0]
        self._groups += [shape.number for _, shape in table.samples[len(self._groups) :]]
        for shape in table.shapes[len(self._cpus) :]:
            self._cpus.append(least_of(shape, snapshot.columns.usable, self._rules).cpus)
        self._floors = screen.floors(table.shapes, self._floors)
