"""From the event loop to the store's writer and back: every write is a future that resolves when it is durable.

What one round of the loop writes is handed over together, and what one commit made durable is told together: each
crossing between the threads costs more than the rows it is about.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from slurmbridge.store.protocol import Op, Store

log = logging.getLogger(__name__)

Done = Callable[[Exception | None], None]


class Journal:
    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._loop = store, loop
        self._queued: list[tuple[Sequence[Op], Done, bool]] = []  # this round's
        self._settled: deque[tuple[Done, Exception | None]] = deque()  # by the writer's thread
        self._is_told = False  # the loop knows that something is settled

    @property
    def healthy(self) -> bool:
        return self._store.healthy

    def write(self, ops: Sequence[Op], *, droppable: bool = False) -> asyncio.Future[None]:
        """Queue ops; the future fails only when they are droppable and could not be committed."""
        future: asyncio.Future[None] = self._loop.create_future()

        def done(error: Exception | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.call_when_durable(ops, done, droppable=droppable)
        return future

    def call_when_durable(self, ops: Sequence[Op], done: Done, *, droppable: bool = False) -> None:
        """Queue ops; `done` is called on the loop, with what went wrong."""
        if not self._queued:
            self._loop.call_soon(self.hand_over)
        self._queued.append((ops, done, droppable))

    def hand_over(self) -> None:
        """To the store, now: before it is closed, or at the end of a round."""
        queued, self._queued = self._queued, []
        for ops, done, droppable in queued:
            self._store.write(ops, self._told(done), droppable=droppable)

    def _told(self, done: Done) -> Done:
        def settle(error: Exception | None) -> None:
            self._settled.append((done, error))
            if not self._is_told:
                self._is_told = True
                self._loop.call_soon_threadsafe(self._tell)

        return settle

    def _tell(self) -> None:
        self._is_told = False  # first: what is settled from here on is told of anew
        settled = self._settled
        while settled:
            done, error = settled.popleft()
            try:
                done(error)
            except Exception:  # the others hear of theirs all the same
                log.exception("event=journal.callback_failed")
