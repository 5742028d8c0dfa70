"""How urgent is each waiting job? Slurm's multifactor priority, for all jobs at once.

Each factor is in [0, 1] and is multiplied by its PriorityWeight; nice is taken off; the result is at least 1.
Source: slurm.conf(5) Priority*; "Multifactor Priority Plugin" of Slurm's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.model.plan import Factors
from slurmbridge.model.tres import count, is_gpu
from slurmbridge.model.units import UNLIMITED
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.pending import Pending
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting
from slurmbridge.submit.billing import weights

Column = NDArray[np.float64]
CALC_PERIOD_S = 300
"""Ages count in whole periods (PriorityCalcPeriod), so that priorities do not change at every look."""
BASIC_TOP = 4_294_901_759
"""Where PriorityType=priority/basic starts to count down."""


class Points(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What each group's jobs have without age and nice, by the group's number. Good as long as `key` is the same."""

    key: tuple[object, ...]
    points: Column

    @classmethod
    def none(cls) -> Points:
        return cls(key=(), points=np.zeros(0))


def points_of(snapshot: Snapshot, config: ClusterConfig, shares: Mapping[int, float], before: Points) -> Points:
    """Points of all groups; those of `before` are kept where nothing that they follow from changed."""
    key = (config, snapshot.fixed_mark, snapshot.accounting, shares, snapshot.shapes)
    same = len(key) == len(before.key) and all(one is other for one, other in zip(key, before.key, strict=True))
    known = before.points if same else before.points[:0]
    samples = [spec for spec, _ in snapshot.shapes.samples[len(known) :]]
    if not samples:
        return before if same else Points(key=key, points=known)
    total = _weighed(_parts(snapshot, samples, config, shares), config)
    total += config.priority_weight_partition * _partition_factors(snapshot, samples, config)
    if config.priority_weight_tres:
        total += np.array([sum(points for _, points in each) for each in _tres_points(snapshot, samples, config)])
    return Points(key=key, points=np.concatenate([known, total]))


def compute(pending: Pending, points: Points, config: ClusterConfig, now: float) -> Ints:
    """Priority of each job, by row."""
    rows = pending.rows
    fixed = rows["fixed"]
    if not config.priority_type.endswith("multifactor"):
        return np.where(fixed > 0, fixed, BASIC_TOP - rows["id"])
    total = points.points[rows["group"]] - rows["nice"]
    if config.priority_weight_age:
        total += config.priority_weight_age * _ages(rows["accrued"], config, now)
    found = _rounded(total)
    if "INCR_ONLY" in config.priority_flags:
        found = np.maximum(found, rows["priority"])
    return np.where(rows["priority"] == 0, 0, np.where(fixed > 0, fixed, found))


def _ages(since: Column, config: ClusterConfig, now: float) -> Column:
    tick = now // CALC_PERIOD_S * CALC_PERIOD_S
    return np.clip((tick - np.nan_to_num(since, nan=now)) / max(config.priority_max_age, 1), 0.0, 1.0)


def explain(
    snapshot: Snapshot, jobs: Sequence[Waiting], config: ClusterConfig, shares: Mapping[int, float], now: float
) -> tuple[Factors, ...]:
    """What `compute` weighs, job by job and partition by partition. Jobs whose priority was set have no factors."""
    specs = [each.job.spec for each in jobs]
    parts = _parts(snapshot, specs, config, shares)
    if config.priority_weight_age:
        since = np.array([_accrued_since(each.job, now) for each in jobs], dtype=np.float64)
        parts["age"] = _ages(since, config, now)
    weighed = _weighed(parts, config) + config.priority_weight_age * parts["age"]
    by_partition = _factor_of_partitions(snapshot, config)
    points = _tres_points(snapshot, specs, config) if config.priority_weight_tres else [()] * len(jobs)
    found = []
    for place, each in enumerate(jobs):
        job = each.job
        fixed = _fixed(job)
        values = {name: float(column[place]) for name, column in parts.items()}
        for name in job.spec.partitions:
            if fixed:
                found.append(Factors(job_id=job.job_id, partition=name, priority=fixed))
                continue
            own = by_partition.get(name, 0.0)
            total = weighed[place] + config.priority_weight_partition * own + sum(count for _, count in points[place])
            priority = int(_rounded(np.array([total - job.spec.nice]))[0])
            if "INCR_ONLY" in config.priority_flags:
                priority = max(priority, job.priority)
            found.append(
                Factors(
                    job_id=job.job_id,
                    partition=name,
                    priority=priority,
                    partition_factor=own,
                    tres=points[place],
                    **values,
                )
            )
    return tuple(found)


def _parts(
    snapshot: Snapshot, specs: Sequence[JobSpec], config: ClusterConfig, shares: Mapping[int, float]
) -> dict[str, Column]:
    """Factors that depend neither on the partition nor on time; 0 where a weight of 0 makes them meaningless."""
    zeros = np.zeros(len(specs))
    parts = {"age": zeros, "fairshare": zeros, "job_size": zeros, "qos": zeros, "assoc": zeros}
    if config.priority_weight_fairshare:
        parts["fairshare"] = np.array([shares.get(spec.assoc_id, 0.0) for spec in specs], dtype=np.float64)
    if config.priority_weight_job_size:
        parts["job_size"] = _size_factors(snapshot, specs, config)
    if config.priority_weight_qos:
        parts["qos"] = _qos_factors(snapshot.accounting, specs, config)
    if config.priority_weight_assoc:
        parts["assoc"] = _assoc_factors(snapshot.accounting, specs, config)
    return parts


def _weighed(parts: Mapping[str, Column], config: ClusterConfig) -> Column:
    total: Column = (
        config.priority_weight_fairshare * parts["fairshare"]
        + config.priority_weight_job_size * parts["job_size"]
        + config.priority_weight_qos * parts["qos"]
        + config.priority_weight_assoc * parts["assoc"]
    )
    return total


def _rounded(total: Column) -> Ints:
    """Whole points: the fraction of the sum is dropped, not that of each part; the least priority is 1."""
    return np.maximum(np.floor(total + 1e-9), 1.0).astype(np.int64)


def _fixed(job: Job) -> int:
    """A priority that somebody set (--priority, scontrol), 0 = none."""
    return job.spec.request.priority or 0


def _accrued_since(job: Job, now: float) -> float:
    if job.accrue_time is not None:
        return job.accrue_time
    return job.eligible_time if job.eligible_time is not None else now


def _size_factors(snapshot: Snapshot, specs: Sequence[JobSpec], config: ClusterConfig) -> Column:
    nodes = max(snapshot.columns.count, 1)
    cpus = max(int(snapshot.columns.cpus.sum()), 1)
    if "SMALL_RELATIVE_TO_TIME" in config.priority_flags:
        return _size_by_time(snapshot, specs, config, cpus / nodes, cpus)
    node_part = np.array([max(spec.min_nodes, 1) for spec in specs], dtype=np.float64) / nodes
    cpu_part = np.array([max(spec.min_cpus, 1) for spec in specs], dtype=np.float64) / cpus
    if config.priority_favor_small:
        node_part, cpu_part = 1.0 - node_part, 1.0 - cpu_part
    return np.clip((node_part + cpu_part) / 2, 0.0, 1.0)


def _size_by_time(
    snapshot: Snapshot, specs: Sequence[JobSpec], config: ClusterConfig, cpus_of_node: float, cpus: int
) -> Column:
    """CPUs (at least those of an average node for each of its nodes) by minute of the time limit, as part of all CPUs."""
    sizes = []
    for spec in specs:
        view = snapshot.partitions.get(spec.partitions[0]) if spec.partitions else None
        minutes = spec.time_limit if spec.time_limit is not None else view.partition.max_time if view else None
        size = max(max(spec.min_nodes, 1) * cpus_of_node, spec.min_cpus)
        sizes.append(size / max(UNLIMITED if minutes is None else minutes, 1) / cpus)
    found = np.clip(np.array(sizes, dtype=np.float64), 0.0, 1.0)
    return 1.0 - found if config.priority_favor_small else found


def _is_plain(config: ClusterConfig, factor: str) -> bool:
    """Whether a factor is the value itself, not its part of the greatest: NO_NORMAL_*."""
    return bool(config.priority_flags & {"NO_NORMAL_ALL", f"NO_NORMAL_{factor}"})


def _partition_factors(snapshot: Snapshot, specs: Sequence[JobSpec], config: ClusterConfig) -> Column:
    factor = _factor_of_partitions(snapshot, config)
    by_names: dict[tuple[str, ...], float] = {}
    values = []
    for spec in specs:
        names = spec.partitions
        value = by_names.get(names)
        if value is None:
            value = by_names[names] = max((factor.get(name, 0.0) for name in names), default=0.0)
        values.append(value)
    return np.array(values, dtype=np.float64)


def _factor_of_partitions(snapshot: Snapshot, config: ClusterConfig) -> dict[str, float]:
    if _is_plain(config, "PART"):
        return {name: float(view.partition.priority_job_factor) for name, view in snapshot.partitions.items()}
    most = max((view.partition.priority_job_factor for view in snapshot.partitions.values()), default=1) or 1
    return {name: view.partition.priority_job_factor / most for name, view in snapshot.partitions.items()}


def _qos_factors(accounting: Accounting, specs: Sequence[JobSpec], config: ClusterConfig) -> Column:
    most = 1 if _is_plain(config, "QOS") else max((qos.priority for qos in accounting.qos), default=0)
    factor = {qos.name: qos.priority / most if most else 0.0 for qos in accounting.qos}
    return np.array([factor.get(spec.qos, 0.0) for spec in specs], dtype=np.float64)


def _assoc_factors(accounting: Accounting, specs: Sequence[JobSpec], config: ClusterConfig) -> Column:
    plain = _is_plain(config, "ASSOC")
    most = 1 if plain else max((assoc.priority or 0 for assoc in accounting.assocs), default=0)
    factor = {assoc.assoc_id: (assoc.priority or 0) / most if most else 0.0 for assoc in accounting.assocs}
    return np.array([factor.get(spec.assoc_id, 0.0) for spec in specs], dtype=np.float64)


def _tres_points(
    snapshot: Snapshot, specs: Sequence[JobSpec], config: ClusterConfig
) -> list[tuple[tuple[str, float], ...]]:
    """PriorityWeightTRES: each TRES as part of the partition's, weighted."""
    points: list[tuple[tuple[str, float], ...]] = []
    wanted = weights(config.priority_weight_tres)
    totals: dict[tuple[str, str], int] = {}
    for spec in specs:
        own: list[tuple[str, float]] = []
        for name, weight in wanted:
            asked = count(spec.req_tres, name)
            if not asked:
                continue
            partition = spec.partitions[0] if spec.partitions else ""
            key = (partition, name)
            if key not in totals:
                totals[key] = _partition_total(snapshot, snapshot.partitions.get(partition), name)
            if _is_plain(config, "TRES"):
                own.append((name, float(int(weight * asked / (1000 if is_gpu(name) else 1)))))
            elif totals[key]:
                own.append((name, float(int(weight * min(asked / totals[key], 1.0)))))
        points.append(tuple(own))
    return points


def _partition_total(snapshot: Snapshot, view: PartitionView | None, name: str) -> int:
    if view is None:
        return 0
    columns, inside = snapshot.columns, view.nodes
    if name == "cpu":
        return int(columns.cpus[inside].sum())
    if name == "mem":
        return int(columns.memory[inside].sum())
    if name == "node":
        return int(inside.sum())
    if name == "billing":
        return int(columns.cpus[inside].sum())
    if is_gpu(name):
        kinds = columns.device_type[inside]
        kind = name.removeprefix("gres/gpu").removeprefix(":")
        if not kind:
            return 1000 * int((kinds >= 0).sum())
        return 1000 * int((kinds == columns.device_types.index(kind)).sum()) if kind in columns.device_types else 0
    if name.startswith("license/"):
        return sum(each.total for each in snapshot.config.licenses if each.name == name.removeprefix("license/"))
    return 0
