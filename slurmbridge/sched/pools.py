"""Which queues compete for each node pool, and how do they stand?

Accounts are the queues: one tree a pool, of what sacctmgr knows of them. DeservedTRES is a queue's quota, GrpTRES its limit;
a parent without a quota of its own deserves what its children do. A resource that no quota of the pool names is not governed:
nobody has to stay inside anything there. Without a quota anywhere there is no tree, and Slurm's plain order holds, unless the
site asks for fair order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from slurmbridge.model.accounts import Accounting, Assoc
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.tres import Tres
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.queues import UNLIMITED, Queue, QueueTree, Vector

OWN = "/jobs"
"""Of an account that has queues below it: the leaf that its own jobs wait in."""
NOBODY = "/none"
"""The leaf of jobs without an association."""
_NAMES = ("cpu", "mem", "gres/gpu")


class PoolTree(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One pool with its tree. `leaf_of`: association id -> queue that its jobs wait in; `assoc_of`: queue -> its id."""

    name: str
    number: int
    nodes: Bools
    tree: QueueTree
    leaf_of: Mapping[int, int]
    nobody: int
    assoc_of: tuple[int, ...]
    spreads: bool = False  # jobs go to the emptiest nodes

    def leaf(self, assoc_id: int) -> int:
        return self.leaf_of.get(assoc_id, self.nobody)


def has_quotas(accounting: Accounting) -> bool:
    """Whether any quota is set at all."""
    return any(assoc.quotas for assoc in accounting.assocs)


def in_turn(accounting: Accounting, config: ClusterConfig) -> bool:
    """Whether queues take turns; else jobs stand in one line, as with Slurm."""
    return config.scheduling.order == "fair" or (config.scheduling.order != "plain" and has_quotas(accounting))


def trees(accounting: Accounting, config: ClusterConfig, columns: NodeColumns) -> tuple[PoolTree, ...]:
    """The tree of every pool; none where queues do not take turns."""
    if not in_turn(accounting, config):
        return ()
    return tuple(
        _tree(accounting, pool.name, number, _nodes(pool.nodes, columns), pool.placement == "spread")
        for number, pool in enumerate(config.all_pools)
    )


def _nodes(names: Sequence[str], columns: NodeColumns) -> Bools:
    inside = np.zeros(columns.count, dtype=np.bool_)
    inside[[columns.rows[name] for name in names if name in columns.rows]] = True
    return inside


def pool_of_node(found: Sequence[PoolTree], columns: NodeColumns) -> Ints:
    """Number of the pool of each node."""
    pools = np.zeros(columns.count, dtype=np.int64)
    for each in found:
        pools[each.nodes] = each.number
    return pools


def vector_of(tres: Tres) -> Vector:
    """CPUs, MiB and devices (a fraction as a fraction)."""
    cpus = memory = gpus = 0.0
    for name, count in tres:
        if name == "cpu":
            cpus = float(count)
        elif name == "mem":
            memory = float(count)
        elif name == "gres/gpu":
            gpus = count / 1000
    return cpus, memory, gpus


def total_of(pool: PoolTree, columns: NodeColumns) -> Vector:
    """What the pool's usable nodes have."""
    rows = pool.nodes & columns.usable
    return (
        float(columns.cpus[rows].sum()),
        float(columns.memory[rows].sum()),
        float((columns.device_type[rows] >= 0).sum()),
    )


class _Builder:
    """Queues of one pool, from associations."""

    def __init__(self, accounting: Accounting, pool: str) -> None:
        self.pool = pool
        self.users: dict[str, list[Assoc]] = {}
        self.below: dict[str, list[Assoc]] = {}
        accounts = {each.account for each in accounting.assocs if not each.user}
        for each in accounting.assocs:
            if each.user:
                self.users.setdefault(each.account, []).append(each)
            else:
                parent = each.parent if each.parent in accounts and each.parent != each.account else ""
                self.below.setdefault(parent, []).append(each)
        self.governed = tuple(
            any(_named(each, pool, resource) is not None for each in accounting.assocs) for resource in _NAMES
        )
        self.queues: list[Queue] = []
        self.leaf_of: dict[int, str] = {}
        self.assoc_of: dict[str, int] = {}

    def add(self, account: Assoc, parent: str | None) -> Vector:
        """The account's queue and all below it; what it deserves."""
        name = str(account.assoc_id)
        users = self.users.get(account.account, [])
        special = [each for each in users if each.quota_in(self.pool) is not None]
        children = self.below.get(account.account, [])
        inner = bool(special or children)
        place = len(self.queues)
        sums = [0.0, 0.0, 0.0]
        for child in children:
            self._count(sums, self.add(child, name))
        for user in special:
            own = str(user.assoc_id)
            deserved = self._deserved(user, (0.0, 0.0, 0.0))
            self._queue(user, own, name, deserved)
            self.leaf_of[user.assoc_id] = own
            self._count(sums, deserved)
        deserved = self._deserved(account, (sums[0], sums[1], sums[2]))
        leaf = name + OWN if inner else name
        if inner:
            rest = [
                max(whole - part, 0.0) if whole != math.inf else whole
                for whole, part in zip(deserved, sums, strict=True)
            ]
            rank = account.assoc_id
            self.queues.append(Queue(name=leaf, parent=name, rank=rank, quota=(rest[0], rest[1], rest[2])))
            self.assoc_of[leaf] = account.assoc_id
        self._queue(account, name, parent, deserved, place)
        self.leaf_of[account.assoc_id] = leaf
        for user in users:
            self.leaf_of.setdefault(user.assoc_id, leaf)
        return deserved

    def _count(self, sums: list[float], more: Vector) -> None:
        for resource in range(3):
            if more[resource] != math.inf:
                sums[resource] += more[resource]

    def _deserved(self, assoc: Assoc, otherwise: Vector) -> Vector:
        found = []
        for resource, name in enumerate(_NAMES):
            if not self.governed[resource]:
                found.append(math.inf)
                continue
            own = _named(assoc, self.pool, name)
            found.append(otherwise[resource] if own is None else own)
        return found[0], found[1], found[2]

    def _queue(self, assoc: Assoc, name: str, parent: str | None, deserved: Vector, place: int | None = None) -> None:
        quota = assoc.quota_in(self.pool)
        weight = quota.over_quota_weight if quota is not None else None
        each = float(assoc.shares if weight is None else weight)
        queue = Queue(
            name=name,
            parent=parent,
            priority=(quota.priority or 0) if quota is not None else 0,
            rank=assoc.assoc_id,
            quota=deserved,
            limit=_limit(assoc),
            weight=(each, each, each),
        )
        self.queues.insert(len(self.queues) if place is None else place, queue)
        self.assoc_of[name] = assoc.assoc_id


def _named(assoc: Assoc, pool: str, name: str) -> float | None:
    """What the quota says of a resource; the types of devices stand for the sum where that is not said."""
    quota = assoc.quota_in(pool)
    if quota is None:
        return None
    counts = dict(quota.deserved)
    if name != "gres/gpu":
        return float(counts[name]) if name in counts else None
    if name in counts:
        return counts[name] / 1000
    typed = [count for key, count in counts.items() if key.startswith("gres/gpu:")]
    return sum(typed) / 1000 if typed else None


def _limit(assoc: Assoc) -> Vector:
    counts = dict(assoc.limits.grp_tres)
    gpus = counts.get("gres/gpu")
    return (
        float(counts.get("cpu", math.inf)),
        float(counts.get("mem", math.inf)),
        math.inf if gpus is None else gpus / 1000,
    )


def _tree(accounting: Accounting, pool: str, number: int, nodes: Bools, spreads: bool) -> PoolTree:
    builder = _Builder(accounting, pool)
    for top in builder.below.get("", []):
        if top.account == "root":
            for child in builder.below.get("root", []):
                builder.add(child, None)
            own = str(top.assoc_id)
            builder.queues.append(Queue(name=own, rank=top.assoc_id, quota=UNLIMITED))
            builder.assoc_of[own] = top.assoc_id
            for each in (top, *builder.users.get("root", [])):
                builder.leaf_of[each.assoc_id] = own
        else:
            builder.add(top, None)
    builder.queues.append(
        Queue(name=NOBODY, rank=1 << 60, quota=builder._deserved(Assoc(assoc_id=0, account=""), (0.0, 0.0, 0.0)))
    )
    tree = QueueTree.build(builder.queues)
    return PoolTree(
        name=pool,
        number=number,
        nodes=nodes,
        tree=tree,
        leaf_of={assoc_id: tree.index[name] for assoc_id, name in builder.leaf_of.items()},
        nobody=tree.index[NOBODY],
        assoc_of=tuple(builder.assoc_of.get(name, 0) for name in tree.names),
        spreads=spreads,
    )
