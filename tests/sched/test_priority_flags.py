"""PriorityFlags: factors that are no parts of the greatest, sizes by time, priorities that only grow (slurm.conf(5))."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slurmbridge.model.accounts import Accounting, Assoc, Qos
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import Job
from tests.sched.small_cluster import cluster, gpus, job, node, plan_of, world

NODES = tuple(node(f"n{number}") for number in (1, 2, 3, 4))
NAMES = tuple(each.name for each in NODES)
WEIGHTS = ("age", "assoc", "fairshare", "job_size", "partition", "qos")
RECORDS = Accounting(
    qos=(Qos(qos_id=1, name="normal", priority=20), Qos(qos_id=2, name="high", priority=50)),
    assocs=(Assoc(assoc_id=1, account="root"), Assoc(assoc_id=3, account="root", user="alice", priority=7)),
)


def priority(waiting: Job, *flags: str, records: Accounting = RECORDS, **fields: Any) -> int:
    """With one weight, of one job."""
    partitions = (
        Partition(name="debug", nodes=NAMES, priority_job_factor=30),
        Partition(name="other", nodes=NAMES, priority_job_factor=60),
    )
    none: dict[str, Any] = {f"priority_weight_{name}": 0 for name in WEIGHTS}
    config: ClusterConfig = cluster(nodes=NODES, partitions=partitions)
    config = replace(config, **{**none, "priority_flags": frozenset(flags), **fields})
    return dict(plan_of(world(waiting, config=config, records=records)).priorities).get(
        waiting.job_id, waiting.priority
    )


@pytest.mark.parametrize(
    ("weight", "flag", "part", "plain"),
    [
        ("qos", "NO_NORMAL_QOS", 400, 20_000),
        ("assoc", "NO_NORMAL_ASSOC", 1000, 7000),
        ("partition", "NO_NORMAL_PART", 500, 30_000),
    ],
)
def test_a_factor_is_its_value_or_its_part_of_the_greatest(weight: str, flag: str, part: int, plain: int) -> None:
    fields: dict[str, Any] = {f"priority_weight_{weight}": 1000}
    assert priority(job(10), **fields) == part
    assert priority(job(10), flag, **fields) == priority(job(10), "NO_NORMAL_ALL", **fields) == plain
    assert priority(job(10), "NO_NORMAL_TRES", **fields) == part


def test_tres_count_by_themselves_or_as_part_of_the_partition() -> None:
    waiting = job(10, num_tasks=8, req_tres=(("cpu", 8), ("node", 1)))
    cpus = sum(each.cpus for each in NODES)
    assert priority(waiting, priority_weight_tres="CPU=1000") == 8000 // cpus
    assert priority(waiting, "NO_NORMAL_TRES", priority_weight_tres="CPU=1000") == 8000
    device = job(10, gpu=gpus(2), req_tres=(("cpu", 1), ("gres/gpu", 2000)))
    assert priority(device, "NO_NORMAL_ALL", priority_weight_tres="GRES/gpu=10") == 20


def test_the_size_of_a_job_may_be_set_against_its_time() -> None:
    cpus = sum(each.cpus for each in NODES)
    fields: dict[str, Any] = {"priority_weight_job_size": 1_000_000}
    for minutes in (1, 10):
        waiting = job(10, num_tasks=4, min_nodes=1, time_limit=minutes)
        size = max(4, cpus // 4)  # at least an average node
        assert priority(waiting, "SMALL_RELATIVE_TO_TIME", **fields) == 1_000_000 * size // cpus // minutes
    small = priority(job(10, time_limit=10), "SMALL_RELATIVE_TO_TIME", priority_favor_small=True, **fields)
    assert small == 975_000


def test_a_priority_only_grows_with_INCR_ONLY() -> None:
    before = job(10, record={"priority": 5000})
    assert priority(before, priority_weight_qos=1000) == 400
    assert priority(before, "INCR_ONLY", priority_weight_qos=1000) == 5000
    assert priority(before, "INCR_ONLY", priority_weight_qos=100_000) == 40_000
