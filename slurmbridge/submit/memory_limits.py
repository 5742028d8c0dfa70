"""What do MaxMemPerCPU and MaxMemPerNode make of a job? Source: slurm.conf(5); cases measured on Slurm 26.05.

A job that wants more memory per CPU than allowed gets more CPUs for each task. One that wants more per node waits in that
partition, or is refused with EnforcePartLimits. A partition's own limit goes before the cluster's.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.request import Memory, MemoryPer
from slurmbridge.submit.size import Size


def effective(partition: Partition, config: ClusterConfig) -> Partition:
    """The partition with the limit that holds in it."""
    own = partition.max_mem_per_cpu is not None or partition.max_mem_per_node is not None
    if own or (config.max_mem_per_cpu is None and config.max_mem_per_node is None):
        return partition
    return msgspec.structs.replace(
        partition, max_mem_per_cpu=config.max_mem_per_cpu, max_mem_per_node=config.max_mem_per_node
    )


def widened(size: Size, memory: Memory | None, most: int | None, largest_mib: int) -> tuple[Size, Memory | None]:
    """The job's counts and memory within `most` MiB per CPU. `largest_mib`: what --mem=0 comes to."""
    if most is None or memory is None or memory.per is MemoryPer.GPU:
        return size, memory
    per_node = size.ntasks_per_node
    if memory.per is MemoryPer.CPU:
        if memory.mib <= most:
            return size, memory
        times = -(-memory.mib // most)
        per_task = size.cpus_per_task * times
        on_node = per_task * (per_node or 1) if per_node or size.num_tasks == 1 else size.pn_min_cpus
        return _with_cpus(size, per_task, on_node), Memory(MemoryPer.CPU, -(-memory.mib // times))
    cpus = -(-(memory.mib or largest_mib) // most)
    tasks = per_node or -(-size.num_tasks // max(size.min_nodes, 1)) or 1
    per_task = max(size.cpus_per_task, -(-cpus // tasks))
    if cpus <= max(size.pn_min_cpus, 1):
        return size, memory
    return _with_cpus(size, per_task, per_task * tasks), memory


def _with_cpus(size: Size, per_task: int, on_node: int) -> Size:
    total = max(size.min_cpus, per_task * size.num_tasks) if size.min_cpus else 0
    return msgspec.structs.replace(
        size, cpus_per_task=per_task, min_cpus=total, pn_min_cpus=max(size.pn_min_cpus, on_node)
    )


def is_too_much(memory: Memory | None, cpus_on_node: int, partition: Partition) -> bool:
    """More than MaxMemPerNode; `partition` as `effective` gives it. All memory of a node is too much for any limit."""
    most = partition.max_mem_per_node
    if most is None or memory is None or memory.per is MemoryPer.GPU:
        return False
    if memory.per is MemoryPer.CPU:
        return memory.mib * max(cpus_on_node, 1) > most
    return not memory.mib or memory.mib > most
