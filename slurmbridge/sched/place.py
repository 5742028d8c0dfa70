"""What exactly does a job get: CPU numbers, memory, devices, tasks of each node, and its AllocTRES?

Computes from a room and changes nothing; the caller takes the holds. Source: scontrol(1) show job, `-d`;
slurm.conf(5) TRESBillingWeights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from slurmbridge.model.job import Allocation, DeviceShare, NodeShare
from slurmbridge.model.request import Exclusive, LicenseTerm
from slurmbridge.model.tres import Tres
from slurmbridge.sched import cpus, gpus
from slurmbridge.sched.bits import lowest_bits, numbers
from slurmbridge.sched.choose import Part, choose, with_counts
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.features import Alternative
from slurmbridge.sched.fit import Rules, capacity, cpus_of_node, is_whole, memory_of_node, open_to_user, unit_of
from slurmbridge.sched.lasting import Lasting
from slurmbridge.sched.placing import Placing
from slurmbridge.sched.room import NO_OWNER, Hold, Room, device_hold
from slurmbridge.sched.screen import CPUS, MEMORY, MILLI, WHOLE
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView
from slurmbridge.sched.topology import holds_beside
from slurmbridge.submit.billing import billing


class Placement(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """An allocation and what it takes from a room."""

    allocation: Allocation
    holds: tuple[Hold, ...]
    minutes: int | None = None  # the run's time limit, where it was shortened to fit (--time-min)
    until: float = math.inf  # when it gives its place back to whom that was promised


def place(
    shape: Shape,
    view: PartitionView,
    columns: NodeColumns,
    room: Room,
    limits: Room,
    alternative: Alternative,
    required: Sequence[int],
    rules: Rules,
    licenses: tuple[LicenseTerm, ...],
    tracked: frozenset[str],
    most: Ints | None = None,
    placing: Placing | Lasting | None = None,
) -> Placement | None:
    """A placement of the whole gang, or None.

    `room`: what is free now, with CPU numbers. `limits`: what may be used for as long as the job may run (the same room
    when nothing is reserved). `tracked`: gres and licence names of AccountingStorageTRES. `most`: CPUs that
    the partition may still use on each node (MaxCPUsPerNode). `placing`: which nodes are tried first.
    """
    allowed = alternative.nodes
    if rules.owns or rules.owner_matters:
        allowed = allowed & open_to_user(room, limits, rules)
    alone = view.near is not None and (shape.exclusive is Exclusive.TOPO or view.partition.exclusive_topo)
    if alone and view.near is not None:
        allowed = allowed & view.near.idle(np.maximum(room.jobs, limits.jobs))
    found = capacity(shape, columns, limits, allowed, rules, most)
    order = columns.order if placing is None else placing.order(limits)
    rows = with_counts(required, alternative.counts, found, order) if alternative.counts else required
    if rows is None:
        return None
    parts = choose(shape, columns, found, rows, view.bounds, limits.cpus, view.near, order)
    if parts is None:
        return None
    shares: list[NodeShare] = []
    holds: list[Hold] = []
    for part in parts:
        made = _node(shape, view, columns, room, limits, part, rules)
        if made is None:
            return None
        shares.append(made[0])
        holds.append(made[1])
    nodes = tuple(shares)
    allocation = Allocation(
        partition=view.partition.name,
        nodes=nodes,
        tres=tres_of(nodes, licenses, view, tracked, rules),
        licenses=licenses,
    )
    return Placement(allocation=allocation, holds=(*holds, *holds_beside(view.near, holds)) if alone else tuple(holds))


def candidates(
    shape: Shape,
    columns: NodeColumns,
    room: Room,
    allowed: Bools,
    rules: Rules,
    part: Part,
    placing: Placing | Lasting | None = None,
) -> list[int]:
    """Rows of the nodes that could hold a part alone, the first to be tried last."""
    found = capacity(shape, columns, room, allowed, rules)
    order = columns.order if placing is None else placing.order(room)
    enough = found.tasks[order] >= part.tasks
    if found.devices is not None and part.devices:
        enough &= found.devices[order] >= part.devices
    rows: list[int] = order[enough].tolist()
    rows.reverse()
    return rows


def trim(rows: list[int], room: Room, floor: Sequence[int], rules: Rules) -> None:
    """Take from the end of some candidates (the first is last) those that have not what a floor asks any more."""
    cpus, memory, whole = room.cpus, room.memory, room.whole
    asked_memory = floor[MEMORY] if rules.counts_memory else 0
    part = floor[MILLI] if floor[MILLI] < 1000 else 0
    while rows:
        row = rows[-1]
        if (
            cpus[row] >= floor[CPUS]
            and memory[row] >= asked_memory
            and whole[row] >= floor[WHOLE]
            and (not part or room.milli[row].max() >= part)
        ):
            return
        rows.pop()


def place_one(
    shape: Shape,
    view: PartitionView,
    columns: NodeColumns,
    room: Room,
    limits: Room,
    part: Part,
    rules: Rules,
    licenses: tuple[LicenseTerm, ...],
    tracked: frozenset[str],
) -> Placement | None:
    """`place` for a job of one node that is chosen already."""
    made = _node(shape, view, columns, room, limits, part, rules)
    if made is None:
        return None
    nodes = (made[0],)
    tres = tres_of(nodes, licenses, view, tracked, rules)
    allocation = Allocation(partition=view.partition.name, nodes=nodes, tres=tres, licenses=licenses)
    return Placement(allocation=allocation, holds=(made[1],))


def _node(
    shape: Shape, view: PartitionView, columns: NodeColumns, room: Room, limits: Room, part: Part, rules: Rules
) -> tuple[NodeShare, Hold] | None:
    row, whole, node = part.row, is_whole(shape, rules), columns.kinds.of(part.row)
    others, free = columns.nodes[row].others, limits.cells
    devices: tuple[DeviceShare, ...] = ()
    if whole:
        mask = ((1 << node.cpus) - 1) & ~columns.reserved[row]
        count = max(mask.bit_count() - others.cpus, 0)
        mask = lowest_bits(mask, count)
        devices = tuple(each for each in gpus.all_of(node) if each.index not in others.devices)
    else:
        unit = unit_of(rules, node)
        count = cpus_of_node(shape, unit, node.threads, part.tasks, part.devices)
        if rules.share == 1 and count > free.cpus[row]:
            return None
        mask = 0
        if room.busy:
            busy = room.busy[row]
            if rules.share > 1 and node.cpus - busy.bit_count() < count:
                busy = room.firm[row]
            mask = cpus.pick(
                node,
                busy,
                count=count,
                tasks=part.tasks,
                per_task=shape.cpus_per_task,
                unit=unit,
                block=shape.block,
            )
            if not mask:
                return None
    if shape.gpu is not None and (not whole or shape.gpu.milli < 1000 or shape.gpu.mib):
        spread = view.placing is not None and bool(view.placing.spreads_devices[row])
        milli, mib = free.milli_of(row), free.mib_of(row)
        devices = gpus.pick(shape.gpu, node, milli, mib, part.devices, part.kinds, spread=spread)
        if len(devices) < part.devices:
            return None
    asked = memory_of_node(shape, count, part.devices, max(node.memory - others.memory, 0))
    if rules.counts_memory and asked > free.memory[row]:
        return None
    hold = Hold(
        row=row,
        cpus=count,
        memory=asked if rules.counts_memory else 0,
        mask=mask,
        devices=tuple(device_hold(node, node.indexes.index(each.index), each.milli, each.mib) for each in devices),
        closes=whole,
        owner=rules.uid if rules.owns else NO_OWNER,
        shares=rules.share > 1,
    )
    share = NodeShare(
        node=columns.names[row],
        cpus=count,
        cpu_ids=numbers(mask),
        memory_mib=hold.memory,
        devices=devices,
        tasks=tasks_of(shape, part.tasks, count),
    )
    return share, hold


def tasks_of(shape: Shape, tasks: int, count: int) -> int:
    """Tasks of the layout: what SLURM_TASKS_PER_NODE says. Not given: as many as the CPUs hold."""
    if shape.tasks_given or shape.tasks_per_node or shape.overcommit:
        return tasks
    return max(count // shape.cpus_per_task, 1)


def tres_of(
    nodes: Sequence[NodeShare],
    licenses: Sequence[LicenseTerm],
    view: PartitionView,
    tracked: frozenset[str],
    rules: Rules,
) -> Tres:
    """AllocTRES. gres/gpu in thousandths; typed gres and licences only as far as accounting tracks them."""
    gpu: dict[str, int] = {}
    for node in nodes:
        for device in node.devices:
            gpu["gres/gpu"] = gpu.get("gres/gpu", 0) + device.milli
            if device.type:
                name = f"gres/gpu:{device.type}"
                gpu[name] = gpu.get(name, 0) + device.milli
    base = [("cpu", sum(node.cpus for node in nodes))]
    memory = sum(node.memory_mib for node in nodes)
    if memory:
        base.append(("mem", memory))
    extra = [(name, count) for name, count in gpu.items() if name == "gres/gpu" or name in tracked]
    extra += [(f"license/{term.name}", term.count) for term in licenses if f"license/{term.name}" in tracked]
    base.append(("node", len(nodes)))
    base.append(("billing", billing(view.partition.tres_billing_weights, [*base, *extra], rules.billing)))
    return tuple(base + extra)
