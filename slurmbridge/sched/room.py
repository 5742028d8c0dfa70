"""What is free on the nodes, and what does an allocation take from it?

A `Room` is mutable working space: a snapshot keeps one as base, a cycle copies it and takes what it gives out; rooms at
later times (for backfill) have the same columns without CPU numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from slurmbridge.model.cluster import Others
from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.rows import count_in_rows

NOBODY = Others()
NO_OWNER = -1
AMOUNTS = ("cpus", "memory", "milli", "mib", "whole", "jobs", "closed", "owner", "owners", "solid", "shared")
"""Columns of a `Room`; the other attributes are CPU numbers."""
MIXED_OWNER = -2
"""Of the lesser of two rooms whose owners differ: nobody may count on the node."""


class DeviceHold(msgspec.Struct, frozen=True):
    """Amounts of one device slot."""

    slot: int
    milli: int
    mib: int


class Hold(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one job holds on one node."""

    row: int
    cpus: int
    memory: int
    mask: int = 0  # bits of the CPUs; 0 = not said which
    devices: tuple[DeviceHold, ...] = ()
    closes: bool = False  # nobody else may come
    owner: int = NO_OWNER  # only this user's jobs may come
    shares: bool = False  # CPUs may be given out again (OverSubscribe)


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
        slots = columns.device_index[row].tolist()
        mask = 0
        for cpu in () if job.is_without_cpus else share.cpu_ids:
            mask |= 1 << cpu
        devices = tuple(
            device_hold(columns, row, slots.index(device.index), device.milli, device.mib)
            for device in share.devices
            if device.index in slots
        )
        found.append(
            Hold(
                row=row,
                cpus=0 if job.is_without_cpus else share.cpus,
                memory=share.memory_mib,
                mask=mask,
                devices=devices,
                closes=closes and not job.is_without_cpus,
                owner=job.spec.uid if owned else NO_OWNER,
                shares=shares,
            )
        )
    return tuple(found)


def device_hold(columns: NodeColumns, row: int, slot: int, milli: int, mib: int) -> DeviceHold:
    """Both amounts of a share of a device, whichever was asked for."""
    total = int(columns.device_mib[row, slot])
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

    __slots__ = (
        "busy",
        "closed",
        "cpus",
        "firm",
        "jobs",
        "memory",
        "mib",
        "milli",
        "owner",
        "owners",
        "shared",
        "solid",
        "whole",
    )

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

    def copy(self, *, with_cpu_numbers: bool = True) -> Room:
        other = Room()
        other.cpus, other.memory = self.cpus.copy(), self.memory.copy()
        other.milli, other.mib, other.whole = self.milli.copy(), self.mib.copy(), self.whole.copy()
        other.jobs, other.closed, other.owner = self.jobs.copy(), self.closed.copy(), self.owner.copy()
        other.owners = self.owners.copy()
        other.busy = list(self.busy) if with_cpu_numbers else []
        other.firm = list(self.firm) if with_cpu_numbers else []
        other.solid, other.shared = self.solid.copy(), self.shared.copy()
        return other

    def take(self, hold: Hold) -> None:
        """Amounts of a hold go away."""
        row = hold.row
        if hold.shares:
            self.shared[row] += hold.cpus
            if self.busy:
                self.cpus[row] -= (hold.mask & ~self.busy[row]).bit_count()
        else:
            self.solid[row] += hold.cpus
            self.cpus[row] -= hold.cpus
            if self.busy:
                self.firm[row] |= hold.mask
        if self.busy:
            self.busy[row] |= hold.mask
        self.memory[row] -= hold.memory
        self.jobs[row] += 1
        for device in hold.devices:
            self.milli[row, device.slot] -= device.milli
            self.mib[row, device.slot] -= device.mib
        if hold.devices:
            self.whole[row] = np.count_nonzero(self.milli[row] >= 1000)
        if hold.closes:
            self.closed[row] = True
        if hold.owner != NO_OWNER:
            self.owner[row] = hold.owner
            self.owners[row] += 1

    def give(self, hold: Hold) -> None:
        """Amounts of a hold come back. With CPU numbers only where nothing on the node shares its CPUs."""
        row = hold.row
        if self.busy:
            self.busy[row] &= ~hold.mask
            self.firm[row] &= ~hold.mask
        if hold.shares:
            self.shared[row] -= hold.cpus
        else:
            self.solid[row] -= hold.cpus
            self.cpus[row] += hold.cpus
        self.memory[row] += hold.memory
        self.jobs[row] -= 1
        for device in hold.devices:
            self.milli[row, device.slot] += device.milli
            self.mib[row, device.slot] += device.mib
        if hold.devices:
            self.whole[row] = np.count_nonzero(self.milli[row] >= 1000)
        if self.jobs[row] <= 0:
            self.closed[row] = False
        if hold.owner != NO_OWNER:
            self.owners[row] -= 1
            if self.owners[row] <= 0:
                self.owner[row] = NO_OWNER

    def tighten(self, other: Room, rows: Iterable[int]) -> None:
        """The lesser of both at these rows."""
        for row in rows:
            self.cpus[row] = min(self.cpus[row], other.cpus[row])
            self.memory[row] = min(self.memory[row], other.memory[row])
            self.jobs[row] = max(self.jobs[row], other.jobs[row])
            self.closed[row] |= other.closed[row]
            self.solid[row] = max(self.solid[row], other.solid[row])
            self.shared[row] = max(self.shared[row], other.shared[row])
            self.owners[row] = max(self.owners[row], other.owners[row])
            if other.owner[row] != self.owner[row]:
                self.owner[row] = MIXED_OWNER
            np.minimum(self.milli[row], other.milli[row], out=self.milli[row])
            np.minimum(self.mib[row], other.mib[row], out=self.mib[row])
            self.whole[row] = np.count_nonzero(self.milli[row] >= 1000)

    def tightened(self, other: Room) -> Room:
        """The lesser of both everywhere, without CPU numbers."""
        room = Room()
        room.cpus, room.memory = np.minimum(self.cpus, other.cpus), np.minimum(self.memory, other.memory)
        room.milli, room.mib = np.minimum(self.milli, other.milli), np.minimum(self.mib, other.mib)
        room.count_whole()
        room.jobs = np.maximum(self.jobs, other.jobs)
        room.closed = self.closed | other.closed
        room.owner = np.where(other.owner == self.owner, self.owner, MIXED_OWNER)
        room.owners = np.maximum(self.owners, other.owners)
        room.solid, room.shared = np.maximum(self.solid, other.solid), np.maximum(self.shared, other.shared)
        room.busy, room.firm = [], []
        return room

    def copy_row(self, source: Room, row: int) -> None:
        """Amounts of one node as they are in another room."""
        for name in AMOUNTS:
            getattr(self, name)[row] = getattr(source, name)[row]

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


def lowest_bits(mask: int, count: int) -> int:
    """The `count` lowest set bits of a mask (fewer when it has fewer)."""
    taken = 0
    while count > 0 and mask:
        bit = mask & -mask
        taken |= bit
        mask ^= bit
        count -= 1
    return taken


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
