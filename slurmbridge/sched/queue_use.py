"""What does each association use of each node pool, with all below it? Figures of `QueueShare` that records alone tell.

Running work is counted where it runs, node by node, in CPUs, MiB and thousandths of devices. Fair shares are another
module's business: here `deserved` is what the quota says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import NodeShare
from slurmbridge.model.plan import QueueShare
from slurmbridge.model.tres import Tres
from slurmbridge.sched.preemption import is_preemptible
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.submit import associations

Counts = dict[str, int]


def pool_of_nodes(config: ClusterConfig) -> dict[str, str]:
    """Node name -> pool."""
    return {name: pool.name for pool in config.all_pools for name in pool.nodes}


def charged(share: NodeShare, types: Mapping[int, str]) -> Iterable[tuple[str, int]]:
    """What a share of one node counts for: cpu, mem, gres/gpu and the types of its devices."""
    yield "cpu", share.cpus
    yield "mem", share.memory_mib
    for device in share.devices:
        yield "gres/gpu", device.milli
        kind = types.get(device.index, "")
        if kind:
            yield f"gres/gpu:{kind}", device.milli


def queue_use(snapshot: Snapshot) -> tuple[QueueShare, ...]:
    """Of every association and pool in which one of the two is set or used: by pool, then in tree order."""
    config, accounting = snapshot.config, snapshot.accounting
    pools = pool_of_nodes(config)
    types = {node.name: {each.index: each.type for each in node.devices} for node in config.nodes}
    known = associations.index(accounting)
    has_quotas = any(assoc.quotas for assoc in accounting.assocs)
    used: dict[tuple[str, int], Counts] = {}
    firm: dict[tuple[str, int], Counts] = {}
    for running in snapshot.running.values():
        job = running.job
        assoc = known.by_id.get(job.spec.assoc_id)
        if job.allocation is None or assoc is None:
            continue
        is_firm = not is_preemptible(job, known.qos, has_quotas=has_quotas)
        chain = (assoc, *associations.ancestors(accounting, assoc))
        for share in job.allocation.nodes:
            pool = pools.get(share.node)
            if pool is None:
                continue
            for name, count in charged(share, types.get(share.node, {})):
                for each in chain:
                    _add(used, (pool, each.assoc_id), name, count)
                    if is_firm:
                        _add(firm, (pool, each.assoc_id), name, count)
    found = []
    for pool_ in config.all_pools:
        for _depth, assoc in associations.tree(accounting):
            key = (pool_.name, assoc.assoc_id)
            quota = assoc.quota_in(pool_.name)
            if quota is None and key not in used:
                continue
            found.append(
                QueueShare(
                    pool=pool_.name,
                    assoc_id=assoc.assoc_id,
                    account=assoc.account,
                    user=assoc.user,
                    deserved=quota.deserved if quota is not None else (),
                    allocated=_tres(used.get(key)),
                    allocated_nonpreemptible=_tres(firm.get(key)),
                )
            )
    return tuple(found)


def _add(sums: dict[tuple[str, int], Counts], key: tuple[str, int], name: str, count: int) -> None:
    counts = sums.setdefault(key, {})
    counts[name] = counts.get(name, 0) + count


def _tres(counts: Counts | None) -> Tres:
    return tuple((name, count) for name, count in (counts or {}).items() if count)
