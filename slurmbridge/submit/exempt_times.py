"""From when on may a run be ended for another job? PreemptExemptTime of slurm.conf(5) and of QOS (sacctmgr(1)).

The QOS of the partition comes before the job's own, unless the job's says OverPartQOS; then the cluster's word.
"""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.model.accounts import Accounting, Qos
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import Job


def seconds(own: Qos | None, of_partition: Qos | None, default: int) -> int:
    """How long a run is exempt."""
    order = (own, of_partition) if own is not None and "OverPartQOS" in own.flags else (of_partition, own)
    for each in order:
        if each is not None and each.preempt_exempt_time is not None and each.preempt_exempt_time >= 0:
            return each.preempt_exempt_time
    return max(default, 0)


def eligible_time(
    job: Job, config: ClusterConfig, accounting: Accounting, partitions: Mapping[str, Partition]
) -> float | None:
    """PreemptEligibleTime of a run; None of a job that has not begun."""
    if job.start_time is None or job.is_pending:
        return None
    name = job.allocation.partition if job.allocation is not None else next(iter(job.spec.partitions), "")
    partition = partitions.get(name)
    own = of_partition = None
    for each in accounting.qos:
        if each.name == job.spec.qos:
            own = each
        if partition is not None and each.name == partition.qos:
            of_partition = each
    return job.start_time + seconds(own, of_partition, config.preempt_exempt_time)
