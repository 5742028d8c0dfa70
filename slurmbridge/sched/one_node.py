"""Would a job of one node fit on this very node, in a room that differs there from another by a few runs?

Looks at one row, whatever the number of nodes, and gives what `place` would give if no other node could hold the job.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from slurmbridge.sched.cells import AMOUNTS
from slurmbridge.sched.choose import Part
from slurmbridge.sched.columns import NodeColumns
from slurmbridge.sched.fit import Rules, capacity
from slurmbridge.sched.place import Placement, place_one
from slurmbridge.sched.room import Hold, Room
from slurmbridge.sched.session import Session
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Waiting

_SIZES = (
    "cpus", "sockets", "cores", "threads", "memory", "tmp_disk", "usable", "others_cpus", "others_memory", "feature_set",
    "device_type", "device_index", "device_mib", "shared", "node_type",
)  # fmt: skip
_ALLOWED = np.ones(1, dtype=np.bool_)


class OneNode:
    """Two rooms of which one row counts at a time. `limits`: the one that may be used."""

    def __init__(self, columns: NodeColumns, room: Room) -> None:
        self._columns = columns
        self.limits, self._window = room.copy(with_cpu_numbers=False), room.copy(with_cpu_numbers=False)
        self._of_row: dict[int, NodeColumns] = {}

    def begin(self, row: int, room: Room, freed: Iterable[Hold]) -> None:
        """What is free on a node once these are gone."""
        _copied(room, self.limits, row, freed)

    def meets(self, row: int, window: Room, freed: Iterable[Hold]) -> None:
        """And no more than what is left at a promised start, these being gone then."""
        _copied(window, self._window, row, freed)
        self.limits.tighten(self._window, (row,))

    def place(
        self, session: Session, shape: Shape, view: PartitionView, part: Part, numbered: Room | None = None
    ) -> Placement | None:
        """Where the job lies on the node of this part. CPU numbers are those free in `numbered`, else left open."""
        columns, limits = self._columns, self.limits
        portions = session.portions(shape, view, part)
        if portions is not None:
            busy = numbered.busy if numbered is not None else ()
            return portions.place(part.row, columns, (limits.cells,), busy, session.tracked)
        if not self._has(shape, part, session.rules):
            return None
        return place_one(shape, view, columns, numbered or limits, limits, part, session.rules, (), session.tracked)

    def _has(self, shape: Shape, part: Part, rules: Rules) -> bool:
        row = part.row
        columns = self._of_row.get(row)
        if columns is None:
            one = {name: getattr(self._columns, name)[row : row + 1] for name in _SIZES}
            columns = self._of_row[row] = msgspec.structs.replace(self._columns, **one)
        room = Room()
        for name in AMOUNTS:
            setattr(room, name, getattr(self.limits, name)[row : row + 1])
        found = capacity(shape, columns, room, _ALLOWED, rules)
        enough = int(found.tasks[0]) >= max(part.tasks, 1)
        return enough and (found.devices is None or int(found.devices[0]) >= part.devices)


def part_of_one(session: Session, waiting: Waiting, view: PartitionView) -> Part | None:
    """What one node must give, where any node that gives it will do and nothing else is asked; its row is not said."""
    part, finder = session.fate(waiting, view).alone, session.finder
    if part is None or finder.owned or session.snapshot.reservations or waiting.shape.licenses:
        return None
    site = finder.site(waiting.shape, view)
    return None if site.unknown or any(each.counts for each in site.alternatives) else part


def _copied(source: Room, target: Room, row: int, freed: Iterable[Hold]) -> None:
    target.copy_row(source, row)
    for hold in freed:
        if hold.row == row:
            target.give(hold)
