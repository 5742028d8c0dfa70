"""What is kept from cycle to cycle never changes an answer: the same plan comes of an empty memo, whatever changed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slurmbridge.cli.bench.cycles import Planned
from slurmbridge.model.cluster import ClusterConfig, Node, Partition, Pool, Scheduling
from slurmbridge.model.job import GpuScope, Job
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.request import Exclusive, Memory, MemoryPer
from slurmbridge.model.states import NodeFlag
from slurmbridge.model.topology import Topology, TopologyUnit
from slurmbridge.sched.choose import choose
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.fit import capacity, rules_of
from slurmbridge.sched.misfits import fits_on_more
from slurmbridge.sched.places import find
from slurmbridge.sched.reasons import NODES_DOWN
from slurmbridge.sched.room import empty_room
from slurmbridge.sched.shape import ShapeTable
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sim.clusters import SCENARIOS, Size, build
from tests.sched.small_cluster import NOW, carried_out, cluster, gpu_node, gpus, job, node, world

SIZE = Size(nodes=12, gpus_per_node=8, queues=8, pending=80, running=40)


class Twice(Planned):
    """Every cycle once more with an empty memo. `retold`: so many runs are told anew each time, with other limits."""

    retold = 0

    def plan(self) -> Plan:
        expected, _ = plan_cycle(self.snapshot, self.snapshot.config, self.now, Memo.empty())
        found, self.memo = plan_cycle(self.snapshot, self.snapshot.config, self.now, self.memo)
        assert found == expected
        return found

    def _delta(self, jobs: Sequence[Job], gone: Sequence[int] = (), nodes: Sequence[Node] = ()) -> Delta:
        known = {job.job_id for job in jobs}.union(gone)
        runs = [each.job for job_id, each in sorted(self.snapshot.running.items()) if job_id not in known]
        again = []
        for run in self._draw.sample(runs, min(self.retold, len(runs))):
            limit = self._draw.choice((5, 60, 2880))
            end = None if run.start_time is None else run.start_time + 60.0 * limit
            again.append(replace(run, spec=replace(run.spec, time_limit=limit), time_limit_end=end))
        return super()._delta([*jobs, *again], gone, nodes)

    def configured(self, **changes: object) -> None:
        """Another configuration comes."""
        config = replace(self.snapshot.config, **changes)
        self.snapshot = self.snapshot.apply(Delta(version=self.snapshot.version + 1, config=config))
        self.plan()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_plan_is_the_same_with_an_empty_memo_while_jobs_and_nodes_change(scenario: str) -> None:
    planned = Twice(build(SIZE, scenario))
    planned.full()
    for _ in range(4):
        planned.changed(0.1)
        planned.settle(1)


CONFIGURED: list[dict[str, object]] = [
    {"accounting_tres": ("gres/gpu", "gres/gpu:h100")},  # other TRES of whoever starts
    {"select_type_parameters": frozenset({"CR_CORE"})},  # other amounts
    {"select_type_parameters": frozenset({"CR_CPU_MEMORY"}), "preempt_type": "preempt/none"},
]
STEPS = st.lists(
    st.tuples(st.sampled_from([0.02, 0.1, 0.4]), st.sampled_from([0, 0, 3]), st.none() | st.sampled_from(CONFIGURED)),
    max_size=5,
)


@settings(max_examples=40)
@given(scenario=st.sampled_from(SCENARIOS), seed=st.integers(1, 10_000), steps=STEPS)
def test_a_plan_is_the_same_with_an_empty_memo_whatever_world_changes_how(
    scenario: str, seed: int, steps: list[tuple[float, int, dict[str, object] | None]]
) -> None:
    planned = Twice(build(replace(SIZE, running=seed % 50), scenario, seed))
    planned.full()
    for part, retold, configured in steps:
        planned.retold = retold
        planned.changed(part)
        if configured is not None:
            planned.configured(**configured)
        planned.settle(1)


def told(snapshot: Snapshot, memo: Memo) -> tuple[dict[int, tuple[str, str]], Memo]:
    plan, memo = plan_cycle(snapshot, snapshot.config, NOW, memo)
    return {each.job_id: (each.reason, each.detail) for each in plan.verdicts}, memo


def states(snapshot: Snapshot, *names: str, drained: bool) -> Delta:
    flags = frozenset({NodeFlag.DRAIN}) if drained else frozenset[NodeFlag]()
    nodes = tuple(Node(conf=conf, flags=flags) for conf in snapshot.config.nodes if conf.name in names)
    return Delta(version=snapshot.version + 1, nodes=nodes)


def test_who_waits_for_nodes_that_are_drained_hears_it_when_the_last_one_goes_and_when_one_comes_back() -> None:
    whole: dict[str, Any] = {"num_tasks": 8, "max_nodes": 1, "partitions": ("small",), "time_limit": 9}
    runs = job(1, **(whole | {"partitions": ("debug",), "req_nodes": ("n1",)}))
    snapshot = world(runs, job(2, **whole))
    plan, memo = plan_cycle(snapshot, snapshot.config, NOW, Memo.empty())
    snapshot, waits = carried_out(snapshot, plan), (job(3, **whole), job(4, **whole, name="b"))
    heard: list[dict[int, str]] = []
    for names, drained in ((("n1",), True), (("n2",), True), (("n2",), False)):
        snapshot = snapshot.apply(states(snapshot, *names, drained=drained))
        snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=waits))
        found, memo = told(snapshot, memo)
        heard.append({job_id: detail for job_id, (_, detail) in found.items()})
    assert heard == [{3: "", 4: ""}, {3: NODES_DOWN, 4: NODES_DOWN}, {3: "", 4: ""}]


def test_jobs_are_looked_at_in_the_pool_to_which_their_partition_moved() -> None:
    pools = Pool(name="first", nodes=("n1", "n2")), Pool(name="second", nodes=("n3", "n4"))
    before = Partition(name="debug", nodes=("n1", "n2"), default=True)
    config = cluster(pools=pools, partitions=(before,), enforce=frozenset(), scheduling=Scheduling(order="fair"))
    snapshot = world(*(job(number, num_tasks=8, max_nodes=1) for number in (1, 2, 3)), config=config)
    plan, memo = plan_cycle(snapshot, config, NOW, Memo.empty())
    snapshot = carried_out(snapshot, plan)
    moved = replace(before, nodes=("n3", "n4"))
    snapshot = snapshot.apply(Delta(version=snapshot.version + 1, partitions=(moved,)))
    plan, memo = plan_cycle(snapshot, config, NOW + 1, memo)
    assert [each.job_id for each in plan.starts] == [3]


NODES = (
    node("n0", cpus=4, cores_per_socket=2),
    node("n1", real_memory=4000),
    node("n2", features=("rack2",)),
    gpu_node("n3"),
    gpu_node("n4", 2, weight=5),
    node("n5", cpus=16, cores_per_socket=8, weight=90),
)
NAMES = tuple(each.name for each in NODES)


def tree(*leaves: tuple[str, ...]) -> Topology:
    units = [TopologyUnit(name=f"leaf{number}", nodes=leaf) for number, leaf in enumerate(leaves)]
    core = TopologyUnit(name="core", level=1, children=tuple(unit.name for unit in units), nodes=NAMES)
    return Topology(kind="tree", cluster_default=True, units=(*units, core))


SITES = [
    ClusterConfig(nodes=NODES, partitions=(Partition(name="all", nodes=NAMES),), topologies=topologies, topology=kind)
    for kind, topologies in (
        ("topology/default", ()),
        ("topology/tree", (tree(NAMES[:3], NAMES[3:]),)),
        ("topology/tree", (tree(NAMES[:2], NAMES[2:3]),)),  # some nodes are on no switch
    )
]


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, Any]:
    tasks = draw(st.integers(1, 12))
    low = draw(st.integers(1, min(tasks, 4)))
    devices = st.builds(
        gpus, st.integers(1, 4), st.sampled_from(list(GpuScope)), milli=st.sampled_from([1000, 250]), mib=st.just(0)
    )
    return {
        "partitions": ("all",),
        "num_tasks": tasks,
        "ntasks_given": draw(st.booleans()),
        "ntasks_per_node": draw(st.sampled_from([0, 0, 1, 3])),
        "min_nodes": low,
        "max_nodes": draw(st.sampled_from([None, low, 4])),
        "node_counts": draw(st.sampled_from([(), (), (2, 4)])),
        "cpus_per_task": draw(st.integers(1, 5)),
        "memory": draw(st.sampled_from([None, Memory(MemoryPer.CPU, 1500), Memory(MemoryPer.NODE, 5000)])),
        "exclusive": draw(st.sampled_from([Exclusive.NO, Exclusive.NODE])),
        "contiguous": draw(st.sampled_from([False, False, True])),
        "req_nodes": draw(st.sampled_from([(), (), ("n1",)])),
        "features": draw(st.sampled_from([None, None, "rack1", "rack2*1"])),
        "overcommit": draw(st.sampled_from([False, False, True])),
        "gpu": draw(st.none() | devices),
    }


@given(config=st.sampled_from(SITES), wish=wishes(), few=st.sets(st.integers(0, 5)), more=st.sets(st.integers(0, 5)))
def test_shapes_that_are_said_to_fit_on_more_nodes_do(
    config: ClusterConfig, wish: dict[str, Any], few: set[int], more: set[int]
) -> None:
    snapshot = world(config=config)
    columns, view, shape = snapshot.columns, snapshot.partitions["all"], ShapeTable().of(job(1, **wish).spec)
    site = find(shape, view, columns)
    if not fits_on_more(shape, view, site):
        return
    empty, rules = empty_room(columns), rules_of(config)

    def fits(rows: set[int]) -> bool:
        nodes = site.alternatives[0].nodes.copy()
        nodes[[row for row in range(len(NODES)) if row not in rows]] = False
        free = capacity(shape, columns, empty, nodes, rules)
        return choose(shape, columns, free, site.required, view.bounds, empty.cpus, view.near) is not None

    assert fits(few | more) or not fits(few)
