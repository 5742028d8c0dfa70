"""Jobs of several nodes stay near to each other: switches in a tree, blocks with segments, whole domains for one job.

The expected nodes of the tables were told by Slurm 26.05.5: `sbatch --test-only --exclusive ARGS` on twelve (sixteen) nodes
t1, t2, ... of which some are drained.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.lang import hostlist
from slurmbridge.lang.topology_conf import read_topologies
from slurmbridge.model.cluster import ClusterConfig, Node, NodeConf, Partition
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.request import Exclusive, JobRequest
from slurmbridge.model.states import JobState, NodeFlag
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.snapshot import Snapshot

NOW = 1_800_000_000.0
TREE = "SwitchName=s0 Nodes=t[1-4]\nSwitchName=s1 Nodes=t[5-8]\nSwitchName=s2 Nodes=t[9-12]\nSwitchName=top Switches=s[0-2]\n"
BLOCKS = "BlockName=b1 Nodes=t[1-4]\nBlockName=b2 Nodes=t[5-8]\nBlockName=b3 Nodes=t[9-12]\nBlockName=b4 Nodes=t[13-16]\nBlockSizes=4,8\n"  # fmt: skip


def cluster(kind: str, conf: str, count: int, **fields: Any) -> ClusterConfig:
    names = tuple(f"t{number}" for number in range(1, count + 1))
    topologies, _ = read_topologies({"/e/topology.conf": conf}, "/e/slurm.conf", f"topology/{kind}", names)
    return ClusterConfig(
        nodes=tuple(NodeConf(name=name, cpus=4, cores_per_socket=4, real_memory=1000) for name in names),
        partitions=(Partition(name="all", nodes=names, default=True),),
        topologies=topologies, topology=f"topology/{kind}", **fields,
    )  # fmt: skip


def job(number: int, low: int, high: int | None = None, *, since: float = NOW, **fields: Any) -> Job:
    """A job of whole nodes, one task on each."""
    request = JobRequest(
        nodes_max=high, segment=fields.pop("segment", None),
        recorded=tuple((name, "") for name in fields.pop("recorded", ())),
    )  # fmt: skip
    defaults: dict[str, Any] = {"exclusive": Exclusive.NODE, "partitions": ("all",), "time_limit": 60}
    spec = JobSpec(
        request=request, uid=1, gid=1, user="u", group="u", account="a", name="j", work_dir="/", min_nodes=low,
        max_nodes=low if high is None else high, num_tasks=low, **(defaults | fields),
    )  # fmt: skip
    return Job(job_id=number, spec=spec, submit_time=since, eligible_time=since, accrue_time=since)


def world(config: ClusterConfig, *jobs: Job, drained: str = "") -> Snapshot:
    away = set(hostlist.expand(drained)) if drained else set()
    nodes = tuple(
        Node(conf=conf, flags=frozenset({NodeFlag.DRAIN}) if conf.name in away else frozenset()) for conf in config.nodes
    )
    return Snapshot.empty().apply(Delta(version=1, config=config, nodes=nodes, partitions=config.partitions, jobs=jobs))


def plan(snapshot: Snapshot, now: float = NOW) -> Plan:
    return plan_cycle(snapshot, snapshot.config, now, Memo.empty())[0]


def nodes_of(config: ClusterConfig, wanted: Job, drained: str = "") -> str:
    starts = plan(world(config, wanted, drained=drained)).starts
    return hostlist.compress([node.node for node in starts[0].allocation.nodes]) if starts else ""


@pytest.mark.parametrize(
    ("drained", "low", "high", "switches", "nodes"),
    [
        ("", 4, None, 0, "t[1-4]"), ("", 5, None, 0, "t[1-5]"), ("", 9, None, 0, "t[1-9]"), ("", 12, None, 0, "t[1-12]"),
        ("", 2, 3, 0, "t[1-3]"), ("", 2, 6, 0, "t[1-6]"), ("", 5, None, 1, ""), ("", 5, None, 2, "t[1-5]"),
        ("t1,t2,t5", 2, None, 0, "t[3-4]"), ("t1,t2,t5", 3, None, 0, "t[6-8]"), ("t1,t2,t5", 4, None, 0, "t[9-12]"),
        ("t1,t2,t5", 5, None, 0, "t[3,9-12]"), ("t1,t2,t5", 6, None, 0, "t[3-4,9-12]"),
        ("t1,t2,t5", 7, None, 0, "t[6-12]"), ("t1,t2,t5", 8, None, 0, "t[3,6-12]"), ("t1,t2,t5", 2, 3, 0, "t[6-8]"),
        ("t1,t2,t5", 2, 8, 0, "t[3,6-12]"), ("t1,t2,t5", 4, None, 1, "t[9-12]"),
        ("t[1-3,5-6,9]", 2, None, 0, "t[7-8]"), ("t[1-3,5-6,9]", 4, None, 0, "t[4,10-12]"),
        ("t[1-3,5-6,9]", 5, None, 0, "t[7-8,10-12]"), ("t[1-3,5-6,9]", 2, 4, 0, "t[4,10-12]"),
        ("t[1-3,5-6,9]", 4, None, 1, ""), ("t[1-3,5-6,9]", 4, None, 2, "t[4,10-12]"),
    ],
)  # fmt: skip
def test_below_a_tree_a_job_gets_the_nodes_that_slurm_gives_it(
    drained: str, low: int, high: int | None, switches: int, nodes: str
) -> None:
    assert nodes_of(cluster("tree", TREE, 12), job(1, low, high, switches=switches, switches_wait=300), drained) == nodes


_THIN = "t[1-2,5,13]"
_THINNER = "t[1-3,5-6,9-11,13]"


@pytest.mark.parametrize(
    ("drained", "low", "segment", "more", "nodes"),
    [
        ("", 2, None, (), "t[13-14]"), ("", 4, None, (), "t[13-16]"), ("", 5, None, (), "t[9,13-16]"),
        ("", 9, None, (), "t[5,9-16]"), ("", 16, None, (), "t[1-16]"), ("", 4, 2, (), "t[13-16]"),
        ("", 8, 4, (), "t[9-16]"), ("", 12, 4, (), "t[5-16]"), ("", 6, 3, (), "t[9-11,13-15]"),
        ("", 9, 3, (), "t[5-7,9-11,13-15]"), ("", 8, 2, (), "t[9-16]"), ("", 16, 8, (), "t[1-16]"),
        ("", 8, 2, ("spread-segments",), "t[1-2,5-6,9-10,13-14]"), ("", 4, 2, ("spread-segments",), "t[9-10,13-14]"),
        ("", 8, 1, ("spread-segments",), ""), ("", 4, 1, ("spread-segments",), "t[1,5,9,13]"),
        ("", 6, 2, ("consolidate-segments",), "t[9-10,13-16]"), ("", 5, 5, (), "t[9,13-16]"),
        ("", 10, 5, (), "t[1,5-9,13-16]"),
        (_THIN, 2, None, (), "t[3-4]"), (_THIN, 3, None, (), "t[14-16]"), (_THIN, 4, None, (), "t[9-12]"),
        (_THIN, 5, None, (), "t[3-4,6-8]"), (_THIN, 6, None, (), "t[9-12,14-15]"), (_THIN, 7, None, (), "t[9-12,14-16]"),
        (_THIN, 8, None, (), ""), (_THIN, 9, None, (), "t[3-4,9-12,14-16]"), (_THIN, 12, None, (), "t[3-4,6-12,14-16]"),
        (_THIN, 4, 2, (), "t[3-4,14-15]"), (_THIN, 6, 3, (), "t[6-8,14-16]"), (_THIN, 8, 4, (), ""),
        (_THIN, 9, 3, (), "t[6-11,14-16]"), (_THIN, 12, 3, (), ""), (_THIN, 10, 2, (), "t[3-4,6-7,9-12,14-15]"),
        (_THIN, 12, 2, (), ""), (_THIN, 4, 1, (), "t[3-4,14-15]"), (_THIN, 8, 2, (), "t[3-4,6-7,9-10,14-15]"),
        (_THIN, 8, 2, ("consolidate-segments",), ""), (_THIN, 6, 2, ("spread-segments",), "t[3-4,6-7,14-15]"),
        (_THINNER, 2, None, (), "t[7-8]"), (_THINNER, 4, None, (), ""), (_THINNER, 5, None, (), ""),
        (_THINNER, 4, 2, (), "t[7-8,14-15]"), (_THINNER, 4, 1, (), "t[4,7-8,12]"), (_THINNER, 6, 2, (), ""),
        (_THINNER, 3, 1, (), "t[4,7,12]"),
    ],
)  # fmt: skip
def test_in_blocks_a_job_gets_the_nodes_that_slurm_gives_it(
    drained: str, low: int, segment: int | None, more: tuple[str, ...], nodes: str
) -> None:
    assert nodes_of(cluster("block", BLOCKS, 16), job(1, low, segment=segment, recorded=more), drained) == nodes
