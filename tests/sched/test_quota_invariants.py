"""What holds for every tree of queues: drawn quotas and jobs on a small cluster, cycle after cycle until nothing is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.model.cluster import Partition, Pool, Scheduling
from slurmbridge.model.job import GpuScope, Job
from slurmbridge.model.plan import Delta
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.market import Preemptible, charges
from slurmbridge.sched.memo import refreshed
from slurmbridge.sched.queues import ZERO, fits, plus
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.evicting import put_back
from tests.sched.small_cluster import CPU_NODES, GPU_NODES, NOW, carried_out, cluster, gpus, job, plan_of

CYCLES = 8
"""What fits starts; then three times room is made and filled (what starts elsewhere changes the shares by which the next is
judged); then nothing is left to do."""
EXAMPLES = 40
POOLS = (Pool(name="left", nodes=("n1", "n2")), Pool(name="gpu", nodes=GPU_NODES))
PARTITIONS = (
    Partition(name="debug", nodes=CPU_NODES, default=True),
    Partition(name="gpu", nodes=GPU_NODES),
    Partition(name="both", nodes=("n4", "g1", "g2")),
)


Words = tuple[str, str, int, int, str]
"""Pool, "cpu", "gpu" or both, CPUs, halves of devices, and the words beside."""
ACCOUNTS = (("a", "root"), ("b", "root"), ("c", "a"), ("d", "a"))


@st.composite
def words(draw: st.DrawFn) -> Words:
    what = draw(st.sampled_from(["cpu", "gpu", "cpu gpu"]))
    pool = draw(st.sampled_from(["", "", "gpu"]))
    return pool, what, draw(st.integers(0, 24)), draw(st.integers(0, 12)), draw(st.sampled_from(["", "w0", "w2", "p1"]))


def quota(written: Words) -> Quota:
    pool, what, cpus, halves, more = written
    return Quota(
        pool=pool,
        deserved=tuple(
            pair
            for pair in (("cpu", cpus), ("gres/gpu", 500 * halves))
            if pair[0].removeprefix("gres/") in what.split()
        ),
        over_quota_weight=float(more[1]) if more.startswith("w") else None,
        priority=1 if more == "p1" else None,
    )


Tree = tuple[dict[str, Words], dict[str, Words]]
TREES = st.tuples(
    st.dictionaries(st.sampled_from("abcd"), words(), max_size=4),
    st.dictionaries(st.sampled_from("abcd"), words(), max_size=1),
)
"""Quotas of accounts, and of the user in one."""


def accounting(tree: Tree) -> Accounting:
    assocs = [Assoc(assoc_id=1, account="root")]
    for number, (name, parent) in enumerate(ACCOUNTS, start=2):
        mine, users = ((quota(each[name]),) if name in each else () for each in tree)
        assocs.append(Assoc(assoc_id=number, account=name, parent=parent, quotas=mine))
        assocs.append(Assoc(assoc_id=10 + number, account=name, user="alice", quotas=users))
    return Accounting(assocs=tuple(assocs))


@st.composite
def asks(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a job that differ from those of a job of one task in account a."""
    found: dict[str, Any] = {
        "account": draw(st.sampled_from("abcd")),
        "tasks": draw(st.integers(1, 10)),
        "where": draw(st.sampled_from(["debug", "gpu", "both", "debug,gpu"])),
    }
    if draw(st.booleans()):
        found["firm"] = draw(st.booleans())
    if draw(st.sampled_from([False, False, False, True])):
        found["whole"] = True
    if found["where"] in ("gpu", "both"):
        found["devices"] = draw(st.integers(0, 4))
        found["share"] = draw(st.sampled_from([{}, {}, {"milli": 500}, {"mib": 30_000}]))
    if draw(st.sampled_from([False, False, True])):
        found["nodes"] = 2
    if draw(st.sampled_from([False, False, True])):
        found["array"] = 4
    return found


def jobs(first: int, written: Sequence[dict[str, Any]]) -> tuple[Job, ...]:
    found = []
    for number, each in enumerate(written, start=first):
        fields: dict[str, Any] = {
            "assoc_id": 12 + "abcd".index(each["account"]),
            "partitions": tuple(each["where"].split(",")),
            "preemptible": not each["firm"] if "firm" in each else None,
            "num_tasks": max(each["tasks"], each.get("nodes", 1)),
            "exclusive": Exclusive.NODE if each.get("whole") else Exclusive.NO,
        }
        if each.get("devices"):
            fields["gpu"] = gpus(each["devices"], GpuScope.NODE, **each["share"])
        if each.get("nodes"):
            fields |= {"min_nodes": 2, "max_nodes": 2}
        count = each.get("array", 0)
        record = {"tasks": ((0, count - 1, 1),), "array_job_id": number} if count else {}
        found.append(job(number, record=record, **fields))
    return tuple(found)


def check_ceilings(snapshot: Snapshot) -> None:
    """Work that may not be ended is inside the quotas, on every level of every pool."""
    memo = refreshed(Memo.empty(), snapshot, snapshot.config)
    preemptible = Preemptible(snapshot, memo)
    for pool in memo.queued.pools:
        held = [ZERO] * len(pool.tree)
        for running in snapshot.running.values():
            if not preemptible(running.job):
                leaf = pool.leaf(running.job.spec.assoc_id)
                held[leaf] = plus(held[leaf], charges(running.holds, memo.queued.pool_of_node).get(pool.number, ZERO))
        for queue, amount in enumerate(pool.tree.summed(held)):
            assert fits(amount, pool.tree.ceiling[queue]), (pool.name, pool.tree.names[queue])


def to_rest(snapshot: Snapshot, memo: Memo, now: float) -> tuple[Snapshot, Memo, float]:
    """Cycles until nothing is left to do."""
    expected: set[int] = set()
    for _ in range(CYCLES):
        plan, memo = plan_cycle(snapshot, snapshot.config, now, memo)
        assert plan == plan_of(snapshot, now), "the memo changed the answer"
        begun = {start.job_id for start in plan.starts}
        assert expected <= begun, "room was made for a job that does not start"
        preemptible = Preemptible(snapshot, memo)
        served = {each.job_id for each in plan.nominations}
        for eviction in plan.evictions:
            assert eviction.reason == "preempt" or preemptible(snapshot.running[eviction.job_id].job)
            assert eviction.for_job in served
        assert len({each.job_id for each in plan.evictions}) == len(plan.evictions)
        expected = {each.job_id for each in plan.nominations}
        snapshot = put_back(carried_out(snapshot, plan, now), plan, now)
        check_ceilings(snapshot)
        now += 1
        if not plan.starts and not plan.evictions:
            return snapshot, memo, now
    raise AssertionError(f"no rest after {CYCLES} cycles")


ORDERS = st.builds(
    Scheduling,
    order=st.sampled_from(["auto", "auto", "fair"]),
    backfill=st.sampled_from(["priority", "shortest"]),
    promise=st.sampled_from(["turn", "claim"]),
)
WORK = st.lists(asks(), min_size=1, max_size=8)
# Room is made for two gangs in one cycle, and each fits in the place of the other.
COLLIDING: dict[str, Any] = {
    "tree": ({"b": ("", "cpu", 9, 0, "")}, {}),
    "first": [{"account": "a", "tasks": 6, "where": "gpu", "nodes": 2, "array": 4}],
    "second": [
        *({"account": "a", "tasks": 1, "where": "debug"} for _ in range(4)),
        {"account": "b", "tasks": 1, "where": "gpu", "nodes": 2},
        {"account": "b", "tasks": 7, "where": "gpu", "nodes": 2},
    ],
    "several": False,
    "ends": 0,
    "order": Scheduling(order="auto", backfill="priority", promise="turn"),
}


@settings(max_examples=EXAMPLES, deadline=None)
@given(tree=TREES, first=WORK, second=WORK, several=st.booleans(), ends=st.integers(0, 4), order=ORDERS)
@example(**COLLIDING)
def test_queues_come_to_rest_inside_their_quotas(
    tree: Tree, first: list[dict[str, Any]], second: list[dict[str, Any]], several: bool, ends: int, order: Scheduling
) -> None:
    config = cluster(partitions=PARTITIONS, pools=POOLS if several else (), enforce=frozenset(), scheduling=order)
    delta = Delta(version=1, config=config, accounting=accounting(tree), jobs=jobs(100, first))
    snapshot, memo, now = to_rest(Snapshot.empty().apply(delta), Memo.empty(), NOW)
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=jobs(200, second)))
    snapshot, memo, now = to_rest(snapshot, memo, now + 100)
    ended = tuple(sorted(snapshot.running)[::ends]) if ends else ()
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, gone=ended))
    to_rest(snapshot, memo, now + 100)
