"""Counters of what the controller did, for sdiag. Plain numbers: nothing is kept over a restart, as with Slurm."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec.structs import replace

from slurmbridge.model.job import Job
from slurmbridge.model.plan import Plan
from slurmbridge.model.states import JobState
from slurmbridge.model.statistics import Cycles, Requests, Statistics

_FAILED = (JobState.NODE_FAIL, JobState.BOOT_FAIL)
_CANCELED = (JobState.CANCELLED, JobState.DEADLINE, JobState.PREEMPTED)


Key = TypeVar("Key")


class Tally:
    """`reset` forgets all but what was counted `ever`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ever = 0
        self.ever: Counter[str] = Counter()  # what happened to jobs
        self.ever_served, self.ever_busy_s = 0, 0.0
        self.open = 0  # commands in hand
        self.user_name: Callable[[int], str] = str
        self.reset()

    def reset(self) -> None:
        self._since = self._clock()
        self._jobs = {"submitted": 0, "started": 0, "completed": 0, "canceled": 0, "failed": 0}
        self._main, self._ahead = Cycles(), Cycles()
        self._backfilled = self._parts = self._last_table = self._total_table = 0
        self._messages: dict[tuple[str, int], list[int]] = {}
        self._users: dict[int, list[int]] = {}

    # ---- what happens ----

    def submitted(self, tasks: int) -> None:
        self._job_events("submitted", tasks)

    def moved(self, before: Job | None, after: Job) -> None:
        """A job's record changed."""
        if after.state is JobState.RUNNING and (before is None or before.state is JobState.PENDING):
            self._job_events("started")
        elif after.is_finished and before is not None and not before.is_finished:
            kind = "failed" if after.state in _FAILED else "canceled" if after.state in _CANCELED else "completed"
            self._job_events(kind)

    def _job_events(self, kind: str, number: int = 1) -> None:
        self._jobs[kind] += number
        self.ever[kind] += number

    def cycle(self, plan: Plan) -> None:
        """A planning cycle is over."""
        now, micros = self._clock(), round(plan.cycle_s * 1e6)
        self._main = _added(self._main, plan, micros, now)
        if plan.promises or plan.backfilled:
            self._ahead = _added(self._ahead, plan, micros, now)
            self._last_table = plan.promises
            self._total_table += plan.promises
        self._backfilled += plan.backfilled
        self._ever += plan.backfilled
        self._parts += plan.backfilled_parts

    def request(self, kinds: Iterable[tuple[str, int]], uid: int, seconds: float) -> None:
        """A request of this user was served; `kinds`: the messages that ask for the same work in Slurm."""
        micros = max(1, round(seconds * 1e6))
        self.ever_served += 1
        self.ever_busy_s += seconds
        for kind in kinds:
            for sums in (self._messages.setdefault(kind, [0, 0]), self._users.setdefault(uid, [0, 0])):
                sums[0] += 1
                sums[1] += micros

    # ---- what was counted ----

    def view(self, jobs: Iterable[Job], *, queued: int = 0, commits: int = 0) -> Statistics:
        states = [job.state for job in jobs]
        return Statistics(
            since=self._since,
            now=self._clock(),
            threads=max(1, self.open),
            queued=queued,
            commits=commits,
            pending=states.count(JobState.PENDING),
            running=states.count(JobState.RUNNING),
            main=self._main,
            ahead=self._ahead,
            backfilled_ever=self._ever,
            backfilled=self._backfilled,
            backfilled_parts=self._parts,
            last_table=self._last_table,
            total_table=self._total_table,
            clock_us=_clock_us(),
            messages=tuple(_rows(self._messages.items(), lambda key: key)),
            users=tuple(_rows(self._users.items(), lambda uid: (self.user_name(uid), uid))),
            **self._jobs,
        )


def _added(cycles: Cycles, plan: Plan, micros: int, now: float) -> Cycles:
    return replace(
        cycles,
        count=cycles.count + 1,
        last_us=micros,
        max_us=max(cycles.max_us, micros),
        total_us=cycles.total_us + micros,
        last_when=now,
        last_depth=plan.looked_at,
        total_depth=cycles.total_depth + plan.looked_at,
        last_queue=plan.queue_length,
        total_queue=cycles.total_queue + plan.queue_length,
    )


def _rows(sums: Iterable[tuple[Key, list[int]]], named: Callable[[Key], tuple[str, int]]) -> Iterable[Requests]:
    """Most frequent first."""
    for key, (count, total) in sorted(sums, key=lambda item: -item[1][0]):
        name, number = named(key)
        yield Requests(name=name, number=number, count=count, total_us=total)


def _clock_us() -> int:
    began = time.perf_counter()
    for _ in range(1000):
        time.time()
    return round((time.perf_counter() - began) * 1e6)
