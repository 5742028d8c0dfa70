"""Who is promised the next start where the site promises by claim."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from slurmbridge.model.accounts import Accounting, Assoc
from slurmbridge.model.cluster import ClusterConfig, Node, Scheduling
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta
from slurmbridge.model.states import NodeBase
from slurmbridge.sched.claims import by_importance, claims, impatience
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import (
    CPU_NODES,
    NOW,
    accounting,
    carried_out,
    cluster,
    job,
    node,
    plan_of,
    reasons,
    world,
)

WEEK = 7 * 86400.0
CHEMISTRY = (
    Assoc(assoc_id=5, account="chemistry", parent="root"),
    Assoc(assoc_id=6, account="chemistry", user="carol"),
)


def claim(waited: float = 3600.0, limit: float = 3600.0, size: float = 0.2, held: float = 0.2) -> float:
    return float(claims(np.array([waited]), np.array([limit]), np.array([size]), np.array([held]), WEEK)[0])


def test_a_claim_grows_with_waiting_and_size_and_shrinks_with_the_limit_and_with_what_the_queue_holds() -> None:
    assert claim(waited=7200) > claim()
    assert claim(size=0.4) > claim()
    assert claim(limit=7200) < claim()
    assert claim(held=0.4) < claim()


def test_every_claim_overtakes_that_of_any_job_that_came_later() -> None:
    """The largest ratio that size, limit and queue can make is bounded, and waiting is not."""
    weakest = {"limit": WEEK, "size": 0.0, "held": 1.0}
    strongest = {"limit": 0.0, "size": 1.0, "held": 0.0}
    ratio = claim(1.0, **strongest) / claim(1.0, **weakest)
    assert ratio < 1e5
    assert claim(2 * ratio, **weakest) > claim(1.0, **strongest)


def test_without_a_limit_a_job_claims_as_with_priority_max_age() -> None:
    assert claim(limit=float("inf")) == claim(limit=WEEK)


def test_in_a_queue_the_more_important_job_has_the_stronger_claim() -> None:
    found = by_importance(np.array([3.0, 2.0, 1.0, 9.0]), np.array([0, 0, 50, 0]), np.array([1, 1, 1, 2]))
    assert found.tolist() == [2.0, 1.0, 3.0, 9.0]


def site(promise: str) -> ClusterConfig:
    return cluster(enforce=frozenset(), scheduling=Scheduling(order="fair", backfill="shortest", promise=promise))  # type: ignore[arg-type]


def gang(number: int, waited: float, **fields: object) -> Job:
    return job(number, min_nodes=4, num_tasks=4, cpus_per_task=8, record=since(waited), **({"time_limit": 60} | fields))


def since(waited: float) -> dict[str, Any]:
    """Times of a job that has waited so long."""
    return dict.fromkeys(("submit_time", "eligible_time", "accrue_time"), NOW - waited)


def of_others() -> Accounting:
    return accounting(assocs=CHEMISTRY)


def busy(*jobs: Job, promise: str = "claim") -> Snapshot:
    """One job of physics runs on a node, others wait."""
    filler = job(1, cpus_per_task=8, time_limit=100)
    first = world(filler, config=site(promise), records=of_others())
    snapshot = carried_out(first, plan_of(first))
    return snapshot.apply(Delta(version=snapshot.version + 1, jobs=jobs))


def promised(snapshot: Snapshot) -> list[int]:
    return [each.job_id for each in plan_of(snapshot).verdicts if each.nodes]


def test_who_waited_longest_is_promised_a_start_whoever_has_the_turn() -> None:
    old = gang(10, 7200.0)
    fresh = gang(11, 60.0, account="chemistry", assoc_id=6, user="carol", uid=1003, time_limit=30)
    assert promised(busy(old, fresh)) == [10]
    assert promised(busy(old, fresh, promise="turn")) == [11]


def test_a_promise_stays_with_its_job_when_another_claim_has_grown_larger() -> None:
    snapshot = busy(gang(10, 7200.0))
    plan = plan_of(snapshot)
    assert [each.start for each in plan.verdicts if each.job_id == 10] == [NOW + 6000]
    told = snapshot.noted(plan)
    stronger, short, long = gang(11, 14400.0), job(12, time_limit=10), job(13, cpus_per_task=8, time_limit=1000)
    crowd = told.apply(Delta(version=told.version + 1, jobs=(stronger, short, long)))
    found = plan_of(crowd)
    assert [each.job_id for each in found.starts] == [12]
    assert [each.job_id for each in found.verdicts if each.nodes and each.job_id != 10] == []


def test_by_age_who_waited_longest_is_promised_a_start_whatever_it_asks_for() -> None:
    old = gang(10, 7200.0, time_limit=10_000)
    fresh = gang(11, 7000.0, account="chemistry", assoc_id=6, user="carol", uid=1003, time_limit=30)
    assert promised(busy(old, fresh, promise="age")) == [10]
    assert promised(busy(old, fresh)) == [11]


@pytest.mark.parametrize(("theirs_waited", "expected"), [(1000, 11), (800, 10)], ids=["behind", "not for ever"])
def test_by_age_a_tenth_of_its_waiting_counts_while_a_jobs_queue_holds_what_it_deserves(
    theirs_waited: float, expected: int
) -> None:
    """Of four nodes physics holds three and chemistry one; both want more, so two are each one's share."""
    only: dict[str, Any] = {"nodes": tuple(node(name) for name in CPU_NODES), "partitions": cluster().partitions[:1]}
    config = msgspec.structs.replace(site("age"), **only)
    others: dict[str, Any] = {"account": "chemistry", "assoc_id": 6, "user": "carol", "uid": 1003}
    first = world(
        *(job(number, cpus_per_task=8, time_limit=100) for number in (1, 2, 3)),
        job(4, cpus_per_task=8, time_limit=100, **others),
        config=config,
        records=of_others(),
    )
    snapshot = carried_out(first, plan_of(first))
    mine = job(10, cpus_per_task=8, record=since(9000))
    theirs = job(11, cpus_per_task=8, record=since(theirs_waited), **others)
    more = tuple(job(number, cpus_per_task=8, **others) for number in (12, 13))
    crowd = snapshot.apply(Delta(version=snapshot.version + 1, jobs=(mine, theirs, *more)))
    assert promised(crowd) == [expected]


@pytest.mark.parametrize("promise", ["turn", "age", "claim"])
def test_a_job_waits_where_no_node_is_up(promise: str) -> None:
    config = site(promise)
    down = tuple(Node(conf=conf, base=NodeBase.DOWN) for conf in config.nodes)
    plan = plan_of(world(job(1), config=config, records=of_others(), nodes=down))
    assert reasons(plan)[1].startswith("Nodes required for job are DOWN") and not plan.starts


def test_patience_is_by_waiting_and_a_little_by_the_limit() -> None:
    found = impatience(np.array([0.0, 7200.0, 7200.0]), np.array([600.0, 36_000.0, 600.0]))
    assert found[2] < found[1] < found[0]
    assert impatience(np.array([80_000.0]), np.array([86_400.0]))[0] < impatience(np.array([60.0]), np.array([60.0]))[0]
