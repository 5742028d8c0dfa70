"""What does a waiting job ask for in all, after `scontrol update` changed its size?

Recomputes `JobSpec.req_tres` from the counts of the specification: CPUs, memory, nodes, billing, GPUs and licences.
Licences and GPU types count where AccountingStorageTRES names them; memory per node of a job that takes whole nodes stays as it was accepted.
"""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import GpuScope, JobSpec
from slurmbridge.model.request import MemoryPer
from slurmbridge.model.tres import count


def retally(spec: JobSpec, config: ClusterConfig) -> JobSpec:
    """The specification with its `req_tres` fitting its counts, in Slurm's order."""
    nodes = max(spec.min_nodes, 1)
    old = spec.req_tres
    total: list[tuple[str, int]] = [("cpu", spec.min_cpus)]
    memory = _memory(spec, nodes, count(old, "mem"))
    if memory:
        total.append(("mem", memory))
    billing = spec.min_cpus if count(old, "billing") == count(old, "cpu") else count(old, "billing")
    total += [("node", nodes), ("billing", billing)]
    total += [
        (name, amount) for name, amount in _gpus(spec, nodes) if ":" not in name or name in config.accounting_tres
    ]
    licences = [(f"license/{term.name}", term.count) for term in spec.license_terms]
    total += [(name, amount) for name, amount in licences if name in config.accounting_tres]
    return replace(spec, req_tres=tuple(total))


def _memory(spec: JobSpec, nodes: int, old: int) -> int:
    memory = spec.memory
    if memory is None:
        return 0
    if memory.mib == 0:
        return old
    gpus = sum(amount for name, amount in _gpus(spec, nodes) if name == "gres/gpu") // 1000
    return (
        memory.mib * {MemoryPer.NODE: nodes, MemoryPer.CPU: max(spec.min_cpus, nodes), MemoryPer.GPU: gpus}[memory.per]
    )


def _gpus(spec: JobSpec, nodes: int) -> list[tuple[str, int]]:
    need = spec.gpu
    if need is None:
        return []
    times = {GpuScope.JOB: 1, GpuScope.NODE: nodes, GpuScope.SOCKET: nodes * (spec.sockets_per_node or 1),
             GpuScope.TASK: spec.num_tasks}[need.scope]  # fmt: skip
    amount = need.count * need.milli * times
    kinds = need.kinds or (((need.type, need.count),) if need.type else ())
    return [("gres/gpu", amount), *((f"gres/gpu:{kind}", count * need.milli * times) for kind, count in kinds)]
