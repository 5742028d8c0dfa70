"""Which CPUs a job gets is what one unit at a time gives: see `cpus.pick`."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.sched import cpus
from slurmbridge.sched.bits import lowest_bits, mask_of, numbers
from slurmbridge.sched.kinds import Kind


def one_by_one(node: Kind, busy: int, *, count: int, tasks: int, per_task: int, unit: int, block: bool) -> set[int]:
    """The same by lists of units, each of them CPUs."""
    free = [cpu for cpu in range(node.cpus) if not busy >> cpu & 1]
    if len(free) <= count or (unit == 1 and (block or node.sockets == 1)):
        return set(free[:count]) if len(free) >= count else set()
    size = node.cores * node.threads
    sockets = [
        [each for first in range(start, start + size, unit) if set(each := range(first, first + unit)) <= set(free)]
        for start in range(0, node.cpus, size)
    ]
    wanted = -(-count // unit)
    if sum(map(len, sockets)) < wanted:
        return set(free[:count])
    if block:
        chosen = [each for socket in sockets for each in socket]
    elif per_task <= unit:
        chosen = [socket[turn] for turn in range(size) for socket in sockets if turn < len(socket)]
    else:
        chosen, each_takes = [], -(-per_task // unit)
        for _ in range(tasks):
            home = next((socket for socket in sockets if len(socket) >= each_takes), None)
            for _ in range(min(each_takes, wanted - len(chosen))):
                chosen.append((home if home is not None else next(filter(None, sockets))).pop(0))
        chosen += [each for socket in sockets for each in socket]
    return {cpu for each in chosen[:wanted] for cpu in each}


@given(
    sockets=st.integers(1, 4),
    cores=st.integers(1, 8),
    threads=st.integers(1, 2),
    busy=st.integers(0, (1 << 64) - 1),
    way=st.sampled_from(["cpu", "core", "socket"]),
    tasks=st.integers(1, 6),
    per_task=st.integers(1, 5),
    block=st.booleans(),
)
def test_picking_is_what_one_unit_at_a_time_gives(
    sockets: int, cores: int, threads: int, busy: int, way: str, tasks: int, per_task: int, block: bool
) -> None:
    size = sockets * cores * threads
    node = Kind(
        cpus=size, sockets=sockets, cores=cores, threads=threads, memory=1, indexes=(), types=(), mib=(), shared=()
    )
    unit = {"cpu": 1, "core": threads, "socket": cores * threads}[way]
    count = -(-tasks * per_task // unit) * unit
    busy &= (1 << size) - 1
    words: dict[str, Any] = {"count": count, "tasks": tasks, "per_task": per_task, "unit": unit, "block": block}
    found = cpus.pick(node, busy, **words)
    assert set(numbers(found)) == one_by_one(node, busy, **words)
    assert found.bit_count() in (0, count)


@given(st.integers(0, (1 << 200) - 1), st.integers(0, 220))
def test_lowest_bits_are_the_first_numbers_of_a_mask(mask: int, count: int) -> None:
    assert numbers(lowest_bits(mask, count)) == numbers(mask)[:count]
    assert mask_of(numbers(mask)) == mask
    assert list(numbers(mask)) == [bit for bit in range(200) if mask >> bit & 1]
