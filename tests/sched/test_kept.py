"""What is freed for a job is held for it as it was laid out, and nobody is ended in vain."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slurmbridge.model.accounts import Assoc, Limits, Qos, Quota
from slurmbridge.model.cluster import Partition
from slurmbridge.model.job import Evicted, Job
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.kept import KEPT_S
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.evicting import begun_anew, marked, put_back
from tests.sched.small_cluster import CPU_NODES, NOW, accounting, carried_out, cluster, job, plan_of, shares, world

GRACE_S = 60
PARTITIONS = (
    Partition(name="debug", nodes=CPU_NODES, default=True, grace_time=GRACE_S),
    Partition(name="urgent", nodes=CPU_NODES, priority_tier=2),
)


def node_wide(job_id: int, partition: str = "debug", **fields: Any) -> Job:
    """A job of one whole node's CPUs."""
    return job(job_id, partitions=(partition,), num_tasks=8, min_nodes=1, max_nodes=1, **fields)


def full(mode: str = "REQUEUE", grace_s: int = 0, **config: Any) -> Snapshot:
    """Four jobs on the four nodes."""
    partitions = (replace(PARTITIONS[0], grace_time=grace_s), PARTITIONS[1])
    fields = {"enforce": frozenset(), "preempt_type": "preempt/partition_prio", "preempt_mode": mode} | config
    snapshot = world(*(node_wide(number) for number in range(1, 5)), config=cluster(partitions=partitions, **fields))
    return carried_out(snapshot, plan_of(snapshot))


def told(snapshot: Snapshot, *jobs: Job) -> Snapshot:
    return snapshot.apply(Delta(version=snapshot.version + 1, jobs=jobs))


def victims(plan: Plan) -> dict[int, int]:
    """Who is ended, and for whom."""
    return {each.job_id: each.for_job for each in plan.evictions}


@pytest.mark.parametrize("tasks", [2, 4, 6])
def test_an_array_gets_room_for_all_its_tasks_that_may_have_it_in_one_cycle(tasks: int) -> None:
    record = {"tasks": ((0, tasks - 1, 1),), "array_job_id": 9}
    snapshot = told(full(), node_wide(9, "urgent", record=record))
    plan = plan_of(snapshot)
    assert len(plan.evictions) == min(tasks, 4) == len(plan.nominations)
    snapshot = put_back(carried_out(snapshot, plan), plan, NOW)
    after = plan_of(snapshot, NOW + 1)
    assert [each.job_id for each in after.starts] == [9] * min(tasks, 4) and not after.evictions


def test_an_array_gets_room_for_no_more_tasks_than_its_limit_lets_go() -> None:
    record = {"tasks": ((0, 3, 1),), "array_job_id": 9, "array_limit": 2}
    assert len(plan_of(told(full(), node_wide(9, "urgent", record=record))).evictions) == 2


def test_nobody_is_ended_for_two_jobs_of_which_a_limit_lets_one_go() -> None:
    qos = Qos(name="normal", limits=Limits(grp_tres=(("cpu", 40),)))
    snapshot = full(enforce=frozenset({"limits"}))
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, accounting=accounting(qos=(qos,))))
    plan = plan_of(told(snapshot, node_wide(8, "urgent"), node_wide(9, "urgent")))
    assert len(plan.evictions) == len(plan.nominations) == 1


def test_no_run_is_suspended_for_a_job_that_wants_nodes_for_itself() -> None:
    snapshot = told(full("SUSPEND,GANG"), node_wide(9, "urgent", exclusive=Exclusive.NODE))
    assert not plan_of(snapshot).evictions
    assert victims(plan_of(told(full("SUSPEND,GANG"), node_wide(9, "urgent"))))


def test_what_is_being_freed_is_nobody_elses_while_grace_times_last_and_no_more_is_ended() -> None:
    snapshot = told(full(grace_s=GRACE_S), node_wide(9, "urgent"))
    plan = plan_of(snapshot)
    [(victim, winner)] = victims(plan).items()
    snapshot = marked(carried_out(snapshot, plan), plan, NOW)
    snapshot = told(snapshot, node_wide(10, "urgent"))
    later = plan_of(snapshot, NOW + 10)
    assert winner == 9 and 9 not in victims(later).values() and victim not in victims(later)
    [held] = [each for each in later.nominations if each.job_id == 9]
    assert held.start == NOW + GRACE_S + 30 and held.allocation is not None
    [other] = [each for each in later.nominations if each.job_id == 10]
    assert set(other.nodes).isdisjoint(held.nodes)


def test_who_waits_for_room_starts_elsewhere_as_soon_as_something_else_is_free() -> None:
    snapshot = told(full(grace_s=GRACE_S), node_wide(9, "urgent"))
    plan = plan_of(snapshot)
    snapshot = marked(carried_out(snapshot, plan), plan, NOW)
    other = next(number for number in range(1, 5) if number not in victims(plan))
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, gone=(other,)))
    assert list(shares(plan_of(snapshot, NOW + 10))) == [9]


def test_room_is_held_for_so_long_and_no_longer() -> None:
    snapshot = told(full(grace_s=GRACE_S), node_wide(9, "urgent"))
    plan = plan_of(snapshot)
    snapshot = carried_out(snapshot, plan)
    last = plan.nominations[-1].since + KEPT_S
    assert snapshot.at(last).kept and not snapshot.at(last + 1).kept


def test_a_planner_that_begins_anew_ends_no_more_for_whom_something_is_being_freed_and_looks_at_him_first() -> None:
    snapshot = told(full(grace_s=GRACE_S), node_wide(9, "urgent"))
    plan = plan_of(snapshot)
    [victim] = victims(plan)
    snapshot = begun_anew(marked(carried_out(snapshot, plan), plan, NOW))
    assert 9 not in victims(plan_of(snapshot, NOW + 10)).values()
    ended = replace(
        job(victim), spec=node_wide(victim).spec, evicted=Evicted(mode="REQUEUE", for_job=9, until=NOW + GRACE_S)
    )
    waiting = [each for each in snapshot.running if each != victim]
    runs = [snapshot.running[each].job for each in waiting]
    first = node_wide(5, "urgent", nice=-100)  # comes before it in line
    fresh = world(ended, snapshot.waiting[9].job, first, *runs, config=snapshot.config)
    assert list(shares(plan_of(fresh, NOW + GRACE_S))) == [9]


def test_nobody_is_ended_for_a_task_that_a_quota_would_not_let_start_beside_the_one_that_is_waited_for() -> None:
    """A quota of 12 CPUs, of which an array that may not be ended has eight a task."""
    mine = Assoc(assoc_id=3, account="physics", user="alice", quotas=(Quota(deserved=(("cpu", 12),)),))
    snapshot = full(grace_s=GRACE_S, enforce=frozenset())
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, accounting=accounting(assocs=(mine,))))
    record = {"tasks": ((0, 3, 1),), "array_job_id": 9}
    snapshot = told(snapshot, node_wide(9, "urgent", record=record, preemptible=False))
    plan = plan_of(snapshot)
    assert len(plan.evictions) == 1
    snapshot = marked(carried_out(snapshot, plan), plan, NOW)
    assert not plan_of(snapshot, NOW + 10).evictions


def test_what_a_higher_tier_would_take_at_once_is_not_started_whoevers_turn_it_is() -> None:
    """The queue that has nothing comes first, but what it would start goes to the other queue's urgent job."""
    quotas = tuple(
        Assoc(assoc_id=number, account=name, parent="root", quotas=(Quota(deserved=(("cpu", cpus),)),))
        for number, name, cpus in ((2, "physics", 8), (5, "maths", 24))
    )
    users = (Assoc(assoc_id=6, account="maths", user="carol"),)
    config = {"enforce": frozenset(), "preempt_type": "preempt/partition_prio", "preempt_mode": "REQUEUE"}
    mine = [node_wide(number, "urgent") for number in range(1, 5)]
    theirs = [node_wide(number, assoc_id=6, account="maths") for number in range(5, 8)]
    snapshot = world(
        *mine, *theirs, config=cluster(partitions=PARTITIONS, **config), records=accounting(assocs=(*quotas, *users))
    )
    plan = plan_of(snapshot)
    assert sorted(shares(plan)) == [1, 2, 3, 4]
    assert not plan_of(carried_out(snapshot, plan), NOW + 1).evictions
