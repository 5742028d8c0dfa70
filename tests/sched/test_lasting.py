"""Nodes that are in use for longest are filled first where the site says so."""

from __future__ import annotations

from slurmbridge.model.cluster import Scheduling
from slurmbridge.model.plan import Delta
from tests.sched.small_cluster import carried_out, cluster, job, plan_of, shares, world


def nodes_of(way: str) -> list[str]:
    """Where a small job goes beside a short run on the first node and a long one on the second."""
    config = cluster(enforce=frozenset(), scheduling=Scheduling(nodes=way))  # type: ignore[arg-type]
    runs = [job(1, cpus_per_task=6, time_limit=10), job(2, cpus_per_task=6, time_limit=100)]
    first = world(*runs, config=config)
    snapshot = carried_out(first, plan_of(first))
    later = snapshot.apply(Delta(version=snapshot.version + 1, jobs=(job(3, cpus_per_task=2, time_limit=50),)))
    return [node for node, _, _ in shares(plan_of(later))[3]]


def test_a_part_of_a_node_is_taken_where_something_runs_for_long() -> None:
    assert nodes_of("lasting") == ["n2"]
    assert nodes_of("configured") == ["n1"]


def test_starts_of_the_same_cycle_count() -> None:
    config = cluster(enforce=frozenset(), scheduling=Scheduling(nodes="lasting"))
    plan = plan_of(world(*(job(number, cpus_per_task=4, time_limit=10) for number in (1, 2)), config=config))
    assert [node for number in (1, 2) for node, _, _ in shares(plan)[number]] == ["n1", "n1"]


def test_idle_nodes_are_kept_whole_for_who_needs_them() -> None:
    config = cluster(enforce=frozenset(), scheduling=Scheduling(nodes="lasting"))
    small = [job(number, cpus_per_task=2, time_limit=10 * number) for number in range(1, 5)]
    large = job(9, min_nodes=3, num_tasks=3, cpus_per_task=8)
    first = world(*small, config=config)
    snapshot = carried_out(first, plan_of(first))
    later = snapshot.apply(Delta(version=snapshot.version + 1, jobs=(large,)))
    assert [start.job_id for start in plan_of(later).starts] == [9]
