"""What others than our jobs hold of a node is not there for jobs, and is there again when they are gone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.model.cluster import Others
from slurmbridge.model.plan import Delta
from slurmbridge.model.request import Exclusive, Memory, MemoryPer
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import (
    CPU_NODES,
    GPU_NODES,
    NOW,
    carried_out,
    cluster,
    gpus,
    job,
    node_state,
    plan_of,
    reasons,
    shares,
    world,
)


def told(snapshot: Snapshot, **others: Others) -> Snapshot:
    nodes = tuple(node_state(name, others=amounts) for name, amounts in others.items())
    return snapshot.apply(Delta(version=snapshot.version + 1, nodes=nodes))


def test_cpus_of_others_are_not_given_out_and_come_back() -> None:
    busy = told(world(job(1, num_tasks=8, min_nodes=1, max_nodes=1)), **dict.fromkeys(CPU_NODES, Others(cpus=1)))
    plan = plan_of(busy)
    assert not plan.starts and reasons(plan) == {1: "Resources"}
    assert shares(plan_of(told(busy, n3=Others()))) == {1: [("n3", 8, 8)]}


def test_memory_of_others_is_not_given_out() -> None:
    whole = Memory(MemoryPer.NODE, 16000)
    busy = told(world(job(1, memory=whole)), **dict.fromkeys(CPU_NODES[:3], Others(memory=1)))
    assert shares(plan_of(busy)) == {1: [("n4", 1, 1)]}


def test_devices_of_others_are_not_given_out() -> None:
    waiting = job(1, partitions=("gpu",), gpu=gpus(3))
    busy = told(world(waiting), g1=Others(devices=(0, 3)), g2=Others(devices=(1,)))
    plan = plan_of(busy)
    [start] = plan.starts
    assert [(n.node, [d.index for d in n.devices]) for n in start.allocation.nodes] == [("g2", [0, 2, 3])]


def test_no_part_of_a_device_that_another_has_is_given_out() -> None:
    waiting = job(1, partitions=("gpu",), gpu=gpus(1, milli=500))
    busy = told(world(waiting), **dict.fromkeys(GPU_NODES, Others(devices=(0, 1, 2, 3))))
    assert not plan_of(busy).starts


def test_a_job_that_has_its_node_alone_gets_what_others_leave_of_it() -> None:
    waiting = job(1, exclusive=Exclusive.NODE, partitions=("gpu",), memory=Memory(MemoryPer.NODE, 0))
    busy = told(world(waiting), g1=Others(cpus=2, memory=1000, devices=(3,)))
    [share] = plan_of(busy).starts[0].allocation.nodes
    assert (share.node, share.cpus, share.memory_mib, [d.index for d in share.devices]) == ("g1", 14, 63000, [0, 1, 2])


def test_a_job_that_wants_all_memory_waits_for_devices_of_others() -> None:
    waiting = job(1, partitions=("gpu",), gpu=gpus(1), memory=Memory(MemoryPer.NODE, 0))
    busy = told(world(waiting), **dict.fromkeys(GPU_NODES, Others(memory=1000, devices=(0, 1, 2, 3))))
    assert reasons(plan_of(busy)) == {1: "Resources"}
    [share] = plan_of(told(busy, g1=Others(memory=1000))).starts[0].allocation.nodes
    assert (share.node, share.memory_mib) == ("g1", 63000)


def test_memory_of_others_hinders_nobody_where_memory_is_not_given_out() -> None:
    config = cluster(select_type_parameters=frozenset({"CR_Core"}))
    waiting = job(1, memory=Memory(MemoryPer.NODE, 0))
    busy = told(world(waiting, config=config), **dict.fromkeys(CPU_NODES, Others(memory=1)))
    assert shares(plan_of(busy)) == {1: [("n1", 1, 1)]}


def test_all_memory_is_none_where_others_have_more_than_jobs_could() -> None:
    waiting = job(1, memory=Memory(MemoryPer.NODE, 0), req_nodes=("n1",))
    for start in plan_of(told(world(waiting), n1=Others(memory=16001))).starts:
        assert [share.memory_mib for share in start.allocation.nodes] == [0]


def test_what_others_take_while_jobs_run_is_taken_from_what_is_free() -> None:
    first = world(job(1, num_tasks=6, min_nodes=1, max_nodes=1, req_nodes=("n1",)))
    running = carried_out(first, plan_of(first))
    busy = told(running, n1=Others(cpus=2))
    waiting = job(2, req_nodes=("n1",))
    both = busy.apply(Delta(version=9, jobs=(waiting,)))
    assert not plan_of(both).starts
    assert plan_of(told(both, n1=Others(cpus=1))).starts


@pytest.mark.parametrize("afterwards", [True, False], ids=["told later", "told at once"])
@settings(max_examples=30, deadline=None)
@given(
    cpus=st.lists(st.integers(0, 8), min_size=4, max_size=4),
    tasks=st.lists(st.integers(1, 8), min_size=1, max_size=8),
)
def test_jobs_and_others_together_never_have_more_than_there_is(
    afterwards: bool, cpus: list[int], tasks: list[int]
) -> None:
    others = {name: Others(cpus=count) for name, count in zip(CPU_NODES, cpus, strict=True)}
    jobs = [job(number, num_tasks=count) for number, count in enumerate(tasks, 1)]
    if afterwards:
        snapshot = told(world(*jobs), **others)
    else:
        snapshot = world(*jobs, nodes=tuple(node_state(name, others=amounts) for name, amounts in others.items()))
    held = dict.fromkeys(CPU_NODES, 0)
    for start in plan_of(snapshot, NOW).starts:
        for share in start.allocation.nodes:
            held[share.node] += share.cpus
    assert all(held[name] + others[name].cpus <= 8 for name in CPU_NODES)
