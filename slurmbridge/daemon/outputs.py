"""Output that jobs on a cluster have no file system for: taken from their supervisors, shown to their owners, forgotten.

One thread reads and writes (`output_shelf`), so that the event loop never waits for the disk. Who wants to hear of more is
woken when more has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from slurmbridge.daemon.output_shelf import Shelf, Writer
from slurmbridge.model.kept import KeptFile, KeptPart
from slurmbridge.model.run import RunKey
from slurmbridge.wire.supervisor import Output

Kept = Callable[[int, bool], None]
"""(how far the stream is, whether all of it is on the disk)."""


class Outputs:
    """Made on the event loop, where all calls are made. `writer`: what is known of a run."""

    def __init__(self, shelf: Shelf, writer: Callable[[RunKey], Writer]) -> None:
        self._shelf, self._writer, self._loop = shelf, writer, asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="output")
        self._waiting: dict[int, set[asyncio.Future[None]]] = {}

    def take(self, key: RunKey, rank: int, piece: Output, kept: Kept) -> None:
        def done(future: Future[tuple[int, bool]]) -> None:
            try:
                self._loop.call_soon_threadsafe(self._taken, key, future, kept)
            except RuntimeError:
                return  # the loop has ended; the supervisor says it again to the next daemon

        self._thread.submit(self._shelf.take, key, rank, piece, self._writer(key)).add_done_callback(done)

    def _taken(self, key: RunKey, future: Future[tuple[int, bool]], kept: Kept) -> None:
        if future.cancelled():
            return
        kept(*future.result())
        for waiting in self._waiting.pop(key.job_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    async def read(self, job_id: int, name: str, offset: int, size: int, wait_s: float) -> KeptPart:
        """What is kept now, with a part of the file of that name. `wait_s`: nothing new is waited for so long."""
        more: asyncio.Future[None] = self._loop.create_future()
        self._waiting.setdefault(job_id, set()).add(more)
        try:
            part = await self._part(job_id, name, offset, size)
            if part.data or not wait_s:
                return part
            await asyncio.wait((more,), timeout=wait_s)
            return await self._part(job_id, name, offset, size)
        finally:
            more.cancel()
            left = self._waiting.get(job_id, set())
            left.discard(more)
            if not left:
                self._waiting.pop(job_id, None)

    async def _part(self, job_id: int, name: str, offset: int, size: int) -> KeptPart:
        def both() -> tuple[tuple[KeptFile, ...], bytes]:
            return self._shelf.files(job_id), self._shelf.read(job_id, name, offset, size) if name else b""

        files, data = await self._loop.run_in_executor(self._thread, both)
        return KeptPart(files=files, data=data)

    async def forget(self, runs: Iterable[tuple[int, int]]) -> None:
        """Of (job, restarts)."""
        await self._loop.run_in_executor(self._thread, self._shelf.forget_runs, tuple(runs))

    async def forget_before(self, moment: float, lives: Callable[[int], bool]) -> int:
        """Of jobs that do not live and wrote nothing since: how many."""
        old = await self._loop.run_in_executor(self._thread, self._shelf.older_than, moment)
        gone = [job_id for job_id in old if not lives(job_id)]
        await self._loop.run_in_executor(self._thread, self._shelf.forget, gone)
        return len(gone)

    def close(self) -> None:
        """What came is written; answers go nowhere."""
        self._thread.shutdown()
