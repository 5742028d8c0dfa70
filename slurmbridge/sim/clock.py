"""Time goes from event to event: jobs come, runs end, and a policy says what starts.

All that happens at one moment happens before the policy is asked once. What comes out is the same for every policy: runs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from slurmbridge.sim.workload import TraceJob


class Run(msgspec.Struct, frozen=True, gc=False):
    """A run of the job at `place` of the trace. `lost`: it was ended for another job, and its work is gone."""

    place: int
    start: float
    end: float
    lost: bool = False


class Policy(Protocol):
    """A scheduler without eviction."""

    def submitted(self, place: int) -> None: ...
    def ended(self, place: int) -> None: ...
    def starts(self, now: float) -> Iterable[int]:
        """Jobs that start now."""


def simulate(jobs: Sequence[TraceJob], policy: Policy) -> list[Run]:
    """The runs, by their ends. Jobs are ordered by submission."""
    ends: list[tuple[float, int]] = []
    began: dict[int, float] = {}
    runs: list[Run] = []
    coming = 0
    while coming < len(jobs) or ends:
        now = min(ends[0][0] if ends else float("inf"), jobs[coming].submit_s if coming < len(jobs) else float("inf"))
        while ends and ends[0][0] <= now:
            _, place = heapq.heappop(ends)
            policy.ended(place)
            runs.append(Run(place, began.pop(place), now))
        while coming < len(jobs) and jobs[coming].submit_s <= now:
            policy.submitted(coming)
            coming += 1
        for place in policy.starts(now):
            began[place] = now
            heapq.heappush(ends, (now + jobs[place].run_s, place))
    return runs
