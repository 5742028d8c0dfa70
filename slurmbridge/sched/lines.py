"""Which is the first of some nodes, in the order in which they are tried, that has so much free now?

The next few are looked at one by one, as most often one of them has it; then more and more at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.room import Room
from slurmbridge.sched.rows import most_of_rows
from slurmbridge.sched.screen import CPUS, MEMORY, MILLI, WHOLE

NEAR = 64
"""Nodes that are looked at one by one."""
STEP = 256
"""Nodes that are looked at together after that; then four times as many, and so on."""


class Line:
    """Nodes in their order."""

    __slots__ = ("_order", "rows")

    def __init__(self, order: Ints) -> None:
        self._order = order
        self.rows: list[int] = order.tolist()

    def first(self, at: int, floor: Sequence[int], room: Room) -> int:
        """The place, from `at` on, of the first node that has what a floor of `screen` asks; their number when none has it."""
        rows, cells = self.rows, room.cells
        cpus, memory, whole = floor[CPUS], floor[MEMORY], floor[WHOLE]
        part = floor[MILLI] if floor[MILLI] < 1000 else 0
        free_cpus, free_memory, free_whole = cells.cpus, cells.memory, cells.whole
        near = min(at + NEAR, len(rows))
        for place in range(at, near):
            row = rows[place]
            if free_cpus[row] >= cpus and free_memory[row] >= memory and free_whole[row] >= whole:
                if not part or free_whole[row] or max(cells.milli_of(row), default=0) >= part:
                    return place
        step = STEP
        while near < len(rows):
            able = _able(self._order[near : near + step], cpus, memory, whole, part, room)
            place = int(able.argmax())
            if able[place]:
                return near + place
            near += step
            step *= 4
        return len(rows)


def _able(rows: Ints, cpus: int, memory: int, whole: int, part: int, room: Room) -> Bools:
    """Those that have so much."""
    able: Bools = room.cpus[rows] >= cpus
    able &= room.memory[rows] >= memory
    if whole:
        able &= room.whole[rows] >= whole
    if part:
        some = np.flatnonzero(able)
        able[some] = most_of_rows(room.milli[rows[some]]) >= part if room.milli.shape[1] else False
    return able
