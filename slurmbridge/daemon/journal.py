"""From the event loop to the store's writer and back: every write is a future that resolves when it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from slurmbridge.store.protocol import Op, Store


class Journal:
    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._loop = store, loop

    @property
    def healthy(self) -> bool:
        return self._store.healthy

    def write(self, ops: Sequence[Op], *, droppable: bool = False) -> asyncio.Future[None]:
        """Queue ops; the future fails only when they are droppable and could not be committed."""
        future: asyncio.Future[None] = self._loop.create_future()

        def done(error: Exception | None) -> None:
            self._loop.call_soon_threadsafe(_settle, future, error)

        self._store.write(ops, done, droppable=droppable)
        return future


def _settle(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
