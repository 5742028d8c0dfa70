"""Which nodes of a declared pool are filled first? Its placement: the fullest that has room, or the emptiest.

A node's Weight comes first, as everywhere; equal ones go by free devices, then free CPUs. Nodes that are in no declared pool
keep Slurm's order: weight, then configuration.
"""

from __future__ import annotations

import bisect
from typing import Protocol

import msgspec
import numpy as np

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.sched.columns import Bools, Ints, NodeColumns
from slurmbridge.sched.room import Room
from slurmbridge.sched.rows import sum_of_rows


class Placing(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One row a node."""

    weights: Ints
    pools: Ints  # nodes of one pool stay together; those of none come last
    signs: Ints  # 1: the fullest first, -1: the emptiest, 0: neither
    spreads_devices: Bools  # parts of devices go to the emptiest device

    def order(self, room: Room) -> Ints:
        """All rows, the first to be tried first."""
        rows = np.arange(len(self.signs))
        devices = self.signs * sum_of_rows(room.milli)
        return np.lexsort((rows, self.signs * room.cpus, devices, self.pools, self.weights)).astype(np.int64)

    def rank(self, row: int, room: Room) -> tuple[int, int, int, int, int]:
        """Smaller is tried first; the same order for single rows."""
        sign = int(self.signs[row])
        devices, cpus = sign * int(room.milli[row].sum()), sign * int(room.cpus[row])
        return int(self.weights[row]), int(self.pools[row]), devices, cpus, row


class Ranked(Protocol):
    """An order of nodes that starts change."""

    def rank(self, row: int, room: Room) -> tuple[float, ...]:
        """Smaller is tried first."""


def put_right(ranked: Ranked, rows: list[int], room: Room) -> None:
    """Bring the row that comes first to the end, where only those at the end have changed."""
    while len(rows) > 1:
        row = rows[-1]
        rank = ranked.rank(row, room)
        if rank <= ranked.rank(rows[-2], room):
            return
        del rows[-1]
        bisect.insort(rows, row, key=lambda other: tuple(-part for part in ranked.rank(other, room)))


def placing_of(config: ClusterConfig, columns: NodeColumns) -> Placing | None:
    """None: no pool is declared."""
    if not config.pools:
        return None
    pools = np.full(columns.count, len(config.pools), dtype=np.int64)
    signs = np.zeros(columns.count, dtype=np.int64)
    devices = np.zeros(columns.count, dtype=np.bool_)
    declared = {pool.name for pool in config.pools}
    for number, pool in enumerate(each for each in config.all_pools if each.name in declared):
        rows = [columns.rows[name] for name in pool.nodes if name in columns.rows]
        pools[rows] = number
        signs[rows] = -1 if pool.placement == "spread" else 1
        devices[rows] = pool.device_placement == "spread"
    weights = np.array([node.conf.weight for node in columns.nodes], dtype=np.int64)
    return Placing(weights=weights, pools=pools, signs=signs, spreads_devices=devices)
