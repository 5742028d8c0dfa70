"""Generated clusters are possible ones: nothing is held twice, shapes are few, and the plan of a cycle is counted."""

from __future__ import annotations

import json
import resource

import pytest
from click.testing import CliRunner

from slurmbridge.cli.main import main
from slurmbridge.sched.shape import key_of
from slurmbridge.sim.clusters import SCENARIOS, SHAPES, Size, build

SIZE = Size(nodes=24, gpus_per_node=8, queues=12, pending=150, running=80)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_generated_cluster_is_one_that_could_be(scenario: str) -> None:
    world = build(SIZE, scenario)
    assert len(world.config.nodes) == 24 and len(world.pending) == 150
    held: set[tuple[str, int]] = set()
    cpus: set[tuple[str, int]] = set()
    for job in world.running:
        assert job.allocation is not None
        for share in job.allocation.nodes:
            devices = {(share.node, device.index) for device in share.devices}
            numbers = {(share.node, cpu) for cpu in share.cpu_ids}
            assert not held & devices and not cpus & numbers and len(numbers) == share.cpus
            held |= devices
            cpus |= numbers
    ids = [job.job_id for job in (*world.running, *world.pending, *world.more)]
    assert len(ids) == len(set(ids))
    assert len({key_of(job.spec) for job in (*world.pending, *world.more)}) <= SHAPES
    assert {job.spec.assoc_id for job in world.pending} <= {assoc.assoc_id for assoc in world.accounting.assocs}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_size_gives_the_same_cluster(scenario: str) -> None:
    assert build(SIZE, scenario) == build(SIZE, scenario)


def test_the_queues_are_a_tree_of_three_levels_with_quotas() -> None:
    accounting = build(SIZE, "fair").accounting
    accounts = [assoc for assoc in accounting.assocs if not assoc.user]
    parents = {assoc.account: assoc.parent for assoc in accounts}
    leaves = [assoc for assoc in accounts if assoc.account.startswith("project")]
    assert len(leaves) == 12 and all(parents[parents[leaf.account]] == "root" for leaf in leaves)
    assert all(leaf.quotas for leaf in leaves)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_benchmark_prints_the_keys_that_scripts_read(scenario: str) -> None:
    argv = [
        "bench",
        "sched",
        "--nodes",
        "12",
        "--gpus-per-node",
        "4",
        "--queues",
        "6",
        "--pending",
        "60",
        "--running",
        "30",
    ]
    answer = CliRunner().invoke(main, [*argv, "--scenario", scenario, "--cycles", "1", "--json"])
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.output)
    wanted = {
        "scenario", "full_cycle_s", "steady_cycle_s", "peak_rss_mib", "starts", "evictions", "moves", "reservations",
    }  # fmt: skip
    assert wanted <= set(found) and found["scenario"] == scenario
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert 10 < found["peak_rss_mib"] < mine, "of a planner's process, which has less loaded than this one"
