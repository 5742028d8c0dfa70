"""Which limits of a partition does a QOS lift? Its flags PartitionMaxNodes, PartitionMinNodes and PartitionTimeLimit.

Source: sacctmgr(1), Flags of a QOS.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from slurmbridge.model.accounts import Accounting, Qos
from slurmbridge.model.cluster import Partition
from slurmbridge.model.job import Job

MAX_NODES = "PartitionMaxNodes"
MIN_NODES = "PartitionMinNodes"
TIME_LIMIT = "PartitionTimeLimit"
FLAGS = (MAX_NODES, MIN_NODES, TIME_LIMIT)


def lifted_by(qos: Qos | None) -> tuple[str, ...]:
    return tuple(flag for flag in FLAGS if flag in qos.flags) if qos is not None else ()


def by_qos(accounting: Accounting) -> dict[str, tuple[str, ...]]:
    """Of each QOS that lifts any."""
    return {qos.name: lifted for qos in accounting.qos if (lifted := lifted_by(qos))}


def with_lifted(job: Job, known: Mapping[str, tuple[str, ...]]) -> Job:
    """As the planner has to have it."""
    lifted = known.get(job.spec.qos, ())
    return job if lifted == job.spec.lifted else replace(job, spec=replace(job.spec, lifted=lifted))


def without_lifted(partition: Partition, lifted: tuple[str, ...]) -> Partition:
    """The partition as a job of such a QOS sees it."""
    if not lifted:
        return partition
    return replace(
        partition,
        max_nodes=None if MAX_NODES in lifted else partition.max_nodes,
        min_nodes=0 if MIN_NODES in lifted else partition.min_nodes,
        max_time=None if TIME_LIMIT in lifted else partition.max_time,
    )
