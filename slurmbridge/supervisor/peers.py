"""The other ranks of a run, as rank 0 sees them: who has come, who is still busy, and whom a frame goes to."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from slurmbridge.spool import claim
from slurmbridge.supervisor.loop import Link, Listener, Timer
from slurmbridge.supervisor.usage import NOTHING, add
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import unpack

if TYPE_CHECKING:
    from slurmbridge.supervisor.head import Head


class Peers:
    """Ranks 1 and up. A rank that goes without having said that it is empty is a failed node."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._count = len(head.header["ranks"])
        self._links: dict[int, Link] = {}
        self._empty: set[int] = set()
        self.lost: list[int] = []  # of those: who went without a word, so that nobody here knows what still runs there
        self._usage: dict[str, object] = dict(NOTHING)
        self._listener: Listener | None = None
        self._timer: Timer | None = None

    def assemble(self, seconds: float) -> None:
        """Calls `head.assembled` when all are here, `head.fail` when they do not come in time."""
        if self._count == 1:
            self._head.assembled()
            return
        self._listener = Listener(self._head.loop, self._head.folder, claim.PEER_SOCKET, self._connected)
        self._timer = self._head.loop.after(seconds, self._late)

    @property
    def are_empty(self) -> bool:
        """Whether no rank that ever came has processes left."""
        return all(rank in self._empty for rank in self._links)

    def usage(self) -> dict[str, object]:
        return self._usage

    def link(self, rank: int) -> Link | None:
        return self._links.get(rank)

    def send(self, rank: int, kind: bytes, payload: bytes) -> None:
        link = self._links.get(rank)
        if link is not None:
            link.send(kind, payload)

    def broadcast(self, kind: bytes, value: dict[str, Any]) -> None:
        payload = wire.encode(value)
        for link in list(self._links.values()):
            link.send(kind, payload)

    def _late(self) -> None:
        missing = [str(rank) for rank in range(1, self._count) if rank not in self._links]
        if missing:
            self._head.fail(f"nodes did not come up: ranks {','.join(missing)}")

    def _connected(self, sock: socket.socket, uid: int, pid: int) -> None:
        if uid != os.getuid():
            sock.close()
            return
        holder: list[Link] = []
        rank_of: list[int] = []

        def on_frame(kind: bytes, payload: bytes) -> None:
            if rank_of:
                self._frame(rank_of[0], kind, payload)
            elif kind == wire.REGISTER:
                rank = self._register(payload, holder[0])
                if rank is None:
                    holder[0].abandon()
                else:
                    rank_of.append(rank)
                    if len(self._links) == self._count - 1:
                        self._complete()

        def on_lost() -> None:
            if rank_of:
                self._lost(rank_of[0])

        holder.append(Link(self._head.loop, sock, on_frame, on_lost))

    def _register(self, payload: bytes, link: Link) -> int | None:
        try:
            version, rank_text, token = unpack(payload)[:3]
            rank = int(rank_text)
        except ValueError:
            return None
        if version != wire.VERSION or token.decode("ascii", "replace") != self._head.record["token"]:
            return None
        if not 1 <= rank < self._count or rank in self._links:
            return None
        self._links[rank] = link
        return rank

    def _complete(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._listener is not None:
            self._listener.close()
        if not self._head.is_ending:
            self._head.assembled()
        else:
            self.broadcast(wire.KILL, {})

    def _frame(self, rank: int, kind: bytes, payload: bytes) -> None:
        if kind == wire.EMPTY:
            self._usage = add(self._usage, wire.decode(payload)["usage"])
            self._empty.add(rank)
            self._head.peer_is_empty()
        else:
            self._head.steps.from_rank(rank, kind, payload)

    def _lost(self, rank: int) -> None:
        if rank in self._empty:
            return
        # its processes ended with it (PID namespace), or its own supervisor's death is found by the runtime
        self._empty.add(rank)
        self.lost.append(rank)
        self._head.steps.rank_lost(rank)
        self._head.node_failed(rank)
