"""The supervisor of a rank other than 0: does what rank 0 says, and ends when rank 0 does."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

from slurmbridge.spool import claim
from slurmbridge.supervisor.kernel import boottime
from slurmbridge.supervisor.loop import Link, Loop, dial
from slurmbridge.supervisor.node import NodeRun
from slurmbridge.supervisor.space import Space
from slurmbridge.supervisor.tasks import Tasks
from slurmbridge.wire import step as step_wire
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import pack

FIND_HEAD_S = 60.0
RETRY_S = 0.02


class Member:
    """See the module docstring; `run` returns when nothing is left to do."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        folder: str,
        header: dict[str, Any],
        base_env: dict[str, str],
        record: dict[str, Any],
        space: Space,
    ) -> None:
        self.loop, self.folder, self.header, self.record = loop, folder, header, record
        self._daemon = Link(loop, sock, self._from_daemon, self._daemon_lost)
        self._head: Link | None = None
        self.node = NodeRun(loop, header, space)
        self.node.on_empty = self._empty
        self.tasks = Tasks(self.node, header, base_env, self._emit)
        spool = os.path.dirname(folder)
        self._head_folder = os.path.join(spool, claim.folder_name(int(header["job"]), int(header["restarts"]), 0))
        self._give_up = boottime() + FIND_HEAD_S

    def run(self) -> None:
        """Until rank 0 has gone or says so."""
        self._find_head()
        self.loop.run()

    def _find_head(self) -> None:
        try:
            sock = dial(os.path.join(self._head_folder, claim.PEER_SOCKET))
        except OSError:
            if boottime() > self._give_up or self.node.is_ending:
                self._leave()
            else:
                self.loop.after(RETRY_S, self._find_head)
            return
        self._follow(Link(self.loop, sock, self._from_head, self._head_lost)).send(
            wire.REGISTER, pack(wire.VERSION, b"%d" % int(self.header["rank"]), self.record["token"].encode("ascii"))
        )

    def _follow(self, head: Link) -> Link:
        self._head = head
        head.on_drained = self.tasks.resume
        self.tasks.is_blocked = lambda: self._head is None or self._head.is_full
        return head

    def _from_head(self, kind: bytes, payload: bytes) -> None:
        if kind in (wire.KILL, wire.UNWANTED):
            self.node.end()
        elif kind == wire.SIGNAL:
            self.node.signal_all(int(wire.decode(payload)["signal"]))
        else:
            step, content = step_wire.unnumber(payload)
            self.tasks.command(step, kind, content)

    def _from_daemon(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.UNWANTED or (kind == wire.KILL and self._head is None):
            self.node.end()

    def _daemon_lost(self) -> None:
        """Rank 0 has all that is needed."""

    def _emit(self, step: int, kind: bytes, payload: bytes) -> None:
        if self._head is not None:
            self._head.send(kind, step_wire.number(step, payload))

    def _head_lost(self) -> None:
        self._head = None
        self.node.signal_all(signal.SIGKILL)
        self.node.end()
        if self.node.is_empty:
            self._leave()

    def _empty(self) -> None:
        if self._head is None:
            self._leave()
            return
        self._head.send(wire.EMPTY, wire.encode({"usage": self.node.total()}))

    def _leave(self) -> None:
        if not self.node.is_empty:
            self.node.end()
            return
        claim.release(self.folder)
        self.loop.stop()
