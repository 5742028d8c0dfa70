"""Who starts, who waits, and the reason that squeue shows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slurmbridge.model.accounts import Assoc, Limits, Qos
from slurmbridge.model.cluster import Partition
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta, Reservation
from slurmbridge.model.request import Dependency, DependencyTerm, Exclusive, JobRequest, LicenseTerm, Memory, MemoryPer
from slurmbridge.model.states import JobFlag, JobState, NodeBase, NodeFlag
from slurmbridge.sched.cycle import Memo, estimate, plan_cycle
from tests.sched.small_cluster import (
    NOW,
    accounting,
    carried_out,
    cluster,
    gpus,
    job,
    node,
    node_state,
    plan_of,
    reasons,
    shares,
    world,
)

AFTER = Dependency(terms=(DependencyTerm(kind="afterok", job_id=5),))
DOWN_TEXT = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"

REASONS: list[tuple[str, Job, str]] = [
    ("more nodes than the partition has", job(10, min_nodes=5), "PartitionNodeLimit"),
    ("more nodes than MaxNodes", job(10, min_nodes=2, partitions=("small",)), "PartitionNodeLimit"),
    ("longer than MaxTime", job(10, time_limit=60, partitions=("small",)), "PartitionTimeLimit"),
    ("a partition that is down", job(10, partitions=("maint",)), "PartitionDown"),
    ("more CPUs than the partition has", job(10, num_tasks=100), "PartitionConfig"),
    ("no node is large enough", job(10, memory=Memory(MemoryPer.NODE, 20000)), "PartitionConfig"),
    ("a QOS that is not let in", job(10, qos="high", partitions=("long",)), "QOSNotAllowed"),
    ("an account that is not let in", job(10, partitions=("restricted",)), "AccountNotAllowed"),
    ("a later begin", job(10, begin=int(NOW) + 60), "BeginTime"),
    ("an unsatisfied dependency", job(10, dependency=AFTER), "Dependency"),
    (
        "a dependency that failed",
        job(10, dependency=AFTER, record={"dep_failed": frozenset({0})}),
        "DependencyNeverSatisfied",
    ),
    (
        "more licences than are free",
        job(10, licenses="matlab:11", license_terms=(LicenseTerm(name="matlab", count=11),)),
        "Licenses",
    ),
    ("a reservation that is gone", job(10, reservation="gone"), "ReservationDeleted"),
]


@pytest.mark.parametrize(("waiting", "reason"), [row[1:] for row in REASONS], ids=[row[0] for row in REASONS])
def test_reason(waiting: Job, reason: str) -> None:
    plan = plan_of(world(waiting))
    assert [verdict.reason for verdict in plan.verdicts] == [reason]
    assert not plan.starts


def test_the_text_of_a_qos_that_is_not_let_in_is_slurms() -> None:
    plan = plan_of(world(job(10, qos="high", partitions=("long",))))
    text = "Job's QOS not permitted to use this partition (long allows normal,long not high)"
    assert reasons(plan) == {10: text}


def test_a_held_job_never_starts() -> None:
    held = job(10, record={"priority": 0, "held_by": "user", "reason": "JobHeldUser"})
    plan = plan_of(world(held))
    assert not plan.starts and not plan.verdicts and not plan.priorities


def test_a_satisfied_dependency_lets_the_job_start() -> None:
    assert plan_of(world(job(10, dependency=AFTER, record={"dep_done": frozenset({0})}))).starts


def test_the_cycle_is_due_again_when_the_first_begin_time_comes() -> None:
    plan = plan_of(world(job(10, begin=int(NOW) + 60), job(11, begin=int(NOW) + 30)))
    assert plan.wake_at == NOW + 30
    assert {verdict.job_id: verdict.start for verdict in plan.verdicts} == {10: NOW + 60, 11: NOW + 30}


def test_the_first_blocked_job_waits_for_resources_and_later_ones_for_priority() -> None:
    snapshot = world(
        job(10, min_nodes=4, exclusive=Exclusive.NODE, time_limit=10),
        job(11, min_nodes=4, exclusive=Exclusive.NODE, time_limit=10),
        job(12, min_nodes=4, exclusive=Exclusive.NODE, time_limit=10),
    )
    plan = plan_of(snapshot)
    assert sorted(shares(plan)) == [10]
    assert reasons(plan) == {11: "Resources", 12: "Priority"}


def test_each_partition_has_its_own_first_blocked_job() -> None:
    snapshot = world(
        job(10, min_nodes=4, exclusive=Exclusive.NODE),
        job(11, min_nodes=2, exclusive=Exclusive.NODE, partitions=("gpu",)),
        job(12),
        job(13, partitions=("gpu",)),
    )
    assert reasons(plan_of(snapshot)) == {12: "Resources", 13: "Resources"}


def test_a_drained_node_that_a_job_names_is_told() -> None:
    drained = node_state("n4", flags=frozenset({NodeFlag.DRAIN}))
    plan = plan_of(world(job(10, req_nodes=("n4",)), nodes=(drained,)))
    assert reasons(plan) == {10: "ReqNodeNotAvail, UnavailableNodes:n4"}
    assert plan.verdicts[0].reason == "ReqNodeNotAvail"


def test_too_few_nodes_that_are_up_are_told() -> None:
    down = node_state("n4", base=NodeBase.DOWN)
    assert reasons(plan_of(world(job(10, min_nodes=4), nodes=(down,)))) == {10: DOWN_TEXT}


def test_a_drained_node_gets_nothing_new() -> None:
    drained = tuple(node_state(name, flags=frozenset({NodeFlag.DRAIN})) for name in ("n1", "n2"))
    assert shares(plan_of(world(job(10), nodes=drained))) == {10: [("n3", 1, 1)]}


def test_a_job_of_several_partitions_starts_where_it_can() -> None:
    snapshot = world(
        job(9, min_nodes=2, exclusive=Exclusive.NODE, partitions=("gpu",)), job(10, partitions=("gpu", "debug"))
    )
    assert shares(plan_of(snapshot))[10] == [("n1", 1, 1)]


def test_the_partition_of_higher_tier_is_tried_first() -> None:
    partitions = (Partition(name="low", nodes=("n1",)), Partition(name="top", nodes=("n2",), priority_tier=5))
    config = cluster(nodes=(node("n1"), node("n2")), partitions=partitions)
    plan = plan_of(world(job(10, partitions=("low", "top")), config=config))
    assert plan.starts[0].allocation.partition == "top"


def test_licences_run_out() -> None:
    five: dict[str, Any] = {"licenses": "matlab:6", "license_terms": (LicenseTerm(name="matlab", count=6),)}
    plan = plan_of(world(job(10, **five), job(11, **five)))
    assert sorted(shares(plan)) == [10]
    assert reasons(plan) == {11: "Licenses"}
    assert ("license/matlab", 6) in plan.starts[0].allocation.tres


def test_a_job_that_lacks_licences_keeps_nobody_else_waiting() -> None:
    lots: dict[str, Any] = {"licenses": "matlab:11", "license_terms": (LicenseTerm(name="matlab", count=11),)}
    assert sorted(shares(plan_of(world(job(10, **lots), job(11))))) == [11]


# arrays and heterogeneous jobs


def array(job_id: int, count: int, limit: int = 0, **fields: object) -> Job:
    return job(job_id, record={"tasks": ((0, count - 1, 1),), "array_job_id": job_id, "array_limit": limit}, **fields)


def test_an_array_starts_as_many_tasks_as_fit_lowest_first() -> None:
    plan = plan_of(world(array(10, 10, num_tasks=8)))
    assert [(start.job_id, start.array_task_id) for start in plan.starts] == [(10, 0), (10, 1), (10, 2), (10, 3)]
    assert reasons(plan) == {10: "Resources"}


def test_an_array_stops_at_its_limit_and_running_tasks_count() -> None:
    snapshot = world(array(10, 10, limit=3))
    plan = plan_of(snapshot)
    assert [start.array_task_id for start in plan.starts] == [0, 1, 2]
    assert reasons(plan) == {10: "JobArrayTaskLimit"}
    assert not plan_of(carried_out(snapshot, plan)).starts


def test_an_array_that_starts_whole_leaves_no_reason() -> None:
    plan = plan_of(world(array(10, 3)))
    assert len(plan.starts) == 3 and not plan.verdicts


def het(*parts: dict[str, object]) -> list[Job]:
    ids = tuple(range(10, 10 + len(parts)))
    return [
        job(
            number,
            record={"het_job_id": 10, "het_offset": offset, "het_ids": ids},
            **fields,
        )
        for offset, (number, fields) in enumerate(zip(ids, parts, strict=True))
    ]


def test_components_start_together_on_nodes_of_their_own() -> None:
    plan = plan_of(world(*het({}, {"num_tasks": 3, "cpus_per_task": 2, "min_nodes": 2})))
    assert shares(plan) == {10: [("n3", 1, 1)], 11: [("n1", 2, 4), ("n2", 1, 2)]}


def test_no_component_starts_when_one_cannot() -> None:
    plan = plan_of(world(*het({}, {"min_nodes": 4, "num_tasks": 4, "exclusive": Exclusive.NODE})))
    assert not plan.starts
    assert set(reasons(plan)) == {10, 11}


def test_components_share_a_node_where_there_are_too_few() -> None:
    config = cluster(nodes=(node("n1"),), partitions=(Partition(name="debug", nodes=("n1",)),))
    plan = plan_of(world(*het({}, {"num_tasks": 2}), config=config))
    assert sorted(shares(plan)) == [10, 11]
    used = [cpu for start in plan.starts for share in start.allocation.nodes for cpu in share.cpu_ids]
    assert len(used) == len(set(used)) == 3


# limits


def test_jobs_of_a_user_in_a_qos_are_counted() -> None:
    records = accounting(qos=(Qos(name="high", limits=Limits(max_jobs=2)),))
    plan = plan_of(world(*(job(number, qos="high") for number in (10, 11, 12)), records=records))
    assert sorted(shares(plan)) == [10, 11]
    assert reasons(plan) == {12: "QOSMaxJobsPerUserLimit"}


LIMITS: list[tuple[str, dict[str, object], str]] = [
    ("QOS CPUs a user", {"qos": Qos(name="normal", max_tres_per_user=(("cpu", 4),))}, "QOSMaxCpuPerUserLimit"),
    ("QOS CPUs an account", {"qos": Qos(name="normal", max_tres_per_account=(("cpu", 4),))}, "MaxCpuPerAccount"),
    ("QOS CPUs in all", {"qos": Qos(name="normal", limits=Limits(grp_tres=(("cpu", 4),)))}, "QOSGrpCpuLimit"),
    ("QOS memory in all", {"qos": Qos(name="normal", limits=Limits(grp_tres=(("mem", 500),)))}, "QOSGrpMemLimit"),
    ("QOS jobs in all", {"qos": Qos(name="normal", limits=Limits(grp_jobs=1))}, "QOSGrpJobsLimit"),
    (
        "account CPUs",
        {"assoc": Assoc(assoc_id=2, account="physics", parent="root", limits=Limits(grp_tres=(("cpu", 4),)))},
        "AssocGrpCpuLimit",
    ),
    (
        "account jobs",
        {"assoc": Assoc(assoc_id=2, account="physics", parent="root", limits=Limits(grp_jobs=1))},
        "AssocGrpJobsLimit",
    ),
    (
        "user jobs",
        {"assoc": Assoc(assoc_id=3, account="physics", user="alice", limits=Limits(max_jobs=1))},
        "AssocMaxJobsLimit",
    ),
]


@pytest.mark.parametrize(("where", "reason"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_limit(where: dict[str, object], reason: str) -> None:
    records = accounting(
        qos=(where["qos"],) if "qos" in where else (),  # type: ignore[arg-type]
        assocs=(where["assoc"],) if "assoc" in where else (),  # type: ignore[arg-type]
    )
    plan = plan_of(world(job(10, num_tasks=3), job(11, num_tasks=3), records=records))
    assert sorted(shares(plan)) == [10]
    assert reasons(plan) == {11: reason}


def test_limits_count_only_when_they_are_enforced() -> None:
    records = accounting(qos=(Qos(name="high", limits=Limits(max_jobs=1)),))
    config = cluster(enforce=frozenset({"associations"}))
    plan = plan_of(world(job(10, qos="high"), job(11, qos="high"), records=records, config=config))
    assert sorted(shares(plan)) == [10, 11]


def test_a_job_at_its_limit_keeps_nobody_else_waiting() -> None:
    records = accounting(qos=(Qos(name="high", priority=10, limits=Limits(max_jobs=0)),))
    assert sorted(shares(plan_of(world(job(10, qos="high"), job(11), records=records)))) == [11]


# backfill


def test_a_short_job_fills_the_gap_before_a_promised_start() -> None:
    snapshot = world(job(9, req_nodes=("n1",), num_tasks=8, time_limit=30))
    snapshot = carried_out(snapshot, plan_of(snapshot))
    gang = job(10, min_nodes=4, exclusive=Exclusive.NODE, time_limit=60, qos="normal", nice=-100)
    later = snapshot.apply(Delta(version=5, jobs=(gang, job(11, time_limit=30), job(12, time_limit=31), job(13))))
    plan = plan_of(later)
    assert sorted(shares(plan)) == [11]
    assert reasons(plan) == {10: "Resources", 12: "Priority", 13: "Priority"}
    told = {verdict.job_id: verdict for verdict in plan.verdicts}
    assert (told[10].start, told[10].nodes) == (NOW + 1800, ("n1", "n2", "n3", "n4"))


def test_a_long_job_may_use_what_a_promised_start_leaves() -> None:
    snapshot = world(job(9, req_nodes=("n1",), num_tasks=8, time_limit=30))
    snapshot = carried_out(snapshot, plan_of(snapshot))
    wide = job(10, num_tasks=28, time_limit=60, nice=-100)
    later = snapshot.apply(Delta(version=5, jobs=(wide, job(11, num_tasks=4), job(12, num_tasks=1))))
    assert sorted(shares(plan_of(later))) == [11]


def test_a_job_of_several_partitions_is_promised_one_start() -> None:
    snapshot = world(job(9, num_tasks=32, time_limit=1))
    snapshot = carried_out(snapshot, plan_of(snapshot))
    plan = plan_of(snapshot.apply(Delta(version=5, jobs=(job(10, num_tasks=16, partitions=("debug", "long")),))))
    assert [verdict.start for verdict in plan.verdicts] == [NOW + 60]


def test_a_start_beyond_the_backfill_window_is_not_promised() -> None:
    snapshot = world(job(9, num_tasks=32, time_limit=3000))
    snapshot = carried_out(snapshot, plan_of(snapshot))
    plan = plan_of(snapshot.apply(Delta(version=5, jobs=(job(10),))))
    assert [(verdict.reason, verdict.start) for verdict in plan.verdicts] == [("Resources", None)]


def test_a_completing_job_keeps_its_places() -> None:
    snapshot = world(job(9, num_tasks=32))
    snapshot = carried_out(snapshot, plan_of(snapshot))
    ending = msgspec.structs.replace(
        snapshot.running[9].job, state=JobState.CANCELLED, flags=frozenset({JobFlag.COMPLETING})
    )
    snapshot = snapshot.apply(Delta(version=5, jobs=(ending, job(10))))
    assert not plan_of(snapshot).starts
    assert plan_of(snapshot.apply(Delta(version=6, gone=(9,)))).starts


# advance reservations


def maintenance(start: float, end: float, **fields: object) -> Reservation:
    return Reservation(name="maint1", start_time=start, end_time=end, nodes=("n1", "n2"), **fields)  # type: ignore[arg-type]


def test_a_reserved_node_takes_only_jobs_that_end_before() -> None:
    coming = maintenance(NOW + 3600, NOW + 7200)
    plan = plan_of(world(job(10, time_limit=60), job(11, time_limit=61), reservations=(coming,)))
    assert shares(plan) == {10: [("n1", 1, 1)], 11: [("n3", 1, 1)]}
    assert plan.wake_at == NOW + 3600


def test_a_job_in_a_reservation_gets_its_nodes_when_it_is_let_in() -> None:
    current = maintenance(NOW - 10, NOW + 7200, users=("alice",))
    mine, other = job(10, reservation="maint1"), job(11, reservation="maint1", user="bob", uid=1002)
    plan = plan_of(world(mine, other, reservations=(current,)))
    assert shares(plan) == {10: [("n1", 1, 1)]}
    assert reasons(plan) == {11: "Reservation"}


# priority


def test_priorities_are_slurms() -> None:
    plan = plan_of(world(job(10), job(11, num_tasks=2), job(12, num_tasks=8), job(13, partitions=("long",))))
    assert dict(plan.priorities) == {10: 10172, 11: 10173, 12: 10178, 13: 11072}


def test_nice_and_a_priority_that_was_set() -> None:
    jobs = (job(10, nice=100), job(11, request=JobRequest(priority=77)), job(12, nice=2_000_000))
    assert dict(plan_of(world(*jobs)).priorities) == {10: 10072, 11: 77}


def test_older_jobs_gain_priority_up_to_the_maximum() -> None:
    old = {"accrue_time": NOW - 30 * 86400, "eligible_time": NOW - 30 * 86400}
    plan = plan_of(world(job(10), job(11, record=old)))
    assert dict(plan.priorities) == {10: 10172, 11: 11172}
    assert [start.job_id for start in plan.starts] == [11, 10]


def test_tres_weights_count_the_part_of_the_partition() -> None:
    config = cluster(priority_weight_tres="CPU=1000,GRES/gpu=4000")
    waiting = job(10, partitions=("gpu",), gpu=gpus(2), req_tres=(("cpu", 16), ("gres/gpu", 2000)))
    assert dict(plan_of(world(waiting, config=config)).priorities)[10] == 10172 + 500 + 1000


# fixed points and --test-only


def test_what_was_told_is_not_told_again() -> None:
    snapshot = world(job(10, min_nodes=5), job(11, begin=int(NOW) + 60))
    plan = plan_of(snapshot)
    again = plan_of(snapshot.noted(plan))
    assert not again.verdicts and not again.priorities


def test_an_estimate_says_when_and_where() -> None:
    snapshot = world(job(9, num_tasks=32, time_limit=30))
    snapshot = carried_out(snapshot, plan_of(snapshot))
    found = estimate(snapshot, snapshot.config, job(0, num_tasks=2, time_limit=5), NOW)
    assert found is not None
    assert (found.start, found.nodes, found.cpus, found.partition) == (NOW + 1800, ("n1",), 2, "debug")


def test_an_estimate_of_what_never_fits_is_none() -> None:
    snapshot = world()
    assert estimate(snapshot, snapshot.config, job(0, num_tasks=100), NOW) is None


def test_the_memo_never_changes_the_answer() -> None:
    snapshot = world(*(array(number, 5, num_tasks=number % 5 + 1, time_limit=number) for number in range(10, 20)))
    plan, memo = plan_cycle(snapshot, snapshot.config, NOW, Memo.empty())
    assert plan_cycle(snapshot, snapshot.config, NOW, memo)[0] == plan
    later = carried_out(snapshot, plan).apply(Delta(version=9, gone=(20, 21)))
    assert plan_cycle(later, later.config, NOW, memo)[0] == plan_of(later)
