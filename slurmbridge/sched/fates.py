"""What is settled for a group of jobs in a partition whatever is free? It follows from records alone, so memos keep it."""

from __future__ import annotations

import math

import msgspec

from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.choose import Part, alone
from slurmbridge.sched.eligibility import Blocked, of_partition, time_limit
from slurmbridge.sched.snapshot import PartitionView, Waiting


class Fate(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """See the module docstring."""

    blocked: Blocked | None  # shut out by the partition
    plain: bool  # nothing but free space, limits and quotas can stop it
    length: float  # seconds a run may take at most
    alone: Part | None  # what the one node of such a job must give, when the first node that has it is the choice


def length_of(job: Job, view: PartitionView) -> float:
    """Seconds a run may take at most."""
    limit = time_limit(job, view.partition)
    return math.inf if limit is None else 60.0 * limit


def fate_of(waiting: Waiting, view: PartitionView, alones: dict[tuple[int, int], Part | None]) -> Fate:
    """`alones`: what was found of shapes (by their number) in partitions."""
    job, shape, partition = waiting.job, waiting.shape, view.partition
    plain = not (shape.licenses or shape.reservation or job.spec.deadline is not None or job.het_job_id)
    simple = (
        view.share == 1
        and not view.exclusive
        and not partition.exclusive_user
        and partition.max_cpus_per_node is None
        and shape.exclusive is Exclusive.NO
    )
    key = shape.number, view.number
    if simple and key not in alones:
        alones[key] = alone(shape, view.bounds)
    return Fate(
        blocked=of_partition(job, partition, view.size),
        plain=plain,
        length=length_of(job, view),
        alone=alones[key] if simple else None,
    )
