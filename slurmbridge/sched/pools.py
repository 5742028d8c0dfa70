"""Which queues compete for each node pool, and how do they stand to each other?

Accounts are the queues: one tree a pool, of what sacctmgr knows of them. DeservedTRES is a queue's quota, GrpTRES its limit.
A level of the tree is shared by quota when one of its members, or an account below one, has a quota in the pool: then every
account of the level is a queue, and so is every user with a quota of its own; the jobs of the account itself and of its other
users are a queue beside them. Below the last level that is shared so jobs go by Slurm's order alone, and a pool in which
nobody has a quota is one queue. Where the site asks for fair order, accounts are queues on every level.

What nobody on a level (or below it) is promised is not rationed there: only the levels above bound it. Who is promised
nothing of what others on the level are promised has a quota of none. An account that says nothing deserves what its children
do together; its own jobs deserve what its promise leaves beside its children's. What is left over is shared out by
OverQuotaWeight, else evenly; on levels where nobody has a quota everything is, by Fairshare, and nothing bounds work that
may not be ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.model.cluster import ClusterConfig, Pool
from slurmbridge.model.tres import Tres
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.queues import UNLIMITED, ZERO, Partings, Queue, QueueTree, Vector
from slurmbridge.submit.associations import ROOT

OWN = "/jobs"
"""Of an account that has queues below it: the leaf that its own jobs wait in."""
NOBODY = "/none"
"""The leaf of jobs of root itself, and of those without an association."""
_LAST = 1 << 60
Promise = tuple[float | None, float | None, float | None]  # CPUs, MiB, devices; None: not named
NOTHING_SAID: Promise = (None, None, None)


class PoolTree(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One pool with its tree. `leaf_of`: association id -> queue that its jobs wait in; `assoc_of`: queue -> its id."""

    name: str
    number: int
    nodes: Bools
    tree: QueueTree
    leaf_of: Mapping[int, int]
    nobody: int
    assoc_of: tuple[int, ...]
    partings: Partings

    def leaf(self, assoc_id: int) -> int:
        return self.leaf_of.get(assoc_id, self.nobody)


def has_quotas(accounting: Accounting, config: ClusterConfig) -> bool:
    """Whether any quota is set in a pool that is there."""
    there = {"", *(pool.name for pool in config.all_pools)}
    return any(quota.pool in there for assoc in accounting.assocs for quota in assoc.quotas)


def in_turn(accounting: Accounting, config: ClusterConfig) -> bool:
    """Whether queues take turns; else jobs stand in one line, as with Slurm."""
    return config.scheduling.order == "fair" or (config.scheduling.order != "plain" and has_quotas(accounting, config))


def trees(accounting: Accounting, config: ClusterConfig, columns: NodeColumns) -> tuple[PoolTree, ...]:
    """The tree of every pool; none where queues do not take turns."""
    if not in_turn(accounting, config):
        return ()
    fair = config.scheduling.order == "fair"
    return tuple(
        pool_tree(accounting, pool, number, _nodes(pool.nodes, columns), fair=fair)
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

    def __init__(self, accounting: Accounting, pool: str, *, fair: bool) -> None:
        self.pool, self.fair = pool, fair
        self.users: dict[str, list[Assoc]] = {}
        self.below: dict[str, list[Assoc]] = {}
        self.queues: list[Queue] = []
        self.leaf_of: dict[int, str] = {}
        self.assoc_of: dict[str, int] = {}
        self._accounts = accounts = {each.account: each for each in accounting.assocs if not each.user}
        self.root = accounts.get(ROOT)
        for each in accounting.assocs:
            if each.user:
                self.users.setdefault(each.account, []).append(each)
            elif each.account != ROOT:
                parent = each.parent if each.parent in accounts and each.parent != each.account else ROOT
                self.below.setdefault(parent, []).append(each)
        self._promises: dict[int, Promise] = {}
        self._shared: set[int] = set()  # associations with a quota, or with one below
        order = [*self.below.get(ROOT, ())]
        for account in order:  # grows while it is walked: parents first
            order.extend(self.below.get(account.account, ()))
        for account in reversed(order):
            self._look_at(account)
        for each in self.users.get(ROOT, ()):
            self._look_at(each)

    def _look_at(self, assoc: Assoc) -> None:
        """After everything below it."""
        below: list[Assoc] = []
        if not assoc.user:
            for each in self.users.get(assoc.account, ()):
                self._look_at(each)
            below = self._members(assoc.account)
        quota = assoc.quota_in(self.pool) if assoc.quotas else None
        if quota is not None or any(each.assoc_id in self._shared for each in below):
            self._shared.add(assoc.assoc_id)
        own = promised(quota.deserved) if quota is not None else NOTHING_SAID
        self._promises[assoc.assoc_id] = (
            self._first(own, below, 0),
            self._first(own, below, 1),
            self._first(own, below, 2),
        )

    def _members(self, account: str) -> list[Assoc]:
        """Who shares what the account has, beside its own jobs."""
        special = [each for each in self.users.get(account, ()) if each.assoc_id in self._shared]
        return [*self.below.get(account, ()), *special]

    def _first(self, own: Promise, below: Sequence[Assoc], resource: int) -> float | None:
        if own[resource] is not None:
            return own[resource]
        named = [self._promises[each.assoc_id][resource] for each in below]
        said = [amount for amount in named if amount is not None]
        return sum(said) if said else None

    def whole(self) -> None:
        """All queues: those below root, and one for who is below none."""
        levels: list[tuple[str, str | None]] = [(ROOT, None)]
        for account, parent in levels:  # grows while it is walked
            levels += self._level(account, parent)
        if NOBODY not in self.assoc_of:
            self._add(Queue(name=NOBODY, rank=_LAST), self.root)
        for each in (*([self.root] if self.root is not None else []), *self.users.get(ROOT, ())):
            self.leaf_of.setdefault(each.assoc_id, NOBODY)

    def _level(self, account: str, parent: str | None) -> list[tuple[str, str | None]]:
        """The queues below an account; those of them that may have a level of their own. No level: all belongs to it."""
        members = self._members(account)
        by_quota = any(each.assoc_id in self._shared for each in members)
        if not (by_quota or (self.fair and members)):
            self._belongs(account, parent if parent is not None else NOBODY)
            return []
        promises = [self._promises[each.assoc_id] for each in members]
        rationed = [any(each[resource] is not None for each in promises) for resource in range(3)]
        for assoc, promise in zip(members, promises, strict=True):
            quota = (assoc.quota_in(self.pool) if assoc.quotas else None) or Quota()
            otherwise = 1.0 if by_quota else _fairshare([assoc])
            weight = otherwise if quota.over_quota_weight is None else quota.over_quota_weight
            name = str(assoc.assoc_id)
            self._add(
                Queue(
                    name=name,
                    parent=parent,
                    priority=quota.priority or 0,
                    rank=assoc.assoc_id,
                    quota=_vector(promise, rationed) if by_quota else ZERO,
                    ceiling=None if by_quota else UNLIMITED,
                    limit=_limit(assoc),
                    weight=(weight, weight, weight),
                ),
                assoc,
            )
            if assoc.user:
                self.leaf_of[assoc.assoc_id] = name
        self._own_jobs(account, parent, promises, rationed, by_quota=by_quota)
        return [(each.account, str(each.assoc_id)) for each in members if not each.user]

    def _own_jobs(
        self,
        account: str,
        parent: str | None,
        promises: Sequence[Promise],
        rationed: Sequence[bool],
        *,
        by_quota: bool,
    ) -> None:
        """Of an account with queues below it: what its promise leaves, for itself and its other users."""
        users = [each for each in self.users.get(account, ()) if each.assoc_id not in self._shared]
        own = self._promises[int(parent)] if parent is not None else NOTHING_SAID
        rest = [
            max((mine or 0.0) - sum(each[resource] or 0.0 for each in promises), 0.0)
            for resource, mine in enumerate(own)
        ]
        weight = 1.0 if by_quota or not users else _fairshare(users)
        name = NOBODY if parent is None else parent + OWN
        assoc = self.root if parent is None else self._accounts[account]
        rank = _LAST if parent is None or assoc is None else assoc.assoc_id
        queue = Queue(
            name=name,
            parent=parent,
            rank=rank,
            quota=_vector((rest[0], rest[1], rest[2]), rationed) if by_quota else ZERO,
            ceiling=None if by_quota else UNLIMITED,
            weight=(weight, weight, weight),
        )
        self._add(queue, assoc)
        for each in (*([assoc] if assoc is not None else []), *users):
            self.leaf_of[each.assoc_id] = name

    def _belongs(self, account: str, queue: str) -> None:
        """Everything of an account, and below it, waits in one queue."""
        if account != ROOT:
            self.leaf_of[self._accounts[account].assoc_id] = queue
        inside = [account]
        for each in inside:  # grows while it is walked
            for user in self.users.get(each, ()):
                self.leaf_of[user.assoc_id] = queue
            for child in self.below.get(each, ()):
                self.leaf_of[child.assoc_id] = queue
                inside.append(child.account)

    def _add(self, queue: Queue, assoc: Assoc | None) -> None:
        self.queues.append(queue)
        self.assoc_of[queue.name] = assoc.assoc_id if assoc is not None else 0


def promised(tres: Tres) -> Promise:
    """CPUs, MiB and devices; of devices by type their sum, unless devices of any type are named."""
    counts = dict(tres)
    typed = [count for name, count in tres if name.startswith("gres/gpu:")]
    devices = counts.get("gres/gpu", sum(typed) if typed else None)
    cpus, memory = counts.get("cpu"), counts.get("mem")
    return (
        None if cpus is None else float(cpus),
        None if memory is None else float(memory),
        None if devices is None else devices / 1000,
    )


def _vector(promise: Promise, rationed: Sequence[bool]) -> Vector:
    cpus, memory, devices = (
        (amount or 0.0) if is_it else math.inf for amount, is_it in zip(promise, rationed, strict=True)
    )
    return cpus, memory, devices


def _fairshare(assocs: Sequence[Assoc]) -> float:
    """Fairshare of a queue, or of the users that wait in one."""
    return float(sum(1 if each.shares_parent else each.shares for each in assocs))


def _limit(assoc: Assoc) -> Vector:
    counts = dict(assoc.limits.grp_tres)
    devices = counts.get("gres/gpu")
    return (
        float(counts.get("cpu", math.inf)),
        float(counts.get("mem", math.inf)),
        math.inf if devices is None else devices / 1000,
    )


def pool_tree(
    accounting: Accounting, pool: Pool, number: int = 0, nodes: Bools | None = None, *, fair: bool = False
) -> PoolTree:
    """The tree of one pool."""
    builder = _Builder(accounting, pool.name, fair=fair)
    builder.whole()
    tree = QueueTree.build(builder.queues)
    return PoolTree(
        name=pool.name,
        number=number,
        nodes=np.zeros(0, dtype=np.bool_) if nodes is None else nodes,
        tree=tree,
        leaf_of={assoc_id: tree.index[name] for assoc_id, name in builder.leaf_of.items()},
        nobody=tree.index[NOBODY],
        assoc_of=tuple(builder.assoc_of[name] for name in tree.names),
        partings=Partings(tree),
    )
