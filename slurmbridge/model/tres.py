"""Trackable resources: counts by name, in Slurm's order.

A TRES set is a tuple of (name, count) pairs, ordered cpu, mem, energy, node, billing, then gres and licences as
AccountingStorageTRES lists them. Names are Slurm's (`cpu`, `mem`, `node`, `billing`, `gres/gpu`, `gres/gpu:a100`,
`gres/gpumem`, `license/matlab`). Units: mem in MiB, `gres/gpu*` in milli-devices (so that fractions stay exact), the
rest in whole counts.
"""

from __future__ import annotations

Tres = tuple[tuple[str, int], ...]

EMPTY: Tres = ()


def count(tres: Tres, name: str) -> int:
    """The count of one name, 0 when absent."""
    for key, value in tres:
        if key == name:
            return value
    return 0


def merge(*sets: Tres) -> Tres:
    """Sum by name, first appearance decides the order."""
    total: dict[str, int] = {}
    for each in sets:
        for key, value in each:
            total[key] = total.get(key, 0) + value
    return tuple(total.items())


def is_gpu(name: str) -> bool:
    """Whether counts of this name are milli-devices."""
    return name == "gres/gpu" or name.startswith("gres/gpu:")
