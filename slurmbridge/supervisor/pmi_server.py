"""PMI on one node: the descriptors of a step's tasks, and the barriers that all nodes of the step take part in."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from slurmbridge.supervisor.loop import IN, Loop
from slurmbridge.wire.pmi import LINE_MAX, Space


class PmiServer:
    """`send_puts` when all tasks here are in a barrier; `abort(code)` when a task asks for the step's end."""

    def __init__(
        self, loop: Loop, space: Space, send_puts: Callable[[dict[str, str]], None], abort: Callable[[int], None]
    ) -> None:
        self._loop, self._space, self._send_puts, self._abort = loop, space, send_puts, abort
        self._sockets: dict[int, socket.socket] = {}
        self._partial: dict[int, bytes] = {}
        self._told = False

    def connect(self, task: int) -> socket.socket:
        """The task's end; close it after the fork."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        self._sockets[task] = ours
        self._loop.watch(ours.fileno(), IN, lambda events: self._ready(task))
        return theirs

    def release(self, values: dict[str, str]) -> None:
        """All nodes are in the barrier."""
        self._told = False
        for task, line in self._space.release(values):
            self._say(task, line)

    def gone(self, task: int) -> None:
        """The task has ended."""
        self._close(task)
        self._space.gone(task)
        self._check()

    def _ready(self, task: int) -> None:
        try:
            data = self._sockets[task].recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(task)
            return
        lines = (self._partial.pop(task, b"") + data).split(b"\n")
        self._partial[task] = lines.pop()
        if len(self._partial[task]) > LINE_MAX:
            self._close(task)
            return
        for line in lines:
            answer = self._space.line(task, os.fsdecode(line))
            if answer:
                self._say(task, answer)
        if self._space.aborted is not None:
            self._abort(self._space.aborted)
            return
        self._check()

    def _check(self) -> None:
        if self._space.is_full and not self._told:
            self._told = True
            self._send_puts(self._space.take_puts())

    def _say(self, task: int, line: str) -> None:
        sock = self._sockets.get(task)
        if sock is None:
            return
        try:
            sock.send(os.fsencode(line))
        except OSError:
            self._close(task)

    def _close(self, task: int) -> None:
        sock = self._sockets.pop(task, None)
        if sock is not None:
            self._loop.forget(sock.fileno())
            sock.close()
