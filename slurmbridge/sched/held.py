"""What do running jobs hold, and until when, as tables?

One row a job and node, and one a job and device. Backfill adds up from them what is free at a later time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.job import Job
from slurmbridge.sched.room import NO_OWNER, Hold
from slurmbridge.sched.rows import is_among

Table = NDArray[np.void]
OVERRUN_S = 30.0
"""A run past its limit, or one that is being ended, is expected to be gone so much later."""
ENDING = -math.inf
"""End of a run that is being ended."""

NODE_ROW = np.dtype(
    [
        ("id", np.int64),
        ("end", np.float64),
        ("row", np.int64),
        ("cpus", np.int64),
        ("memory", np.int64),
        ("owned", np.bool_),
        ("shares", np.bool_),
    ]
)
DEVICE_ROW = np.dtype(
    [
        ("id", np.int64),
        ("end", np.float64),
        ("row", np.int64),
        ("slot", np.int64),
        ("milli", np.int64),
        ("mib", np.int64),
    ]
)


class Held(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Both tables. `end`: inf without limit, ENDING while a run is being ended."""

    nodes: Table
    devices: Table

    @classmethod
    def empty(cls) -> Held:
        return cls(nodes=np.zeros(0, dtype=NODE_ROW), devices=np.zeros(0, dtype=DEVICE_ROW))

    @classmethod
    def of(cls, entries: Iterable[tuple[int, float, Sequence[Hold]]]) -> Held:
        """Of (job id, end, holds)."""
        nodes, devices = [], []
        for job_id, end, holds in entries:
            for hold in holds:
                row = hold.row
                nodes.append((job_id, end, row, hold.cpus, hold.memory, hold.owner != NO_OWNER, hold.shares))
                if hold.devices:
                    devices += [(job_id, end, row, each.slot, each.milli, each.mib) for each in hold.devices]
        return cls(nodes=np.array(nodes, dtype=NODE_ROW), devices=np.array(devices, dtype=DEVICE_ROW))

    def without(self, job_ids: Iterable[int]) -> Held:
        """Those jobs taken out."""
        gone = np.fromiter(job_ids, dtype=np.int64)
        if not len(gone):
            return self
        return Held(
            nodes=self.nodes[~is_among(self.nodes["id"], gone)],
            devices=self.devices[~is_among(self.devices["id"], gone)],
        )

    def ending(self, job_ids: set[int]) -> Held:
        """The same, these being ended now."""
        if not job_ids:
            return self
        leaving = np.fromiter(job_ids, dtype=np.int64)
        tables = [self.nodes.copy(), self.devices.copy()]
        for table in tables:
            table["end"][is_among(table["id"], leaving)] = ENDING
        return Held(nodes=tables[0], devices=tables[1])

    def joined(self, other: Held) -> Held:
        """Both together."""
        if not len(other.nodes):
            return self
        return Held(
            nodes=np.concatenate([self.nodes, other.nodes]), devices=np.concatenate([self.devices, other.devices])
        )

    def by_end(self, now: float) -> Held:
        """Ordered by the time at which each is expected to be gone; that is `end` then."""
        tables = []
        for table in (self.nodes, self.devices):
            ends = np.where(table["end"] <= now, now + OVERRUN_S, table["end"])
            order = np.argsort(ends, kind="stable")
            ordered = table[order]
            ordered["end"] = ends[order]
            tables.append(ordered)
        return Held(nodes=tables[0], devices=tables[1])


def end_of(job: Job, limit_s: float, *, ending: bool) -> float:
    """When a run is gone at the latest by its time limit."""
    if ending:
        return ENDING
    if job.time_limit_end is not None:
        return job.time_limit_end
    if math.isinf(limit_s) or job.start_time is None:
        return math.inf
    return job.start_time + limit_s
