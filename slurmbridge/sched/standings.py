"""What does each association deserve of each node pool now, what does it have, what does it ask for? For sshare.

Made of what the last cycle was made of, so queues are told the very figures that decided. Associations that are no queues
of their own have no share; what they hold and ask for is counted all the same. Running work counts where it runs, waiting
work in every pool that its partitions reach, because it may start in any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import NodeShare
from slurmbridge.model.plan import QueueShare
from slurmbridge.model.tres import Tres
from slurmbridge.sched.asks import Asks
from slurmbridge.sched.market import Preemptible, markets
from slurmbridge.sched.memo import Memo, refreshed
from slurmbridge.sched.pending import NO_CODE
from slurmbridge.sched.queues import ZERO, Vector, plus
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.submit import associations

_Key = tuple[str, int]  # pool, association
_Counts = dict[str, int]


def standings(snapshot: Snapshot, memo: Memo, now: float) -> tuple[QueueShare, ...]:
    """Of every association and pool in which a quota is set, or something runs or waits: by pool, then in tree order.

    `now` and `memo`: of the last cycle; an empty memo gives the same answer, only later.
    """
    memo = refreshed(memo, snapshot, snapshot.config)
    preemptible = Preemptible(snapshot, memo)
    ready = snapshot.pending.states(now) == NO_CODE
    shares: dict[_Key, Tres] = {}
    for market in markets(snapshot, memo, ready):
        for queue, assoc_id in enumerate(market.pool.assoc_of):
            if market.pool.tree.names[queue] == str(assoc_id):
                shares[market.pool.name, assoc_id] = tres_of(market.shares[queue])
    used, firm = _used(snapshot, preemptible)
    asked = _asked(snapshot, np.flatnonzero(ready))
    found = []
    for pool in snapshot.config.all_pools:
        for _depth, assoc in associations.tree(snapshot.accounting):
            key = pool.name, assoc.assoc_id
            quota = assoc.quota_in(pool.name) if assoc.quotas else None
            if quota is None and not (key in used or key in asked or key in shares):
                continue
            held = used.get(key, {})
            has = float(held.get("cpu", 0)), float(held.get("mem", 0)), held.get("gres/gpu", 0) / 1000
            found.append(
                QueueShare(
                    pool=pool.name,
                    assoc_id=assoc.assoc_id,
                    account=assoc.account,
                    user=assoc.user,
                    deserved=quota.deserved if quota is not None else (),
                    fair_share=shares.get(key, ()),
                    allocated=_counted(held),
                    allocated_nonpreemptible=_counted(firm.get(key, {})),
                    requested=tres_of(plus(has, asked.get(key, ZERO))),
                )
            )
    return tuple(found)


def tres_of(row: Vector) -> Tres:
    """As records have it, without what is zero or has no bound."""
    amounts = (("cpu", row[0]), ("mem", row[1]), ("gres/gpu", row[2] * 1000))
    return tuple((name, round(amount)) for name, amount in amounts if 0.5 <= amount < float("inf"))


def pool_of_nodes(config: ClusterConfig) -> dict[str, str]:
    """Node name -> pool."""
    return {name: pool.name for pool in config.all_pools for name in pool.nodes}


def charged(share: NodeShare, types: Mapping[int, str]) -> Iterator[tuple[str, int]]:
    """What a share of one node counts for: cpu, mem, gres/gpu and the types of its devices."""
    yield "cpu", share.cpus
    yield "mem", share.memory_mib
    for device in share.devices:
        yield "gres/gpu", device.milli
        kind = types.get(device.index, "")
        if kind:
            yield f"gres/gpu:{kind}", device.milli


def _used(snapshot: Snapshot, preemptible: Preemptible) -> tuple[dict[_Key, _Counts], dict[_Key, _Counts]]:
    """What runs, by pool and association, with all below it; and the part of it that may not be ended."""
    pools = pool_of_nodes(snapshot.config)
    types = {node.name: {each.index: each.type for each in node.devices} for node in snapshot.config.nodes}
    used: dict[_Key, _Counts] = {}
    firm: dict[_Key, _Counts] = {}
    known = associations.index(snapshot.accounting)
    for running in snapshot.running.values():
        job = running.job
        assoc = known.by_id.get(job.spec.assoc_id)
        if job.allocation is None or assoc is None or job.state.is_finished:
            continue
        sums = (used,) if preemptible(job) else (used, firm)
        for share in job.allocation.nodes:
            if share.node not in pools:
                continue
            for rows in sums:
                _add(
                    rows.setdefault((pools[share.node], assoc.assoc_id), {}), charged(share, types.get(share.node, {}))
                )
    return _with_ancestors(snapshot, used), _with_ancestors(snapshot, firm)


def _with_ancestors(snapshot: Snapshot, own: Mapping[_Key, _Counts]) -> dict[_Key, _Counts]:
    """What each association has itself, added to all above it."""
    sums: dict[_Key, _Counts] = {}
    for (pool, number), counts in own.items():
        for above in _chain(snapshot, number):
            _add(sums.setdefault((pool, above), {}), counts.items())
    return sums


def _add(counts: _Counts, more: Iterable[tuple[str, int]]) -> None:
    for name, count in more:
        counts[name] = counts.get(name, 0) + count


def _asked(snapshot: Snapshot, waiting: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[_Key, Vector]:
    """What waits, by pool and association, with all below it."""
    pools = pool_of_nodes(snapshot.config)
    reach = {
        name: frozenset(pools[node] for node in view.partition.nodes if node in pools)
        for name, view in snapshot.partitions.items()
    }
    rows, samples = snapshot.pending.rows[waiting], snapshot.shapes.samples
    many = np.bincount(rows["group"], weights=rows["count"], minlength=len(samples))
    asks = Asks(snapshot)
    own: dict[tuple[int, tuple[str, ...]], Vector] = {}  # by association and partitions: many groups, few of these
    for group in np.flatnonzero(many).tolist():
        (spec, shape), count = samples[group], float(many[group])
        cpus, memory, devices = asks.of(spec, shape)
        at = spec.assoc_id, spec.partitions
        own[at] = plus(own.get(at, ZERO), (cpus * count, memory * count, devices * count))
    sums: dict[_Key, Vector] = {}
    for (number, partitions), more in own.items():
        where = frozenset().union(*(reach.get(name, frozenset()) for name in partitions))
        for above in _chain(snapshot, number):
            for pool in where:
                sums[pool, above] = plus(sums.get((pool, above), ZERO), more)
    return sums


def _chain(snapshot: Snapshot, number: int) -> tuple[int, ...]:
    """An association and those above it; nothing of one that is not known."""
    assoc = associations.index(snapshot.accounting).by_id.get(number)
    if assoc is None:
        return ()
    return number, *(each.assoc_id for each in associations.ancestors(snapshot.accounting, assoc))


def _counted(counts: Mapping[str, int]) -> Tres:
    return tuple((name, count) for name, count in counts.items() if count)
