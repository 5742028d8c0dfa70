"""What are the nodes, as numpy columns?

Everything that running jobs do not change: sizes, weights, features, devices, and whether a node may take work at all.
Row numbers follow the configuration's order; all other modules of `sched` speak of nodes by row.
Source: slurm.conf(5), NODE CONFIGURATION; gres.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.cluster import DEFAULT_DEVICE_MIB, Node
from slurmbridge.model.states import NodeBase, NodeFlag
from slurmbridge.sched.kinds import Kinds

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_CLOSED_BASES = {NodeBase.DOWN, NodeBase.FUTURE, NodeBase.ERROR, NodeBase.UNKNOWN}
_CLOSED_FLAGS = frozenset(
    {
        NodeFlag.DRAIN,
        NodeFlag.FAIL,
        NodeFlag.MAINTENANCE,
        NodeFlag.NOT_RESPONDING,
        NodeFlag.POWERED_DOWN,
        NodeFlag.REBOOT_REQUESTED,
    }
)


class NodeColumns(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One row a node. `devices`: one column a device slot, absent ones have type -1."""

    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    rows: Mapping[str, int]
    cpus: Ints
    sockets: Ints
    cores: Ints  # per socket
    threads: Ints  # per core
    memory: Ints  # MiB that jobs may use
    tmp_disk: Ints
    reserved: tuple[int, ...]  # bit mask of CPUs kept from jobs (CoreSpecCount)
    usable: Bools  # up and not drained
    others_cpus: Ints  # what others than our jobs hold now
    others_memory: Ints
    order: Ints  # rows by weight, then row
    feature_sets: tuple[frozenset[str], ...]  # the different ones
    feature_set: Ints  # row -> number in feature_sets
    device_types: tuple[str, ...]  # "" for untyped
    device_type: Ints  # [row, slot], -1 = no device
    device_index: Ints  # [row, slot], as in gres.conf
    device_mib: Ints  # [row, slot]
    shared: Bools  # [row, slot]: devices that may be given out in parts
    node_type: Ints  # type of a node's first device, -1 = it has none
    mixed_types: bool  # whether any node has devices of several types
    kinds: Kinds  # the sizes node by node

    @property
    def count(self) -> int:
        return len(self.names)


def is_usable(node: Node) -> bool:
    """Whether new work may start on it."""
    return node.base not in _CLOSED_BASES and not node.flags & _CLOSED_FLAGS


def _reserved_mask(node: Node) -> int:
    """Highest cores of each socket in turn, as Slurm takes them for CoreSpecCount."""
    conf, mask = node.conf, 0
    for number in range(min(conf.core_spec_count, conf.sockets * conf.cores_per_socket)):
        socket, depth = number % conf.sockets, number // conf.sockets
        core = socket * conf.cores_per_socket + conf.cores_per_socket - 1 - depth
        mask |= ((1 << conf.threads_per_core) - 1) << (core * conf.threads_per_core)
    return mask


def _features(node: Node) -> frozenset[str]:
    return frozenset(node.features_active or node.conf.features)


def _numbered(items: Iterable[object]) -> tuple[dict[object, int], list[int]]:
    """First-come numbers of different items, and each item's number."""
    numbers: dict[object, int] = {}
    return numbers, [numbers.setdefault(item, len(numbers)) for item in items]


def build(nodes: Sequence[Node]) -> NodeColumns:
    """Columns of these nodes, in this order."""

    def column(values: Iterable[int]) -> Ints:
        return np.fromiter(values, dtype=np.int64, count=len(nodes))

    confs = [node.conf for node in nodes]
    slots = max((len(conf.devices) for conf in confs), default=0)
    types, _ = _numbered(device.type for conf in confs for device in conf.devices)
    device_type = np.full((len(nodes), slots), -1, dtype=np.int64)
    device_index = np.full((len(nodes), slots), -1, dtype=np.int64)
    device_mib = np.zeros((len(nodes), slots), dtype=np.int64)
    shared = np.zeros((len(nodes), slots), dtype=np.bool_)
    for row, conf in enumerate(confs):
        for slot, device in enumerate(conf.devices):
            device_type[row, slot] = types[device.type]
            device_index[row, slot] = device.index
            device_mib[row, slot] = device.memory_mib or DEFAULT_DEVICE_MIB
            shared[row, slot] = not device.is_slice
    first_type = device_type[:, 0] if slots else np.full(len(nodes), -1, dtype=np.int64)
    mixed = bool(((device_type >= 0) & (device_type != first_type[:, None])).any()) if slots else False
    sets, set_numbers = _numbered(_features(node) for node in nodes)
    weights = column(conf.weight for conf in confs)
    names = tuple(conf.name for conf in confs)
    cpus, memory = (
        column(conf.cpus for conf in confs),
        column(max(conf.real_memory - conf.mem_spec_limit, 0) for conf in confs),
    )
    sockets = column(max(conf.sockets * max(conf.boards, 1), 1) for conf in confs)
    cores = column(max(conf.cores_per_socket, 1) for conf in confs)
    threads = column(max(conf.threads_per_core, 1) for conf in confs)
    type_names = tuple(str(each) for each in types)
    return NodeColumns(
        nodes=tuple(nodes),
        names=names,
        rows={name: row for row, name in enumerate(names)},
        cpus=cpus,
        sockets=sockets,
        cores=cores,
        threads=threads,
        memory=memory,
        tmp_disk=column(conf.tmp_disk for conf in confs),
        reserved=tuple(_reserved_mask(node) for node in nodes),
        usable=np.array([is_usable(node) for node in nodes], dtype=np.bool_),
        others_cpus=column(node.others.cpus for node in nodes),
        others_memory=column(node.others.memory for node in nodes),
        order=np.lexsort((np.arange(len(nodes)), weights)).astype(np.int64),
        feature_sets=tuple(sets),  # type: ignore[arg-type]
        feature_set=np.array(set_numbers, dtype=np.int64),
        device_types=type_names,
        device_type=device_type,
        device_index=device_index,
        device_mib=device_mib,
        shared=shared,
        node_type=first_type,
        mixed_types=mixed,
        kinds=Kinds(
            (cpus, sockets, cores, threads, memory), (device_type, device_index, device_mib), shared, type_names
        ),
    )


def with_changes(columns: NodeColumns, changed: Sequence[Node]) -> NodeColumns:
    """The columns after these nodes changed. Cheap when only states did."""
    nodes = list(columns.nodes)
    added = [node for node in changed if node.conf.name not in columns.rows]
    same = not added
    for node in changed:
        row = columns.rows.get(node.conf.name)
        if row is None:
            continue
        before = nodes[row]
        same = same and before.conf == node.conf and _features(before) == _features(node)
        nodes[row] = node
    if not same:
        return build([*nodes, *added])
    usable, cpus, memory = columns.usable.copy(), columns.others_cpus.copy(), columns.others_memory.copy()
    for node in changed:
        row = columns.rows[node.conf.name]
        usable[row], cpus[row], memory[row] = is_usable(node), node.others.cpus, node.others.memory
    return msgspec.structs.replace(columns, nodes=tuple(nodes), usable=usable, others_cpus=cpus, others_memory=memory)
