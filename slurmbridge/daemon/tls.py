"""TLS between a TCP connection on the event loop and a protocol that speaks in the clear.

    loop.create_server(lambda: Tls(context, protocol()), host, port)
    loop.create_connection(lambda: Tls(context, protocol(), server_side=False), host, port)

The protocol inside sees an ordinary transport. It is told of the connection at once, before the handshake; what it writes
until then is lost, so it waits for the first bytes, or for `shaken`, which is told the other side's certificate. Nothing is kept for a connection on which nothing comes (asyncio's
own TLS keeps 256 KiB each). Follows "asyncio Transports and Protocols" and `ssl.SSLObject` of Python's documentation.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from slurmbridge.daemon.layered import Layered

READ = 1 << 16
MOST_OF_ITS_OWN = 1 << 20
"""Bytes that TLS itself may have said on a connection after the handshake: an answer to each update of keys that the other
side asks for, which it need not read."""


class Tls(asyncio.Protocol):
    """`shaken(certificate)`: once, when the handshake is over; DER, None when there is none. `failed(reason)`: the
    handshake, or what came behind it, was broken; the connection ends."""

    def __init__(
        self,
        context: ssl.SSLContext,
        inner: asyncio.Protocol,
        *,
        server_side: bool = True,
        shaken: Callable[[bytes | None], None] = lambda certificate: None,
        failed: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._first = inner
        self._speaks_first = not server_side
        self._shaken, self._failed = shaken, failed
        self._is_shaken = False
        self._is_lost = False
        self._own = 0
        self._fault: ssl.SSLError | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._outer = transport
        self._inside = Inside(self, transport, self._first)
        self._first.connection_made(self._inside)
        if self._speaks_first:
            self.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._inside.protocol.connection_lost(exc or self._fault)

    def pause_writing(self) -> None:
        self._inside.protocol.pause_writing()

    def resume_writing(self) -> None:
        self._inside.protocol.resume_writing()

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        self.pump()

    def eof_received(self) -> None:
        """Without the end that TLS has: whatever was under way was cut."""
        self._incoming.write_eof()
        self.pump()

    def pump(self) -> None:
        """Hand on what has come, as far as it is wanted."""
        try:
            if not self._is_shaken:
                self._tls.do_handshake()
                self._is_shaken = True
                self._flush()
                self._shaken(self._tls.getpeercert(binary_form=True))
            while not self._inside.is_closing() and self._inside.is_reading():
                data = self._tls.read(READ)
                if not data:
                    self._ended()
                    break
                self._inside.protocol.data_received(data)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended()
        except ssl.SSLError as fault:
            self._flush()  # the alert
            self._fault = fault
            self._outer.close()
            self._failed(fault.reason or str(fault))
            return
        self._own += self._flush()
        if self._own > MOST_OF_ITS_OWN:
            self.abort()

    def _ended(self) -> None:
        """The other side has said all."""
        if not self._inside.protocol.eof_received():
            self.close()

    def send(self, data: bytes) -> None:
        if not self._is_shaken or self._outer.is_closing():
            return
        try:
            self._tls.write(data)
        except ssl.SSLError:
            self.abort()
            return
        self._flush()

    def close(self) -> None:
        """After all that was written."""
        if self._outer.is_closing():
            return
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # ours is said; theirs is not waited for
        self._flush()
        self._outer.close()

    def abort(self) -> None:
        if not self._is_lost:  # asyncio's transport does not take it any more then
            self._outer.abort()

    def _flush(self) -> int:
        """How much it was."""
        data = self._outgoing.read()
        if data and not self._outer.is_closing():
            self._outer.write(data)
        return len(data)


class Inside(Layered):
    """What the protocol inside writes to."""

    def __init__(self, tls: Tls, outer: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        super().__init__(outer, protocol)
        self._tls = tls
        self._is_reading = True

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if data:
            self._tls.send(bytes(data))

    def close(self) -> None:
        self._tls.close()

    def abort(self) -> None:
        self._tls.abort()

    def is_closing(self) -> bool:
        return self._outer.is_closing()

    def pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            if not self._outer.is_closing():
                self._outer.pause_reading()

    def resume_reading(self) -> None:
        """What lies here already comes later, not within this call."""
        if not self._is_reading:
            self._is_reading = True
            if not self._outer.is_closing():
                self._outer.resume_reading()
                asyncio.get_running_loop().call_soon(self._tls.pump)

    def is_reading(self) -> bool:
        return self._is_reading
