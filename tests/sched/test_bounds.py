"""How much a cycle ends for others: enough that a cluster of any size settles in as many cycles."""

from __future__ import annotations

import pytest

from slurmbridge.cli.bench.cycles import Planned
from slurmbridge.sched.giving_way import PART_SERVED, SERVED
from slurmbridge.sim.clusters import Size, build

GANG = 64
"""Runs that end for one gang are ended all together."""


@pytest.mark.parametrize("nodes", [800, 3200])
def test_a_cycle_ends_as_large_a_part_of_a_large_cluster(nodes: int) -> None:
    size = Size(nodes=nodes, gpus_per_node=1, queues=10, pending=2 * nodes, running=nodes)
    plan = Planned(build(size, "reclaim")).full().plan
    bound = max(SERVED, nodes // PART_SERVED)
    assert bound <= len(plan.evictions) < bound + GANG
