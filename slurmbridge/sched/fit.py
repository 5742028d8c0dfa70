"""How many tasks of a job could each node take, with what is free in a given room?

One vector answer over all nodes, no choice yet. Zero means that the node is out. Source: sbatch(1); slurm.conf(5),
SelectTypeParameters (CR_Core, CR_CPU, CR_Socket, with or without _Memory).
"""

from __future__ import annotations

import msgspec
import numpy as np

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import GpuScope
from slurmbridge.model.request import Exclusive, MemoryPer
from slurmbridge.sched import gpus
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.kinds import Kind
from slurmbridge.sched.room import NO_OWNER, Room
from slurmbridge.sched.shape import Shape

MANY = 1 << 30
"""More tasks than any node takes: the node does not bound them."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What SelectTypeParameters says, and how the partition shares CPUs."""

    by_core: bool = True  # whole cores
    by_socket: bool = False
    counts_memory: bool = True
    billing: frozenset[str] = frozenset()  # PriorityFlags, of which some say how TRES are billed
    share: int = 1  # jobs per CPU
    exclusive: bool = False  # the partition gives whole nodes
    uid: int = NO_OWNER  # whose job it is
    owns: bool = False  # only nodes of that user: --exclusive=user, ExclusiveUser
    owner_matters: bool = False  # some nodes are some user's


class Capacity(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """`tasks`, `devices`: how many each node could take; devices None when the job wants none.

    `kinds`: devices of each type, where those of a whole job are of several.
    """

    tasks: Ints
    devices: Ints | None = None
    kinds: tuple[Ints, ...] = ()


def rules_of(config: ClusterConfig) -> Rules:
    """The cluster-wide part."""
    words = {word.upper() for word in config.select_type_parameters}
    joined = "_".join(words)
    by_cpu = any(word.startswith("CR_CPU") for word in words)
    return Rules(
        by_core=not by_cpu,
        by_socket=any(word.startswith("CR_SOCKET") for word in words),
        counts_memory="MEMORY" in joined,
        billing=config.priority_flags,
    )


def unit_of(rules: Rules, node: Kind) -> int:
    """CPUs that are given out together on such a node."""
    if rules.by_socket:
        return node.cores * node.threads
    return node.threads if rules.by_core else 1


def is_whole(shape: Shape, rules: Rules) -> bool:
    """Whether the job gets nodes for itself, with everything in them."""
    return rules.exclusive or shape.exclusive in (Exclusive.NODE, Exclusive.TOPO)


def cpus_of_task(shape: Shape) -> int:
    """CPUs that each task brings, GPUs of the task counted in."""
    per_task = shape.cpus_per_task
    if shape.gpu is not None and shape.gpu.scope is GpuScope.TASK and shape.cpus_per_gpu:
        per_task = max(per_task, shape.cpus_per_gpu * shape.gpu.count)
    return per_task


def cpus_of_node(shape: Shape, unit: int, threads: int, tasks: int, devices: int) -> int:
    """CPUs that a job takes on a node with so many tasks and devices."""
    cpus = 1 if shape.overcommit else tasks * cpus_of_task(shape)
    cpus = max(cpus, shape.cpus_per_gpu * devices, shape.node_cpus, 1)
    if shape.threads is not None and shape.threads < threads:
        cpus = -(-cpus // shape.threads) * threads
    return -(-cpus // unit) * unit


def memory_of_node(shape: Shape, cpus: int, devices: int, total: int) -> int:
    """MiB that a job takes on a node."""
    memory = shape.memory
    if memory is None:
        return 0
    if memory.mib == 0 and memory.per is not MemoryPer.GPU:
        return total
    if memory.per is MemoryPer.NODE:
        return memory.mib
    if memory.per is MemoryPer.CPU:
        return min(memory.mib * cpus, total)
    return memory.mib * devices


def open_to_user(room: Room, limits: Room, rules: Rules) -> Bools:
    """Nodes that no other user has to himself, now and as long as `limits` says.

    A plain job joins its user's nodes only when no promised start may count on them being empty.
    """
    if rules.owns:
        alone: Bools = ((room.owner == rules.uid) | (room.jobs == 0)) & (
            (limits.owner == rules.uid) | (limits.jobs == 0)
        )
        return alone
    open_nodes: Bools = limits.owner == NO_OWNER
    if limits is room:
        open_nodes |= room.owner == rules.uid
    return open_nodes


def first_of_one(shape: Shape, columns: NodeColumns, nodes: Bools) -> int | None:
    """A quick look: the first of these nodes on which the shape certainly fits when it is empty; None: not known."""
    if shape.gpu is not None or shape.req_nodes or shape.min_nodes > 1 or shape.sockets or shape.cores or shape.threads:
        return None
    if shape.tasks_per_node or shape.tasks_per_core or shape.tasks_per_socket or shape.tmp_mib or shape.node_counts:
        return None
    cpus = max(shape.tasks * shape.cpus_per_task, shape.node_cpus)
    memory = memory_of_node(shape, cpus, 0, 0) if shape.memory is None or shape.memory.mib else 0
    if shape.memory is not None and shape.memory.per is MemoryPer.CPU:
        memory = shape.memory.mib * cpus
    enough = nodes & (columns.cpus >= cpus) & (columns.memory >= memory)
    row = int(enough.argmax()) if len(enough) else 0
    return row if len(enough) and enough[row] else None


def capacity(
    shape: Shape, columns: NodeColumns, room: Room, allowed: Bools, rules: Rules, most: Ints | None = None
) -> Capacity:
    """Tasks (and devices) each allowed node could take from this room. `most`: CPUs the partition may still use there."""
    whole = is_whole(shape, rules)
    ok = allowed & ~room.closed
    if whole:
        ok &= room.jobs == 0
    free = room.cpus if most is None else np.minimum(room.cpus, most)
    if rules.share > 1:
        free = np.minimum(columns.cpus - room.solid, room.cpus + _shared_room(columns, room, rules.share))
    ok &= free >= shape.node_cpus
    tasks = _tasks_by_cpu(shape, columns, free, rules)
    free_memory = room.memory if rules.counts_memory else columns.memory
    tasks, ok = _memory_bounds(shape, columns, free_memory, tasks, ok)
    if shape.tmp_mib:
        ok &= columns.tmp_disk >= shape.tmp_mib
    if shape.sockets:
        ok &= columns.sockets >= shape.sockets
    if shape.cores:
        ok &= columns.cores >= shape.cores
    if shape.threads:
        ok &= columns.threads >= shape.threads
    if shape.tasks_per_node:
        tasks = np.minimum(tasks, shape.tasks_per_node)
    devices: Ints | None = None
    kinds: tuple[Ints, ...] = ()
    if shape.gpu is not None:
        tasks, devices, ok = _device_bounds(shape, columns, room, free, free_memory, tasks, ok)
        if shape.gpu.kinds and shape.gpu.scope is GpuScope.JOB:
            kinds = tuple(gpus.of_kinds(shape.gpu, columns, room))
    return Capacity(tasks=np.where(ok, tasks, 0), devices=devices, kinds=kinds)


def _shared_room(columns: NodeColumns, room: Room, share: int) -> Ints:
    """CPU places left on CPUs that sharing jobs have in use, beyond those that nobody uses."""
    distinct = np.maximum(columns.cpus - room.solid - room.cpus, 0)
    more: Ints = np.maximum(distinct * share - room.shared, 0) + room.cpus * (share - 1)
    return more


def _tasks_by_cpu(shape: Shape, columns: NodeColumns, free: Ints, rules: Rules) -> Ints:
    per_task = cpus_of_task(shape)
    if shape.overcommit:
        tasks = np.where(free >= 1, MANY, 0)
    elif shape.threads:
        cores = free // columns.threads
        tasks = cores * np.minimum(shape.threads, columns.threads) // per_task
    else:
        tasks = free // per_task
    if shape.tasks_per_core and rules.by_core:
        tasks = np.minimum(tasks, free // columns.threads * shape.tasks_per_core)
    if shape.tasks_per_socket:
        tasks = np.minimum(tasks, columns.sockets * shape.tasks_per_socket)
    return tasks


def _memory_bounds(shape: Shape, columns: NodeColumns, free: Ints, tasks: Ints, ok: Bools) -> tuple[Ints, Bools]:
    memory = shape.memory
    if memory is None:
        return tasks, ok
    if memory.mib == 0 and memory.per is not MemoryPer.GPU:
        return tasks, ok & (free >= columns.memory - columns.others_memory)
    if memory.per is MemoryPer.NODE:
        return tasks, ok & (free >= memory.mib)
    if memory.per is MemoryPer.CPU:
        ok = ok & (free >= memory.mib * shape.node_cpus)
        if not shape.overcommit:
            tasks = np.minimum(tasks, free // (memory.mib * cpus_of_task(shape)))
    return tasks, ok


def _device_bounds(
    shape: Shape, columns: NodeColumns, room: Room, free: Ints, free_memory: Ints, tasks: Ints, ok: Bools
) -> tuple[Ints, Ints, Bools]:
    need = shape.gpu
    assert need is not None
    devices = gpus.available(need, columns, room)
    if shape.cpus_per_gpu:
        devices = np.minimum(devices, free // shape.cpus_per_gpu)
    if shape.memory is not None and shape.memory.per is MemoryPer.GPU and shape.memory.mib:
        devices = np.minimum(devices, free_memory // shape.memory.mib)
    if need.scope is GpuScope.TASK:
        tasks = np.minimum(tasks, devices // max(need.count, 1))
        return tasks, devices, ok
    per_node = devices_of_node(shape)
    ok = ok & (devices >= per_node)
    if shape.tasks_per_gpu:
        tasks = np.minimum(tasks, devices * shape.tasks_per_gpu)
    return tasks, devices, ok


def devices_of_node(shape: Shape) -> int:
    """Devices that each node must give whatever its tasks; 1 where a whole job's are spread."""
    need = shape.gpu
    if need is None or need.scope is GpuScope.TASK:
        return 0
    if need.scope is GpuScope.NODE:
        return need.count
    if need.scope is GpuScope.SOCKET:
        return need.count * (shape.sockets or 1)
    return len(need.kinds) or 1
