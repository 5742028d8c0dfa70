"""What is free is the same whether it is counted on from what it was, or anew from what is held."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.room import Room, empty_room
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import NOW, carried_out, gpus, job, plan_of, world

COLUMNS = ("cpus", "memory", "milli", "mib", "whole", "jobs", "closed", "owner", "owners", "solid", "shared")


@st.composite
def jobs(draw: st.DrawFn, first: int) -> tuple[Job, ...]:
    made = []
    for number in range(draw(st.integers(1, 6))):
        where = draw(st.sampled_from(["debug", "gpu"]))
        words: dict[str, Any] = {"num_tasks": draw(st.integers(1, 5)), "partitions": (where,), "time_limit": 60}
        if where == "gpu":
            words["gpu"] = draw(st.sampled_from([gpus(1), gpus(2), gpus(1, milli=300), gpus(1, mib=10_000)]))
        words["exclusive"] = draw(st.sampled_from([Exclusive.NO, Exclusive.NO, Exclusive.NODE, Exclusive.USER]))
        made.append(job(first + number, **words))
    return tuple(made)


def anew(snapshot: Snapshot) -> Room:
    room = empty_room(snapshot.columns)
    for row, held in snapshot.on_node.items():
        room.reset_row(snapshot.columns, row, held.values())
    return room


@settings(max_examples=60, deadline=None)
@given(rounds=st.lists(st.tuples(jobs(0), st.integers(0, 3)), min_size=1, max_size=5))
def test_counting_on_and_counting_anew_agree(rounds: list[tuple[tuple[Job, ...], int]]) -> None:
    snapshot = world()
    for number, (some, every) in enumerate(rounds):
        fresh = tuple(job(100 * (number + 1) + each.job_id, **_words(each)) for each in some)
        snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=fresh))
        snapshot = carried_out(snapshot, plan_of(snapshot), NOW)
        ended = tuple(sorted(snapshot.running)[::every]) if every else ()
        snapshot = snapshot.apply(Delta(version=snapshot.version + 1, gone=ended))
        expected = anew(snapshot)
        for name in COLUMNS:
            assert (getattr(snapshot.room, name) == getattr(expected, name)).all(), name
        assert (snapshot.room.busy, snapshot.room.firm) == (expected.busy, expected.firm)


def _words(each: Job) -> dict[str, Any]:
    spec = each.spec
    return {
        "num_tasks": spec.num_tasks,
        "partitions": spec.partitions,
        "time_limit": spec.time_limit,
        "gpu": spec.gpu,
        "exclusive": spec.exclusive,
    }
