"""Which devices may a job have, and which of them does it get?

Whole devices, a portion of a device, the same portion of several devices of one node, or so many MiB of each; of one type
or of several, which a node then has together. A portion is fitted in thousandths and, beside sharers by memory, in MiB
too. Shared devices are filled up before fresh ones; slices of a device in MIG mode are types of their own, never shared.
Source: sbatch(1) --gres, --gpus*; gres.conf(5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from slurmbridge.model.job import DeviceShare, GpuNeed, GpuScope
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.kinds import Kind
from slurmbridge.sched.room import Room
from slurmbridge.sched.rows import count_in_rows


def _amounts(need: GpuNeed, total_mib: Ints) -> tuple[Ints, Ints]:
    """(milli, MiB) that each device must have free."""
    if need.mib:
        return need.mib * 1000 // np.maximum(total_mib, 1), np.full_like(total_mib, need.mib)
    if need.milli >= 1000:
        return np.full_like(total_mib, 1000), total_mib
    return np.full_like(total_mib, need.milli), need.milli * total_mib // 1000


def fitting(need: GpuNeed, columns: NodeColumns, room: Room) -> Bools:
    """[row, slot]: devices that can give one share."""
    if need.type and need.type not in columns.device_types:
        return np.zeros(columns.device_type.shape, dtype=np.bool_)
    milli, mib = _amounts(need, columns.device_mib)
    fits: Bools = (columns.device_type >= 0) & (room.milli >= milli) & (room.mib >= mib)
    if need.milli < 1000 or need.mib:
        fits &= columns.shared
    if need.type:
        fits &= columns.device_type == columns.device_types.index(need.type)
    return fits


def available(need: GpuNeed, columns: NodeColumns, room: Room) -> Ints:
    """Devices of each node that can give one share; of several types, those that go together."""
    if need.kinds:
        return _together(need, columns, room)
    if need.milli >= 1000 and not need.mib:
        if not need.type:
            return room.whole
        if need.type in columns.device_types and not columns.mixed_types:
            return np.where(columns.node_type == columns.device_types.index(need.type), room.whole, 0)
    return count_in_rows(fitting(need, columns, room))


def of_kinds(need: GpuNeed, columns: NodeColumns, room: Room) -> list[Ints]:
    """`available` of each of several types."""
    return [available(_only(need, kind, count), columns, room) for kind, count in need.kinds]


def _only(need: GpuNeed, kind: str, count: int) -> GpuNeed:
    return msgspec.structs.replace(need, type=kind, count=count, kinds=())


def _together(need: GpuNeed, columns: NodeColumns, room: Room) -> Ints:
    """Of a whole job's devices, what the node could add to them: none where it lacks a type. Else in full sets."""
    free = of_kinds(need, columns, room)
    if need.scope is GpuScope.JOB:
        useful = [np.minimum(each, count) for each, (_, count) in zip(free, need.kinds, strict=True)]
        return np.where(np.minimum.reduce(useful) > 0, np.add.reduce(useful), 0)
    sets = np.minimum.reduce([each // count for each, (_, count) in zip(free, need.kinds, strict=True)])
    together: Ints = sets * need.count
    return together


class Offer(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the devices of a kind of node can give to each share of a need. One place a slot; `slots`: those that count, and
    `shares` what each of these gives.
    """

    whole: bool
    slots: tuple[int, ...]
    milli: tuple[int, ...]  # that a device must have free
    mib: tuple[int, ...]
    totals: tuple[int, ...]
    shares: Mapping[int, DeviceShare]


def offer(need: GpuNeed, node: Kind) -> Offer:
    """Of a need of one type, or of any. Devices of other types, and slices for parts of devices, do not count."""
    whole = need.milli >= 1000 and not need.mib
    slots = tuple(
        slot
        for slot, kind in enumerate(node.types)
        if kind is not None and (whole or node.shared[slot]) and (not need.type or kind == need.type)
    )
    milli = tuple(need.mib * 1000 // max(total, 1) if need.mib else min(need.milli, 1000) for total in node.mib)
    mib = tuple(need.mib or (total if whole else need.milli * total // 1000) for total in node.mib)
    shares: dict[int, DeviceShare] = {}
    for slot in slots:
        amounts = {} if whole else {"milli": milli[slot], "mib": mib[slot]}
        shares[slot] = DeviceShare(index=node.indexes[slot], type=node.types[slot] or "", **amounts)
    return Offer(whole=whole, slots=slots, milli=milli, mib=mib, totals=node.mib, shares=shares)


def slots_for(given: Offer, milli: Sequence[int], mib: Sequence[int], count: int, *, spread: bool = False) -> list[int]:
    """`count` different slots of a node, in their order: the fullest that fit (`spread`: the emptiest), then the first ones.
    Fewer when it has fewer. `milli`, `mib`: what is free of each.
    """
    if given.whole:
        return [slot for slot in given.slots if milli[slot] >= 1000][:count]
    fits = [slot for slot in given.slots if milli[slot] >= given.milli[slot] and mib[slot] >= given.mib[slot]]
    if len(fits) > 1:
        sign = -1 if spread else 1
        fits.sort(key=lambda slot: sign * (mib[slot] * 1000 // given.totals[slot]))
        fits = sorted(fits[:count])
    return fits[:count]


def pick(
    need: GpuNeed,
    node: Kind,
    milli: Sequence[int],
    mib: Sequence[int],
    count: int,
    kinds: tuple[int, ...] = (),
    *,
    spread: bool = False,
) -> tuple[DeviceShare, ...]:
    """What a job gets of `count` devices of a node: see `slots_for`.

    `kinds`: how many of each of several types; not given: as many as go with `count`.
    """
    if need.kinds:
        counts = kinds or tuple(count * each // need.count for _, each in need.kinds)
        found = [
            device
            for (kind, _), each in zip(need.kinds, counts, strict=True)
            for device in pick(_only(need, kind, each), node, milli, mib, each, spread=spread)
        ]
        return tuple(sorted(found, key=lambda device: device.index))
    given = offer(need, node)
    return tuple([given.shares[slot] for slot in slots_for(given, milli, mib, count, spread=spread)])


def all_of(node: Kind) -> tuple[DeviceShare, ...]:
    """Every device of a node, whole: what an exclusive job gets."""
    return tuple(
        DeviceShare(index=index, type=kind)
        for index, kind in zip(node.indexes, node.types, strict=True)
        if kind is not None
    )


def spread(count: int, free: list[int]) -> list[int] | None:
    """Devices of a whole job over its nodes: one each, the rest where most are free. None: not enough."""
    if count < len(free) or sum(free) < count or min(free) < 1:
        return None
    given = [1] * len(free)
    left = count - len(free)
    for place in sorted(range(len(free)), key=lambda place: (-free[place], place)):
        more = min(left, free[place] - 1)
        given[place] += more
        left -= more
    return given
