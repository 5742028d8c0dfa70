"""What does each association deserve of each node pool now, what does it have, what does it ask for? For sshare.

A waiting job counts in every pool that its partitions reach into, because it may start in any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec.structs import replace

from slurmbridge.model.job import GpuScope, Job, JobSpec
from slurmbridge.model.plan import QueueShare
from slurmbridge.model.tres import Tres, merge
from slurmbridge.sched.columns import DEFAULT_DEVICE_MIB
from slurmbridge.sched.queue_use import pool_of_nodes, queue_use
from slurmbridge.sched.queues import ZERO, Vector, plus
from slurmbridge.sched.quota_trees import pool_tree
from slurmbridge.sched.shares import fair_shares
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.submit import associations

_COUNTED = ("cpu", "mem", "gres/gpu")


def queue_shares(snapshot: Snapshot) -> tuple[QueueShare, ...]:
    """Of every association and pool in which a quota is set, or something runs or waits: by pool, then in tree order."""
    asked = _asked(snapshot)
    rows = {(share.pool, share.assoc_id): share for share in queue_use(snapshot)}
    known = associations.index(snapshot.accounting)
    found: list[QueueShare] = []
    for pool, total in _totals(snapshot).items():
        given = _given(snapshot, pool, total, rows, asked)
        for _depth, assoc in associations.tree(snapshot.accounting):
            key = (pool, assoc.assoc_id)
            row, waiting, share = rows.get(key), asked.get(key, ()), given.get(assoc.assoc_id, ())
            if row is None and not waiting and not share:
                continue
            row = row or QueueShare(
                pool=pool, assoc_id=assoc.assoc_id, account=assoc.account, user=known.by_id[assoc.assoc_id].user
            )
            held = tuple(pair for pair in row.allocated if pair[0] in _COUNTED)
            found.append(replace(row, requested=merge(held, waiting), fair_share=share))
    return tuple(found)


def _given(
    snapshot: Snapshot,
    pool: str,
    total: Vector,
    rows: Mapping[tuple[str, int], QueueShare],
    asked: Mapping[tuple[str, int], Tres],
) -> dict[int, Tres]:
    """The fair share of every queue of a pool."""
    tree = pool_tree(snapshot.accounting, pool)
    if tree is None:
        return {}
    requests = []
    for number in tree.queues:
        row = rows.get((pool, number))
        held = vector(row.allocated) if row is not None else ZERO
        requests.append(plus(held, vector(asked.get((pool, number), ()))))
    return {
        number: tres(share) for number, share in zip(tree.queues, fair_shares(tree.tree, total, requests), strict=True)
    }


def vector(tres_: Tres) -> Vector:
    """CPUs, MiB, devices."""
    counts = dict(tres_)
    return float(counts.get("cpu", 0)), float(counts.get("mem", 0)), counts.get("gres/gpu", 0) / 1000


def tres(row: Vector) -> Tres:
    amounts = (("cpu", round(row[0])), ("mem", round(row[1])), ("gres/gpu", round(row[2] * 1000)))
    return tuple(pair for pair in amounts if pair[1])


def _totals(snapshot: Snapshot) -> dict[str, Vector]:
    """What the nodes of each pool have that are up and not drained."""
    columns = snapshot.columns
    devices = (columns.device_type >= 0).sum(axis=1)
    found = {}
    for pool in snapshot.config.all_pools:
        rows = np.array([columns.rows[name] for name in pool.nodes if name in columns.rows], dtype=np.int64)
        rows = rows[columns.usable[rows]] if rows.size else rows
        found[pool.name] = (
            float(columns.cpus[rows].sum()),
            float(columns.memory[rows].sum()),
            float(devices[rows].sum()),
        )
    return found


def _asked(snapshot: Snapshot) -> dict[tuple[str, int], Tres]:
    """What waits, by pool and association, with all below it."""
    config, accounting = snapshot.config, snapshot.accounting
    pools = pool_of_nodes(config)
    reach = {
        name: frozenset(pools[node] for node in view.partition.nodes if node in pools)
        for name, view in snapshot.partitions.items()
    }
    alike: dict[tuple[int, tuple[str, ...]], dict[str, int]] = {}  # many jobs, few users
    for waiting in snapshot.waiting.values():
        spec = waiting.job.spec
        _count(alike.setdefault((spec.assoc_id, spec.partitions), {}), _wants(waiting.job))
    known = associations.index(accounting)
    sums: dict[tuple[str, int], dict[str, int]] = {}
    for (number, partitions), wants in alike.items():
        assoc = known.by_id.get(number)
        if assoc is None:
            continue
        where = frozenset().union(*(reach.get(name, frozenset()) for name in partitions))
        for each in (assoc, *associations.ancestors(accounting, assoc)):
            for pool in where:
                _count(sums.setdefault((pool, each.assoc_id), {}), wants.items())
    return {key: tuple(counts.items()) for key, counts in sums.items()}


def _count(sums: dict[str, int], more: Iterable[tuple[str, int]]) -> None:
    for name, amount in more:
        sums[name] = sums.get(name, 0) + amount


def _wants(job: Job) -> Tres:
    """Of all tasks that have not started."""
    tasks = max(sum((last - first) // step + 1 for first, last, step in job.tasks), 1)
    counts = {name: amount for name, amount in job.spec.req_tres if name in _COUNTED}
    counts.setdefault("gres/gpu", _milli(job.spec))  # a site that does not account for GPUs shares them all the same
    return tuple((name, amount * tasks) for name, amount in counts.items() if amount)


def _milli(spec: JobSpec) -> int:
    """Thousandths of devices; of a request by memory against a device of the usual size."""
    need = spec.gpu
    if need is None:
        return 0
    times = {
        GpuScope.JOB: 1,
        GpuScope.NODE: spec.min_nodes,
        GpuScope.SOCKET: spec.min_nodes * (spec.sockets_per_node or 1),
        GpuScope.TASK: spec.num_tasks,
    }[need.scope]
    each = min(need.mib * 1000 // DEFAULT_DEVICE_MIB, 1000) if need.mib else need.milli
    return need.count * max(times, 1) * each
