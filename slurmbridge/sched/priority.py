"""How urgent is each waiting job? Slurm's multifactor priority, for all jobs at once.

Each factor is in [0, 1] and is multiplied by its PriorityWeight; nice is taken off; the result is at least 1.
Source: slurm.conf(5) Priority*; "Multifactor Priority Plugin" of Slurm's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.tres import count, is_gpu
from slurmbridge.sched.billing import weights
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting

CALC_PERIOD_S = 300
"""Ages count in whole periods (PriorityCalcPeriod), so that priorities do not change at every look."""
BASIC_TOP = 4_294_901_759
"""Where PriorityType=priority/basic starts to count down."""


def compute(
    snapshot: Snapshot, jobs: Sequence[Waiting], config: ClusterConfig, shares: Mapping[int, float], now: float
) -> Ints:
    """Priority of each job, in their order. `shares`: association id -> fair-share factor."""
    if not config.priority_type.endswith("multifactor"):
        return np.array([_fixed(each.job) or BASIC_TOP - each.job.job_id for each in jobs], dtype=np.int64)
    size = len(jobs)
    total = np.zeros(size)
    if config.priority_weight_age:
        tick = now // CALC_PERIOD_S * CALC_PERIOD_S
        since = np.array([_accrued_since(each.job, now) for each in jobs], dtype=np.float64)
        age = np.clip((tick - since) / max(config.priority_max_age, 1), 0.0, 1.0)
        total += np.floor(config.priority_weight_age * age)
    if config.priority_weight_fairshare:
        fair = np.array([shares.get(each.job.spec.assoc_id, 0.0) for each in jobs])
        total += np.floor(config.priority_weight_fairshare * fair)
    if config.priority_weight_job_size:
        total += np.floor(config.priority_weight_job_size * _size_factors(snapshot, jobs, config))
    if config.priority_weight_partition:
        total += np.floor(config.priority_weight_partition * _partition_factors(snapshot, jobs))
    if config.priority_weight_qos:
        total += np.floor(config.priority_weight_qos * _qos_factors(snapshot.accounting, jobs))
    if config.priority_weight_assoc:
        total += np.floor(config.priority_weight_assoc * _assoc_factors(snapshot.accounting, jobs))
    if config.priority_weight_tres:
        total += _tres_points(snapshot, jobs, config.priority_weight_tres)
    nice = np.array([each.job.spec.nice for each in jobs], dtype=np.float64)
    result = np.maximum(total - nice, 1.0).astype(np.int64)
    fixed = np.array([_fixed(each.job) for each in jobs], dtype=np.int64)
    held = np.array([each.job.priority == 0 for each in jobs], dtype=np.bool_)
    return np.where(held, 0, np.where(fixed > 0, fixed, result))


def _fixed(job: Job) -> int:
    """A priority that somebody set (--priority, scontrol), 0 = none."""
    return job.spec.request.priority or 0


def _accrued_since(job: Job, now: float) -> float:
    if job.accrue_time is not None:
        return job.accrue_time
    return job.eligible_time if job.eligible_time is not None else now


def _size_factors(
    snapshot: Snapshot, jobs: Sequence[Waiting], config: ClusterConfig
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    nodes = max(snapshot.columns.count, 1)
    cpus = max(int(snapshot.columns.cpus.sum()), 1)
    node_part = np.array([max(each.job.spec.min_nodes, 1) for each in jobs], dtype=np.float64) / nodes
    cpu_part = np.array([max(each.job.spec.min_cpus, 1) for each in jobs], dtype=np.float64) / cpus
    if config.priority_favor_small:
        node_part, cpu_part = 1.0 - node_part, 1.0 - cpu_part
    return np.clip((node_part + cpu_part) / 2, 0.0, 1.0)


def _partition_factors(snapshot: Snapshot, jobs: Sequence[Waiting]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    most = max((view.partition.priority_job_factor for view in snapshot.partitions.values()), default=1) or 1
    factor = {name: view.partition.priority_job_factor / most for name, view in snapshot.partitions.items()}
    by_names: dict[tuple[str, ...], float] = {}
    values = []
    for each in jobs:
        names = each.job.spec.partitions
        value = by_names.get(names)
        if value is None:
            value = by_names[names] = max((factor.get(name, 0.0) for name in names), default=0.0)
        values.append(value)
    return np.array(values, dtype=np.float64)


def _qos_factors(accounting: Accounting, jobs: Sequence[Waiting]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    most = max((qos.priority for qos in accounting.qos), default=0)
    factor = {qos.name: qos.priority / most if most else 0.0 for qos in accounting.qos}
    return np.array([factor.get(each.job.spec.qos, 0.0) for each in jobs], dtype=np.float64)


def _assoc_factors(accounting: Accounting, jobs: Sequence[Waiting]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    most = max((assoc.priority or 0 for assoc in accounting.assocs), default=0)
    factor = {assoc.assoc_id: (assoc.priority or 0) / most if most else 0.0 for assoc in accounting.assocs}
    return np.array([factor.get(each.job.spec.assoc_id, 0.0) for each in jobs], dtype=np.float64)


def _tres_points(
    snapshot: Snapshot, jobs: Sequence[Waiting], text: str
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """PriorityWeightTRES: each TRES as part of the partition's, weighted."""
    points = np.zeros(len(jobs))
    totals: dict[tuple[str, str], int] = {}
    for name, weight in weights(text):
        for place, each in enumerate(jobs):
            asked = count(each.job.spec.req_tres, name)
            if not asked:
                continue
            partition = each.job.spec.partitions[0] if each.job.spec.partitions else ""
            key = (partition, name)
            if key not in totals:
                totals[key] = _partition_total(snapshot, snapshot.partitions.get(partition), name)
            if totals[key]:
                points[place] += int(weight * min(asked / totals[key], 1.0))
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
