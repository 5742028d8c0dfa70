"""Which CPUs of a node does a job get?

Abstract CPU numbers as `scontrol -d show job` prints them: threads of a core are neighbours, cores of a socket too.
Single-CPU tasks go round the sockets, tasks of several CPUs stay inside a socket while one has room, and with
--ntasks-per-node or a block distribution sockets fill one after the other (as observed on Slurm 26.05).
"""

from __future__ import annotations

from slurmbridge.sched.columns import NodeColumns
from slurmbridge.sched.room import lowest_bits


def pick(
    columns: NodeColumns, row: int, busy: int, *, count: int, tasks: int, per_task: int, unit: int, block: bool
) -> int:
    """A mask of `count` free CPUs, in units of `unit` threads (1, or a whole core). 0 when there are too few."""
    cpus = int(columns.cpus[row])
    everything = (1 << cpus) - 1
    free = everything & ~busy
    if free.bit_count() < count:
        return 0
    if count == free.bit_count():
        return free
    if unit == 1 and (block or int(columns.sockets[row]) == 1):
        return lowest_bits(free, count)
    threads = unit
    per_socket = int(columns.cores[row]) * int(columns.threads[row])
    sockets = [
        _units(free, start, min(start + per_socket, cpus), threads) for start in range(0, cpus, max(per_socket, 1))
    ]
    wanted = -(-count // threads)
    if sum(map(len, sockets)) < wanted:
        return lowest_bits(free, count)
    if block:
        chosen = [each for socket in sockets for each in socket][:wanted]
    elif per_task <= threads:
        chosen = _round(sockets, wanted)
    else:
        chosen = _by_task(sockets, wanted, -(-per_task // threads), tasks)
    mask = 0
    for each in chosen:
        mask |= each
    return mask


def _units(free: int, start: int, end: int, threads: int) -> list[int]:
    """Masks of the wholly free cores (or CPUs) from CPU `start` to `end`."""
    core = (1 << threads) - 1
    return [core << cpu for cpu in range(start, end, threads) if free >> cpu & core == core]


def _round(sockets: list[list[int]], wanted: int) -> list[int]:
    """One from each socket in turn."""
    places = [0] * len(sockets)
    chosen: list[int] = []
    while len(chosen) < wanted:
        for number, socket in enumerate(sockets):
            if places[number] < len(socket) and len(chosen) < wanted:
                chosen.append(socket[places[number]])
                places[number] += 1
    return chosen


def _by_task(sockets: list[list[int]], wanted: int, per_task: int, tasks: int) -> list[int]:
    """Each task in the first socket that holds it whole, else from the lowest on."""
    left = [list(socket) for socket in sockets]
    chosen: list[int] = []
    for _ in range(tasks):
        home = next((socket for socket in left if len(socket) >= per_task), None)
        for _ in range(min(per_task, wanted - len(chosen))):
            source = home if home is not None else next(socket for socket in left if socket)
            chosen.append(source.pop(0))
    rest = [each for socket in left for each in socket]
    return chosen + rest[: wanted - len(chosen)]
