"""A job of one node starts where a look at all nodes would have it, whatever started, was promised or was taken back before."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.model.cluster import ClusterConfig, Device, Node, Others, Partition
from slurmbridge.model.job import GpuScope, Job
from slurmbridge.model.plan import Delta
from slurmbridge.model.request import Memory, MemoryPer
from slurmbridge.sched import memo as memos
from slurmbridge.sched.cells import AMOUNTS
from slurmbridge.sched.place import Placement
from slurmbridge.sched.room import Room
from slurmbridge.sched.session import Mark, Session
from slurmbridge.sched.snapshot import Snapshot, Waiting
from tests.sched.small_cluster import NOW, accounting, cluster, gpus, job, node

MEMORIES = (
    None,
    Memory(MemoryPer.CPU, 1500),
    Memory(MemoryPer.CPU, 5000),
    Memory(MemoryPer.NODE, 9000),
    Memory(MemoryPer.NODE, 0),
    Memory(MemoryPer.GPU, 2000),
)
SHARES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"milli": 250},
    {"milli": 600},
    {"mib": 30_000},
    {"type": "a100"},
    {"type": "h100"},
)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterConfig:
    """Up to 70 nodes of a few kinds in one order or another."""
    types = draw(st.sampled_from([("a100",), ("a100", "h100"), ("",)]))
    devices = tuple(
        Device(index=slot, type=types[slot % len(types)], memory_mib=40_000 << slot % 2) for slot in range(4)
    )
    kinds: list[dict[str, Any]] = [
        {},
        {"cpus": 16, "cores_per_socket": 4, "threads_per_core": 2, "features": ("big",)},
        {"devices": devices, "real_memory": 64_000},
        {"devices": devices[:1], "weight": 5},
        {"core_spec_count": 1, "sockets": 1, "cores_per_socket": 8},
    ]
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=5))
    count = draw(st.sampled_from([3, 8, 70]))
    nodes = tuple(node(f"n{number}", **chosen[number * 7 % len(chosen)]) for number in range(count))
    names = tuple(each.name for each in nodes)
    return cluster(
        nodes=nodes,
        partitions=(Partition(name="debug", nodes=names, default=True), Partition(name="gpu", nodes=names[::2])),
        select_type_parameters=frozenset({draw(st.sampled_from(["CR_Core_Memory", "CR_CPU_Memory", "CR_Core"]))}),
        enforce=frozenset(),
    )


@st.composite
def asks(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {
        "partitions": (draw(st.sampled_from(["debug", "gpu"])),),
        "num_tasks": draw(st.integers(1, 4)),
        "cpus_per_task": draw(st.integers(1, 3)),
        "memory": draw(st.sampled_from(MEMORIES)),
        "min_nodes": 1,
        "max_nodes": 1,
        "ntasks_given": True,
        "time_limit": draw(st.sampled_from([1, 10, 60, 600])),
    }
    if draw(st.booleans()):
        scope = draw(st.sampled_from([GpuScope.NODE, GpuScope.JOB, GpuScope.TASK]))
        found["gpu"] = gpus(draw(st.integers(1, 3)), scope, **draw(st.sampled_from(SHARES)))
    odd: dict[str, dict[str, Any]] = {
        "tasks_per_node": {"ntasks_per_node": 2},
        "threads": {"threads_per_core": 1},
        "any CPU": {"overcommit": True},
    }
    found |= odd.get(draw(st.sampled_from(["", "", "", *odd])), {})
    if draw(st.sampled_from([False, False, True])):
        found["features"] = draw(st.sampled_from(["big", "cpu"]))
    return found


Step = tuple[str, int]
STEPS = st.tuples(st.sampled_from(["start"] * 12 + ["promise", "mark", "restore"]), st.integers(0, 11))


def looked_for(session: Session, each: Waiting) -> Placement | None:
    """By a look at all nodes."""
    view = session.snapshot.partitions[each.job.spec.partitions[0]]
    length = session.fate(each, view).length
    room, limits = session.horizon.room, session.horizon.limits(length)
    return session.finder.place(each.job, each.shape, view, room, limits, (), length, None)


def rooms(session: Session) -> list[dict[str, Any]]:
    """Everything that a session knows of free space."""
    horizon = session.horizon
    found = [
        horizon.room,
        *(room for _, room in horizon.promised_rooms(1e9)),
        *(room for _, room in horizon.past_promises()),
    ]
    return [{name: getattr(room, name).tolist() for name in AMOUNTS} | {"busy": list(room.busy)} for room in found]


def least(session: Session, length: float) -> Room:
    """Of the room now and those at the promised starts that a run would meet."""
    room = session.horizon.room
    for _, other in session.horizon.promised_rooms(length):
        room = room.tightened(other)
    return room


def begun(queue: list[Job], config: ClusterConfig) -> tuple[Session, list[Waiting]]:
    nodes = tuple(
        Node(conf=conf, others=Others(cpus=1, memory=3000, devices=(0,)) if number % 5 == 3 else Others())
        for number, conf in enumerate(config.nodes)
    )
    snapshot = Snapshot.empty().apply(
        Delta(version=1, config=config, accounting=accounting(), nodes=nodes, jobs=tuple(queue))
    )
    memo = memos.refreshed(memos.Memo.empty(), snapshot, config)
    return Session(snapshot, config, NOW, memo), list(snapshot.waiting.values())


@settings(max_examples=60, deadline=None)
@given(config=clusters(), asked=st.lists(asks(), min_size=1, max_size=12), steps=st.lists(STEPS, max_size=60))
def test_jobs_of_one_node_start_where_a_look_at_all_nodes_has_them(
    config: ClusterConfig, asked: list[dict[str, Any]], steps: list[Step]
) -> None:
    session, waiting = begun([job(10 + number, **fields) for number, fields in enumerate(asked)], config)
    mark: Mark | None = None
    before: list[dict[str, Any]] = []
    for what, number in steps:
        each = waiting[number % len(waiting)]
        view = session.snapshot.partitions[each.job.spec.partitions[0]]
        if what == "start":
            expected, found = looked_for(session, each), session.attempt(each, view)
            assert isinstance(found, Placement) == (expected is not None)
            if isinstance(found, Placement):
                assert expected is not None and found.allocation == expected.allocation
                assert [_plain(hold) for hold in found.holds] == [_plain(hold) for hold in expected.holds]
                session.start(each, view, found)
        elif what == "promise":
            session.promise(each, view)
        elif what == "mark":
            mark = session.mark()
            before = rooms(session)
        elif what == "restore" and mark is not None:
            session.restore(mark)
            assert rooms(session) == before
        for length in (60.0, 600.0, 1e9):
            limits, expected_limits = session.horizon.limits(length), least(session, length)
            for name in AMOUNTS:
                assert (getattr(limits, name) == getattr(expected_limits, name)).all(), name


def _plain(hold: Any) -> tuple[Any, ...]:
    return tuple(getattr(hold, name) for name in hold.__struct_fields__)
