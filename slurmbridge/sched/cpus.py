"""Which CPUs of a node does a job get?

Abstract CPU numbers as `scontrol -d show job` prints them: threads of a core are neighbours, cores of a socket too.
Single-CPU tasks go round the sockets, tasks of several CPUs stay inside a socket while one has room, and with
--ntasks-per-node or a block distribution sockets fill one after the other (as observed on Slurm 26.05).
"""

from __future__ import annotations

from slurmbridge.sched.bits import lowest_bits
from slurmbridge.sched.kinds import Kind


def pick(node: Kind, busy: int, *, count: int, tasks: int, per_task: int, unit: int, block: bool) -> int:
    """A mask of `count` free CPUs, in units of `unit` threads (1, or a whole core). 0 when there are too few."""
    cpus = node.cpus
    everything = (1 << cpus) - 1
    free = everything & ~busy
    if free.bit_count() < count:
        return 0
    if count == free.bit_count():
        return free
    if unit == 1 and (block or node.sockets == 1):
        return lowest_bits(free, count)
    whole = _whole_units(free, node, unit)
    have = [each.bit_count() for each in whole]
    wanted = -(-count // unit)
    if sum(have) < wanted:
        return lowest_bits(free, count)
    if block:
        given = _in_order(have, wanted)
    elif per_task <= unit:
        given = _in_turn(have, wanted)
    else:
        given = _by_task(have, wanted, -(-per_task // unit), tasks)
    firsts = 0
    for units, some in zip(whole, given, strict=True):
        firsts |= lowest_bits(units, some)
    return firsts * ((1 << unit) - 1)


def _whole_units(free: int, node: Kind, unit: int) -> list[int]:
    """By socket, a mask of the first CPUs of its wholly free units."""
    size = max(node.cores * node.threads, 1)
    firsts = free
    for thread in range(1, unit):
        firsts &= free >> thread
    every = ((1 << unit * -(-size // unit)) - 1) // ((1 << unit) - 1)  # a bit for each unit of a socket
    return [firsts & (every << start) & ((1 << start + size) - 1) for start in range(0, node.cpus, size)]


def _in_order(have: list[int], wanted: int) -> list[int]:
    """Of each socket so many, the first ones filled first."""
    given = []
    for units in have:
        given.append(min(units, wanted))
        wanted -= given[-1]
    return given


def _in_turn(have: list[int], wanted: int) -> list[int]:
    """One of each socket in turn."""
    given = [0] * len(have)
    while wanted:
        left = [socket for socket, units in enumerate(have) if given[socket] < units]
        rounds = min(wanted // len(left), min(have[socket] - given[socket] for socket in left))
        for socket in left if rounds else left[:wanted]:
            given[socket] += rounds or 1
        wanted -= rounds * len(left) if rounds else wanted
    return given


def _by_task(have: list[int], wanted: int, per_task: int, tasks: int) -> list[int]:
    """Each task in the first socket that holds it whole, else from the lowest on."""
    left = list(have)
    for _ in range(tasks):
        some = min(per_task, wanted)
        home = next((socket for socket, units in enumerate(left) if units >= per_task), None)
        taken = (
            [some if socket == home else 0 for socket in range(len(left))]
            if home is not None
            else _in_order(left, some)
        )
        left = [units - each for units, each in zip(left, taken, strict=True)]
        wanted -= some
    more = _in_order(left, wanted)
    return [units - rest + each for units, rest, each in zip(have, left, more, strict=True)]
