"""What is free on the nodes, and what does an allocation take from it?

A `Room` is mutable working space: a snapshot keeps one as base, a cycle copies it and takes what it gives out; rooms at
later times (for backfill) have the same columns without CPU numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from slurmbridge.model.cluster import Others
from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.bits import lowest_bits, mask_of
from slurmbridge.sched.cells import AMOUNTS, MIXED_OWNER, Cells, Saved
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.kinds import Kind
from slurmbridge.sched.rows import count_in_rows

NOBODY = Others()
NO_OWNER = -1
LEAST, MOST = ("cpus", "memory", "milli", "mib"), ("jobs", "owners", "solid", "shared", "closed")
"""Columns of which the lesser of two rooms has the smaller, and the larger number."""
FEW = 8
"""So many nodes are quicker to go through one by one than all at once."""


class DeviceHold(msgspec.Struct, frozen=True, gc=False):
    """Amounts of one device slot."""

    slot: int
    milli: int
    mib: int


class Hold(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """What one job holds on one node."""

    row: int
    cpus: int
    memory: int
    mask: int = 0  # bits of the CPUs; 0 = not said which
    devices: tuple[DeviceHold, ...] = ()
    closes: bool = False  # nobody else may come
    owner: int = NO_OWNER  # only this user's jobs may come
    shares: bool = False  # CPUs may be given out again (OverSubscribe)
    stays: bool = False  # of what a run gives back when it is suspended: it is on the node all the same


def holds_of(job: Job, columns: NodeColumns, *, closes: bool, owner: bool, shares: bool) -> tuple[Hold, ...]:
    """The holds of a running job; nodes that are gone are left out."""
    if job.allocation is None:
        return ()
    found = []
    closes = closes or job.spec.exclusive in (Exclusive.NODE, Exclusive.TOPO)
    owned = owner or job.spec.exclusive is Exclusive.USER
    for share in job.allocation.nodes:
        row = columns.rows.get(share.node)
        if row is None:
            continue
        node = columns.kinds.of(row)
        devices = [
            device_hold(node, node.indexes.index(device.index), device.milli, device.mib)
            for device in share.devices
            if device.index in node.indexes
        ]
        found.append(
            Hold(
                row=row,
                cpus=0 if job.is_without_cpus else share.cpus,
                memory=share.memory_mib,
                mask=0 if job.is_without_cpus else mask_of(share.cpu_ids),
                devices=tuple(devices),
                closes=closes and not job.is_without_cpus,
                owner=job.spec.uid if owned else NO_OWNER,
                shares=shares,
            )
        )
    return tuple(found)


def device_hold(node: Kind, slot: int, milli: int, mib: int) -> DeviceHold:
    """Both amounts of a share of a device, whichever was asked for."""
    total = node.mib[slot]
    if milli >= 1000:
        return DeviceHold(slot, 1000, total)
    if mib:
        return DeviceHold(slot, milli or max(mib * 1000 // total, 1), mib)  # no share leaves a device whole
    return DeviceHold(slot, milli, milli * total // 1000)


def is_plain(hold: Hold) -> bool:
    """Whether it names its CPUs and keeps nobody out: it may come and go without a look at its neighbours."""
    return bool(hold.mask or not hold.cpus) and not (hold.closes or hold.shares or hold.owner != NO_OWNER)


class Room:
    """Free amounts, one row a node."""

    __slots__ = (*AMOUNTS, "_before", "_cells", "busy", "firm")

    cpus: Ints
    memory: Ints
    milli: Ints  # [row, slot] of each device
    mib: Ints
    whole: Ints  # devices of each node that nobody has a part of
    jobs: Ints  # how many jobs are there
    closed: Bools
    owner: Ints  # uid of the only user who may come, NO_OWNER
    owners: Ints  # how many jobs say so
    busy: list[int]  # bit mask of CPUs in use; empty list in rooms of later times
    firm: list[int]  # the part of `busy` that nobody shares
    solid: Ints  # CPUs of jobs that do not share
    shared: Ints  # CPUs of jobs that share, summed over these jobs

    def __init__(self) -> None:
        self._cells: Cells | None = None
        self._before: dict[int, Saved] | None = None  # nodes as they were when `watch` was called

    @property
    def cells(self) -> Cells:
        """The columns node by node. From now on they are changed and no longer replaced."""
        found = self._cells
        if found is None:
            found = self._cells = Cells(self)
        return found

    def watch(self) -> None:
        """From now on remember what nodes were like before they changed."""
        self._before = {}

    def go_back(self) -> list[int]:
        """As it was when `watch` was called; the nodes that had changed. It goes on remembering."""
        assert self._before is not None, "nobody watches"
        cells, before = self.cells, self._before
        for row, saved in before.items():
            cells.put_back(row, saved, self.busy, self.firm)
        self._before = {}
        return list(before)

    def _changes(self, row: int) -> Cells:
        """Before a node changes."""
        cells = self._cells
        if cells is None:
            cells = self._cells = Cells(self)
        if self._before is not None and row not in self._before:
            self._before[row] = cells.saved(row, self.busy, self.firm)
        return cells

    def copy(self, *, with_cpu_numbers: bool = True) -> Room:
        other = Room()
        for name in AMOUNTS:
            setattr(other, name, getattr(self, name).copy())
        other.busy = list(self.busy) if with_cpu_numbers else []
        other.firm = list(self.firm) if with_cpu_numbers else []
        return other

    def take(self, hold: Hold) -> None:
        """Amounts of a hold go away."""
        row, cpus = hold.row, hold.cpus
        cells = self._changes(row)
        if hold.shares:
            cells.shared[row] += cpus
            if self.busy:
                cells.cpus[row] -= (hold.mask & ~self.busy[row]).bit_count()
        else:
            cells.solid[row] += cpus
            cells.cpus[row] -= cpus
            if self.busy:
                self.firm[row] |= hold.mask
        if self.busy:
            self.busy[row] |= hold.mask
        cells.memory[row] -= hold.memory
        if not hold.stays:
            cells.jobs[row] += 1
        if hold.devices:
            first, milli, mib, whole = row * cells.width, cells.milli, cells.mib, 0
            for device in hold.devices:
                place = first + device.slot
                free = milli[place]
                left = milli[place] = free - device.milli
                mib[place] -= device.mib
                whole += (free >= 1000) - (left >= 1000)
            if whole:
                cells.whole[row] -= whole
        if hold.closes:
            cells.closed[row] = True
        if hold.owner != NO_OWNER:
            cells.owner[row] = hold.owner
            cells.owners[row] += 1

    def give(self, hold: Hold) -> None:
        """Amounts of a hold come back. With CPU numbers only where nothing on the node shares its CPUs."""
        row, cpus = hold.row, hold.cpus
        cells = self._changes(row)
        if self.busy:
            self.busy[row] &= ~hold.mask
            self.firm[row] &= ~hold.mask
        if hold.shares:
            cells.shared[row] -= cpus
        else:
            cells.solid[row] -= cpus
            cells.cpus[row] += cpus
        cells.memory[row] += hold.memory
        if not hold.stays:
            cells.jobs[row] -= 1
        first, milli, mib, whole = row * cells.width, cells.milli, cells.mib, 0
        for device in hold.devices:
            place = first + device.slot
            free = milli[place]
            left = milli[place] = free + device.milli
            mib[place] += device.mib
            whole += (left >= 1000) - (free >= 1000)
        if whole:
            cells.whole[row] += whole
        if cells.jobs[row] <= 0:
            cells.closed[row] = False
        if hold.owner != NO_OWNER:
            cells.owners[row] -= 1
            if cells.owners[row] <= 0:
                cells.owner[row] = NO_OWNER

    def tighten(self, other: Room, rows: Iterable[int]) -> None:
        """The lesser of both at these rows."""
        for row in rows:
            self._changes(row).lessen(row, other.cells)

    def tightened(self, other: Room) -> Room:
        """The lesser of both everywhere, without CPU numbers."""
        room = Room()
        for name, lesser in _lesser(self, other, slice(None)):
            setattr(room, name, lesser)
        room.count_whole()
        room.busy, room.firm = [], []
        return room

    def cap(self, hold: Hold) -> None:
        """Leave at a node at most what a hold takes there."""
        row = hold.row
        if not hold.shares:
            self.cpus[row] = min(self.cpus[row], hold.cpus)
        self.memory[row] = min(self.memory[row], hold.memory)
        milli, mib = np.zeros_like(self.milli[row]), np.zeros_like(self.mib[row])
        for device in hold.devices:
            milli[device.slot], mib[device.slot] = device.milli, device.mib
        np.minimum(self.milli[row], milli, out=self.milli[row])
        np.minimum(self.mib[row], mib, out=self.mib[row])
        self.whole[row] = np.count_nonzero(self.milli[row] >= 1000)

    def only(self, holds: Iterable[Hold]) -> Room:
        """At most what these take; nobody may come to other nodes."""
        room = self.copy()
        closed, room.closed = room.closed, np.ones_like(room.closed)
        for hold in holds:
            room.closed[hold.row] = closed[hold.row]
            room.cap(hold)
        return room

    def copy_row(self, source: Room, row: int) -> None:
        """Amounts of one node as they are in another room."""
        self._changes(row).copy(row, source.cells)

    def lessen(self, one: Room, other: Room, rows: Sequence[int]) -> None:
        """At these rows the lesser of both."""
        if len(rows) <= FEW:
            for row in rows:
                self.copy_row(one, row)
                self.cells.lessen(row, other.cells)
            return
        at = np.array(rows, dtype=np.int64)
        for name, lesser in _lesser(one, other, at):
            getattr(self, name)[at] = lesser
        self.whole[at] = count_in_rows(self.milli[at] >= 1000)

    def count_whole(self) -> None:
        """Bring `whole` in line with the devices."""
        self.whole = count_in_rows(self.milli >= 1000)

    def reset_row(self, columns: NodeColumns, row: int, holds: Iterable[Hold]) -> None:
        """Compute one row anew from what is held there: first holds that name their CPUs, then the others."""
        reserved = columns.reserved[row]
        self.cpus[row] = int(columns.cpus[row]) - reserved.bit_count()
        self.memory[row] = columns.memory[row]
        self.milli[row] = np.where(columns.device_type[row] >= 0, 1000, 0)
        self.mib[row] = columns.device_mib[row]
        others = columns.nodes[row].others
        if others != NOBODY:
            self.cpus[row] -= others.cpus
            self.memory[row] -= others.memory
            theirs = np.isin(columns.device_index[row], others.devices)
            self.milli[row][theirs] = self.mib[row][theirs] = 0
        self.whole[row] = np.count_nonzero(self.milli[row])
        self.jobs[row], self.closed[row], self.owner[row] = 0, False, NO_OWNER
        self.solid[row] = self.shared[row] = self.owners[row] = 0
        self.busy[row] = self.firm[row] = reserved
        unnamed = []
        for hold in holds:
            if hold.mask or not hold.cpus:
                self.take(hold)
            else:
                unnamed.append(hold)
        everything = (1 << int(columns.cpus[row])) - 1
        for hold in unnamed:
            mask = lowest_bits(everything & ~self.busy[row], hold.cpus)
            self.take(msgspec.structs.replace(hold, mask=mask))


def _lesser(one: Room, other: Room, at: Ints | slice) -> Iterator[tuple[str, Ints | Bools]]:
    """At these rows the columns of the lesser of two rooms, but for `whole`, which follows from the devices."""
    for name in LEAST:
        yield name, np.minimum(getattr(one, name)[at], getattr(other, name)[at])
    for name in MOST:
        yield name, np.maximum(getattr(one, name)[at], getattr(other, name)[at])
    yield "owner", np.where(other.owner[at] == one.owner[at], one.owner[at], MIXED_OWNER)


def empty_room(columns: NodeColumns) -> Room:
    """Nothing runs, and nobody else has anything: how it could be."""
    size = columns.count
    room = Room()
    room.cpus = columns.cpus - np.array([mask.bit_count() for mask in columns.reserved], dtype=np.int64)
    room.memory = columns.memory.copy()
    room.milli = np.where(columns.device_type >= 0, 1000, 0).astype(np.int64)
    room.mib = columns.device_mib.copy()
    room.count_whole()
    room.jobs = np.zeros(size, dtype=np.int64)
    room.closed = np.zeros(size, dtype=np.bool_)
    room.owner = np.full(size, NO_OWNER, dtype=np.int64)
    room.owners = np.zeros(size, dtype=np.int64)
    room.solid, room.shared = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    room.busy, room.firm = list(columns.reserved), list(columns.reserved)
    return room
