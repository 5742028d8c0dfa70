"""What is a node like whatever runs on it, as plain numbers? Nodes that are alike share one record.

What a job takes of a node depends on nothing else of it but what is free there, so it is worked out once for a kind.
Source: slurm.conf(5), NODE CONFIGURATION; gres.conf(5).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Kind(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Sizes of a node. Of its devices one place a slot; `types`: "" for untyped ones, None where there is none."""

    cpus: int
    sockets: int
    cores: int  # per socket
    threads: int  # per core
    memory: int  # MiB that jobs may use
    indexes: tuple[int, ...]  # as in gres.conf
    types: tuple[str | None, ...]
    mib: tuple[int, ...]
    shared: tuple[bool, ...]  # may be given out in parts


class Kinds:
    """By row, worked out when they are asked for."""

    __slots__ = ("_by_row", "_known", "_table", "_types")

    def __init__(self, sizes: Sequence[Ints], devices: Sequence[Ints], shared: Bools, types: tuple[str, ...]) -> None:
        """`sizes`: CPUs, sockets, cores, threads and MiB by row; `devices`: numbers of `types`, indexes and MiB by row and
        slot.
        """
        self._table = np.concatenate([np.stack(sizes, axis=1), *devices, shared.astype(np.int64)], axis=1)
        self._types = types
        self._by_row: list[Kind | None] = [None] * len(self._table)
        self._known: dict[bytes, Kind] = {}

    def of(self, row: int) -> Kind:
        """Equal ones are the same object."""
        found = self._by_row[row]
        if found is None:
            key = self._table[row].tobytes()
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self._learned(row)
            self._by_row[row] = found
        return found

    def _learned(self, row: int) -> Kind:
        cpus, sockets, cores, threads, memory, *devices = self._table[row].tolist()
        slots = len(devices) // 4
        numbers, indexes, mib, shared = (devices[first * slots : (first + 1) * slots] for first in range(4))
        return Kind(
            cpus=cpus,
            sockets=sockets,
            cores=cores,
            threads=threads,
            memory=memory,
            indexes=tuple(indexes),
            types=tuple(self._types[number] if number >= 0 else None for number in numbers),
            mib=tuple(mib),
            shared=tuple(map(bool, shared)),
        )
