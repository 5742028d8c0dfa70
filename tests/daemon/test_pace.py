"""When the planner may take its time, and when not. On the shipped fakes."""

from __future__ import annotations

from collections.abc import Callable

from tests.daemon.controlled import Site
from tests.daemon.rules import rule


@rule
async def test_a_job_that_comes_can_wait_for_the_planner_and_one_that_leaves_cannot(made: Site) -> None:
    job, other = [made.job(await made.submit("--begin=now+1hour")) for _ in range(2)]
    made.plans.job_changed(job)
    made.plans.job_changed(other)
    assert not made.plans.is_urgent
    made.plans.job_gone(job.job_id)
    assert made.plans.is_urgent
    made.plans.delta()
    assert not made.plans.is_urgent


@rule
async def test_where_nobody_waits_a_job_that_leaves_calls_for_no_plan(made: Site) -> None:
    job = made.job(await made.submit("--begin=now+1hour"))
    made.plans.job_gone(job.job_id)
    assert not made.plans.is_urgent
    told = made.plans.delta()
    assert told.gone == (job.job_id,)


@rule
async def test_nodes_and_settings_that_change_are_urgent(made: Site) -> None:
    changes: list[Callable[[], None]] = [lambda: made.plans.node_changed("n1"), made.plans.everything_changed]
    for change in changes:
        change()
        assert made.plans.is_urgent
        made.plans.delta()


@rule
async def test_a_held_job_is_no_reason_to_hurry(made: Site) -> None:
    held = made.job(await made.submit("-H"))
    made.plans.job_changed(held)
    assert not made.plans.is_urgent
