"""Which devices may a job have, and which of them does it get?

Whole devices, a portion of a device, the same portion of several devices of one node, or so many MiB of each; of one type
or of several, which a node then has together. A portion is fitted in thousandths and, beside sharers by memory, in MiB
too. Shared devices are filled up before fresh ones; slices of a device in MIG mode are types of their own, never shared.
Source: sbatch(1) --gres, --gpus*; gres.conf(5).
"""

from __future__ import annotations

import msgspec
import numpy as np

from slurmbridge.model.job import DeviceShare, GpuNeed, GpuScope
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
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


def pick(
    need: GpuNeed,
    columns: NodeColumns,
    room: Room,
    row: int,
    count: int,
    kinds: tuple[int, ...] = (),
    *,
    spread: bool = False,
) -> tuple[DeviceShare, ...]:
    """`count` different devices of a node: the fullest that fit first (`spread`: the emptiest), then by number. Fewer when
    it has fewer.

    `kinds`: how many of each of several types; not given: as many as go with `count`.
    """
    if need.kinds:
        counts = kinds or tuple(count * each // need.count for _, each in need.kinds)
        found = [
            device
            for (kind, _), each in zip(need.kinds, counts, strict=True)
            for device in pick(_only(need, kind, each), columns, room, row, each, spread=spread)
        ]
        return tuple(sorted(found, key=lambda device: device.index))
    if need.milli >= 1000 and not need.mib:
        return _pick_whole(need, columns, room, row, count)
    total = columns.device_mib[row]
    milli, mib = _amounts(need, total)
    fits = columns.shared[row] & (room.milli[row] >= milli) & (room.mib[row] >= mib)
    if need.type:
        wanted = columns.device_types.index(need.type) if need.type in columns.device_types else -2
        fits &= columns.device_type[row] == wanted
    sign = -1 if spread else 1
    slots = sorted(
        np.flatnonzero(fits).tolist(), key=lambda slot: (sign * int(room.mib[row, slot] * 1000 // total[slot]), slot)
    )
    return tuple(
        DeviceShare(
            index=int(columns.device_index[row, slot]),
            type=columns.device_types[int(columns.device_type[row, slot])],
            milli=int(milli[slot]),
            mib=int(mib[slot]),
        )
        for slot in sorted(slots[:count])
    )


def _pick_whole(need: GpuNeed, columns: NodeColumns, room: Room, row: int, count: int) -> tuple[DeviceShare, ...]:
    indexes, kinds = columns.device_index[row].tolist(), columns.device_type[row].tolist()
    found: list[DeviceShare] = []
    for slot, free in enumerate(room.milli[row].tolist()):
        if len(found) == count:
            break
        kind = kinds[slot]
        if free >= 1000 and kind >= 0 and (not need.type or columns.device_types[kind] == need.type):
            found.append(DeviceShare(index=indexes[slot], type=columns.device_types[kind]))
    return tuple(found)


def all_of(columns: NodeColumns, row: int) -> tuple[DeviceShare, ...]:
    """Every device of a node, whole: what an exclusive job gets."""
    return tuple(
        DeviceShare(index=int(index), type=columns.device_types[int(kind)])
        for index, kind in zip(columns.device_index[row], columns.device_type[row], strict=True)
        if kind >= 0
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
