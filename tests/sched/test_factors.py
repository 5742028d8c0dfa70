"""Fair Tree, billing, and the small things that partitions and limits say."""

from __future__ import annotations

import pytest

from slurmbridge.model.accounts import Accounting, Assoc, Limits, UsageRow
from slurmbridge.model.cluster import Partition
from slurmbridge.model.plan import Delta, Reservation
from slurmbridge.sched.fairtree import factors, usage_of
from slurmbridge.submit.billing import billing
from tests.sched.small_cluster import NOW, accounting, carried_out, cluster, job, node, plan_of, reasons, shares, world


def tree(*leaves: tuple[int, str, str, int], accounts: dict[str, tuple[str, int]]) -> Accounting:
    """leaves: (id, account, user, shares); accounts: name -> (parent, shares)."""
    above = [Assoc(assoc_id=100, account="root")]
    above += [
        Assoc(assoc_id=101 + place, account=name, parent=parent, shares=part)
        for place, (name, (parent, part)) in enumerate(accounts.items())
    ]
    return Accounting(assocs=(*above, *(Assoc(assoc_id=i, account=a, user=u, shares=s) for i, a, u, s in leaves)))


def test_everybody_has_factor_one_on_a_fresh_cluster() -> None:
    records = tree((1, "a", "x", 1), (2, "b", "y", 1), accounts={"a": ("root", 1), "b": ("root", 4)})
    assert factors(records, {}) == {1: 1.0, 2: 1.0}


def test_users_rank_by_use_within_an_account() -> None:
    records = tree((1, "a", "x", 1), (2, "a", "y", 1), (3, "a", "z", 1), accounts={"a": ("root", 1)})
    assert factors(records, {1: 50.0, 2: 10.0}) == {3: 1.0, 2: pytest.approx(2 / 3), 1: pytest.approx(1 / 3)}


def test_an_account_that_used_less_for_its_shares_comes_first_whoever_its_users_are() -> None:
    records = tree((1, "a", "x", 1), (2, "a", "y", 1), (3, "b", "z", 1), accounts={"a": ("root", 4), "b": ("root", 1)})
    found = factors(records, {1: 30.0, 3: 10.0})
    assert found[2] > found[1] > found[3]


def test_users_that_tie_share_a_rank() -> None:
    records = tree((1, "a", "x", 1), (2, "a", "y", 1), (3, "a", "z", 1), accounts={"a": ("root", 1)})
    found = factors(records, {1: 5.0, 2: 5.0, 3: 90.0})
    assert found[1] == found[2] == 1.0
    assert found[3] == pytest.approx(1 / 3)


def test_use_is_decayed_to_one_time() -> None:
    rows = (
        UsageRow(assoc_id=1, as_of=0.0, raw=(("billing", 100.0),)),
        UsageRow(assoc_id=2, as_of=3600.0, raw=(("billing", 100.0),)),
    )
    assert usage_of(rows, 3600) == {1: 50.0, 2: 100.0}


def test_used_accounts_lower_priority() -> None:
    heavy = UsageRow(assoc_id=3, as_of=NOW, raw=(("billing", 1000.0),))
    plan = plan_of(world(job(10), job(11, assoc_id=4, user="bob", uid=1002), usage=(heavy,)))
    assert dict(plan.priorities) == {10: 5172, 11: 10172}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("", 4), ("CPU=2", 8), ("CPU=1,Mem=1G", 6), ("CPU=0.5,GRES/gpu=3", 5), ("GRES/gpu:a100=10", 10), ("nonsense", 0)],
)
def test_billing(weights: str, expected: int) -> None:
    tres = (("cpu", 4), ("mem", 2048), ("node", 1), ("gres/gpu", 1000), ("gres/gpu:a100", 1000))
    assert billing(weights, tres) == expected


def two_nodes(**fields: object) -> dict[str, object]:
    partition = Partition(name="debug", nodes=("n1", "n2"), **fields)  # type: ignore[arg-type]
    return {"config": cluster(nodes=(node("n1"), node("n2")), partitions=(partition,))}


def test_lln_takes_the_least_loaded_node() -> None:
    plan = plan_of(world(job(10), job(11), job(12), **two_nodes(lln=True)))  # type: ignore[arg-type]
    assert [shares(plan)[number][0][0] for number in (10, 11, 12)] == ["n1", "n2", "n1"]


def test_min_nodes_of_a_partition_raise_those_of_the_job() -> None:
    plan = plan_of(world(job(10, num_tasks=2), **two_nodes(min_nodes=2)))  # type: ignore[arg-type]
    assert shares(plan) == {10: [("n1", 1, 1), ("n2", 1, 1)]}


def test_max_cpus_per_node_bounds_all_jobs_of_a_partition() -> None:
    jobs = [job(number, num_tasks=3, max_nodes=1) for number in (10, 11, 12)]
    snapshot = world(*jobs, **two_nodes(max_cpus_per_node=4))  # type: ignore[arg-type]
    plan = plan_of(snapshot)
    assert shares(plan) == {10: [("n1", 3, 3)], 11: [("n2", 3, 3)]}
    assert not plan_of(carried_out(snapshot, plan)).starts


def test_a_job_that_a_coming_reservation_stops_is_told_so() -> None:
    coming = Reservation(name="all", start_time=NOW + 60, end_time=NOW + 600, nodes=("n1", "n2", "n3", "n4"))
    plan = plan_of(world(job(10, time_limit=5), reservations=(coming,)))
    assert reasons(plan) == {10: "ReqNodeNotAvail, May be reserved for other job"}


MINUTES = [
    ("one job", Limits(max_tres_mins_per_job=(("cpu", 100),)), 2, "AssocMaxCpuMinutesPerJobLimit"),
    ("all that run", Limits(grp_tres_run_mins=(("cpu", 100),)), 2, "AssocGrpCPURunMinutesLimit"),
    ("all that was used", Limits(grp_tres_mins=(("cpu", 100),)), 2, "AssocGrpCPUMinutesLimit"),
]


@pytest.mark.parametrize(("limits", "tasks", "reason"), [row[1:] for row in MINUTES], ids=[row[0] for row in MINUTES])
def test_limits_of_minutes(limits: Limits, tasks: int, reason: str) -> None:
    records = accounting(assocs=(Assoc(assoc_id=2, account="physics", parent="root", limits=limits),))
    used = UsageRow(assoc_id=3, as_of=NOW, raw=(("cpu", 60.0),))
    plan = plan_of(world(job(10, num_tasks=tasks, time_limit=60), records=records, usage=(used,)))
    assert reasons(plan) == {10: reason}
    short = plan_of(world(job(10, num_tasks=tasks, time_limit=30), records=records, usage=(used,)))
    assert sorted(shares(short)) == [10]


def test_run_minutes_of_running_jobs_count_as_long_as_they_last() -> None:
    limits = Limits(grp_tres_run_mins=(("cpu", 100),))
    records = accounting(assocs=(Assoc(assoc_id=2, account="physics", parent="root", limits=limits),))
    snapshot = world(job(10, time_limit=60), records=records)
    snapshot = carried_out(snapshot, plan_of(snapshot)).apply(Delta(version=7, jobs=(job(11, time_limit=60),)))
    assert not plan_of(snapshot).starts
    assert plan_of(snapshot, NOW + 1200).starts
