"""The bound on a start: never later than the start itself."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.model.cluster import Node
from slurmbridge.sched.columns import NodeColumns, build
from slurmbridge.sched.held import Held
from slurmbridge.sched.room import DeviceHold, Hold, Room, empty_room
from slurmbridge.sched.soonest import Least, bound
from tests.sched.small_cluster import gpu_node

NODES, SLOTS = 3, 2


def site() -> NodeColumns:
    confs = [gpu_node(f"g{number}", SLOTS, cpus=4, cores_per_socket=2, real_memory=100) for number in range(NODES)]
    return build(tuple([Node(conf=conf) for conf in confs]))


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[float, Hold]]:
    """What runs, nothing given out twice."""
    found: list[tuple[float, Hold]] = []
    for row in range(NODES):
        cpus, memory, slots = 4, 100, list(range(SLOTS))
        for _ in range(draw(st.integers(0, 3))):
            own = draw(st.integers(0, cpus)), draw(st.integers(0, memory)), draw(st.integers(0, len(slots)))
            cpus, memory = cpus - own[0], memory - own[1]
            devices = tuple(DeviceHold(slots.pop(), 1000, 1) for _ in range(own[2]))
            end = draw(st.sampled_from([5.0, 7.0, 9.0, math.inf]))
            found.append((end, Hold(row=row, cpus=own[0], memory=own[1], devices=devices)))
    return found


def room_after(columns: NodeColumns, held: list[tuple[float, Hold]], when: float) -> Room:
    room = empty_room(columns)
    for end, hold in held:
        if end > when:
            room.take(hold)
    return room


@settings(max_examples=150, deadline=None)
@given(held=runs(), floor=st.tuples(*(st.integers(0, most) for most in (4, 100, SLOTS))), count=st.integers(1, NODES))
def test_the_bound_is_when_so_many_nodes_have_all_that_each_must_give(
    held: list[tuple[float, Hold]], floor: tuple[int, int, int], count: int
) -> None:
    columns = site()
    least = Least(floor=(*floor, 0, 0, count), cpus=0, nodes=np.ones(NODES, dtype=np.bool_))
    tables = Held.of((place, end, [hold]) for place, (end, hold) in enumerate(held)).by_end(0.0)
    found = bound(least, columns, room_after(columns, held, 0.0), tables)

    def enough(when: float) -> bool:
        room = room_after(columns, held, when)
        whole = (room.milli >= 1000).sum(axis=1)
        fits = (room.cpus >= floor[0]) & (room.memory >= floor[1]) & (whole >= floor[2])
        return int(fits.sum()) >= count

    expected = next((when for when in (-math.inf, 5.0, 7.0, 9.0) if enough(max(when, 0.0))), math.inf)
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(held=runs(), cpus=st.integers(1, 4 * NODES))
def test_the_bound_waits_for_the_cpus_of_all_tasks(held: list[tuple[float, Hold]], cpus: int) -> None:
    columns = site()
    least = Least(floor=(1, 0, 0, 0, 0, 1), cpus=cpus, nodes=np.ones(NODES, dtype=np.bool_))
    tables = Held.of((place, end, [hold]) for place, (end, hold) in enumerate(held)).by_end(0.0)
    found = bound(least, columns, room_after(columns, held, 0.0), tables)
    free = {when: int(room_after(columns, held, max(when, 0.0)).cpus.sum()) for when in (-math.inf, 5.0, 7.0, 9.0)}
    expected = next((when for when, count in free.items() if count >= cpus), math.inf)
    some = next((when for when in free if (room_after(columns, held, max(when, 0.0)).cpus > 0).any()), math.inf)
    assert found == max(expected, some)
