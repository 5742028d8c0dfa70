"""Accounts as queues of a node pool, and what each of them deserves."""

from __future__ import annotations

import math

import msgspec

from slurmbridge.model.accounts import Accounting, Assoc, Limits, Quota
from slurmbridge.model.cluster import Pool
from slurmbridge.model.job import GpuNeed, GpuScope
from slurmbridge.model.plan import Delta, QueueShare
from slurmbridge.model.tres import Tres
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.pools import PoolTree, has_quotas, promised
from slurmbridge.sched.pools import pool_tree as tree_of
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sched.standings import standings
from tests.sched.small_cluster import GPU_NODES, NOW, cluster, job


def tree(*assocs: Assoc) -> Accounting:
    return Accounting(assocs=(Assoc(assoc_id=1, account="root"), *assocs))


def account(number: int, name: str, parent: str = "root", *quotas: Quota, grp: Tres = ()) -> Assoc:
    return Assoc(assoc_id=number, account=name, parent=parent, quotas=quotas, limits=Limits(grp_tres=grp))


def user(number: int, name: str, under: str, *quotas: Quota) -> Assoc:
    return Assoc(assoc_id=number, account=under, user=name, quotas=quotas)


def gpus(amount: float, **words: object) -> Quota:
    return Quota(deserved=(("gres/gpu", round(amount * 1000)),), **words)  # type: ignore[arg-type]


def pool_tree(accounting: Accounting, pool: str = "default", *, fair: bool = False) -> PoolTree:
    return tree_of(accounting, Pool(name=pool), fair=fair)


def of(found: PoolTree, number: int, jobs: str = "") -> tuple[float, float, float]:
    return found.tree.quota[found.tree.index[f"{number}{jobs}"]]


def leaf(found: PoolTree, number: int) -> str:
    return found.tree.names[found.leaf(number)]


def test_a_pool_in_which_nobody_has_a_quota_is_one_queue_in_which_nothing_is_rationed() -> None:
    found = pool_tree(tree(account(2, "a"), user(3, "alice", "a")))
    assert len(found.tree) == 1
    assert found.tree.quota == ((math.inf, math.inf, math.inf),)
    assert {leaf(found, number) for number in (1, 2, 3, 0, 77)} == {"/none"}


def test_all_accounts_of_a_shared_level_are_queues_and_what_is_below_belongs_to_them() -> None:
    found = pool_tree(
        tree(account(2, "a", "root", gpus(4)), account(3, "b"), user(4, "alice", "a"), account(5, "c", "b"))
    )
    assert set(found.tree.names) == {"2", "3", "/none"}
    assert [leaf(found, number) for number in (2, 3, 4, 5)] == ["2", "3", "2", "3"]


def test_a_user_with_a_quota_is_a_queue_beside_the_jobs_of_the_others() -> None:
    found = pool_tree(
        tree(account(2, "a", "root", gpus(4)), user(3, "alice", "a", gpus(3)), user(4, "bob", "a"), user(5, "cy", "a"))
    )
    assert [leaf(found, number) for number in (2, 3, 4, 5)] == ["2/jobs", "3", "2/jobs", "2/jobs"]
    assert (of(found, 2)[2], of(found, 3)[2], of(found, 2, "/jobs")[2]) == (4.0, 3.0, 1.0)


def test_jobs_of_an_account_itself_deserve_what_its_promise_leaves_beside_its_childrens() -> None:
    kept = pool_tree(tree(account(2, "a", "root", gpus(4)), account(3, "b", "a", gpus(1.5)), user(4, "alice", "a")))
    assert of(kept, 2, "/jobs")[2] == 2.5
    nothing = pool_tree(tree(account(2, "a"), account(3, "b", "a", gpus(1.5)), user(4, "alice", "a")))
    assert of(nothing, 2, "/jobs")[2] == 0.0


def test_what_nobody_on_a_level_is_promised_is_not_rationed_there() -> None:
    found = pool_tree(tree(account(2, "a", "root", gpus(4)), account(3, "b")))
    assert of(found, 2) == (math.inf, math.inf, 4.0)
    assert of(found, 3) == (math.inf, math.inf, 0.0)
    assert found.tree.quota[found.nobody] == (math.inf, math.inf, 0.0)


def test_what_only_the_level_above_is_promised_is_rationed_there_alone() -> None:
    cpus = Quota(deserved=(("cpu", 8),))
    found = pool_tree(tree(account(2, "a", "root", gpus(4)), account(3, "b", "a", cpus), account(4, "c", "a")))
    assert of(found, 2) == (8.0, math.inf, 4.0)
    assert of(found, 3) == (8.0, math.inf, math.inf)
    assert of(found, 4) == (0.0, math.inf, math.inf)


def test_an_account_that_says_nothing_deserves_what_its_children_do() -> None:
    found = pool_tree(
        tree(account(2, "a"), account(3, "b", "a", gpus(1.5)), account(4, "c", "a", gpus(2)), account(5, "d"))
    )
    assert of(found, 2)[2] == 3.5
    assert of(found, 5)[2] == 0.0
    parents = {name: found.tree.parent[place] for place, name in enumerate(found.tree.names)}
    above = found.tree.index["2"]
    assert parents == {"2": -1, "5": -1, "/none": -1, "3": above, "4": above, "2/jobs": above}


def test_accounts_whose_parents_go_in_a_ring_are_nobodys() -> None:
    found = pool_tree(tree(account(2, "a", "b"), account(3, "b", "a", gpus(1)), account(4, "c", "root", gpus(1))))
    assert [leaf(found, number) for number in (2, 3, 4)] == ["/none", "/none", "4"]


def test_each_pool_has_a_tree_of_its_own() -> None:
    accounting = tree(account(2, "a", "root", Quota(pool="gpu", priority=3)), account(3, "b"))
    assert len(pool_tree(accounting).tree) == 1
    assert pool_tree(accounting, "gpu").tree.priority == (3, 0, 0)


def test_a_quota_of_a_pool_that_is_gone_counts_for_nothing() -> None:
    accounting = tree(account(2, "a", "root", Quota(pool="gone", deserved=(("cpu", 1),))))
    assert not has_quotas(accounting, cluster())
    assert has_quotas(accounting, cluster(pools=(Pool(name="gone", nodes=GPU_NODES),)))


def test_limits_of_the_account_cap_its_queue() -> None:
    found = pool_tree(tree(account(2, "a", "root", gpus(4), grp=(("cpu", 8), ("gres/gpu", 6000)))))
    assert found.tree.limit[0] == (8.0, math.inf, 6.0)


def test_what_is_left_over_goes_by_weight_else_evenly_and_by_fairshare_where_nobody_has_a_quota() -> None:
    a, b = account(2, "a", "root", gpus(4, over_quota_weight=2.5)), account(3, "b")
    b = msgspec.structs.replace(b, shares=7)
    below = [msgspec.structs.replace(account(4, "c", "b"), shares=5), account(5, "d", "b")]
    users = [msgspec.structs.replace(user(6, "alice", "b"), shares=3), user(7, "bob", "b")]
    found = pool_tree(tree(a, b, *below, *users), fair=True)
    weights = {name: found.tree.weight[place][0] for place, name in enumerate(found.tree.names)}
    assert weights == {"2": 2.5, "3": 1.0, "/none": 1.0, "4": 5.0, "5": 1.0, "3/jobs": 4.0}


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
    return {share.assoc_id: share for share in standings(snapshot, Memo.empty(), NOW) if share.pool == "gpu"}


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
    found = next(
        share for share in standings(snapshot, Memo.empty(), NOW) if share.assoc_id == 2 and share.pool == "gpu"
    )
    assert dict(found.requested)["gres/gpu"] == dict(found.fair_share)["gres/gpu"] == 2000
