"""What does a job of one node take of a node, and is it there now? Worked out once for a shape and a kind of node.

Gives what `place` would give on the same node, for jobs whose needs are a few numbers. The others (sockets, threads, devices of
several types, the whole memory of a node ...) have no portion: they are placed by `place` and `place_one`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.model.job import Allocation, NodeShare
from slurmbridge.model.request import MemoryPer
from slurmbridge.model.tres import Tres
from slurmbridge.sched import cpus, gpus
from slurmbridge.sched.bits import numbers
from slurmbridge.sched.cells import Cells
from slurmbridge.sched.choose import Part
from slurmbridge.sched.columns import NodeColumns
from slurmbridge.sched.fit import Rules, cpus_of_node, cpus_of_task, unit_of
from slurmbridge.sched.kinds import Kind
from slurmbridge.sched.place import Placement, tasks_of, tres_of
from slurmbridge.sched.room import DeviceHold, Hold, device_hold
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView

ANY = -(1 << 62)
"""Less than any amount."""


class Portion(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Amounts on one kind of node. `memory`: what is taken; `least_memory`: what must be free for it."""

    cpus: int
    unit: int
    memory: int
    least_memory: int
    capped: bool  # of a node on which others have memory it may take less
    devices: int
    offer: gpus.Offer | None
    holds: Mapping[int, DeviceHold]  # by slot
    alike: bool  # whichever devices it gets, it counts for the same
    wanted: int  # tasks that CPUs are picked for
    tasks: int


def is_plain(shape: Shape) -> bool:
    """Whether its needs are a few numbers."""
    memory, need = shape.memory, shape.gpu
    odd = (
        shape.sockets or shape.cores or shape.threads or shape.tmp_mib or shape.tasks_per_core or shape.tasks_per_socket
    )
    whole_memory = memory is not None and memory.mib == 0 and memory.per is not MemoryPer.GPU
    return not (odd or shape.tasks_per_gpu or whole_memory or (need is not None and need.kinds))


def portion_of(shape: Shape, part: Part, rules: Rules, node: Kind) -> Portion | None:
    """Of a plain shape whose one node must give `part`; None: such a node never can."""
    if shape.tasks_per_node and part.tasks > shape.tasks_per_node:
        return None
    unit = unit_of(rules, node)
    count = cpus_of_node(shape, unit, node.threads, part.tasks, part.devices)
    memory, taken, least = shape.memory, 0, 0
    if memory is not None:
        each = memory.mib
        if memory.per is MemoryPer.NODE:
            taken = least = each
        elif memory.per is MemoryPer.GPU:
            taken = least = each * part.devices
        else:
            tasks = 0 if shape.overcommit else part.tasks * cpus_of_task(shape)
            taken, least = each * count, each * max(shape.node_cpus, tasks)
    if not rules.counts_memory:
        if least > node.memory:
            return None
        taken, least = 0, ANY
    offer: gpus.Offer | None = None
    holds: dict[int, DeviceHold] = {}
    alike = True
    if shape.gpu is not None:
        offer = gpus.offer(shape.gpu, node)
        if len(offer.slots) < part.devices:
            return None
        for slot, share in offer.shares.items():
            holds[slot] = device_hold(node, node.indexes.index(share.index), share.milli, share.mib)
        alike = len({(share.type, share.milli) for share in offer.shares.values()}) <= 1
    return Portion(
        cpus=count,
        unit=unit,
        memory=taken,
        least_memory=least,
        capped=rules.counts_memory and memory is not None and memory.per is MemoryPer.CPU,
        devices=part.devices,
        offer=offer,
        holds=holds,
        alike=alike,
        wanted=part.tasks,
        tasks=tasks_of(shape, part.tasks, count),
    )


class Portions:
    """Those of one shape in one partition, by kind of node."""

    __slots__ = ("_known", "_part", "_rules", "_shape", "_tres", "_view")

    def __init__(self, shape: Shape, view: PartitionView, part: Part, rules: Rules) -> None:
        self._shape, self._view, self._part, self._rules = shape, view, part, rules
        self._known: dict[Kind, Portion | None] = {}
        self._tres: dict[tuple[Portion, int], Tres] = {}

    def of(self, node: Kind) -> Portion | None:
        """None: such a node never has it."""
        try:
            return self._known[node]
        except KeyError:
            found = self._known[node] = portion_of(self._shape, self._part, self._rules, node)
            return found

    def place(
        self,
        row: int,
        columns: NodeColumns,
        rooms: Sequence[Cells],
        busy: Sequence[int],
        tracked: frozenset[str],
    ) -> Placement | None:
        """The job on this node, or None. Its amounts must be free in each of the rooms; `busy`: CPUs in use, by row; none: the
        numbers of its CPUs are left open.
        """
        node = columns.kinds.of(row)
        portion = self.of(node)
        if portion is None:
            return None
        taken, least = portion.memory, portion.least_memory
        if portion.capped:
            taken = min(taken, max(node.memory - columns.nodes[row].others.memory, 0))
            least = max(least, taken)
        for cells in rooms:
            if cells.cpus[row] < portion.cpus or cells.memory[row] < least or cells.closed[row]:
                return None
        slots: list[int] = []
        if portion.offer is not None:
            slots = _slots(portion, row, rooms)
            if len(slots) < portion.devices:
                return None
        mask = 0
        if busy:
            mask = cpus.pick(
                node,
                busy[row],
                count=portion.cpus,
                tasks=portion.wanted,
                per_task=self._shape.cpus_per_task,
                unit=portion.unit,
                block=self._shape.block,
            )
            if not mask:
                return None
        shares = portion.offer.shares if portion.offer is not None else {}
        share = NodeShare(
            node=columns.names[row],
            cpus=portion.cpus,
            cpu_ids=numbers(mask),
            memory_mib=taken,
            devices=tuple([shares[slot] for slot in slots]),
            tasks=portion.tasks,
        )
        hold = Hold(
            row=row,
            cpus=portion.cpus,
            memory=taken,
            mask=mask,
            devices=tuple([portion.holds[slot] for slot in slots]),
        )
        nodes = (share,)
        allocation = Allocation(
            partition=self._view.partition.name, nodes=nodes, tres=self._counts(portion, nodes, tracked)
        )
        return Placement(allocation=allocation, holds=(hold,))

    def _counts(self, portion: Portion, nodes: tuple[NodeShare], tracked: frozenset[str]) -> Tres:
        """AllocTRES."""
        if not portion.alike:
            return tres_of(nodes, (), self._view, tracked, self._rules)
        key = portion, nodes[0].memory_mib
        found = self._tres.get(key)
        if found is None:
            found = self._tres[key] = tres_of(nodes, (), self._view, tracked, self._rules)
        return found


def _slots(portion: Portion, row: int, rooms: Sequence[Cells]) -> list[int]:
    """Devices that can give their shares in every room."""
    offer, first = portion.offer, rooms[0]
    assert offer is not None
    milli = first.milli_of(row)
    mib = milli if offer.whole else first.mib_of(row)
    for cells in rooms[1:]:
        milli = list(map(min, milli, cells.milli_of(row)))
        mib = milli if offer.whole else list(map(min, mib, cells.mib_of(row)))
    return gpus.slots_for(offer, milli, mib, portion.devices)
