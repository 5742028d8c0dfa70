"""How many nodes, tasks, CPUs and how much memory is a job counted with while it waits?

The arithmetic of sbatch and slurmctld 26.05 as `scontrol show job` shows it: NumNodes, NumCPUs, NumTasks, CPUs/Task,
MinCPUsNode, ReqTRES. Measured on a real Slurm, case by case (tests/submit).
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import JobSpec
from slurmbridge.model.request import JobRequest, Memory, MemoryPer
from slurmbridge.model.tres import Tres
from slurmbridge.submit.billing import Billing
from slurmbridge.submit.devices import Tally, Wish


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of JobSpec of the same names."""

    min_nodes: int
    max_nodes: int | None
    node_counts: tuple[int, ...]
    num_tasks: int
    ntasks_given: bool
    cpus_per_task: int
    cpus_per_task_given: bool
    min_cpus: int
    ntasks_per_node: int
    ntasks_per_socket: int
    pn_min_cpus: int


def first_tally(request: JobRequest) -> Tally:
    """Tasks and nodes as asked for; --nodelist alone asks for at least its nodes."""
    least, most = request.nodes_min, request.nodes_max
    given = least is not None
    if least is None:
        hosts = request.nodelist
        least = 1 if hosts is None else len(dict.fromkeys(hosts))
    tasks = request.ntasks
    if tasks is None and (request.distribution or "").startswith("arbitrary") and request.nodelist:
        tasks = len(request.nodelist)
    return Tally(
        ntasks=tasks,
        nodes_min=least,
        nodes_max=most,
        nodes_given=given,
        ntasks_per_node=request.ntasks_per_node,
        ntasks_per_socket=request.ntasks_per_socket,
    )


def count(request: JobRequest, wish: Wish, tally: Tally, gpus: int) -> Size:
    """The numbers; `gpus`: whole devices of the job, for --cpus-per-gpu."""
    cpus = request.cpus_per_task or wish.cpus_per_task
    given = cpus is not None
    if request.cpus_per_gpu and wish.task.devices and not given:
        cpus = request.cpus_per_gpu * wish.task.devices
    per_task = cpus or 1
    tasks, per_node = tally.ntasks, tally.ntasks_per_node
    least, most = tally.nodes_min, tally.nodes_max
    is_fixed = not tally.nodes_given or least == most
    has_tasks = tasks is not None
    if tasks is None:
        tasks = least * (1 if tally.is_derived else per_node or 1)
    if has_tasks and per_node and not tally.nodes_given and not tally.is_derived and least == 1:
        least = most = -(-tasks // per_node)
    if request.overcommit:
        total = least
    elif has_tasks or (is_fixed and tally.extra_tasks is None):
        total = tasks * per_task
    else:
        total = _floating(tasks if per_node else 0, per_task) if least or given else 0
    if given and not least and not has_tasks:
        total = per_task
    if tally.extra_tasks is not None:
        tasks = max(tasks, tally.extra_tasks)
        total = per_task if not request.overcommit else total
    if request.cpus_per_gpu and not request.overcommit:
        total = max(total, request.cpus_per_gpu * gpus)
    counts = request.node_counts
    if has_tasks:
        most = tasks if most is None else min(most, tasks)
        counts = counts if not counts or counts[-1] <= most else ()
    elif most is None and not tally.nodes_given:
        is_plain = per_task == 1 and request.ntasks_per_core is None
        most = tasks if is_plain and not per_node else None
        if per_node:
            least, most = max(least, 1), max(least, 1)
    spread = per_node if per_node and tasks > 1 and not request.overcommit else 1
    return Size(
        min_nodes=least,
        max_nodes=most,
        node_counts=counts,
        num_tasks=tasks,
        ntasks_given=has_tasks,
        cpus_per_task=per_task,
        cpus_per_task_given=given,
        min_cpus=total,
        ntasks_per_node=per_node or 0,
        ntasks_per_socket=tally.ntasks_per_socket or 0,
        pn_min_cpus=max(request.mincpus or 1, per_task * spread),
    )


def _floating(tasks: int, per_task: int) -> int:
    """CPUs where the number of nodes is open: tasks per node count where they are more than the CPUs of one."""
    return tasks * per_task if tasks > per_task else per_task


def _job_default(partition: Partition, name: str, of_cluster: int | None) -> int | None:
    """A value of the partition's JobDefaults, else the cluster's."""
    for word in partition.job_defaults.split(","):
        key, _, value = word.strip().partition("=")
        if key.lower() == name.lower() and value.isdecimal():
            return int(value)
    return of_cluster


def with_default_cpus(request: JobRequest, wish: Wish, partition: Partition, config: ClusterConfig) -> JobRequest:
    """DefCpuPerGPU counts for a job with GPUs that says neither --cpus-per-task nor --cpus-per-gpu."""
    if not wish.any or request.cpus_per_gpu is not None or request.cpus_per_task is not None or wish.cpus_per_task:
        return request
    per_gpu = _job_default(partition, "DefCpuPerGPU", config.def_cpu_per_gpu)
    return msgspec.structs.replace(request, cpus_per_gpu=per_gpu) if per_gpu else request


def default_memory(request: JobRequest, wish: Wish, partition: Partition, config: ClusterConfig) -> Memory | None:
    """What was asked for, else the partition's default, else the cluster's; with none and memory consumed: all of it."""
    if request.memory is not None:
        return request.memory
    per_gpu = _job_default(partition, "DefMemPerGPU", config.def_mem_per_gpu)
    if wish.any and per_gpu is not None:
        return Memory(MemoryPer.GPU, per_gpu)
    for per, mib in (
        (MemoryPer.CPU, partition.def_mem_per_cpu),
        (MemoryPer.NODE, partition.def_mem_per_node),
        (MemoryPer.CPU, config.def_mem_per_cpu),
        (MemoryPer.NODE, config.def_mem_per_node),
    ):
        if mib:
            return Memory(per, mib)
    return Memory(MemoryPer.NODE, 0) if config.conf_file and _counts_memory(config) else None


def _counts_memory(config: ClusterConfig) -> bool:
    return any("MEMORY" in word.upper() for word in config.select_type_parameters)


def request_tres(
    size: Size,
    memory: Memory | None,
    gpus: int,
    largest_mib: int,
    fallback_per_cpu: int | None,
    devices: Tres,
    rest: Tres,
    billing: Billing,
) -> Tres:
    """ReqTRES; nothing for a job without CPUs. `largest_mib`: memory of the partition's largest node.

    `fallback_per_cpu`: DefMemPerCPU, counted for a job that asks for no memory per GPU.
    """
    if not size.min_cpus:
        return ()
    mib = None
    if memory is None or (memory.per is MemoryPer.NODE and memory.mib == 0):
        mib = largest_mib * size.min_nodes
    elif memory.per is MemoryPer.NODE:
        mib = memory.mib * size.min_nodes
    elif memory.per is MemoryPer.CPU:
        mib = memory.mib * size.min_cpus
    else:
        mib = memory.mib * gpus or (fallback_per_cpu or 0) * size.min_cpus
    parts = [("cpu", size.min_cpus), ("mem", mib), ("node", size.min_nodes)]
    parts.append(("billing", billing.count([*parts, *devices, *rest])))
    return tuple((name, amount) for name, amount in parts if amount) + devices + rest


def shown_nodes(spec: JobSpec, largest_cpus: int) -> tuple[int, int | None]:
    """NumNodes of a waiting job as (least, most): the least also by what the largest node of its partition can hold.

    `largest_cpus`: CPUs of the largest node of the first partition, 0 when not known. With `spec.node_counts` the counts
    are shown instead.
    """
    least, most = spec.min_nodes, spec.max_nodes
    if spec.ntasks_per_node:
        needed = -(-spec.num_tasks // spec.ntasks_per_node)
        if spec.min_nodes < needed and (most is None or most >= spec.num_tasks):
            most = needed
        least = max(least, needed)
    elif largest_cpus and spec.cpus_per_task > 1:
        least = max(least, spec.num_tasks // max(largest_cpus // spec.cpus_per_task, 1))
    elif largest_cpus:
        least = max(least, -(-spec.num_tasks // largest_cpus))
        most = max(most, least) if most is not None else None
    if most is not None and most < least:
        least = most
    return least, most
