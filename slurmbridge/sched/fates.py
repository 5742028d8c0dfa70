"""What is settled for a group of jobs in a partition whatever is free? It follows from records alone, so memos keep it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.choose import Part, alone
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked, asks_who, of_partition, time_limit
from slurmbridge.sched.order import Places
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot

Alones = dict[tuple[int, int], Part | None]


class Fate(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """See the module docstring."""

    blocked: Blocked | None  # shut out by the partition
    plain: bool  # nothing but free space, limits and quotas can stop it
    length: float  # seconds that a run needs at least: its limit, or --time-min
    whole: float  # seconds a run may take at most
    alone: Part | None  # what the one node of such a job must give, when the first node that has it is the choice


def length_of(job: Job, view: PartitionView) -> float:
    """Seconds a run may take at most."""
    limit = time_limit(job, view.partition)
    return math.inf if limit is None else 60.0 * limit


def cuts(job: Job, fate: Fate, now: float, stops: Iterable[float]) -> Iterator[float]:
    """The lengths in seconds that a job with --time-min may run for, longest first: its limit, and up to each stop."""
    most = fate.whole
    if job.spec.deadline is not None:
        most = min(most, (job.spec.deadline - now) // 60 * 60.0)
    yield most
    shorter = {(stop - now) // 60 * 60.0 for stop in stops}
    yield from sorted((length for length in shorter if fate.length <= length < most), reverse=True)


class Pairs(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Columns by (group, partition), in the order of `Places.views`: what a quick look at all of them needs."""

    shapes: Ints
    lengths: NDArray[np.float64]
    plain: Bools  # nothing but free space (or limits and quotas) can stop it

    @classmethod
    def none(cls) -> Pairs:
        nothing = np.zeros(0, dtype=np.int64)
        return cls(shapes=nothing, lengths=np.zeros(0), plain=np.zeros(0, dtype=np.bool_))


def pairs_of(
    snapshot: Snapshot, places: Places, fates: dict[tuple[int, int], Fate], alones: Alones, known: Pairs
) -> Pairs:
    """Columns of all pairs; those that are known are kept. Fills `fates`."""
    done = len(known.shapes)
    if done == len(places.views):
        return known
    found: list[tuple[int, float, bool]] = []
    table = snapshot.shapes
    groups = np.searchsorted(places.first, np.arange(done, len(places.views)), side="right") - 1
    by_who = [asks_who(view.partition) for view in places.by_number]
    alike: dict[tuple[object, ...], Fate] = {}
    for group, number in zip(groups.tolist(), places.views[done:].tolist(), strict=True):
        spec, shape = table.samples[group]
        key = number, shape.number, spec.time_limit, spec.time_min, spec.deadline is None, not table.het[group]
        fate = alike.get(key) if not by_who[number] else None
        if fate is None:
            job = Job(job_id=0, spec=spec, het_job_id=table.het[group], submit_time=0.0)
            fate = alike[key] = fate_of(job, shape, places.by_number[number], alones)
        fates[group, number] = fate
        found.append((shape.number, fate.length, fate.plain and fate.blocked is None))
    shapes, lengths, plain = zip(*found, strict=True)
    return Pairs(
        shapes=np.concatenate([known.shapes, np.array(shapes, dtype=np.int64)]),
        lengths=np.concatenate([known.lengths, np.array(lengths, dtype=np.float64)]),
        plain=np.concatenate([known.plain, np.array(plain, dtype=np.bool_)]),
    )


def fate_of(job: Job, shape: Shape, view: PartitionView, alones: Alones) -> Fate:
    """`alones`: what was found of shapes (by their number) in partitions."""
    partition = view.partition
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
    whole, least = length_of(job, view), job.spec.time_min
    return Fate(
        blocked=of_partition(job, partition, view.size),
        plain=plain,
        length=whole if least is None else min(60.0 * least, whole),
        whole=whole,
        alone=alones[key] if simple else None,
    )
