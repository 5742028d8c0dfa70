"""Over cycles in which nothing changes but what plans do: no run ends for a job that could have had its room before it began.

Not held to that: runs that are moved and go on elsewhere, and what starts where it was laid out in an earlier cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurmbridge.model.cluster import Scheduling
from slurmbridge.model.job import GpuScope, Job
from slurmbridge.model.plan import Delta
from slurmbridge.sched import gates
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.queues import Queue, QueueTree, Vector
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.evicting import put_back
from tests.sched.small_cluster import NOW, carried_out, cluster, gpus, job, plan_of
from tests.sched.test_quota_invariants import EXAMPLES, ORDERS, PARTITIONS, TREES, WORK, Tree, accounting, jobs

CYCLES = 12


def plain(written: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Jobs that hold what they ask for: shares stay what they are when one starts."""
    found = []
    for each in written:
        mine = {name: value for name, value in each.items() if name not in ("array", "whole")}
        found.append(mine | {"share": {}} if "mib" in mine.get("share", {}) else mine)
    return found


def through(snapshot: Snapshot, memo: Memo, now: float) -> tuple[Snapshot, Memo, float]:
    """Cycles until nothing is left to do."""
    waited: dict[int, frozenset[int]] = {}  # by job that began: who waited then
    for _ in range(CYCLES):
        plan, memo = plan_cycle(snapshot, snapshot.config, now, memo)
        for each in plan.evictions:
            assert each.moved or each.for_job not in waited.get(each.job_id, ()), (each, now - NOW)
        waiting = frozenset(snapshot.waiting)
        waited |= {start.job_id: waiting for start in plan.starts if start.job_id not in snapshot.kept}
        snapshot = put_back(carried_out(snapshot, plan, now), plan, now)
        now += 1
        if not (plan.starts or plan.evictions):
            break
    return snapshot, memo, now


# Seen before starts were taken back: a job without a promise of any kind fills a gap and is ended one cycle later.
SHORT_LIVED: dict[str, Any] = {
    "tree": ({"c": ("", "gpu", 1, 1, "w0")}, {"c": ("", "gpu", 1, 1, "w0")}),
    "first": [
        {"account": "c", "tasks": 3, "where": "debug,gpu", "firm": True, "nodes": 2},
        {"account": "b", "tasks": 3, "where": "both", "firm": False, "devices": 4, "share": {}, "nodes": 2},
        {"account": "d", "tasks": 8, "where": "both", "nodes": 2},
        {"account": "b", "tasks": 4, "where": "gpu", "nodes": 2},
        {"account": "a", "tasks": 5, "where": "both", "devices": 4, "share": {}},
        {"account": "a", "tasks": 4, "where": "debug", "firm": True, "nodes": 2},
    ],
    "second": [
        {"account": "a", "tasks": 6, "where": "debug", "nodes": 2},
        {"account": "a", "tasks": 1, "where": "gpu", "firm": True, "devices": 2, "share": {}, "nodes": 2},
        {"account": "a", "tasks": 3, "where": "both", "devices": 1, "share": {}},
        {"account": "d", "tasks": 6, "where": "debug,gpu", "nodes": 2},
        {"account": "d", "tasks": 8, "where": "both", "nodes": 2},
        {"account": "b", "tasks": 2, "where": "debug", "firm": False},
        {"account": "d", "tasks": 2, "where": "debug", "nodes": 2},
    ],
    "ends": 2,
    "order": Scheduling(order="fair", promise="claim"),
}


@settings(max_examples=EXAMPLES, deadline=None)
@given(tree=TREES, first=WORK, second=WORK, ends=st.integers(0, 4), order=ORDERS)
@example(**SHORT_LIVED)
def test_no_run_ends_for_who_waited_when_it_began(
    tree: Tree, first: list[dict[str, Any]], second: list[dict[str, Any]], ends: int, order: Scheduling
) -> None:
    config = cluster(enforce=frozenset(), partitions=PARTITIONS, scheduling=order)
    delta = Delta(version=1, config=config, accounting=accounting(tree), jobs=jobs(100, plain(first)))
    snapshot, memo, now = through(Snapshot.empty().apply(delta), Memo.empty(), NOW)
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=jobs(200, plain(second))))
    snapshot, memo, now = through(snapshot, memo, now + 100)
    gone = tuple(sorted(snapshot.running)[::ends]) if ends else ()
    through(snapshot.apply(Delta(version=snapshot.version + 1, gone=gone)), memo, now + 100)


QUOTAS: Tree = ({"a": ("", "gpu", 0, 8, ""), "b": ("", "gpu", 0, 8, "")}, {})
"""Four devices for each of two accounts; the cluster has eight."""


def devices(number: int, account: str, count: int, **fields: Any) -> Job:
    return job(
        number,
        assoc_id=12 + "abcd".index(account),
        partitions=("gpu",),
        gpu=gpus(count, GpuScope.NODE),
        **fields,
    )


def site(*work: Job) -> Snapshot:
    config = cluster(enforce=frozenset(), partitions=PARTITIONS)
    return Snapshot.empty().apply(Delta(version=1, config=config, accounting=accounting(QUOTAS), jobs=work))


def starts_of(snapshot: Snapshot) -> set[int]:
    return {start.job_id for start in plan_of(snapshot, NOW).starts}


def test_who_is_due_begins_instead_of_who_would_be_ended_for_him() -> None:
    """Account b holds four devices. One of its jobs fills a gap that one of account a finds too small by itself."""
    held = [devices(number, "b", 2) for number in (1, 2, 3)]
    snapshot = site(*held)
    plan = plan_of(snapshot, NOW)
    snapshot = carried_out(snapshot, plan, NOW)
    assert set(snapshot.running) == {1, 2, 3}
    fills, due = devices(4, "b", 2), devices(5, "a", 4)
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=(fills, due)))
    plan = plan_of(snapshot, NOW + 100)
    assert not plan.starts
    assert [(each.job_id, each.for_job) for each in plan.evictions] == [(3, 5)]


def test_what_nobody_who_is_due_can_use_is_filled() -> None:
    assert starts_of(site(*(devices(number, "b", 2) for number in (1, 2, 3, 4)))) == {1, 2, 3, 4}


def gpu(count: float) -> Vector:
    return 0.0, 0.0, count


def test_a_run_much_larger_than_what_its_queue_owes_is_not_mild() -> None:
    tree = QueueTree.build([Queue(name=name, quota=gpu(4)) for name in "ab"])
    a, b = tree.index["a"], tree.index["b"]
    held = [gpu(0), gpu(0)]
    held[a], held[b] = gpu(1), gpu(6)
    ledger, shares = Ledger(tree, held), [gpu(4), gpu(4)]
    assert gates.leaves_enough(ledger, shares, a, gpu(1), [(b, gpu(2))])
    assert not gates.leaves_enough(ledger, shares, a, gpu(1), [(b, gpu(6))])
    assert gates.leaves_enough(ledger, shares, a, gpu(3), [(b, gpu(4))])
    assert not gates.leaves_enough(ledger, shares, a, gpu(1), [(b, gpu(2)), (b, gpu(2))])
