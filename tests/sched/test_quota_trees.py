"""Accounts as queues of a node pool, and what each of them deserves."""

from __future__ import annotations

import math

from slurmbridge.model.accounts import Accounting, Assoc, Limits, Quota
from slurmbridge.model.cluster import Pool
from slurmbridge.model.job import GpuNeed, GpuScope
from slurmbridge.model.plan import Delta, QueueShare
from slurmbridge.model.tres import Tres
from slurmbridge.sched.quota_shares import queue_shares
from slurmbridge.sched.quota_trees import PoolTree, pool_tree, promised
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import GPU_NODES, cluster, job


def tree(*assocs: Assoc) -> Accounting:
    return Accounting(assocs=(Assoc(assoc_id=1, account="root"), *assocs))


def account(number: int, name: str, parent: str = "root", *quotas: Quota, grp: Tres = ()) -> Assoc:
    return Assoc(assoc_id=number, account=name, parent=parent, quotas=quotas, limits=Limits(grp_tres=grp))


def user(number: int, name: str, under: str, *quotas: Quota) -> Assoc:
    return Assoc(assoc_id=number, account=under, user=name, quotas=quotas)


def gpus(amount: float, **words: object) -> Quota:
    return Quota(deserved=(("gres/gpu", round(amount * 1000)),), **words)  # type: ignore[arg-type]


def of(found: PoolTree | None, number: int) -> tuple[float, float, float]:
    assert found is not None
    return found.tree.quota[found.queues.index(number)]


def test_without_a_quota_there_is_no_tree() -> None:
    assert pool_tree(tree(account(2, "a"), user(3, "alice", "a")), "default") is None


def test_all_members_of_a_shared_level_are_queues_and_what_is_below_belongs_to_them() -> None:
    found = pool_tree(tree(account(2, "a", "root", gpus(4)), account(3, "b"), user(4, "alice", "a")), "default")
    assert found is not None
    assert found.queues == (2, 3)
    assert found.leaf == {2: 0, 3: 1, 4: 0}


def test_what_nobody_on_a_level_is_promised_is_not_rationed_there() -> None:
    found = pool_tree(tree(account(2, "a", "root", gpus(4)), account(3, "b")), "default")
    assert of(found, 2) == (math.inf, math.inf, 4.0)
    assert of(found, 3) == (math.inf, math.inf, 0.0)


def test_an_account_that_says_nothing_deserves_what_its_children_do() -> None:
    found = pool_tree(
        tree(account(2, "a"), account(3, "b", "a", gpus(1.5)), account(4, "c", "a", gpus(2)), user(5, "bob", "root")),
        "default",
    )
    assert of(found, 2)[2] == 3.5
    assert of(found, 5)[2] == 0.0
    assert found is not None
    assert {number: found.tree.parent[place] for place, number in enumerate(found.queues)} == {
        2: -1, 5: -1, 3: found.queues.index(2), 4: found.queues.index(2),
    }  # fmt: skip


def test_each_pool_has_a_tree_of_its_own() -> None:
    accounting = tree(account(2, "a", "root", Quota(pool="gpu", priority=3)), account(3, "b"))
    assert pool_tree(accounting, "default") is None
    found = pool_tree(accounting, "gpu")
    assert found is not None
    assert found.tree.priority == (3, 0)


def test_limits_of_the_account_cap_its_queue() -> None:
    found = pool_tree(tree(account(2, "a", "root", gpus(4), grp=(("cpu", 8), ("gres/gpu", 6000)))), "default")
    assert found is not None
    assert found.tree.limit == ((8.0, math.inf, 6.0),)


def test_gpus_by_type_are_gpus() -> None:
    assert promised((("gres/gpu:a100", 2000), ("gres/gpu:h100", 500))) == (None, None, 2.5)
    assert promised((("gres/gpu", 4000), ("gres/gpu:a100", 2000))) == (None, None, 4.0)


def shares(accounting: Accounting, *asks: tuple[int, int, int]) -> dict[int, QueueShare]:
    """asks: (association, jobs, GPUs of each) that wait in a pool of eight GPUs."""
    config = cluster(pools=(Pool(name="gpu", nodes=GPU_NODES),))
    jobs = []
    for number, (assoc, many, each) in enumerate(asks):
        want = (("cpu", 1), ("gres/gpu", each * 1000))
        jobs += [job(10 + 100 * number + at, partitions=("gpu",), assoc_id=assoc, req_tres=want) for at in range(many)]
    snapshot = Snapshot.empty().apply(Delta(version=1, config=config, accounting=accounting, jobs=tuple(jobs)))
    return {share.assoc_id: share for share in queue_shares(snapshot) if share.pool == "gpu"}


def test_the_promise_comes_first_then_the_rest_by_weight() -> None:
    accounting = tree(account(2, "a", "root", gpus(2)), account(3, "b", "root", gpus(2, over_quota_weight=3.0)))
    found = shares(accounting, (2, 10, 1), (3, 10, 1))
    assert dict(found[2].fair_share)["gres/gpu"] == 3000
    assert dict(found[3].fair_share)["gres/gpu"] == 5000
    assert dict(found[3].requested)["gres/gpu"] == 10_000


def test_what_is_not_asked_for_is_left_to_others() -> None:
    accounting = tree(account(2, "a", "root", gpus(6)), account(3, "b"))
    found = shares(accounting, (2, 1, 1), (3, 9, 1))
    assert dict(found[2].fair_share)["gres/gpu"] == 1000
    assert dict(found[3].fair_share)["gres/gpu"] == 7000


def test_a_larger_queue_priority_takes_the_rest_before_others() -> None:
    accounting = tree(account(2, "a", "root", Quota(priority=1)), account(3, "b", "root", gpus(1)))
    found = shares(accounting, (2, 9, 1), (3, 9, 1))
    assert dict(found[2].fair_share)["gres/gpu"] == 7000
    assert dict(found[3].fair_share)["gres/gpu"] == 1000


def test_gpus_that_are_not_accounted_for_are_asked_for_all_the_same() -> None:
    config = cluster(pools=(Pool(name="gpu", nodes=GPU_NODES),))
    waiting = job(
        10, partitions=("gpu",), assoc_id=2, min_nodes=2, gpu=GpuNeed(scope=GpuScope.NODE, count=2, milli=500)
    )
    accounting = tree(account(2, "a", "root", gpus(1)))
    snapshot = Snapshot.empty().apply(Delta(version=1, config=config, accounting=accounting, jobs=(waiting,)))
    (found,) = (share for share in queue_shares(snapshot) if share.assoc_id == 2 and share.pool == "gpu")
    assert dict(found.requested)["gres/gpu"] == dict(found.fair_share)["gres/gpu"] == 2000
