"""Which queues share a node pool, when the accounts of sacctmgr are the queues?

A level of the tree of associations is shared by quota when one of its members, or an account below one, has a quota in the
pool; then all its members are queues. Below that jobs go by Slurm's order alone: an association that is no queue belongs
to the nearest one above it. What nobody on a level is promised is not rationed there; who is promised nothing of what
others are promised has a quota of none. An account that says nothing deserves what its children do together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.model.tres import Tres
from slurmbridge.sched.queues import Queue, QueueTree, Vector
from slurmbridge.submit import associations

Promise = tuple[float | None, float | None, float | None]  # cpu, memory, gpu; None: not named
_GPU = "gres/gpu"


class PoolTree(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """`queues`: the association of each queue; `leaf`: association -> the queue that its own jobs belong to."""

    pool: str
    tree: QueueTree
    queues: tuple[int, ...]
    leaf: Mapping[int, int]


def pool_tree(accounting: Accounting, pool: str) -> PoolTree | None:
    """The tree of one pool; None: nobody has a quota in it."""
    builder = _Builder(accounting, pool)
    builder.level(_below(accounting, associations.ROOT), None)
    if not builder.queues:
        return None
    tree = QueueTree.build(builder.queues)
    known = associations.index(accounting)
    leaf: dict[int, int] = {}
    for _depth, assoc in associations.tree(accounting):
        for each in (assoc, *associations.ancestors(accounting, assoc)):
            place = tree.index.get(str(each.assoc_id))
            if place is not None:
                leaf[assoc.assoc_id] = place
                break
    queues = tuple(known.by_id[int(name)].assoc_id for name in tree.names)
    return PoolTree(pool=pool, tree=tree, queues=queues, leaf=leaf)


class _Builder:
    """Collects queues, level by level."""

    def __init__(self, accounting: Accounting, pool: str) -> None:
        self.accounting, self.pool = accounting, pool
        self.queues: list[Queue] = []
        self._promises: dict[int, Promise] = {}
        self._shared: set[int] = set()
        for _depth, assoc in reversed(list(associations.tree(accounting))):
            self._look_at(assoc)

    def _look_at(self, assoc: Assoc) -> None:
        """After everything below it."""
        quota = assoc.quota_in(self.pool)
        children = () if assoc.user else _below(self.accounting, assoc.account)
        if quota is not None or any(each.assoc_id in self._shared for each in children):
            self._shared.add(assoc.assoc_id)
        own = promised(quota.deserved) if quota is not None else (None, None, None)
        below = [self._promises[each.assoc_id] for each in children]
        self._promises[assoc.assoc_id] = (
            _first(own, below, 0),
            _first(own, below, 1),
            _first(own, below, 2),
        )

    def level(self, members: Sequence[Assoc], parent: str | None) -> None:
        if all(each.assoc_id not in self._shared for each in members):
            return
        promises = [self._promises[each.assoc_id] for each in members]
        rationed = [any(each[resource] is not None for each in promises) for resource in range(3)]
        for assoc, promise in zip(members, promises, strict=True):
            quota = assoc.quota_in(self.pool) or Quota()
            weight = 1.0 if quota.over_quota_weight is None else quota.over_quota_weight
            cpu, memory, gpu = (
                (amount or 0.0) if is_rationed else math.inf
                for amount, is_rationed in zip(promise, rationed, strict=True)
            )
            self.queues.append(
                Queue(
                    name=str(assoc.assoc_id),
                    parent=parent,
                    priority=quota.priority or 0,
                    rank=assoc.assoc_id,
                    quota=(cpu, memory, gpu),
                    limit=_limit(assoc.limits.grp_tres),
                    weight=(weight, weight, weight),
                )
            )
            if not assoc.user:
                self.level(_below(self.accounting, assoc.account), str(assoc.assoc_id))


def promised(tres: Tres) -> Promise:
    """CPUs, MiB and devices; of GPUs by type their sum, unless GPUs of any type are named."""
    counts = dict(tres)
    typed = [count for name, count in tres if name.startswith(_GPU + ":")]
    gpus = counts.get(_GPU, sum(typed) if typed else None)
    cpus, memory = counts.get("cpu"), counts.get("mem")
    return (
        None if cpus is None else float(cpus),
        None if memory is None else float(memory),
        None if gpus is None else gpus / 1000,
    )


def _limit(tres: Tres) -> Vector:
    cpu, memory, gpu = promised(tuple(pair for pair in tres if not pair[0].startswith(_GPU + ":")))
    return (
        math.inf if cpu is None else cpu,
        math.inf if memory is None else memory,
        math.inf if gpu is None else gpu,
    )


def _first(own: Promise, below: Sequence[Promise], resource: int) -> float | None:
    if own[resource] is not None:
        return own[resource]
    named = [each[resource] for each in below if each[resource] is not None]
    return sum(amount or 0.0 for amount in named) if named else None


def _below(accounting: Accounting, account: str) -> tuple[Assoc, ...]:
    known = associations.index(accounting)
    return (*known.users_of.get(account, ()), *known.children_of.get(account, ()))
