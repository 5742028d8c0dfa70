"""Which of the runs on a node have to go so that it has this much? The cheapest ones, and none of them needlessly."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from slurmbridge.sched.room import Hold, Room
from slurmbridge.sched.screen import CPUS, IDLE, MEMORY, MILLI, WHOLE


class Entry(NamedTuple):
    """One of those on a node, and what it holds there."""

    cost: float
    place: int
    hold: Hold


class Lacking:
    """What a node still lacks of a floor of `screen`, in plain numbers."""

    __slots__ = ("_asked", "_idle", "_least", "_parts", "_whole", "cpus", "jobs", "memory", "milli")

    def __init__(self, row: int, floor: Sequence[int], room: Room) -> None:
        cells = room.cells
        self.cpus = cells.cpus[row] - floor[CPUS]
        self.memory = cells.memory[row] - floor[MEMORY]
        self.jobs = cells.jobs[row]
        self._asked, self._least, self._idle = floor[WHOLE], floor[MILLI], bool(floor[IDLE])
        self._whole = self._parts = 0  # devices that are free as a whole, or that have the part that is asked for
        self.milli: list[int] = []
        if self._asked or self._least:
            self.milli = cells.milli_of(row)  # slots without a device have nothing free
            for free in self.milli:
                self._whole += free >= 1000
                self._parts += free >= self._least

    def give(self, hold: Hold, sign: int = 1) -> None:
        self.cpus += sign * hold.cpus
        self.memory += sign * hold.memory
        if not hold.stays:
            self.jobs -= sign
        milli, least = self.milli, self._least
        for device in hold.devices if milli else ():
            before = milli[device.slot]
            after = milli[device.slot] = before + sign * device.milli
            self._whole += (after >= 1000) - (before >= 1000)
            self._parts += (after >= least) - (before >= least)

    def wants(self, hold: Hold) -> bool:
        """Whether this one's going helps with anything that is lacking."""
        if self._idle or (hold.devices and (self._whole < self._asked or (self._least and not self._parts))):
            return True
        return (hold.cpus > 0 and self.cpus < 0) or (hold.memory > 0 and self.memory < 0)

    def met(self) -> bool:
        return (
            self.cpus >= 0
            and self.memory >= 0
            and self._whole >= self._asked
            and (not self._least or self._parts > 0)
            and (not self._idle or self.jobs <= 0)
        )


def clear(entries: Sequence[Entry], need: Lacking, allowed: memoryview, gone: Collection[int]) -> list[int] | None:
    """Places of the victims among `entries` (cheapest first) without whom a node has what it lacks; those `gone` are gone already.

    `allowed`: by place, whether it may be taken. None: not even without all of them.
    """
    for _, place, hold in entries if gone else ():
        if place in gone:
            need.give(hold)
    chosen: list[Entry] = []
    if not need.met():
        for entry in entries:
            if not allowed[entry[1]] or entry[1] in gone or not need.wants(entry[2]):
                continue
            need.give(entry[2])
            chosen.append(entry)
            if need.met():
                break
        else:
            return None
    for entry in chosen[-2::-1]:  # the dearest that the last one made needless
        need.give(entry[2], -1)
        if need.met():
            chosen.remove(entry)
        else:
            need.give(entry[2])
    return [place for _, place, _ in chosen]
