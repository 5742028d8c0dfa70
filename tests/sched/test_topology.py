"""Jobs of several nodes stay near to each other: switches in a tree, blocks with segments, whole domains for one job.

The expected nodes of the tables were told by Slurm 26.05.5: `sbatch --test-only --exclusive ARGS` on twelve (sixteen) nodes
t1, t2, ... of which some are drained.
"""

from __future__ import annotations

import itertools
from typing import Any

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
from slurmbridge.model.states import NodeFlag
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
    defaults: dict[str, Any] = {
        "exclusive": Exclusive.NODE, "partitions": ("all",), "time_limit": 60, "num_tasks": low, "min_nodes": low,
        "max_nodes": low if high is None else high, "name": "j", "work_dir": "/",
    }  # fmt: skip
    spec = JobSpec(request=request, uid=1, gid=1, user="u", group="u", account="a", **(defaults | fields))
    return Job(job_id=number, spec=spec, submit_time=since, eligible_time=since, accrue_time=since)


def world(config: ClusterConfig, *jobs: Job, drained: str = "") -> Snapshot:
    away = set(hostlist.expand(drained)) if drained else set()
    nodes = tuple(
        Node(conf=conf, flags=frozenset({NodeFlag.DRAIN}) if conf.name in away else frozenset())
        for conf in config.nodes
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
    assert (
        nodes_of(cluster("tree", TREE, 12), job(1, low, high, switches=switches, switches_wait=300), drained) == nodes
    )


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


def test_a_job_takes_more_switches_once_its_wait_is_over_and_the_planner_wakes_up_for_it() -> None:
    patient = job(1, 4, switches=1, switches_wait=300)
    snapshot = world(cluster("tree", TREE, 12), patient, drained="t[1-3,5-6,9]")
    before = plan(snapshot, NOW + 299)
    assert not before.starts and before.wake_at == NOW + 300
    assert [len(start.allocation.nodes) for start in plan(snapshot, NOW + 300).starts] == [4]


def test_the_wait_counts_from_when_the_job_might_start() -> None:
    patient = job(1, 4, since=NOW - 200, switches=1, switches_wait=300)
    snapshot = world(cluster("tree", TREE, 12), patient, drained="t[1-3,5-6,9]")
    assert not plan(snapshot, NOW + 99).starts and plan(snapshot, NOW + 100).starts


def test_jobs_that_wait_for_switches_stay_where_they_are_when_shapes_are_counted_anew() -> None:
    snapshot = world(cluster("tree", TREE, 12), job(1, 4, switches=1, switches_wait=300), drained="t[1-3,5-6,9]")
    later = snapshot.at(NOW + 300)
    many = tuple(job(number, 1, cpus_per_task=number) for number in range(2, 1100))
    anew = later.apply(Delta(version=2, jobs=many)).apply(Delta(version=3, gone=tuple(range(2, 1100))))
    assert anew.shapes is not snapshot.shapes
    assert plan(anew, NOW + 300).starts and not plan(anew, NOW + 299).starts


def test_only_jobs_that_ask_mind_switches_where_the_topology_is_optional() -> None:
    config = cluster("tree", TREE, 12, topology_param="TopoOptional")
    assert nodes_of(config, job(1, 3), "t1") == "t[2-4]"
    assert nodes_of(config, job(1, 4), "t1") == "t[2-5]"
    assert nodes_of(config, job(1, 4, switches=1, switches_wait=300), "t1") == "t[5-8]"


def test_jobs_span_no_switches_that_nothing_joins() -> None:
    apart = "SwitchName=s0 Nodes=t[1-4]\nSwitchName=s1 Nodes=t[5-8]\n"
    config = cluster("tree", apart, 12)
    assert nodes_of(config, job(1, 5)) == "" and nodes_of(config, job(1, 4), "t1") == "t[5-8]"
    assert nodes_of(config, job(1, 1, max_nodes=1), "t[1-8]") == "t9"


def test_required_nodes_are_filled_up_beside_them() -> None:
    config = cluster("tree", TREE, 12)
    assert nodes_of(config, job(1, 3, req_nodes=("t6",))) == "t[5-7]"
    assert nodes_of(config, job(1, 3, req_nodes=("t3", "t9"))) == "t[1,3,9]"
    assert nodes_of(config, job(1, 3, req_nodes=("t3", "t9"), switches=1, switches_wait=300)) == ""


def test_tasks_without_a_number_of_nodes_go_below_one_switch_if_they_can() -> None:
    wanted = job(1, 1, max_nodes=10, num_tasks=10, ntasks_given=True, exclusive=Exclusive.NO)
    assert nodes_of(cluster("tree", TREE, 12), wanted, "t[1-2]") == "t[5-7]"


@pytest.mark.parametrize("kind", ["tree", "block"])
def test_whoever_has_the_domain_for_himself_waits_until_nobody_is_there(kind: str) -> None:
    config = cluster(kind, TREE if kind == "tree" else BLOCKS, 12 if kind == "tree" else 16)
    busy = [
        job(number, 1, req_nodes=(f"t{node}",)) for number, node in enumerate(range(1, len(config.nodes) - 3, 4), 1)
    ]
    starts = plan(
        world(config, *busy, job(90, 2, exclusive=Exclusive.TOPO), job(91, 2, exclusive=Exclusive.TOPO))
    ).starts
    found = {start.job_id: [node.node for node in start.allocation.nodes] for start in starts}
    last = len(config.nodes) - 3
    assert found[90] == [f"t{last}", f"t{last + 1}"] and 91 not in found


def test_contiguous_nodes_may_lie_below_several_switches_but_not_below_more_than_wanted() -> None:
    config = cluster("tree", TREE, 12)
    assert nodes_of(config, job(1, 4, contiguous=True), "t1") == "t[2-5]"
    assert nodes_of(config, job(1, 4, contiguous=True, switches=1, switches_wait=300), "t1,t5") == "t[9-12]"
    assert nodes_of(cluster("block", BLOCKS, 16), job(1, 4, contiguous=True), "t1") == "t[13-16]"


def leaf(node: str) -> int:
    return (int(node[1:]) - 1) // 4


@st.composite
def worlds(draw: st.DrawFn, kind: str, count: int) -> tuple[Snapshot, dict[int, Job]]:
    jobs = {}
    for number in range(1, draw(st.integers(1, 8)) + 1):
        low = draw(st.integers(1, 8))
        fields: dict[str, Any] = {"exclusive": draw(st.sampled_from([Exclusive.NODE, Exclusive.NODE, Exclusive.TOPO]))}
        if kind == "tree":
            fields |= {
                "switches": draw(st.integers(0, 2)),
                "switches_wait": 300,
                "since": NOW - draw(st.sampled_from([0, 400])),
            }
        else:
            size = draw(st.sampled_from([each for each in range(1, low + 1) if low % each == 0]))
            fields |= {
                "segment": size,
                "recorded": draw(st.sampled_from([(), ("spread-segments",), ("consolidate-segments",)])),
            }
        jobs[number] = job(number, low, **fields)
    away = draw(st.sets(st.sampled_from([f"t{number}" for number in range(1, count + 1)]), max_size=count // 2))
    config = cluster(kind, TREE if kind == "tree" else BLOCKS, count)
    return world(config, *jobs.values(), drained=",".join(sorted(away))), jobs


@settings(max_examples=60, deadline=None)
@given(worlds("tree", 12))
def test_no_job_spans_more_switches_than_it_wants_before_its_wait_is_over(
    made: tuple[Snapshot, dict[int, Job]],
) -> None:
    snapshot, jobs = made
    for start in plan(snapshot).starts:
        wanted = jobs[start.job_id]
        used = {leaf(node.node) for node in start.allocation.nodes}
        over = wanted.eligible_time is not None and wanted.eligible_time + 300 <= NOW
        assert over or not wanted.spec.switches or len(used) <= wanted.spec.switches
    check_alone(snapshot, jobs)


@settings(max_examples=60, deadline=None)
@given(worlds("block", 16))
def test_no_segment_crosses_a_block(made: tuple[Snapshot, dict[int, Job]]) -> None:
    snapshot, jobs = made
    for start in plan(snapshot).starts:
        request, nodes = jobs[start.job_id].spec.request, [node.node for node in start.allocation.nodes]
        size = request.segment if request.segment and request.segment < len(nodes) else len(nodes)
        counts = np.bincount([leaf(node) // (1 if size <= 4 else 2) for node in nodes])
        assert all(count % size == 0 for count in counts.tolist())
        if size < len(nodes) and request.recorded and request.recorded[0][0] == "spread-segments":
            assert size > 4 or counts.max() == size
    check_alone(snapshot, jobs)


def check_alone(snapshot: Snapshot, jobs: dict[int, Job]) -> None:
    """Where one job has the domain for itself, nobody else is."""
    there: dict[int, set[int]] = {}
    for start in plan(snapshot).starts:
        for node in start.allocation.nodes:
            there.setdefault(leaf(node.node), set()).add(start.job_id)
    for inside in there.values():
        assert len(inside) == 1 or not any(jobs[each].spec.exclusive is Exclusive.TOPO for each in inside)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=3, max_size=3), st.integers(2, 12))
def test_a_job_gets_as_few_leaf_switches_as_any_choice_of_nodes_would_need(free: list[int], low: int) -> None:
    away = [f"t{4 * switch + place}" for switch, count in enumerate(free) for place in range(1, 5 - count)]
    starts = plan(world(cluster("tree", TREE, 12), job(1, low), drained=",".join(away))).starts
    fewest = min(
        (len(some) for size in (1, 2, 3) for some in itertools.combinations(free, size) if sum(some) >= low), default=0
    )
    assert len({leaf(node.node) for start in starts for node in start.allocation.nodes}) == fewest
