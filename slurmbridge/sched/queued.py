"""In which queue does each group of jobs wait, and what does one job of it ask for? Kept from cycle to cycle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.job import JobSpec
from slurmbridge.sched import fairtree
from slurmbridge.sched.asks import Asks
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.order import Places
from slurmbridge.sched.pools import PoolTree, has_quotas, pool_of_node, trees
from slurmbridge.sched.preemption import says_preemptible
from slurmbridge.sched.queues import Vector
from slurmbridge.sched.snapshot import Snapshot

NO_LEAF = -1


class Queued(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """`pools` is empty where jobs stand in one line. Good as long as `key` is the same objects."""

    key: tuple[object, ...] = ()
    pools: tuple[PoolTree, ...] = ()
    has_quotas: bool = False
    pool_of_node: Ints
    vectors: NDArray[np.float64]  # [group, 3]: CPUs, MiB, devices
    limits: NDArray[np.float64]  # minutes a job of each group may run; inf = nobody said
    importance: Ints = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # Priority of each one's QOS
    firm: Bools = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.bool_))  # may not be ended for others' due
    sorts: Ints = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # equal for one QOS and partitions
    of_sort: dict[tuple[str, tuple[str, ...]], int] = {}  # grows
    asks: list[Vector] = []  # `vectors` as plain numbers; grows
    leaves: tuple[Ints, ...] = ()  # by pool: the queue of each group, NO_LEAF where it cannot run
    past_use: tuple[Sequence[Vector], ...] = ()  # by pool: decayed use of each queue as part of all use
    counted: object = None  # what `past_use` was made of
    accounts: Mapping[int, str] = {}  # association id -> account, for words

    @classmethod
    def none(cls) -> Queued:
        return cls(pool_of_node=np.zeros(0, dtype=np.int64), vectors=np.zeros((0, 3)), limits=np.zeros(0))


def queued(snapshot: Snapshot, before: Queued) -> Queued:
    """For this snapshot, its places not known yet: see `with_groups`."""
    accounting, config, columns = snapshot.accounting, snapshot.config, snapshot.columns
    key = (accounting, config, columns.rows, columns.names, snapshot.shapes, snapshot.partitions)
    if len(key) == len(before.key) and all(one is other for one, other in zip(key, before.key, strict=True)):
        return before
    found = trees(accounting, config, columns)
    empty = Queued.none()
    return msgspec.structs.replace(
        empty,
        key=key,
        pools=found,
        has_quotas=has_quotas(accounting, config),
        pool_of_node=pool_of_node(found, columns),
        leaves=tuple(np.zeros(0, dtype=np.int64) for _ in found),
        of_sort={},
        accounts={assoc.assoc_id: assoc.account for assoc in accounting.assocs},
    )


def with_groups(found: Queued, snapshot: Snapshot, places: Places) -> Queued:
    """With a row for every group that the snapshot knows."""
    if not found.pools:
        return found
    known, samples = len(found.vectors), snapshot.shapes.samples
    changes: dict[str, object] = {}
    if known < len(samples):
        fresh = [spec for spec, _ in samples[known:]]
        asks = Asks(snapshot)
        vectors = np.array([asks.of(spec, shape) for spec, shape in samples[known:]], dtype=np.float64).reshape(-1, 3)
        lengths, assocs, names, partitions, likes = zip(*map(_kept, fresh), strict=True)
        limits = np.array(lengths, dtype=np.float64)  # None is nan
        limits[np.isnan(limits)] = math.inf
        leaves = []
        for pool, before in zip(found.pools, found.leaves, strict=True):
            more = np.array([pool.leaf_of.get(assoc, pool.nobody) for assoc in assocs], dtype=np.int64)
            more[~_reaches(places, known, pool.number)] = NO_LEAF
            leaves.append(np.concatenate([before, more]))
        qos = {each.name: each.priority for each in snapshot.accounting.qos}
        importance = np.array([qos.get(name, 0) for name in names], dtype=np.int64)
        sort_of = found.of_sort
        sorts = [sort_of.setdefault(sort, len(sort_of)) for sort in zip(names, partitions, strict=True)]
        firm = _firm(zip(names, likes, strict=True), fresh, snapshot.accounting, found.has_quotas)
        changes |= {
            "firm": np.concatenate([found.firm, firm]),
            "sorts": np.concatenate([found.sorts, np.array(sorts, dtype=np.int64)]),
            "importance": np.concatenate([found.importance, importance]),
            "vectors": np.concatenate([found.vectors, vectors]),
            "asks": [*found.asks, *((cpus, memory, gpus) for cpus, memory, gpus in vectors.tolist())],
            "limits": np.concatenate([found.limits, limits]),
            "leaves": tuple(leaves),
        }
    counted = snapshot.usage if snapshot.counted is None else snapshot.counted
    if found.counted is not counted or not found.past_use:
        half_life = snapshot.config.priority_decay_half_life
        changes |= {"counted": counted, "past_use": tuple(_past(pool, counted, half_life) for pool in found.pools)}
    return msgspec.structs.replace(found, **changes) if changes else found


_kept = attrgetter("time_limit", "assoc_id", "qos", "partitions", "preemptible")


def _reaches(places: Places, known: int, pool: int) -> Bools:
    """Whether each group after so many may be tried in a pool."""
    first = places.first[known:]
    inside = np.concatenate([[0], np.cumsum(places.pools[places.views[first[0] :]] == pool)])
    reached: Bools = np.diff(inside[first - first[0]]) > 0
    return reached


def _firm(
    likes: Iterable[tuple[str, bool | None]], specs: Sequence[JobSpec], accounting: Accounting, quotas: bool
) -> Bools:
    """Of specs with these QOS and wishes to be preemptible."""
    qos = {each.name: each for each in accounting.qos}
    known: dict[tuple[str, bool | None], bool] = {}
    found = []
    for like, spec in zip(likes, specs, strict=True):
        if like not in known:
            known[like] = not says_preemptible(spec, qos, has_quotas=quotas)
        found.append(known[like])
    return np.array(found, dtype=np.bool_)


def _past(pool: PoolTree, rows: Sequence[UsageRow], half_life: int) -> list[Vector]:
    used = [(0.0, 0.0, 0.0)] * len(pool.tree)
    by_assoc = fairtree.usage_of(rows, half_life)
    whole = sum(by_assoc.values())
    if whole <= 0:
        return used
    for assoc_id, amount in by_assoc.items():
        leaf = pool.leaf(assoc_id)
        part = used[leaf][0] + amount / whole
        used[leaf] = part, part, part
    return pool.tree.summed(used)
