"""How is one node of a room read and changed quickly? Its columns as flat views that give and take plain numbers.

A view shares its memory with the column, so both always say the same; numpy answers for all nodes at once, a view for one
node several times as fast as numpy would. Good as long as the room keeps its arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from slurmbridge.sched.room import Room

AMOUNTS = ("cpus", "memory", "milli", "mib", "whole", "jobs", "closed", "owner", "owners", "solid", "shared")
"""Columns of a `Room`; its other attributes are CPU numbers."""
MIXED_OWNER = -2
"""Of the lesser of two rooms whose owners differ: nobody may count on the node."""
Saved = tuple[int, int, int, int, bool, int, int, int, int, list[int], list[int], int, int]
"""One node: the columns in the order of `Cells`, then the CPU masks."""


class Cells:
    """See the module docstring. `milli` and `mib` have `width` places a node."""

    __slots__ = (*AMOUNTS, "width")

    def __init__(self, room: Room) -> None:
        self.cpus, self.memory, self.whole = room.cpus.data, room.memory.data, room.whole.data
        self.jobs, self.closed = room.jobs.data, room.closed.data
        self.owner, self.owners = room.owner.data, room.owners.data
        self.solid, self.shared = room.solid.data, room.shared.data
        self.width = room.milli.shape[1]
        self.milli = np.reshape(room.milli, -1, copy=False).data
        self.mib = np.reshape(room.mib, -1, copy=False).data

    def milli_of(self, row: int) -> list[int]:
        """Thousandths that are free of each device slot of a node."""
        found: list[int] = self.milli[row * self.width : (row + 1) * self.width].tolist()
        return found

    def mib_of(self, row: int) -> list[int]:
        """The same in MiB."""
        found: list[int] = self.mib[row * self.width : (row + 1) * self.width].tolist()
        return found

    def copy(self, row: int, other: Cells) -> None:
        """A node as it is in another room."""
        self.cpus[row], self.memory[row], self.whole[row] = other.cpus[row], other.memory[row], other.whole[row]
        self.jobs[row], self.closed[row] = other.jobs[row], other.closed[row]
        self.owner[row], self.owners[row] = other.owner[row], other.owners[row]
        self.solid[row], self.shared[row] = other.solid[row], other.shared[row]
        first, last = row * self.width, (row + 1) * self.width
        self.milli[first:last], self.mib[first:last] = other.milli[first:last], other.mib[first:last]

    def lessen(self, row: int, other: Cells) -> None:
        """Of a node, no more than it has in another room."""
        for mine, theirs in ((self.cpus, other.cpus), (self.memory, other.memory)):
            if theirs[row] < mine[row]:
                mine[row] = theirs[row]
        for mine, theirs in (
            (self.jobs, other.jobs),
            (self.solid, other.solid),
            (self.shared, other.shared),
            (self.owners, other.owners),
        ):
            if theirs[row] > mine[row]:
                mine[row] = theirs[row]
        if other.closed[row]:
            self.closed[row] = True
        if other.owner[row] != self.owner[row]:
            self.owner[row] = MIXED_OWNER
        whole, milli, mib = 0, self.milli, self.mib
        for place in range(row * self.width, (row + 1) * self.width):
            if other.milli[place] < milli[place]:
                milli[place] = other.milli[place]
            if other.mib[place] < mib[place]:
                mib[place] = other.mib[place]
            whole += milli[place] >= 1000
        self.whole[row] = whole

    def saved(self, row: int, busy: list[int], firm: list[int]) -> Saved:
        """A node as it is."""
        return (
            self.cpus[row],
            self.memory[row],
            self.whole[row],
            self.jobs[row],
            bool(self.closed[row]),
            self.owner[row],
            self.owners[row],
            self.solid[row],
            self.shared[row],
            self.milli_of(row),
            self.mib_of(row),
            busy[row] if busy else 0,
            firm[row] if firm else 0,
        )

    def put_back(self, row: int, saved: Saved, busy: list[int], firm: list[int]) -> None:
        """A node as it was."""
        self.cpus[row], self.memory[row], self.whole[row], self.jobs[row] = saved[:4]
        self.closed[row], self.owner[row], self.owners[row] = saved[4:7]
        self.solid[row], self.shared[row] = saved[7:9]
        first = row * self.width
        for slot, (milli, mib) in enumerate(zip(saved[9], saved[10], strict=True)):
            self.milli[first + slot], self.mib[first + slot] = milli, mib
        if busy:
            busy[row], firm[row] = saved[11], saved[12]
