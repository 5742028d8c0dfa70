"""Who is it that dialled in? By the kernel, and by the name service of this host.

A name service may take its time, or hang: it is asked in threads, a few at a time, and what it says holds for a minute.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable

from slurmbridge.daemon.names import Names
from slurmbridge.daemon.peer import Peer
from slurmbridge.wire.agent import MAX_FRAME, Caller, encode_caller, is_name

THREADS = 8
WITHIN_S = 8.0
KEEP_S = 60.0
MOST_KEPT = 1 << 14


class Lookup:
    """`host`: what this host is called."""

    def __init__(self, host: str, names: Names | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._host, self._names, self._clock = host, names or Names(), clock
        self._pool = concurrent.futures.ThreadPoolExecutor(THREADS, "nss")
        self._known: dict[tuple[int, int], tuple[float, Caller]] = {}

    async def find(self, peer: Peer) -> Caller:
        """LookupError: why there is no telling who it is."""
        known = self._known.get((peer.uid, peer.gid))
        now = self._clock()
        if known is not None and now - known[0] < KEEP_S:
            return known[1]
        asked = asyncio.get_running_loop().run_in_executor(self._pool, self._ask, peer.uid, peer.gid)
        try:
            async with asyncio.timeout(WITHIN_S):
                caller = await asked
        except TimeoutError:
            raise LookupError(f"the name service of {self._host} does not answer") from None
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        self._known[(peer.uid, peer.gid)] = (now, caller)
        return caller

    def _ask(self, uid: int, gid: int) -> Caller:
        user = self._names.user(uid)
        if user is None or not is_name(user.name):
            raise LookupError(f"uid {uid} has no name on {self._host}")
        groups = tuple((each, self._group(each)) for each in self._names.groups(user.name, gid))
        caller = Caller(uid, gid, user.name, self._group(gid), user.home, user.shell, self._host, groups)
        if len(encode_caller(caller)) >= MAX_FRAME:
            raise LookupError(f"{user.name} is in too many groups on {self._host}")
        return caller

    def _group(self, gid: int) -> str:
        name = self._names.group_name(gid)
        return name if is_name(name) else str(gid)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
