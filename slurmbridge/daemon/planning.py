"""The planner's process from the daemon's side: one request at a time, started anew when it breaks.

The worker (`sched.worker`) never blocks queries; one cycle is under way at most, and what happens meanwhile goes into
the next delta. A worker that dies is told everything again.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable

from slurmbridge.daemon.plans import Plans
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Verdict
from slurmbridge.sched import frames

log = logging.getLogger(__name__)

REST_LIMIT_S = 1.0  # longest pause between cycles under load
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0  # before a broken planner is started again


class Planning:
    """Runs cycles while there is something new."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._wakeup = asyncio.Event()
        self.plans = self._plans = Plans(clock, self._wakeup.set)
        self.cycles = 0
        self.last_cycle_s = 0.0
        self._wake_at: float | None = None
        self._estimates: list[tuple[Job, asyncio.Future[Verdict | None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._worker: asyncio.subprocess.Process | None = None

    def estimate(self, job: Job) -> asyncio.Future[Verdict | None]:
        """When and where this job would start if it were submitted now."""
        future: asyncio.Future[Verdict | None] = asyncio.get_running_loop().create_future()
        self._estimates.append((job, future))
        self._wakeup.set()
        return future

    # ---- the loop ----

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._end_worker()

    async def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            await self._sleep()
            self._wakeup.clear()
            try:
                await self._cycle()
            except Exception:  # whatever broke: a daemon that no longer plans would be worse than a late plan
                log.exception("event=planner.failed")
                await self._end_worker()
                self._plans.whole = True
                self._wakeup.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            pause = FIRST_PAUSE_S
            await asyncio.sleep(min(self.last_cycle_s, REST_LIMIT_S))

    async def _sleep(self) -> None:
        """Until something changed or a known time has come."""
        timeout = None if self._wake_at is None else max(0.0, self._wake_at - self._clock())
        try:
            await asyncio.wait_for(self._wakeup.wait(), timeout)
        except TimeoutError:
            self._wake_at = None

    async def _cycle(self) -> None:
        worker = await self._ensure_worker()
        if not self._plans.core.journal.healthy:
            await asyncio.sleep(0.5)
            self._wakeup.set()
            return
        began = time.monotonic()
        plan = frames.decode_plan(await self._ask(worker, frames.encode_request(self._plans.delta(), self._clock())))
        self.last_cycle_s = time.monotonic() - began
        self.cycles += 1
        self._wake_at = plan.wake_at
        self._plans.apply(plan)
        estimates, self._estimates = self._estimates, []
        for job, future in estimates:
            answer = frames.decode_answer(await self._ask(worker, frames.encode_estimate(job, self._clock())))
            if not future.done():
                future.set_result(answer.verdict if isinstance(answer, frames.EstimateAnswer) else None)

    async def _ask(self, worker: asyncio.subprocess.Process, request: bytes) -> bytes:
        """One request, one answer's body."""
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(request)
        await worker.stdin.drain()
        header = await worker.stdout.readexactly(frames.HEADER.size)
        return await worker.stdout.readexactly(frames.frame_length(header))

    async def _ensure_worker(self) -> asyncio.subprocess.Process:
        if self._worker is None or self._worker.returncode is not None:
            self._worker = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-m",
                "slurmbridge.sched.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            self._plans.whole = True
        return self._worker

    async def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None and worker.returncode is None:
            worker.kill()
            await worker.wait()
