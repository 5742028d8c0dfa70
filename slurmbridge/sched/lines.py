"""Which is the first of some nodes, in the order in which they are tried, that has so much free now?

Nodes that are full are passed over many at a time: of every stretch of nodes the most that any of it has is known. Free space
only shrinks while jobs start, so what is known stays an upper bound; it is put right where a stretch was gone through for
nothing and something had started there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurmbridge.sched.columns import Ints
from slurmbridge.sched.room import Room
from slurmbridge.sched.rows import most_of_rows
from slurmbridge.sched.screen import CPUS, MEMORY, MILLI, WHOLE

STRETCH = 32
"""Nodes of which the most is known together."""


class Line:
    """Nodes in their order. `touched`: nodes on which something started, in that order; it grows."""

    __slots__ = ("_cpus", "_loose", "_memory", "_milli", "_room", "_seen", "_stretch_of", "_touched", "_whole", "rows")

    def __init__(self, order: Ints, room: Room, touched: Sequence[int]) -> None:
        self.rows: list[int] = order.tolist()
        stretch_of = np.full(len(room.cpus), -1, dtype=np.int64)
        stretch_of[order] = np.arange(len(order)) // STRETCH
        self._stretch_of: list[int] = stretch_of.tolist()
        self._room, self._touched = room, touched
        self.begin_again()

    def begin_again(self) -> None:
        """There may be more room than there was."""
        order, room = np.array(self.rows, dtype=np.int64), self._room
        self._cpus, self._memory, self._whole = map(_most, (room.cpus[order], room.memory[order], room.whole[order]))
        self._milli = _most(most_of_rows(room.milli[order])) if room.milli.shape[1] else [0] * len(self._cpus)
        self._loose = bytearray(len(self._cpus))
        self._seen = len(self._touched)

    def first(self, at: int, floor: Sequence[int]) -> int:
        """The place, from `at` on, of the first node that has what a floor of `screen` asks; their number when none has it."""
        touched, loose = self._touched, self._loose
        for row in touched[self._seen :]:
            if self._stretch_of[row] >= 0:
                loose[self._stretch_of[row]] = True
        self._seen = len(touched)
        rows, cells = self.rows, self._room.cells
        asked, memory, whole = floor[CPUS], floor[MEMORY], floor[WHOLE]
        part = floor[MILLI] if floor[MILLI] < 1000 else 0
        while at < len(rows):
            stretch = at // STRETCH
            last = min((stretch + 1) * STRETCH, len(rows))
            if self._may_have(stretch, asked, memory, whole, part):
                for place in range(at, last):
                    row = rows[place]
                    if (
                        cells.cpus[row] >= asked
                        and cells.memory[row] >= memory
                        and cells.whole[row] >= whole
                        and (not part or cells.whole[row] or max(cells.milli_of(row)) >= part)
                    ):
                        return place
                if loose[stretch]:
                    self._tighten(stretch)
            at = last
        return at

    def _may_have(self, stretch: int, asked: int, memory: int, whole: int, part: int) -> bool:
        return (
            self._cpus[stretch] >= asked
            and self._memory[stretch] >= memory
            and self._whole[stretch] >= whole
            and self._milli[stretch] >= part
        )

    def _tighten(self, stretch: int) -> None:
        rows, cells = self.rows[stretch * STRETCH : (stretch + 1) * STRETCH], self._room.cells
        self._cpus[stretch] = max([cells.cpus[row] for row in rows])
        self._memory[stretch] = max([cells.memory[row] for row in rows])
        self._whole[stretch] = max([cells.whole[row] for row in rows])
        if cells.width:
            self._milli[stretch] = int(self._room.milli[rows].max())
        self._loose[stretch] = False


def _most(column: Ints) -> list[int]:
    """The most of every stretch."""
    if not len(column):
        return []
    found: list[int] = np.maximum.reduceat(column, np.arange(0, len(column), STRETCH)).tolist()
    return found
