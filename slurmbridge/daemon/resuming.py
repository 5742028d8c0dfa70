"""Are the CPUs of a suspended run free, so that it may go on?

Others may have them meanwhile. Slurm puts both on the same CPUs then; here no CPU is ever given out twice.
"""

from __future__ import annotations

from slurmbridge.daemon.memory import Memory
from slurmbridge.model.job import Job, NodeShare
from slurmbridge.model.request import Exclusive


def may_go_on(memory: Memory, job: Job) -> bool:
    """On each of its nodes. In partitions that share CPUs among jobs it always may."""
    if job.allocation is None:
        return False
    partition = memory.partition(job.allocation.partition)
    if partition is not None and partition.oversubscribe.upper().startswith(("FORCE", "YES")):
        return True
    return all(_are_free(memory, job, share) for share in job.allocation.nodes)


def _are_free(memory: Memory, job: Job, share: NodeShare) -> bool:
    node = memory.node(share.node)
    if node is None or node.alloc_cpus + share.cpus > node.conf.cpus:
        return False
    mine = set(share.cpu_ids)
    for job_id in (*node.running_jobs, *node.completing_jobs):
        other = memory.table.get(job_id)
        if other is None or other.job_id == job.job_id or other.allocation is None or other.is_without_cpus:
            continue
        if job.spec.exclusive in (Exclusive.NODE, Exclusive.TOPO):
            return False
        if any(each.node == share.node and not mine.isdisjoint(each.cpu_ids) for each in other.allocation.nodes):
            return False
    return True
