"""One supervisor's link on the daemon's event loop: frames in, frames out, nothing blocks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from slurmbridge.wire.client import Decoder, frame
from slurmbridge.wire.supervisor import MAX_FRAME


class Channel:
    """`on_frame(kind, payload)` for each frame; `on_lost()` once when the other side is gone or breaks the protocol."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_frame: Callable[[bytes, bytes], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._loop, self._socket, self._on_frame, self._on_lost = loop, sock, on_frame, on_lost
        self._decoder = Decoder(MAX_FRAME)
        self._out = bytearray()
        sock.setblocking(False)
        loop.add_reader(sock.fileno(), self._readable)

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def feed(self, data: bytes) -> None:
        """Bytes that were read before the channel was made."""
        try:
            frames = self._decoder.feed(data)
        except ValueError:
            self._lost()
            return
        for kind, payload in frames:
            if not self.is_open:
                return
            self._on_frame(kind, payload)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Queue one frame; dropped when the link is gone."""
        if not self.is_open:
            return
        idle = not self._out
        self._out += frame(kind, payload)
        if idle:
            self._flush()

    def close(self) -> None:
        """Without a call of `on_lost`."""
        if self.is_open:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()

    def _flush(self) -> None:
        try:
            while self._out:
                sent = self._socket.send(memoryview(self._out)[: 1 << 18])
                del self._out[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._socket.fileno(), self._flush)
            return
        except OSError:
            # what the supervisor said before it went is still to be read; the reader finds the end
            self._out.clear()
        self._loop.remove_writer(self._socket.fileno())

    def _readable(self) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.feed(data)
        else:
            self._lost()

    def _lost(self) -> None:
        if self.is_open:
            self.close()
            self._on_lost()
