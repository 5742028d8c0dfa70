"""The nodes of a cluster, followed once for everybody who needs to know of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.objects import Node
from slurmbridge.runtime.kube.watching import Follower

LOOK_S = 0.1
Take = Callable[[Sequence[Change[Node]]], None]


class NodeWatch:
    """Started and stopped by whom made it; listeners are called on the loop, with changes in their order."""

    def __init__(self, api: Api) -> None:
        self._listeners: list[Take] = []
        self.nodes: dict[str, Node] = {}
        self._follower = Follower(api, "/api/v1/nodes", Node, self._hand_over)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_listed(self) -> bool:
        return bool(self._follower.mirror.version)

    @property
    def fault(self) -> ApiFault | None:
        """Why what is known may be out of date."""
        return self._follower.fault

    def listen(self, take: Take) -> None:
        """From now on; what is known already is told as new at once."""
        if self.nodes:
            take([Change(None, node) for node in self.nodes.values()])
        self._listeners.append(take)

    async def start(self, within: float) -> bool:
        """False: they could not be listed in time, or may not be; it is tried on."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._follower.start()
        end = time.monotonic() + within
        while not await asyncio.to_thread(self._follower.wait_listed, LOOK_S):
            fault = self.fault
            if time.monotonic() >= end or (fault is not None and fault.kind is Kind.FORBIDDEN):
                return False
        await asyncio.sleep(0)  # what was listed has been handed over
        return True

    async def stop(self) -> None:
        await asyncio.to_thread(self._follower.stop)

    def _hand_over(self, changes: Sequence[Change[Node]]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._tell, changes)
        except RuntimeError:
            return  # the loop has ended; the next one lists again

    def _tell(self, changes: Sequence[Change[Node]]) -> None:
        for change in changes:
            if change.after is None:
                self.nodes.pop(change.key[1], None)
            else:
                self.nodes[change.key[1]] = change.after
        for take in self._listeners:
            take(changes)
