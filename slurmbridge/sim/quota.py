"""Quotas without reservations, as a baseline: what a GPU scheduler for pods does, without evictions.

Accounts below their quota come first, the least served (by part of its quota) before the others; then accounts above it,
by what they have beyond it over their shares. In an account: priority, then arrival. A gang starts as a whole; a job that
does not fit is passed over, and nothing is kept free for it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from slurmbridge.sim.pool import Placement, Pool
from slurmbridge.sim.shares import Share
from slurmbridge.sim.workload import Machine, TraceJob

Entry = tuple[int, int]
"""(-priority, place)"""


class Quota:
    """See the module docstring; a `clock.Policy`. Use counts in GPUs (in CPUs where there are none)."""

    def __init__(self, jobs: Sequence[TraceJob], machines: Sequence[Machine], shares: Mapping[str, Share]) -> None:
        self._jobs, self._pool = jobs, Pool(machines)
        self._free = self._pool.room
        self._needs = [self._pool.need(job) for job in jobs]
        self._by_gpus = self._pool.all_gpus > 0
        accounts = sorted({job.account for job in jobs})
        whole = float(self._pool.all_gpus * 1000 if self._by_gpus else self._pool.all_cpus)
        self._shares = {name: max(shares[name].part, 1e-9) for name in accounts}
        quotas = {name: shares[name].quota for name in accounts}
        self._quota = {
            name: self._shares[name] * whole if quota is None else quota * (1000 if self._by_gpus else 1)
            for name, quota in quotas.items()
        }
        self._used = dict.fromkeys(accounts, 0.0)
        self._queues: dict[str, list[Entry]] = {name: [] for name in accounts}
        self._fresh: dict[str, list[Entry]] = {}  # those that came since all others were looked at
        self._all_again = False
        self._placed: dict[int, Placement] = {}

    def submitted(self, place: int) -> None:
        job = self._jobs[place]
        self._fresh.setdefault(job.account, []).append((-job.priority, place))

    def ended(self, place: int) -> None:
        self._free.give(self._placed.pop(place))
        self._used[self._jobs[place].account] -= self._amount(place)
        self._all_again = True

    def _amount(self, place: int) -> float:
        need = self._needs[place]
        return float(need.all_milli if self._by_gpus else need.all_cpus)

    def _rank(self, account: str) -> tuple[bool, float]:
        used, quota = self._used[account], self._quota[account]
        if used < quota:
            return False, used / quota
        return True, (used - quota) / self._shares[account]

    def starts(self, now: float) -> list[int]:
        """Accounts in turn, each with its next job that may fit. `now` does not matter: nothing looks ahead."""
        for account, entries in self._fresh.items():
            for entry in entries:
                insort(self._queues[account], entry)
        looked_at = self._queues if self._all_again else {name: sorted(each) for name, each in self._fresh.items()}
        self._fresh, self._all_again = {}, False
        left = {account: iter(list(entries)) for account, entries in looked_at.items() if entries}
        turns = [(*self._rank(account), account) for account in left]
        heapq.heapify(turns)
        misfits: set[int] = set()
        found: list[int] = []
        while turns:
            _, _, account = heapq.heappop(turns)
            for entry in left[account]:
                need = self._needs[entry[1]]
                if need.number in misfits:
                    continue
                placement = self._pool.place(need, self._free)
                if placement is None:
                    misfits.add(need.number)
                    continue
                self._start(account, entry, placement)
                found.append(entry[1])
                heapq.heappush(turns, (*self._rank(account), account))
                break
        return found

    def _start(self, account: str, entry: Entry, placement: Placement) -> None:
        self._free.take(placement)
        self._placed[entry[1]] = placement
        self._used[account] += self._amount(entry[1])
        queue = self._queues[account]
        del queue[bisect_left(queue, entry)]
