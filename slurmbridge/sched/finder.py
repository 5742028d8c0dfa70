"""Where does a job fit in a room, and why does it not fit at all? Nodes by features, rules of sharing, bounds of partitions.

Rooms are the caller's; what is fixed in a cycle, and what a partition uses on each node, is kept here.
"""

from __future__ import annotations

import msgspec
import numpy as np

from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive, LicenseTerm
from slurmbridge.sched import reasons
from slurmbridge.sched.choose import choose
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.fit import Rules, capacity, first_of_one
from slurmbridge.sched.lasting import Lasting
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.misfits import Misfit, fits_on_more
from slurmbridge.sched.place import Placement, place
from slurmbridge.sched.places import Site, find, open_nodes
from slurmbridge.sched.placing import Placing
from slurmbridge.sched.room import NO_OWNER, Room, empty_room
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot


class Finder:
    """`owned`: whether some node is one user's alone. `cpus_of`: CPUs that a partition uses on each node, if bounded."""

    def __init__(self, snapshot: Snapshot, memo: Memo, now: float, rules: Rules, tracked: frozenset[str]) -> None:
        self._snapshot, self._memo, self._now = snapshot, memo, now
        self._rules, self._tracked = rules, tracked
        self.owned = bool((snapshot.room.owner != NO_OWNER).any())
        self.cpus_of: dict[int, Ints] = {}
        self._empty: Room | None = None
        lasting = snapshot.config.scheduling.nodes == "lasting"
        self.lasting = Lasting(snapshot.columns, snapshot.held, now) if lasting else None

    def site(self, shape: Shape, view: PartitionView) -> Site:
        key = (view.number, shape.features, shape.prefer, shape.req_nodes, shape.exc_nodes)
        found = self._memo.sites.get(key)
        if found is None:
            found = self._memo.sites[key] = find(shape, view, self._snapshot.columns)
        return found

    def placing(self, view: PartitionView) -> Placing | Lasting | None:
        """Which nodes are tried first: as their pool says, else as the site does; None: in their order."""
        return view.placing if view.placing is not None else self.lasting

    def _most_cpus(self, view: PartitionView) -> Ints | None:
        """CPUs that the partition may still use on each node (MaxCPUsPerNode)."""
        bound = view.partition.max_cpus_per_node
        if bound is None:
            return None
        used = self.cpus_of.get(view.number)
        if used is None:
            used = self.cpus_of[view.number] = np.zeros(self._snapshot.columns.count, dtype=np.int64)
            for each in self._snapshot.running.values():
                if each.job.allocation is not None and each.job.allocation.partition == view.partition.name:
                    for hold in each.holds:
                        used[hold.row] += hold.cpus
        return np.maximum(bound - used, 0)

    def _rules_for(self, job: Job, shape: Shape, view: PartitionView) -> Rules:
        owned = shape.exclusive is Exclusive.USER or view.partition.exclusive_user
        shares = view.share > 1 and (view.forced or shape.oversubscribe)
        if not (owned or shares or view.exclusive or self.owned):
            return self._rules
        return msgspec.structs.replace(
            self._rules,
            share=view.share if shares else 1,
            exclusive=view.exclusive,
            uid=job.spec.uid,
            owns=owned,
            owner_matters=self.owned,
        )

    def place(
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
        begin = self._now if when is None else when
        opened = None if ignore_reservations else open_nodes(self._snapshot, shape.reservation, begin, length)
        rules = self._rules_for(job, shape, view)
        for each in site.alternatives:
            if opened is not None:
                each = each.within(opened)
            if without is not None:
                each = each.within(~without)
            placement = place(
                shape,
                view,
                self._snapshot.columns,
                room,
                limits,
                each,
                site.required,
                rules,
                licenses,
                self._tracked,
                self._most_cpus(view),
                self.placing(view),
            )
            if placement is not None:
                return placement
        return None

    def misfit(self, job: Job, shape: Shape, view: PartitionView) -> Blocked:
        """Why it does not fit. Depends on what is fixed and on the states of nodes alone, so the memo keeps it."""
        key = shape.number, view.number
        found = self._memo.misfits.get(key)
        if found is None:
            found = self._memo.misfits[key] = self._misfit(job, shape, view)
        return found.blocked

    def _misfit(self, job: Job, shape: Shape, view: PartitionView) -> Misfit:
        site, columns = self.site(shape, view), self._snapshot.columns
        if self._empty is None:
            self._empty = empty_room(columns)
        empty, rules = self._empty, self._rules_for(job, shape, view)
        patient = msgspec.structs.replace(shape, switches=0) if shape.switches else shape  # it may wait in vain
        rows: list[int] = []  # where it fits when the usable nodes are empty

        def fits_empty(usable_only: bool) -> bool:
            if usable_only and (row := first_of_one(shape, columns, site.alternatives[0].nodes)) is not None:
                rows.append(row)
                return True
            for each in site.alternatives if usable_only else site.anywhere:
                free = capacity(shape, columns, empty, each.nodes, rules)
                parts = choose(patient, columns, free, site.required, view.bounds, empty.cpus, view.near)
                if parts is not None:
                    rows.extend(part.row for part in parts)
                    return True
            return False

        blocked = reasons.of_misfit(site, columns, fits_empty)
        waits = blocked.lacks_room
        return Misfit(blocked, tuple(rows) if waits and fits_on_more(patient, view, site) else None)
