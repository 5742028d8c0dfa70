"""Which nodes and devices of a declared pool are filled first."""

from __future__ import annotations

from typing import Any

import pytest

from slurmbridge.model.cluster import ClusterConfig, Partition, Pool
from slurmbridge.model.job import Job
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import (
    CPU_NODES,
    GPU_NODES,
    carried_out,
    cluster,
    gpu_node,
    gpus,
    job,
    node,
    plan_of,
    shares,
    world,
)


def pool(placement: str, nodes: tuple[str, ...] = CPU_NODES, **fields: Any) -> ClusterConfig:
    found = cluster(pools=(Pool(name="one", nodes=nodes, placement=placement, **fields),))  # type: ignore[arg-type]
    return found


def filled(config: ClusterConfig, **tasks: int) -> Snapshot:
    """So many CPUs of these nodes are taken already."""
    jobs = [job(10 + at, req_nodes=(name,), num_tasks=count) for at, (name, count) in enumerate(tasks.items())]
    snapshot = world(*jobs, config=config)
    return carried_out(snapshot, plan_of(snapshot))


def nodes_of(snapshot: Snapshot, *jobs: Job) -> list[list[str]]:
    """Where these start."""
    fresh = world(*(each.job for each in snapshot.running.values()), *jobs, config=snapshot.config)
    found = shares(plan_of(fresh))
    return [[name for name, _, _ in found[each.job_id]] for each in jobs]


def test_binpack_fills_the_fullest_that_has_room() -> None:
    snapshot = filled(pool("binpack"), n2=3, n3=6)
    assert nodes_of(snapshot, job(100), job(101), job(102), job(103)) == [["n3"], ["n3"], ["n2"], ["n2"]]
    assert nodes_of(snapshot, job(100, num_tasks=4)) == [["n2"]]
    assert nodes_of(snapshot, job(100, num_tasks=8)) == [["n1"]]


def test_spread_fills_the_emptiest() -> None:
    snapshot = filled(pool("spread"), n1=2, n2=1, n3=5)
    jobs = [job(100 + each, num_tasks=2) for each in range(4)]
    assert nodes_of(snapshot, *jobs) == [["n4"], ["n2"], ["n1"], ["n4"]]
    assert nodes_of(snapshot, job(100, num_tasks=2, min_nodes=2, max_nodes=2)) == [["n2", "n4"]]


def test_without_a_declared_pool_and_outside_of_it_slurms_order_stays() -> None:
    for config in (cluster(), pool("spread", GPU_NODES)):
        snapshot = filled(config, n1=2, n3=5)
        assert nodes_of(snapshot, job(100, num_tasks=6), job(101, num_tasks=1)) == [["n1"], ["n2"]]


@pytest.mark.parametrize("placement", ["binpack", "spread"])
def test_weight_comes_before_placement(placement: str) -> None:
    nodes = tuple(node(name, weight=1 if name == "n3" else 10) for name in CPU_NODES)
    config = cluster(
        nodes=nodes,
        partitions=(Partition(name="debug", nodes=CPU_NODES, default=True),),
        pools=(Pool(name="one", nodes=CPU_NODES, placement=placement),),  # type: ignore[arg-type]
    )
    assert nodes_of(world(config=config), job(100), job(101, num_tasks=7)) == [["n3"], ["n3"]]


def test_devices_come_before_cpus() -> None:
    nodes = (gpu_node("g1"), gpu_node("g2", 2), gpu_node("g3", 0))
    names = tuple(each.name for each in nodes)
    for placement, first in (("binpack", "g3"), ("spread", "g1")):
        config = cluster(
            nodes=nodes,
            partitions=(Partition(name="debug", nodes=names, default=True),),
            pools=(Pool(name="one", nodes=names, placement=placement),),  # type: ignore[arg-type]
        )
        assert nodes_of(world(config=config), job(100)) == [[first]]


def test_parts_of_devices_share_one_or_spread_as_the_pool_says() -> None:
    for placement, used in (("binpack", 1), ("spread", 2)):
        config = pool("binpack", GPU_NODES, device_placement=placement)
        jobs = [job(100 + each, partitions=("gpu",), gpu=gpus(1, milli=400)) for each in range(2)]
        plan = plan_of(world(*jobs, config=config))
        allocated = [start.allocation.nodes[0] for start in plan.starts]
        assert len({(share.node, share.devices[0].index) for share in allocated}) == used
