"""What is kept for a promised start may be lent, and comes back in time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slurmbridge.model.cluster import ClusterConfig, Scheduling
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import CPU_NODES, NOW, carried_out, cluster, job, node, plan_of, shares, world

GANG, TAKER = 10, 11


def site(promised: str = "lent") -> ClusterConfig:
    """Four nodes of eight CPUs."""
    scheduling = Scheduling(order="fair", backfill="aged", promise="age", promised=promised)  # type: ignore[arg-type]
    nodes, partitions = tuple(node(name) for name in CPU_NODES), cluster().partitions[:1]
    return cluster(enforce=frozenset(), scheduling=scheduling, nodes=nodes, partitions=partitions)


def after(snapshot: Snapshot, *jobs: Any, gone: tuple[int, ...] = ()) -> Snapshot:
    return snapshot.apply(Delta(version=snapshot.version + 1, jobs=jobs, gone=gone))


def drained(promised: str = "lent", **filler: Any) -> Snapshot:
    """A run of 100 minutes on one node; a job of all four waits."""
    first = world(job(1, cpus_per_task=8, **({"time_limit": 100} | filler)), config=site(promised))
    gang = job(GANG, min_nodes=4, num_tasks=4, cpus_per_task=8, time_limit=60)
    return after(carried_out(first, plan_of(first)), gang)


def taker(**fields: Any) -> Any:
    return job(TAKER, cpus_per_task=8, **({"time_limit": 300, "preemptible": True} | fields))


def lending() -> Snapshot:
    snapshot = after(drained(), taker())
    return carried_out(snapshot, plan_of(snapshot))


def told(plan: Plan, snapshot: Snapshot) -> float:
    """When the gang is promised to start."""
    return float(snapshot.noted(plan).record(GANG).start_time or 0.0)


@pytest.mark.parametrize(
    ("fields", "starts"),
    [
        pytest.param({}, True, id="may be ended"),
        pytest.param({"preemptible": False}, False, id="may not be ended"),
        pytest.param({"preemptible": None}, False, id="does not say so on a site without quotas"),
        pytest.param({"requeue": False}, False, id="would not begin again"),
        pytest.param({"is_batch": False}, False, id="is somebody's allocation"),
        pytest.param({"time_limit": 400}, True, id="has a fourth of its limit"),
        pytest.param({"time_limit": 401}, False, id="has less than a fourth of its limit"),
        pytest.param({"preemptible": False, "time_limit": 100}, True, id="is over by then"),
    ],
)
def test_kept_room_is_lent_to_work_that_may_be_ended_and_has_time_enough(fields: dict[str, Any], starts: bool) -> None:
    assert (TAKER in shares(plan_of(after(drained(), taker(**fields))))) == starts


def test_nothing_is_lent_where_the_site_does_not_say_so() -> None:
    assert not plan_of(after(drained("idle"), taker())).starts


def test_a_job_that_was_begun_again_often_is_lent_nothing() -> None:
    for restarts, starts in ((2, True), (3, False)):
        often = msgspec.structs.replace(taker(), restarts=restarts)
        assert (TAKER in shares(plan_of(after(drained(), often)))) == starts


def test_only_what_runs_past_the_promised_start_is_lent() -> None:
    for limit, lent_to in ((300, GANG), (100, 0)):
        plan = plan_of(after(drained(), taker(time_limit=limit)))
        assert [start.allocation.lent_to for start in plan.starts] == [lent_to]


def test_what_is_lent_does_not_move_the_promised_start() -> None:
    snapshot = lending()
    assert told(plan_of(snapshot), snapshot) == NOW + 6000
    assert not plan_of(snapshot).evictions


def test_who_may_not_be_ended_is_no_better_off_for_what_is_lent() -> None:
    """A run of 200 minutes would end before the borrower's limit, and after the promised start."""
    firm = job(12, cpus_per_task=8, time_limit=200)
    assert not plan_of(after(lending(), firm)).starts


def test_a_borrower_is_ended_as_soon_as_the_promised_job_can_start_without_it() -> None:
    snapshot = after(lending(), gone=(1,))
    plan = plan_of(snapshot, NOW + 600)
    assert [(each.job_id, each.for_job, each.mode) for each in plan.evictions] == [(TAKER, GANG, "REQUEUE")]
    assert not plan.starts
    again = msgspec.structs.replace(taker(), restarts=1)
    freed = after(snapshot.noted(plan), again)
    assert list(shares(plan_of(freed, NOW + 630))) == [GANG]


def test_only_borrowers_that_are_in_the_way_are_ended() -> None:
    """The promised job takes three of four nodes; what lasts least is lost."""
    first = world(job(1, cpus_per_task=8, time_limit=100), job(2, cpus_per_task=8, time_limit=100), config=site())
    gang = job(GANG, min_nodes=3, num_tasks=3, cpus_per_task=8, time_limit=60)
    snapshot = after(carried_out(first, plan_of(first)), gang, taker())
    snapshot = carried_out(snapshot, plan_of(snapshot))
    snapshot = after(snapshot, msgspec.structs.replace(taker(), job_id=12))
    snapshot = carried_out(snapshot, plan_of(snapshot, NOW + 60), NOW + 60)
    assert sorted(snapshot.running) == [1, 2, TAKER, 12]
    plan = plan_of(after(snapshot, gone=(1, 2)), NOW + 600)
    assert [each.job_id for each in plan.evictions] == [12]


def test_a_loan_ends_with_the_wait_of_the_job_it_is_taken_from() -> None:
    """Its limit counts like all others then."""
    other = job(12, min_nodes=4, num_tasks=4, cpus_per_task=8, time_limit=60)
    snapshot = after(lending(), other, gone=(GANG,))
    assert snapshot.noted(plan_of(snapshot)).record(12).start_time == NOW + 300 * 60


@pytest.mark.parametrize(
    ("limit", "at", "ends"),
    [
        pytest.param(1000, 300, True, id="has just begun"),
        pytest.param(1000, 30_000, False, id="has done much"),
        pytest.param(20, 300, False, id="is over soon"),
    ],
)
def test_other_work_that_may_be_ended_gives_way_to_a_large_job_where_little_is_lost(
    limit: int, at: float, ends: bool
) -> None:
    snapshot = drained(preemptible=True, time_limit=limit)
    snapshot = snapshot.noted(plan_of(snapshot))
    assert [each.job_id for each in plan_of(snapshot, NOW + at).evictions] == [1] * ends


def test_work_that_may_not_be_ended_never_gives_way() -> None:
    snapshot = drained(time_limit=1000)
    snapshot = snapshot.noted(plan_of(snapshot))
    assert not plan_of(snapshot, NOW + 300).evictions
