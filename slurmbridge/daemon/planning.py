"""The planner's process from the daemon's side: one request at a time, started anew when it breaks.

The worker (`sched.worker`) never blocks queries; one cycle is under way at most, and what happens meanwhile goes into
the next delta. A worker that dies is told everything again. One that never starts (a library is missing) is another matter:
jobs would be taken and wait for ever, so the daemon is told to give up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from slurmbridge.daemon.plans import Plans
from slurmbridge.model.explain import Explanation
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Factors, QueueShare, Verdict
from slurmbridge.sched import frames

log = logging.getLogger(__name__)

REST_LIMIT_S = 1.0  # longest pause between cycles under load
PATIENCE = 3.0  # cycles that the planner rests after each while jobs only come: half of a processor is not theirs
ANSWER_LIMIT_S = 120.0  # a planner that says nothing for so long is ended and started anew
TRIES = 2
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0  # before a broken planner is started again
STILLBORN = 3  # planners that ended by themselves before the first answer of any
END_S = 2.0  # for which a planner that hung up is waited for
WORKER = (sys.executable, "-I", "-m", "slurmbridge.sched.worker")


class _Estimate:
    """A question about one job, of `sbatch --test-only` or of `slurmbridge why`."""

    __slots__ = ("encode", "future", "job", "tries")

    def __init__(self, job: Job, future: asyncio.Future[Any], encode: Callable[[Job, float], bytes]) -> None:
        self.job, self.future, self.encode, self.tries = job, future, encode, 0


class Planning:
    """Runs cycles while there is something new. `give_up` is called once, when it is clear that the planner never starts."""

    def __init__(
        self, clock: Callable[[], float], give_up: Callable[[], None], command: Sequence[str] = WORKER
    ) -> None:
        self._clock, self._give_up, self._command = clock, give_up, command
        self._has_answered = False
        self._is_fresh = True  # the planner's process was started and has made no plan yet
        self._stillborn = 0
        self._wakeup = asyncio.Event()
        self._hurry = asyncio.Event()
        self.plans = self._plans = Plans(clock, self._wake)
        self.cycles = self.failures = 0
        self.last_cycle_s = self.cycles_s = 0.0
        self._wake_at: float | None = None
        self._estimates: deque[_Estimate] = deque()
        self._curious: list[asyncio.Future[tuple[Factors, ...]]] = []
        self._sharers: list[asyncio.Future[tuple[QueueShare, ...]]] = []
        self._task: asyncio.Task[None] | None = None
        self._worker: asyncio.subprocess.Process | None = None

    def _wake(self) -> None:
        self._wakeup.set()
        if self._plans.is_urgent:
            self._hurry.set()

    def estimate(self, job: Job) -> asyncio.Future[Verdict | None]:
        """When and where this job would start if it were submitted now."""
        future: asyncio.Future[Verdict | None] = asyncio.get_running_loop().create_future()
        self._estimates.append(_Estimate(job, future, frames.encode_estimate))
        self._hurry.set()
        self._wakeup.set()
        return future

    def explain(self, job: Job) -> asyncio.Future[Explanation | None]:
        """Why this job waits; None: the planner does not know."""
        future: asyncio.Future[Explanation | None] = asyncio.get_running_loop().create_future()
        self._estimates.append(_Estimate(job, future, frames.encode_explain))
        self._hurry.set()
        self._wakeup.set()
        return future

    def factors(self) -> asyncio.Future[tuple[Factors, ...]]:
        """What the priorities of the next cycle are made of."""
        future: asyncio.Future[tuple[Factors, ...]] = asyncio.get_running_loop().create_future()
        self._curious.append(future)
        self._hurry.set()
        self._wakeup.set()
        return future

    def shares(self) -> asyncio.Future[tuple[QueueShare, ...]]:
        """What the next cycle finds associations to deserve and to use."""
        future: asyncio.Future[tuple[QueueShare, ...]] = asyncio.get_running_loop().create_future()
        self._sharers.append(future)
        self._hurry.set()
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
            self._hurry.clear()
            try:
                await self._cycle()
            except Exception as fault:  # whatever broke: a daemon that no longer plans would be worse than a late plan
                log.exception("event=planner.failed")
                self.failures += 1
                code = await self._end_worker(hung_up=isinstance(fault, (EOFError, ConnectionError)))
                if self._is_hopeless(code):
                    self._give_up()
                    return
                self._plans.whole = True
                self._wakeup.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            pause = FIRST_PAUSE_S
            await self._rest()

    async def _rest(self) -> None:
        """As long as the cycle took, so that at most half a processor plans; longer while jobs come and none leaves."""
        await asyncio.sleep(min(self.last_cycle_s, REST_LIMIT_S))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(PATIENCE * self.last_cycle_s, REST_LIMIT_S)):
                await self._hurry.wait()

    async def _sleep(self) -> None:
        """Until something changed or a known time has come."""
        timeout = None if self._wake_at is None else max(0.0, self._wake_at - self._clock())
        try:
            async with asyncio.timeout(timeout):
                await self._wakeup.wait()
        except TimeoutError:
            self._wake_at = None

    async def _cycle(self) -> None:
        worker = await self._ensure_worker()
        if not self._plans.core.journal.healthy:
            await self._answer_estimates(worker)
            await asyncio.sleep(0.5)
            self._wakeup.set()
            return
        began, is_first = time.monotonic(), self._is_fresh
        plan = frames.decode_plan(await self._ask(worker, frames.encode_request(self._plans.delta(), self._clock())))
        self._is_fresh = False
        self.last_cycle_s = plan.cycle_s if is_first else time.monotonic() - began  # to start a process is no planning
        self.cycles_s += self.last_cycle_s
        self.cycles += 1
        self._plans.core.memory.tally.cycle(plan)
        self._wake_at = plan.wake_at
        for _ in self._plans.applying(plan):
            await asyncio.sleep(0)
        await self._answer_estimates(worker)
        if self._curious:
            answer = frames.decode_answer(await self._ask(worker, frames.encode_factors()))
            found = answer.factors if isinstance(answer, frames.FactorsAnswer) else ()
            curious, self._curious = self._curious, []
            for future in curious:
                if not future.done():
                    future.set_result(found)

        if self._sharers:
            answer = frames.decode_answer(await self._ask(worker, frames.encode_shares()))
            shares = answer.shares if isinstance(answer, frames.SharesAnswer) else ()
            sharers, self._sharers = self._sharers, []
            for sharer in sharers:
                if not sharer.done():
                    sharer.set_result(shares)

    async def _answer_estimates(self, worker: asyncio.subprocess.Process) -> None:
        """A question that breaks the planner is asked of the next one too, until it has broken `TRIES` of them."""
        while self._estimates:
            estimate = self._estimates[0]
            estimate.tries += 1
            if estimate.future.done() or estimate.tries > TRIES:
                found = None
            else:
                request = estimate.encode(estimate.job, self._clock())
                found = _found(frames.decode_answer(await self._ask(worker, request)))
            self._estimates.popleft()
            if not estimate.future.done():
                estimate.future.set_result(found)

    async def _ask(self, worker: asyncio.subprocess.Process, request: bytes) -> bytes:
        """One request, one answer's body. TimeoutError: the planner hangs."""
        async with asyncio.timeout(ANSWER_LIMIT_S):
            answer = await self._exchange(worker, request)
        self._has_answered = True
        return answer

    @staticmethod
    async def _exchange(worker: asyncio.subprocess.Process, request: bytes) -> bytes:
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(request)
        await worker.stdin.drain()
        header = await worker.stdout.readexactly(frames.HEADER.size)
        return await worker.stdout.readexactly(frames.frame_length(header))

    def _is_hopeless(self, code: int | None) -> bool:
        """A request that breaks a planner is answered, and whom the kernel ends may start again: neither is meant."""
        self._stillborn += not self._has_answered and code is not None and code > 0
        return self._stillborn >= STILLBORN

    async def _ensure_worker(self) -> asyncio.subprocess.Process:
        if self._worker is None or self._worker.returncode is not None:
            self._worker = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            self._plans.whole = self._is_fresh = True
        return self._worker

    async def _end_worker(self, *, hung_up: bool = False) -> int | None:
        """Its exit status, where it ended by itself; None: it did not."""
        worker, self._worker = self._worker, None
        if worker is None:
            return None
        if worker.stdin is not None:
            worker.stdin.close()
        if hung_up:
            try:
                async with asyncio.timeout(END_S):
                    return await worker.wait()
            except TimeoutError:
                log.warning("event=planner.hung_up pid=%d", worker.pid)
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
            return None
        return worker.returncode


def _found(answer: frames.Answer) -> Verdict | Explanation | None:
    """What the planner says of one job."""
    match answer:
        case frames.EstimateAnswer():
            return answer.verdict
        case frames.ExplainAnswer():
            return answer.explanation
        case _:
            return None
