"""Could this job ever run on the nodes of its partitions? If not it is refused, as slurmctld does.

What asks for more than a whole partition has waits for the partition to grow (reason PartitionConfig), and what is held
is not looked at yet. One partition that could do it is enough.
"""

from __future__ import annotations

from collections.abc import Iterable

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import GpuScope, JobSpec
from slurmbridge.model.request import MemoryPer
from slurmbridge.model.verdict import Refused
from slurmbridge.submit.known import Sizes, known

CPUS = "CPU count per node can not be satisfied"
MEMORY = "Memory specification can not be satisfied"
DISK = "Temporary disk specification can not be satisfied"
SHAPE = "Socket, core and/or thread specification can not be satisfied"


def never_fits(spec: JobSpec, partitions: Iterable[Partition], config: ClusterConfig) -> Refused | None:
    """The refusal that the last of the partitions gives when none could hold the job."""
    refused: Refused | None = None
    facts = known(config)
    for partition in partitions:
        whole = facts.sizes(partition)
        if not whole.count:
            return None
        sizes = facts.sizes(partition, spec.exc_nodes) if spec.exc_nodes else whole
        refused = _refusal(spec, sizes, whole)
        if refused is None:
            return None
    return refused


def _refusal(spec: JobSpec, sizes: Sizes, whole: Sizes) -> Refused | None:
    before = tuple(_too_large_for_every_node(spec, sizes))
    if before:
        return Refused(errno=SlurmErrno.REQUESTED_NODE_CONFIG_UNAVAILABLE, before=before)
    if spec.min_nodes > whole.count or spec.min_cpus > whole.cpus_of(None):
        return None
    most = spec.max_nodes or None
    too_few = spec.min_nodes > sizes.count or spec.min_cpus > sizes.cpus_of(most)
    if too_few or _lacks_gpus(spec, sizes):
        return Refused(errno=SlurmErrno.REQUESTED_NODE_CONFIG_UNAVAILABLE)
    return None


def _too_large_for_every_node(spec: JobSpec, sizes: Sizes) -> Iterable[str]:
    if spec.pn_min_cpus > sizes.cpus:
        yield CPUS
    if spec.memory is not None and spec.memory.per is MemoryPer.NODE and spec.memory.mib > sizes.memory:
        yield MEMORY
    if spec.pn_min_tmp_mib > sizes.tmp:
        yield DISK
    asked = (spec.sockets_per_node, spec.cores_per_socket, spec.threads_per_core)
    if any(asked) and not any(
        all((want or 0) <= has for want, has in zip(asked, shape, strict=True)) for shape in sizes.shapes
    ):
        yield SHAPE


def _lacks_gpus(spec: JobSpec, sizes: Sizes) -> bool:
    need = spec.gpu
    if need is None:
        return False
    kinds = need.kinds or ((need.type, need.count),)
    if need.scope is GpuScope.NODE:
        return any(count > sizes.gpus_of(kind, 1) for kind, count in kinds)
    if need.scope is not GpuScope.JOB:
        return False
    most = (spec.max_nodes or None) if spec.request.nodes_max is not None else None
    return any(count > sizes.gpus_of(kind, most) for kind, count in kinds)
