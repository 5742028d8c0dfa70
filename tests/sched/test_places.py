"""Where jobs go. The expected layouts were read off Slurm 26.05.5 (`scontrol -d show job`, select/cons_tres,
CR_Core_Memory) on the recorded cluster; `busy` are CPUs taken beforehand.
"""

from __future__ import annotations

from typing import Any

import pytest

from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import Allocation, GpuScope, Job, NodeShare
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.request import Exclusive, JobRequest, Memory, MemoryPer
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import (
    NOW,
    carried_out,
    cluster,
    gpu_node,
    gpus,
    job,
    node,
    plan_of,
    reasons,
    shares,
    started,
    world,
)

Busy = dict[str, tuple[int, ...]]


def busy_world(busy: Busy, *jobs: Job, config: ClusterConfig | None = None) -> Snapshot:
    running = [
        started(
            job(900 + number),
            Allocation(
                partition="debug",
                nodes=(NodeShare(node=name, cpus=len(ids), cpu_ids=ids, memory_mib=100 * len(ids)),),
            ),
        )
        for number, (name, ids) in enumerate(busy.items())
    ]
    return world(*running, *jobs, config=config)


def cpu_ids(plan: Plan) -> list[tuple[str, tuple[int, ...]]]:
    return [(share.node, share.cpu_ids) for share in plan.starts[0].allocation.nodes]


N1: Busy = {"n1": (0,)}
N2: Busy = {"n1": tuple(range(8)), "n2": (0, 1, 2, 4, 5)}

LAYOUTS: list[tuple[str, Busy, dict[str, Any], list[tuple[str, int, int]]]] = [
    ("one task", {}, {}, [("n1", 1, 1)]),
    ("tasks of a split leave one for each node", {}, {"num_tasks": 6, "min_nodes": 2}, [("n1", 5, 5), ("n2", 1, 1)]),
    (
        "tasks of two CPUs",
        {},
        {"num_tasks": 5, "cpus_per_task": 2, "min_nodes": 2},
        [("n1", 4, 8), ("n2", 1, 2)],
    ),
    (
        "tasks of two CPUs beside another job",
        N1,
        {"num_tasks": 5, "cpus_per_task": 2, "min_nodes": 2},
        [("n1", 3, 6), ("n2", 2, 4)],
    ),
    ("too many for one node", {}, {"num_tasks": 12}, [("n1", 8, 8), ("n2", 4, 4)]),
    ("one node that holds all comes first", N2, {"num_tasks": 4}, [("n3", 4, 4)]),
    ("the first node that holds all", N2, {"num_tasks": 3}, [("n2", 3, 3)]),
    ("two nodes are filled in order", N2, {"num_tasks": 4, "min_nodes": 2}, [("n2", 3, 3), ("n3", 1, 1)]),
    ("two nodes, nine tasks", N2, {"num_tasks": 9, "min_nodes": 2}, [("n2", 3, 3), ("n3", 6, 6)]),
    (
        "as many nodes as can start now",
        N2,
        {"min_nodes": 1, "max_nodes": 3},
        [("n2", 1, 1), ("n3", 1, 1), ("n4", 1, 1)],
    ),
    (
        "a range takes all its nodes",
        N2,
        {"num_tasks": 12, "min_nodes": 2, "max_nodes": 3},
        [("n2", 3, 3), ("n3", 8, 8), ("n4", 1, 1)],
    ),
    (
        "a range of nodes and four tasks",
        N2,
        {"num_tasks": 4, "max_nodes": 3},
        [("n2", 2, 2), ("n3", 1, 1), ("n4", 1, 1)],
    ),
    ("no more nodes than tasks", {}, {"num_tasks": 2, "min_nodes": 2, "max_nodes": 4}, [("n1", 1, 1), ("n2", 1, 1)]),
    (
        "--use-min-nodes",
        N2,
        {"num_tasks": 3, "max_nodes": 3, "request": JobRequest(use_min_nodes=True)},
        [("n2", 3, 3)],
    ),
    ("named nodes are all used", {}, {"num_tasks": 6, "req_nodes": ("n3", "n4")}, [("n3", 5, 5), ("n4", 1, 1)]),
    (
        "more named nodes than may be used",
        {},
        {"num_tasks": 2, "max_nodes": 1, "req_nodes": ("n2", "n3")},
        [("n2", 2, 2)],
    ),
    ("excluded nodes are not used", {}, {"exc_nodes": ("n1", "n2")}, [("n3", 1, 1)]),
    (
        "tasks per node",
        {},
        {"num_tasks": 4, "ntasks_per_node": 2, "min_nodes": 2},
        [("n1", 2, 2), ("n2", 2, 2)],
    ),
    ("overcommit", {}, {"num_tasks": 9, "overcommit": True, "min_cpus": 1}, [("n1", 9, 1)]),
    ("exclusive nodes are taken whole", N1, {"exclusive": Exclusive.NODE}, [("n2", 8, 8)]),
    ("all memory of a node", N1, {"memory": Memory(MemoryPer.NODE, 0)}, [("n2", 1, 1)]),
    ("minimum of CPUs of a node", {}, {"pn_min_cpus": 4}, [("n1", 4, 4)]),
    (
        "memory of CPUs spreads tasks",
        {},
        {"num_tasks": 4, "memory": Memory(MemoryPer.CPU, 8000)},
        [("n1", 2, 2), ("n2", 2, 2)],
    ),
    ("tasks per socket", {}, {"num_tasks": 4, "ntasks_per_socket": 1}, [("n1", 2, 2), ("n2", 2, 2)]),
    (
        "allowed node counts",
        {},
        {"min_nodes": 1, "max_nodes": 4, "node_counts": (1, 3)},
        [("n1", 1, 1), ("n2", 1, 1), ("n3", 1, 1)],
    ),
]


@pytest.mark.parametrize(("busy", "fields", "expected"), [row[1:] for row in LAYOUTS], ids=[row[0] for row in LAYOUTS])
def test_layout(busy: Busy, fields: dict[str, Any], expected: list[tuple[str, int, int]]) -> None:
    assert shares(plan_of(busy_world(busy, job(10, **fields)))) == {10: expected}


CPU_IDS: list[tuple[str, Busy, dict[str, Any], list[tuple[int, ...]]]] = [
    ("tasks go round the sockets", {}, {"num_tasks": 2}, [(0, 4)]),
    ("four tasks", {}, {"num_tasks": 4}, [(0, 1, 4, 5)]),
    ("five tasks beside a job", {"n1": (0, 4)}, {"num_tasks": 5}, [(1, 2, 3, 5, 6)]),
    ("a task stays in a socket", {}, {"num_tasks": 2, "cpus_per_task": 2}, [(0, 1, 2, 3)]),
    ("a task that fits no more in a socket", {"n1": (0, 4)}, {"num_tasks": 2, "cpus_per_task": 2}, [(1, 2, 5, 6)]),
    ("a task wider than a socket's rest", {"n1": (0, 4)}, {"num_tasks": 1, "cpus_per_task": 4}, [(1, 2, 3, 5)]),
    ("tasks per node fill sockets", {}, {"num_tasks": 4, "ntasks_per_node": 4}, [(0, 1, 2, 3)]),
    ("block distribution", {}, {"num_tasks": 4, "request": JobRequest(distribution="block:block")}, [(0, 1, 2, 3)]),
]


@pytest.mark.parametrize(("busy", "fields", "expected"), [row[1:] for row in CPU_IDS], ids=[row[0] for row in CPU_IDS])
def test_cpu_ids(busy: Busy, fields: dict[str, Any], expected: list[tuple[int, ...]]) -> None:
    assert [ids for _, ids in cpu_ids(plan_of(busy_world(busy, job(10, **fields))))] == expected


GPU_LAYOUTS: list[tuple[str, dict[str, Any], list[tuple[str, int, tuple[int, ...]]]]] = [
    ("per node", {"gpu": gpus(2), "min_nodes": 2}, [("g1", 1, (0, 1)), ("g2", 1, (0, 1))]),
    ("of the job on one node", {"gpu": gpus(3, GpuScope.JOB)}, [("g1", 1, (0, 1, 2))]),
    ("of the job over nodes", {"gpu": gpus(6, GpuScope.JOB)}, [("g1", 1, (0, 1, 2, 3)), ("g2", 1, (0, 1))]),
    ("per task", {"gpu": gpus(1, GpuScope.TASK), "num_tasks": 4}, [("g1", 4, (0, 1, 2, 3))]),
    (
        "per task over nodes",
        {"gpu": gpus(1, GpuScope.TASK), "num_tasks": 6},
        [("g1", 4, (0, 1, 2, 3)), ("g2", 2, (0, 1))],
    ),
    ("CPUs of GPUs", {"gpu": gpus(2), "cpus_per_gpu": 3}, [("g1", 6, (0, 1))]),
]


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in GPU_LAYOUTS], ids=[row[0] for row in GPU_LAYOUTS])
def test_gpu_layout(fields: dict[str, Any], expected: list[tuple[str, int, tuple[int, ...]]]) -> None:
    plan = plan_of(world(job(10, partitions=("gpu",), **fields)))
    found = plan.starts[0].allocation.nodes
    assert [(each.node, each.tasks, tuple(d.index for d in each.devices)) for each in found] == expected


def test_memory_of_gpus_counts_devices() -> None:
    plan = plan_of(world(job(10, partitions=("gpu",), gpu=gpus(2), memory=Memory(MemoryPer.GPU, 1024))))
    assert plan.starts[0].allocation.nodes[0].memory_mib == 2048


def test_alloc_tres_has_typed_gpus_in_thousandths() -> None:
    plan = plan_of(world(job(10, partitions=("gpu",), gpu=gpus(2))))
    assert plan.starts[0].allocation.tres == (
        ("cpu", 1),
        ("mem", 100),
        ("node", 1),
        ("billing", 1),
        ("gres/gpu", 2000),
        ("gres/gpu:a100", 2000),
    )


def test_an_exclusive_job_gets_all_devices() -> None:
    plan = plan_of(world(job(10, partitions=("gpu",), exclusive=Exclusive.NODE)))
    assert dict(plan.starts[0].allocation.tres)["gres/gpu"] == 4000


def test_a_wrong_gpu_type_never_fits() -> None:
    plan = plan_of(world(job(10, partitions=("gpu",), gpu=gpus(1, type="h100"))))
    assert reasons(plan) == {10: "PartitionConfig"}


def test_fractions_fill_a_shared_device_before_a_fresh_one() -> None:
    half: dict[str, Any] = {"partitions": ("gpu",), "gpu": gpus(1, milli=500)}
    plan = plan_of(world(job(10, **half), job(11, **half), job(12, **half)))
    used = [[device.index for device in start.allocation.nodes[0].devices] for start in plan.starts]
    assert used == [[0], [0], [1]]


def test_a_fraction_of_several_devices_takes_different_ones() -> None:
    plan = plan_of(world(job(10, partitions=("gpu",), gpu=gpus(4, milli=250))))
    devices = plan.starts[0].allocation.nodes[0].devices
    assert [(device.index, device.milli) for device in devices] == [(0, 250), (1, 250), (2, 250), (3, 250)]


def test_memory_requests_share_a_device_as_long_as_its_memory_lasts() -> None:
    config = cluster(nodes=(gpu_node("g1", count=1),), partitions=(Partition(name="gpu", nodes=("g1",)),))
    jobs = [job(number, partitions=("gpu",), gpu=gpus(1, mib=40 * 1024)) for number in (10, 11, 12)]
    plan = plan_of(world(*jobs, config=config))
    assert sorted(shares(plan)) == [10, 11]


def test_a_device_shared_by_portion_and_by_memory_keeps_both() -> None:
    config = cluster(nodes=(gpu_node("g1", count=1),), partitions=(Partition(name="gpu", nodes=("g1",)),))
    by_portion = job(10, partitions=("gpu",), gpu=gpus(1, milli=600))
    by_memory = job(11, partitions=("gpu",), gpu=gpus(1, mib=40 * 1024))
    small = job(12, partitions=("gpu",), gpu=gpus(1, mib=30 * 1024))
    assert sorted(shares(plan_of(world(by_portion, by_memory, small, config=config)))) == [10, 12]


def test_a_whole_device_is_not_shared() -> None:
    config = cluster(nodes=(gpu_node("g1", count=1),), partitions=(Partition(name="gpu", nodes=("g1",)),))
    jobs = (job(10, partitions=("gpu",), gpu=gpus(1, milli=100)), job(11, partitions=("gpu",), gpu=gpus(1)))
    assert sorted(shares(plan_of(world(*jobs, config=config)))) == [10]


def test_lower_weights_come_first() -> None:
    config = cluster(
        nodes=(node("n1", weight=20), node("n2", weight=5)), partitions=(Partition(name="debug", nodes=("n1", "n2")),)
    )
    assert shares(plan_of(world(job(10), config=config))) == {10: [("n2", 1, 1)]}


def test_contiguous_nodes_are_neighbours() -> None:
    full = {"n2": tuple(range(8))}
    plan = plan_of(busy_world(full, job(10, min_nodes=2, num_tasks=2, contiguous=True)))
    assert [name for name, _, _ in shares(plan)[10]] == ["n3", "n4"]


def test_whole_cores_are_given_with_cr_core_and_threads_with_cr_cpu() -> None:
    twin = node("n1", cpus=8, sockets=1, cores_per_socket=4, threads_per_core=2)
    partition = (Partition(name="debug", nodes=("n1",)),)
    by_core = cluster(nodes=(twin,), partitions=partition)
    by_cpu = cluster(nodes=(twin,), partitions=partition, select_type_parameters=frozenset({"CR_CPU"}))
    assert shares(plan_of(world(job(10), config=by_core))) == {10: [("n1", 2, 2)]}
    assert shares(plan_of(world(job(10), config=by_cpu))) == {10: [("n1", 1, 1)]}


def test_one_thread_a_core() -> None:
    twin = node("n1", cpus=8, sockets=1, cores_per_socket=4, threads_per_core=2)
    config = cluster(nodes=(twin,), partitions=(Partition(name="debug", nodes=("n1",)),))
    plan = plan_of(
        world(job(10, num_tasks=2, threads_per_core=1), job(11, num_tasks=5, threads_per_core=1), config=config)
    )
    assert shares(plan) == {10: [("n1", 2, 4)]}


def test_specialised_cores_are_kept_from_jobs() -> None:
    config = cluster(nodes=(node("n1", core_spec_count=2),), partitions=(Partition(name="debug", nodes=("n1",)),))
    plan = plan_of(world(job(10, num_tasks=6), config=config))
    assert cpu_ids(plan) == [("n1", (0, 1, 2, 4, 5, 6))]


def test_memory_that_is_not_counted_does_not_keep_jobs_apart() -> None:
    config = cluster(select_type_parameters=frozenset({"CR_Core"}))
    heavy: dict[str, Any] = {"memory": Memory(MemoryPer.NODE, 16000), "req_nodes": ("n1",)}
    assert sorted(shares(plan_of(world(job(10, **heavy), job(11, **heavy), config=config)))) == [10, 11]


def test_nodes_of_an_exclusive_user_take_only_that_users_jobs() -> None:
    mine = job(10, exclusive=Exclusive.USER)
    snapshot = world(mine)
    snapshot = carried_out(snapshot, plan_of(snapshot))
    later = snapshot.apply(Delta(version=9, jobs=(job(11), job(12, uid=1002), job(13, exclusive=Exclusive.USER))))
    found = shares(plan_of(later, NOW + 1))
    assert [found[number][0][0] for number in (11, 12, 13)] == ["n1", "n2", "n1"]


def test_a_partition_that_shares_gives_each_cpu_several_times() -> None:
    partitions = (Partition(name="debug", nodes=("n1",), oversubscribe="FORCE:2"),)
    config = cluster(nodes=(node("n1"),), partitions=partitions)
    plan = plan_of(world(*(job(number, num_tasks=8) for number in (10, 11, 12)), config=config))
    assert sorted(shares(plan)) == [10, 11]


def racks() -> ClusterConfig:
    nodes = tuple(node(f"n{number}", features=(f"rack{(number + 1) // 2}",)) for number in range(1, 7))
    return cluster(nodes=nodes, partitions=(Partition(name="debug", nodes=tuple(each.name for each in nodes)),))


FEATURES = [
    ("one", "rack2", 1, ["n3"]),
    ("either", "rack3|rack2", 1, ["n3"]),
    ("all alike, the first side that fits", "[rack1|rack2]", 2, ["n1", "n2"]),
    ("so many of one kind, the others any", "rack2*1", 2, ["n1", "n3"]),
    ("so many of each", "[rack2*1&rack3*2]", 3, ["n3", "n5", "n6"]),
]


@pytest.mark.parametrize(("text", "nodes", "expected"), [row[1:] for row in FEATURES], ids=[row[0] for row in FEATURES])
def test_features(text: str, nodes: int, expected: list[str]) -> None:
    plan = plan_of(world(job(10, features=text, min_nodes=nodes, num_tasks=nodes, ntasks_given=True), config=racks()))
    assert [name for name, _, _ in shares(plan)[10]] == expected


def test_nodes_that_must_be_alike_are_not_mixed() -> None:
    plan = plan_of(world(job(10, features="[rack1|rack2]", min_nodes=3, num_tasks=3), config=racks()))
    assert not plan.starts


def test_preferred_features_come_first_and_others_will_do() -> None:
    fields: dict[str, Any] = {"features": "rack1", "prefer": "rack3", "exclusive": Exclusive.NODE}
    plan = plan_of(world(*(job(number, **fields) for number in (10, 11, 12)), config=racks()))
    assert [shares(plan)[number][0][0] for number in (10, 11, 12)] == ["n5", "n6", "n1"]


@pytest.mark.parametrize(
    ("request_", "nodes"),
    [
        pytest.param(JobRequest(ntasks=4), 1, id="tasks-alone"),
        pytest.param(JobRequest(ntasks=4, nodes_min=1, nodes_max=4), 4, id="a-range"),
        pytest.param(JobRequest(ntasks=4, nodes_min=1, nodes_max=4, use_min_nodes=True), 1, id="use-min-nodes"),
    ],
)
def test_tasks_share_a_node_unless_a_range_of_nodes_was_asked_for(request_: JobRequest, nodes: int) -> None:
    """A job of N tasks has an upper bound of N nodes, which is no wish for them."""
    plan = plan_of(world(job(10, num_tasks=4, max_nodes=4, request=request_)))
    assert [len(start.allocation.nodes) for start in plan.starts] == [nodes]
