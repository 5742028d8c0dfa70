"""A waiting job asks for what its queue is charged for once it runs."""

from __future__ import annotations

from typing import Any

import pytest

from slurmbridge.model.cluster import Partition
from slurmbridge.model.request import Exclusive, Memory, MemoryPer
from slurmbridge.sched.asks import Asks
from slurmbridge.sched.market import charges
from tests.sched.small_cluster import CPU_NODES, GPU_NODES, cluster, gpus, job, plan_of, world

PARTITIONS = (
    Partition(name="debug", nodes=CPU_NODES, default=True),
    Partition(name="gpu", nodes=GPU_NODES),
    Partition(name="alone", nodes=CPU_NODES, oversubscribe="EXCLUSIVE"),
    Partition(name="any", nodes=(*CPU_NODES, *GPU_NODES)),
)
WHOLE = Exclusive.NODE


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"num_tasks": 3}, id="parts of a node"),
        pytest.param({"exclusive": WHOLE}, id="a node for itself"),
        pytest.param({"exclusive": WHOLE, "min_nodes": 3, "max_nodes": 3, "num_tasks": 3}, id="three nodes"),
        pytest.param({"partitions": ("alone",)}, id="where everybody has nodes for himself"),
        pytest.param({"exclusive": WHOLE, "memory": Memory(MemoryPer.NODE, 100)}, id="memory by node"),
        pytest.param({"exclusive": WHOLE, "partitions": ("gpu",)}, id="devices that it did not ask for"),
        pytest.param({"exclusive": WHOLE, "partitions": ("gpu",), "gpu": gpus(1)}, id="one device asked for"),
        pytest.param({"exclusive": WHOLE, "partitions": ("gpu",), "gpu": gpus(1, milli=500)}, id="part of a device"),
    ],
)
def test_what_a_job_asks_for_is_what_it_gets(fields: dict[str, Any]) -> None:
    snapshot = world(job(1, **fields), config=cluster(partitions=PARTITIONS, enforce=frozenset()))
    waiting = snapshot.waiting[1]
    [start] = plan_of(snapshot).starts
    holds = snapshot.as_if_running(waiting.job, start.allocation).holds
    [got] = charges(holds, snapshot.columns.order * 0).values()
    assert Asks(snapshot).of(waiting.job.spec, waiting.shape) == got


def test_who_may_have_one_node_or_another_for_himself_asks_for_the_smaller_one() -> None:
    snapshot = world(job(1, exclusive=WHOLE, partitions=("any",)), config=cluster(partitions=PARTITIONS))
    waiting = snapshot.waiting[1]
    assert Asks(snapshot).of(waiting.job.spec, waiting.shape) == (8, 800, 0)
