"""A trace through the real scheduler core: the same deltas, cycles and plans as in the daemon, on a virtual clock.

All that happens at one moment goes into one delta and one cycle. A start holds from that moment; an eviction ends the run
(after its grace time), its work is lost and the job waits again. Cycles come when something happened, and when the plan
says so; one that could certainly start nothing is left out.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.cluster import ClusterConfig, Node
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta, Eviction, Plan, Start
from slurmbridge.model.states import JobState
from slurmbridge.model.tres import count
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.fit import rules_of
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sched.vain import Vain
from slurmbridge.sim.clock import Run
from slurmbridge.sim.site import Desk
from slurmbridge.sim.workload import TraceError, TraceJob

EPOCH = 1_000_000_000.0
"""When a trace that counts from 0 begins."""
USAGE_S = 3600.0
"""Usage is counted so often: more seldom than in the daemon, which is not felt where it decays in days."""
ROUNDS = 20
"""Cycles of one moment: evictions are followed by the starts that they were for."""


class Tally(msgspec.Struct, kw_only=True):
    """What the core did."""

    cycles: int = 0
    starts: int = 0
    evictions: int = 0
    moves: int = 0


class Usage:
    """Billed seconds of each association, decayed, and what runs now."""

    def __init__(self, half_life_s: float, now: float) -> None:
        self._half_life, self._counted = half_life_s, now
        self._used: dict[int, float] = {}
        self._rates: dict[int, float] = {}
        self._since: dict[int, float] = {}  # what came and went since the last count

    def began(self, job: Job) -> None:
        self._change(job, 1.0)

    def ended(self, job: Job, now: float) -> None:
        self._change(job, -1.0)
        assert job.start_time is not None
        number = job.spec.assoc_id
        part = _billed(job) * (now - max(job.start_time, self._counted))
        self._since[number] = self._since.get(number, 0.0) + part

    def _change(self, job: Job, sign: float) -> None:
        number = job.spec.assoc_id
        self._rates[number] = self._rates.get(number, 0.0) + sign * _billed(job)

    def rows(self, now: float, running: Sequence[Job]) -> tuple[UsageRow, ...] | None:
        """Counted anew; None when that is not due yet."""
        if now - self._counted < USAGE_S:
            return None
        decay = 0.5 ** ((now - self._counted) / self._half_life) if self._half_life > 0 else 1.0
        fresh = self._since
        for job in running:
            assert job.start_time is not None
            number = job.spec.assoc_id
            fresh[number] = fresh.get(number, 0.0) + _billed(job) * (now - max(job.start_time, self._counted))
        for number in {*self._used, *fresh}:
            self._used[number] = self._used.get(number, 0.0) * decay + fresh.get(number, 0.0)
        self._since, self._counted = {}, now
        return tuple(
            UsageRow(assoc_id=number, as_of=now, raw=(("billing", amount), ("cpu", amount)), wall_s=0.0)
            for number, amount in self._used.items()
        )


def _billed(job: Job) -> float:
    return float(count(job.allocation.tres, "billing")) if job.allocation is not None else 0.0


class Replay:
    """One trace, from the first submission to the last end."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        config: ClusterConfig,
        accounting: Accounting,
        *,
        watch: Callable[[Plan, float], None] | None = None,
    ) -> None:
        self._jobs, self._config, self._watch = jobs, config, watch
        desk = Desk(config, accounting, jobs)
        self._specs = [desk.spec(job) for job in jobs]
        self._shift = EPOCH if jobs[0].submit_s < EPOCH / 10 else 0.0
        self._snapshot = Snapshot.empty().apply(
            Delta(
                version=1,
                config=config,
                accounting=accounting,
                nodes=tuple(Node(conf=conf) for conf in config.nodes),
                partitions=config.partitions,
                usage=(),
                counted=(),
            )
        )
        self._memo = Memo.empty()
        self._vain = Vain(rules_of(config))
        self._came: list[int] = []  # jobs since cycles were last thought of
        self._ended = True  # whether a run has ended since then
        self._wake = math.inf  # when to look again though nothing happens
        self._usage = Usage(float(config.priority_decay_half_life), jobs[0].submit_s + self._shift)
        self._running: dict[int, Job] = {}
        self._ends: list[tuple[float, int, int, bool]] = []  # time, job id, restarts, whether it is evicted
        self._changed: dict[int, Job] = {}
        self._gone: list[int] = []
        self._freed = False  # a run was evicted in this cycle and is gone
        self.runs: list[Run] = []
        self.tally = Tally()

    def run(self) -> list[Run]:
        """All runs, lost ones too, by their ends."""
        coming = 0
        while True:
            next_end = self._ends[0][0] if self._ends else math.inf
            next_job = self._jobs[coming].submit_s + self._shift if coming < len(self._jobs) else math.inf
            now = min(next_end, next_job, self._wake)
            if math.isinf(now):
                break
            happened = now >= self._wake
            while self._ends and self._ends[0][0] <= now:
                happened |= self._end(heapq.heappop(self._ends))
            while coming < len(self._jobs) and self._jobs[coming].submit_s + self._shift <= now:
                self._submit(coming, now)
                coming += 1
                happened = True
            if happened:
                self._cycles(now)
        if self._snapshot.waiting:
            stuck = next(iter(self._snapshot.waiting.values())).job
            job = self._jobs[stuck.job_id - 1]
            raise TraceError(f"job {job.id} never starts: {stuck.reason or 'None'} {stuck.reason_text}".rstrip())
        return self.runs

    def _submit(self, place: int, now: float) -> None:
        job = Job(
            job_id=place + 1, spec=self._specs[place], submit_time=now, eligible_time=now, accrue_time=now,
            last_sched_eval=now,
        )  # fmt: skip
        self._changed[job.job_id] = job
        self._came.append(job.job_id)

    def _end(self, entry: tuple[float, int, int, bool]) -> bool:
        """A run ends, by itself or for another; false when it had ended before."""
        now, job_id, restarts, evicted = entry
        job = self._running.get(job_id)
        if job is None or job.restarts != restarts:
            return False
        del self._running[job_id]
        self._ended = True
        self._usage.ended(job, now)
        assert job.start_time is not None
        self.runs.append(Run(job_id - 1, job.start_time - self._shift, now - self._shift, evicted))
        if evicted:
            self._changed[job_id] = msgspec.structs.replace(
                job, state=JobState.PENDING, restarts=restarts + 1, allocation=None, start_time=None,
                time_limit_end=None, preempt_time=None, kill_reason="", batch_host="",
            )  # fmt: skip
        else:
            self._changed.pop(job_id, None)
            self._gone.append(job_id)
        return True

    def _cycles(self, now: float) -> None:
        """Plan until nothing is evicted any more."""
        for _ in range(ROUNDS):
            rows = self._usage.rows(now, list(self._running.values()))
            delta = Delta(
                version=self._snapshot.version + 1, jobs=tuple(self._changed.values()), gone=tuple(self._gone),
                usage=rows, counted=rows,
            )  # fmt: skip
            self._changed, self._gone, self._freed = {}, [], False
            self._snapshot = self._snapshot.apply(delta)
            if not self._snapshot.waiting:
                self._wake = math.inf
                return
            came, self._came, self._ended = None if self._ended else self._came, [], False
            if now < self._wake and self._vain.is_vain(self._snapshot, self._memo, came):
                return
            plan, self._memo = plan_cycle(self._snapshot, self._config, now, self._memo)
            self._snapshot = self._snapshot.noted(plan)
            self.tally.cycles += 1
            if self._watch is not None:
                self._watch(plan, now)
            for start in plan.starts:
                self._start(start, now)
            for each in plan.evictions:
                self._evict(each, now)
            self._wake = plan.wake_at if plan.wake_at is not None and plan.wake_at > now else math.inf
            if not self._freed:
                return

    def _start(self, start: Start, now: float) -> None:
        waiting = self._snapshot.waiting[start.job_id].job
        job = msgspec.structs.replace(
            waiting, state=JobState.RUNNING, reason="", reason_text="", start_time=now, allocation=start.allocation,
            batch_host=start.allocation.nodes[0].node, time_limit_end=now + 60.0 * (waiting.spec.time_limit or 0),
        )  # fmt: skip
        self._running[job.job_id] = job
        self._changed[job.job_id] = job
        self._usage.began(job)
        heapq.heappush(self._ends, (now + self._jobs[job.job_id - 1].run_s, job.job_id, job.restarts, False))
        self.tally.starts += 1

    def _evict(self, eviction: Eviction, now: float) -> None:
        """End a run for another, at once or after its grace time.

        What the plan cancels waits again too: the work of a trace has to be done.
        """
        job = self._running.get(eviction.job_id)
        if job is None or job.preempt_time is not None:
            return
        self.tally.evictions += 1
        self.tally.moves += eviction.moved
        entry = (now + eviction.grace_s, job.job_id, job.restarts, True)
        if not eviction.grace_s:
            self._freed = self._end(entry)
            return
        told = msgspec.structs.replace(job, preempt_time=now, kill_reason="preempt")
        self._running[job.job_id] = self._changed[job.job_id] = told
        heapq.heappush(self._ends, entry)
