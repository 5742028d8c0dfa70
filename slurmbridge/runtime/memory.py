"""A runtime without processes and with a clock that stands still until it is moved: for tests of what stands above.

It passes the same contract tests as `runtime.local` (tests/runtime/contract.py). A run lasts as long as its script says
by `sleep N` and ends with what `exit N` says; everything else in a script is nothing here. Reports come from `advance`
and from the calls that cause them, in the order of their times.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Callable, Sequence

from slurmbridge.model.capabilities import VIRTUAL_NODES, Capabilities
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Step, StepId, Usage
from slurmbridge.model.states import JobState
from slurmbridge.runtime.protocol import NEVER_STARTED, Ended, Launch, Lost, NodeSample, Report, RunKey, Started

_SLEEP = re.compile(rb"^\s*sleep\s+([0-9.]+)", re.MULTILINE)
_EXIT = re.compile(rb"^\s*exit\s+([0-9]+)", re.MULTILINE)
_TRAPS = re.compile(rb"^\s*trap ''\s+TERM", re.MULTILINE)


class _Run:
    def __init__(self, launch: Launch, now: float) -> None:
        self.launch, self.start = launch, now
        script = launch.script or b""
        self.lasts = sum(float(each) for each in _SLEEP.findall(script)) if launch.script is not None else None
        ends = _EXIT.findall(script)
        self.status = int(ends[-1]) << 8 if ends else 0
        self.ignores_term = bool(_TRAPS.search(script))
        self.limit = launch.time_limit_s
        self.sequence = 0
        self.why = ""
        self.is_over = False
        self.suspended_at: float | None = None
        self.suspended_s = 0.0
        self.signals: list[tuple[int, str]] = []
        self.messages: list[str] = []
        self.unacknowledged: dict[int, Report] = {}


class MemoryRuntime:
    """`now` is moved by `advance` alone; `crash` forgets the listener as a dead daemon does, runs go on."""

    capabilities: Capabilities = VIRTUAL_NODES

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self._listener: Callable[[Report], None] | None = None
        self._runs: dict[RunKey, _Run] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.config = ClusterConfig()  # that it was told last

    async def start(self, listener: Callable[[Report], None], config: ClusterConfig, *, daemon_addr: str) -> None:
        self._listener = listener
        self.reconfigure(config)

    async def adopt(self, expected: Sequence[RunKey]) -> None:
        known = set(expected)
        for key in list(self._runs):
            if key not in known:
                self._runs.pop(key)
        for key in expected:
            run = self._runs.get(key)
            if run is None:
                self._tell(Lost(key=key, sequence=1 << 30, time=self.now, message=NEVER_STARTED))
                continue
            for report in list(run.unacknowledged.values()):
                self._tell(report)

    def launched(self, key: RunKey) -> Launch:
        """What a run was launched with."""
        return self._runs[key].launch

    def launch(self, launch: Launch) -> None:
        if launch.key in self._runs:
            return
        run = self._runs[launch.key] = _Run(launch, self.now)
        run.sequence += 1
        self._report(run, Started(key=launch.key, sequence=run.sequence, time=self.now))
        self._plan(run)

    def acknowledge(self, key: RunKey, sequence: int) -> None:
        run = self._runs.get(key)
        if run is None:
            return
        for each in [number for number in run.unacknowledged if number <= sequence]:
            del run.unacknowledged[each]
        if run.is_over and not run.unacknowledged:
            del self._runs[key]

    def kill(self, key: RunKey, why: str) -> None:
        run = self._runs.get(key)
        if run is None or run.is_over or run.why:
            return
        run.why = why
        if run.ignores_term and run.launch.script is not None:
            self._at(self.now + run.launch.kill_wait_s, lambda: self._end(run, 9))
        else:
            self._end(run, 15 if run.launch.script is not None else 0)

    def signal(self, key: RunKey, signal: int, scope: str, step_id: int | None = None) -> None:
        run = self._runs.get(key)
        if run is not None:
            run.signals.append((signal, scope))

    def suspend(self, key: RunKey) -> None:
        run = self._runs.get(key)
        if run is not None and run.suspended_at is None:
            run.suspended_at = self.now

    def resume(self, key: RunKey) -> None:
        run = self._runs.get(key)
        if run is not None and run.suspended_at is not None:
            run.suspended_s += self.now - run.suspended_at
            run.suspended_at = None
            self._plan(run)

    def set_time_limit(self, key: RunKey, limit_s: int | None) -> None:
        run = self._runs.get(key)
        if run is not None:
            run.limit = limit_s
            self._plan(run)

    def notify(self, key: RunKey, message: str) -> None:
        run = self._runs.get(key)
        if run is not None:
            run.messages.append(message)

    def step_address(self, key: RunKey) -> str:
        return f"memory:{key.job_id}.{key.restarts}"

    def sample(self) -> Sequence[NodeSample]:
        return [NodeSample(node=node.name) for node in self.config.nodes]

    def reconfigure(self, config: ClusterConfig) -> None:
        self.config = config

    async def stop(self, *, end_jobs: bool) -> None:
        if end_jobs:
            for key in list(self._runs):
                self.kill(key, "cancelled")
        self._listener = None

    # ---- for tests

    def advance(self, seconds: float) -> None:
        """Let this much time pass; what falls due in it happens at its time."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            at, _, call = heapq.heappop(self._due)
            self.now = max(self.now, at)
            call()
        self.now = until

    def lose(self, key: RunKey) -> None:
        """The supervisor and all processes of this run are gone without a word."""
        run = self._runs.pop(key, None)
        if run is not None:
            run.is_over = True
            self._tell(Lost(key=key, sequence=1 << 30, time=self.now, message="the supervisor was killed"))

    def crash(self) -> None:
        """The daemon dies; call `start` and `adopt` again."""
        self._listener = None

    # ---- inside

    def _at(self, when: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when, next(self._order), call))

    def _plan(self, run: _Run) -> None:
        """Its end and its limit, checked when they fall due: they may have moved."""
        base = run.start + run.suspended_s
        if run.lasts is not None:
            self._at(base + run.lasts, lambda: self._finish(run))
        if run.limit is not None:
            self._at(base + run.limit + run.launch.over_time_s, lambda: self._expire(run))

    def _finish(self, run: _Run) -> None:
        late = run.lasts is not None and self.now >= run.start + run.suspended_s + run.lasts
        if late and run.suspended_at is None and not run.is_over:
            run.why = run.why or "exit"
            self._end(run, run.status)

    def _expire(self, run: _Run) -> None:
        limit = run.limit
        if limit is None or run.suspended_at is not None or run.is_over:
            return
        if self.now >= run.start + run.suspended_s + limit + run.launch.over_time_s:
            self.kill(run.launch.key, "timeout")

    def _end(self, run: _Run, status: int) -> None:
        if run.is_over:
            return
        run.is_over = True
        run.sequence += 1
        launch = run.launch
        steps: tuple[Step, ...] = ()
        if launch.script is not None:
            state = JobState.CANCELLED if run.why != "exit" else (JobState.FAILED if status else JobState.COMPLETED)
            step = Step(
                job_id=launch.key.job_id, restarts=launch.key.restarts, step_id=StepId.BATCH.value, name="batch",
                state=state, start_time=run.start, end_time=self.now, nodes=(launch.nodes[0].node,), exit_code=status,
                usage=Usage(),
            )  # fmt: skip
            steps = (step,)
        self._report(
            run,
            Ended(key=launch.key, sequence=run.sequence, time=self.now, status=status, why=run.why, steps=steps),
        )

    def _report(self, run: _Run, report: Report) -> None:
        run.unacknowledged[report.sequence] = report
        self._tell(report)

    def _tell(self, report: Report) -> None:
        if self._listener is not None:
            self._listener(report)
