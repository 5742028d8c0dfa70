"""The other ranks of a run in pods, as rank 0 sees them. A link that breaks is a node that failed: nothing of it is joined
again, as what ran there is ended by its own supervisor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slurmbridge.supervisor.loop import Link
from slurmbridge.supervisor.peers import Peers
from slurmbridge.supervisor.pod_meeting import Calls, Claim, Meeting, Run
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.step import FINISHED, MORE, unnumber

if TYPE_CHECKING:
    from slurmbridge.supervisor.pod_head import PodHead


class PodPeers(Peers):
    """Also takes connections for steps from the ranks' own sockets, for as long as the run lasts."""

    def __init__(self, head: PodHead) -> None:
        super().__init__(head)
        self._pod_head = head
        self._meeting: Meeting | None = None
        self._waits_s = 0.0

    def assemble(self, seconds: float) -> None:
        if self._count == 1:
            self._head.assembled()
            return
        self._waits_s = seconds
        job, restarts, _ = self._head.key
        run = Run(job, restarts, str(self._head.record["token"]))
        self._meeting = Meeting(self._head.loop, run, self._proved)
        self._timer = self._head.loop.after(seconds, self._late)

    def _late(self) -> None:
        nodes = [self._head.header["ranks"][rank]["node"] for rank in range(1, self._count) if rank not in self._links]
        if nodes:
            self._head.fail(f"no word from {', '.join(nodes)} within {self._waits_s:.0f} s")

    def _proved(self, link: Link, claim: Claim) -> Calls | None:
        if not 1 <= claim.rank < self._count:
            return None
        if claim.what == wire.STEP:
            link.send(wire.ACK, wire.encode({}))
            self._head.steps.connected(link.detach(), os.getuid(), 0)
            return (lambda kind, payload: None, lambda: None)
        if claim.rank in self._links:
            return None
        self._links[claim.rank] = link
        if len(self._links) == self._count - 1:
            self._head.loop.after(0, self._complete)
        return (
            lambda kind, payload: self._frame(claim.rank, kind, payload),
            lambda: self._lost(claim.rank),
        )

    def _complete(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._head.is_ending:
            self.broadcast(wire.KILL, {})
        else:
            self._head.assembled()

    def _frame(self, rank: int, kind: bytes, payload: bytes) -> None:
        if kind == wire.LEAVING:
            said = wire.decode(payload)
            node = self._head.header["ranks"][rank]["node"]
            self._head.fail(f"{node}: {said.get('message', '')}", str(said.get("why", "node_fail")))
        elif kind in (MORE, FINISHED):
            number, content = unnumber(payload)
            self._pod_head.file_told(rank, number, kind, content)
        else:
            super()._frame(rank, kind, payload)
