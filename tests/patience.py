"""How long tests wait for what must come: a bound only ends a test that hangs, so it is far beyond any machine's pace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

PATIENCE_S = 120.0
PAUSE_S = 0.02
T = TypeVar("T")


def until(holds: Callable[[], T], what: object = "it does not come") -> T:
    """What `holds` gives once that is true. `what` is told when it does not come; a function says it then."""
    end = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(PAUSE_S)
    return found


async def comes(holds: Callable[[], T], what: object = "it does not come") -> T:
    """The same on an event loop, which goes on meanwhile."""
    end = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < end, what() if callable(what) else what
        await asyncio.sleep(PAUSE_S / 4)
    return found


def play(opened: AbstractAsyncContextManager[T], rule: Callable[[T], Awaitable[None]]) -> None:
    """A rule with what is opened for it, on an event loop of its own."""

    async def whole() -> None:
        async with opened as there, asyncio.timeout(PATIENCE_S):
            await rule(there)

    asyncio.run(whole())
