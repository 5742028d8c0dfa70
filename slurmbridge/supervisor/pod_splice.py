"""Bytes from one socket to another and back, with bounded buffers, until either ends."""

from __future__ import annotations

import socket

from slurmbridge.supervisor.loop import IN, OUT, Loop

CHUNK = 1 << 16
ENOUGH = 1 << 18


class _Side:
    """What is read from one socket and goes to the other."""

    def __init__(self, source: socket.socket) -> None:
        self.source = source
        self.data = bytearray()
        self.is_over = False


class Splice:
    """Owns both sockets from here on."""

    def __init__(self, loop: Loop, left: socket.socket, right: socket.socket) -> None:
        self._loop = loop
        self._sides = (_Side(left), _Side(right))
        for index, side in enumerate(self._sides):
            side.source.setblocking(False)
            loop.watch(side.source.fileno(), IN, lambda events, index=index: self._ready(index, events))  # type: ignore[misc]

    def _ready(self, index: int, events: int) -> None:
        side, other = self._sides[index], self._sides[1 - index]
        if events & ~OUT and not side.is_over:
            try:
                data = side.source.recv(CHUNK)
                side.data += data
                side.is_over = not data
            except BlockingIOError:
                pass
            except OSError:
                side.is_over = True
        for goes, to in ((side, other), (other, side)):
            try:
                while goes.data:
                    sent = to.source.send(memoryview(goes.data)[:CHUNK])
                    del goes.data[:sent]
            except BlockingIOError:
                continue
            except OSError:
                goes.data.clear()
                to.is_over = True
        if any(each.is_over and not each.data for each in self._sides):
            for each in self._sides:
                self._loop.forget(each.source.fileno())
                each.source.close()
            return
        for number, (goes, comes) in enumerate(((self._sides[0], self._sides[1]), (self._sides[1], self._sides[0]))):
            reads = IN if len(goes.data) < ENOUGH and not goes.is_over else 0
            wanted = reads | (OUT if comes.data else 0)
            if wanted:
                self._loop.watch(
                    goes.source.fileno(),
                    wanted,
                    lambda events, number=number: self._ready(number, events),  # type: ignore[misc]
                )
            else:
                self._loop.forget(goes.source.fileno())
