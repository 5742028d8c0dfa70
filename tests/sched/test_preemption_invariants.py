"""What holds wherever a site's preemption ends runs: they lead to a start, soon, and queues come to rest."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slurmbridge.model.accounts import Qos
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.evicting import begun_anew, ended, marked
from tests.sched.small_cluster import CPU_NODES, GPU_NODES, NOW, carried_out, cluster, plan_of
from tests.sched.test_quota_invariants import EXAMPLES, TREES, WORK, Tree, accounting, jobs, to_rest

GRACE_S, STEP_S = 60, 20.0
QOS = (Qos(name="normal"), Qos(name="high", preempt=("normal",)), Qos(name="top", preempt=("normal", "high")))


def site(kind: str, mode: str, grace_s: int = 0) -> ClusterConfig:
    """Three partitions of three tiers over the same nodes."""
    names = zip(("debug", "gpu", "both"), (CPU_NODES, GPU_NODES, (*CPU_NODES, *GPU_NODES)), strict=True)
    partitions = tuple(
        Partition(
            name=f"{name}{tier}",
            nodes=nodes,
            priority_tier=tier,
            default=(name, tier) == ("debug", 1),
            grace_time=grace_s,
        )
        for name, nodes in names
        for tier in (1, 2, 3)
    )
    return cluster(partitions=partitions, enforce=frozenset(), preempt_type=kind, preempt_mode=mode)


def ranked(first: int, written: list[dict[str, Any]], ranks: list[int], kind: str) -> tuple[Job, ...]:
    """Jobs as of a tier, or of a QOS."""
    found = []
    for place, job in enumerate(jobs(first, written)):
        rank = ranks[place % len(ranks)]
        tier = rank if kind == "preempt/partition_prio" else 1
        names = tuple(f"{name}{tier}" for name in job.spec.partitions)
        qos = QOS[rank - 1].name if kind == "preempt/qos" else "normal"
        found.append(replace(job, spec=replace(job.spec, partitions=names, qos=qos)))
    return tuple(found)


KINDS = st.sampled_from(["preempt/partition_prio", "preempt/qos"])
RANKS = st.lists(st.integers(1, 3), min_size=1, max_size=8)
NO_TREE: Tree = ({}, {})


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    kind=KINDS,
    mode=st.sampled_from(["REQUEUE", "CANCEL", "SUSPEND,GANG"]),
    tree=st.just(NO_TREE) | TREES,
    first=WORK,
    second=WORK,
    ranks=RANKS,
)
def test_queues_come_to_rest_with_preemption(
    kind: str, mode: str, tree: Tree, first: list[dict[str, Any]], second: list[dict[str, Any]], ranks: list[int]
) -> None:
    records = replace(accounting(tree), qos=QOS)
    delta = Delta(version=1, config=site(kind, mode), accounting=records, jobs=ranked(100, first, [1, *ranks], kind))
    snapshot, memo, now = to_rest(Snapshot.empty().apply(delta), Memo.empty(), NOW)
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=ranked(200, second, ranks, kind)))
    to_rest(snapshot, memo, now + 100)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    kind=KINDS,
    tree=st.just(NO_TREE) | TREES,
    first=WORK,
    second=WORK,
    third=WORK,
    ranks=RANKS,
    anew=st.sampled_from([0, 0, 2, 3]),
)
def test_who_got_room_starts_when_grace_times_are_over_whoever_comes_meanwhile(
    kind: str,
    tree: Tree,
    first: list[dict[str, Any]],
    second: list[dict[str, Any]],
    third: list[dict[str, Any]],
    ranks: list[int],
    anew: int,
) -> None:
    """By the time that they were told. `anew`: after so many cycles the daemon comes back, and its planner knows nothing."""
    records = replace(accounting(tree), qos=tuple(replace(each, grace_time=GRACE_S) for each in QOS))
    config = site(kind, "REQUEUE", GRACE_S)
    delta = Delta(version=1, config=config, accounting=records, jobs=ranked(100, first, [1, 1, *ranks], kind))
    snapshot, memo, now = Snapshot.empty().apply(delta), Memo.empty(), NOW
    plan, memo = plan_cycle(snapshot, config, now, memo)
    snapshot = carried_out(snapshot, plan, now)
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=ranked(200, second, ranks, kind)))
    victims: dict[
        int, list[tuple[float, set[tuple[int, int]]]]
    ] = {}  # by who gets room: for each of its jobs, until when
    begun: dict[int, int] = {}
    for cycle in range(30):
        now += STEP_S
        if cycle == 1:
            snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=ranked(300, third, ranks, kind)))
        if cycle == anew and anew:
            snapshot, memo = begun_anew(snapshot), Memo.empty()
        there = {(job_id, each.job.restarts) for job_id, each in snapshot.running.items()}
        plan, memo = plan_cycle(snapshot, config, now, memo)
        assert plan == plan_of(snapshot, now), "the memo changed the answer"
        for start in plan.starts:
            if start.job_id in victims:
                begun[start.job_id] = begun.get(start.job_id, 0) + 1
        for job_id, sets in victims.items() if cycle < anew or not anew else ():
            due = sum(1 for when, each in sets if when + STEP_S <= now and not each & there)
            assert begun.get(job_id, 0) >= due, "room was made for a job that does not start"
        for each in plan.nominations:
            if each.victims:
                known = [one for _, one in victims.get(each.job_id, []) if one & there]
                array = snapshot.waiting[each.job_id].job.is_array_record
                assert array or not known, "more is ended for a job for which something is being freed"
                ends = {(job_id, snapshot.running[job_id].job.restarts) for job_id in each.victims}
                victims.setdefault(each.job_id, []).append((each.start, ends))
        snapshot = ended(marked(carried_out(snapshot, plan, now), plan, now), now)
        over = all(when + STEP_S <= now for sets in victims.values() for when, _ in sets)
        if over and not (plan.starts or plan.evictions or any(each.job.evicted for each in snapshot.running.values())):
            return
    raise AssertionError("no rest")
