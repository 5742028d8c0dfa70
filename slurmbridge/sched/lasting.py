"""Which nodes are filled first where the site wants them to fall free together? Those that are in use for longest.

A node on which something runs for long is of no use to a large job until then, so work that needs a part of a node goes there,
and nodes that fall free soon, or are idle, stay whole. A node's Weight comes first, as everywhere; of equal ones the fullest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched.columns import Ints, NodeColumns
from slurmbridge.sched.held import Held
from slurmbridge.sched.room import Room


class Lasting:
    """The order of nodes in one cycle; starts change it. `until`: when the last of what runs on a node is gone."""

    def __init__(self, columns: NodeColumns, held: Held, now: float) -> None:
        self._weights = np.array([node.conf.weight for node in columns.nodes], dtype=np.int64)
        self._rows = np.arange(columns.count)
        self.until: NDArray[np.float64] = np.full(columns.count, now)
        np.maximum.at(self.until, held.nodes["row"], held.nodes["end"])

    def started(self, row: int, end: float) -> None:
        """Something runs on a node up to then."""
        self.until[row] = max(self.until[row], end)

    def order(self, room: Room) -> Ints:
        """All rows, the first to be tried first."""
        return np.lexsort((self._rows, room.cpus, room.whole, -self.until, self._weights)).astype(np.int64)

    def rank(self, row: int, room: Room) -> tuple[int, float, int, int, int]:
        """Smaller is tried first; the same order for single rows."""
        return int(self._weights[row]), -float(self.until[row]), int(room.whole[row]), int(room.cpus[row]), row
