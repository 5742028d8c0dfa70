"""Connections to the daemon: dialled, proved on both sides, used for one caller after the other, kept for the next.

`Far` is one of them. What comes for its caller is passed to him, with the back-pressure of each side felt by the other.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from slurmbridge.agent.credentials import Credentials
from slurmbridge.daemon.certificate import hash_of
from slurmbridge.daemon.tls import Tls
from slurmbridge.errors import ProtocolError
from slurmbridge.supervisor.pinned import keep_alive
from slurmbridge.wire import agent as wire
from slurmbridge.wire.client import Decoder, frame

log = logging.getLogger(__name__)

DIAL_S = 8.0
"""Until the daemon has said welcome."""
MOST_AT_ONCE = 16
"""Dialled at the same time."""
MOST_KEPT = 32
KEPT_S = 300.0
"""Connections without a caller, and for how long."""


class Refused(ProtocolError):
    """The daemon does not want this agent, or is not the one that we know: dialling again does not help."""


class Near(Protocol):
    """The caller of a connection."""

    def came(self, data: bytes) -> None: ...
    def ended(self) -> None:
        """The daemon has said all."""

    def cut(self) -> None:
        """The connection is gone."""

    def hold(self, full: bool) -> None:
        """Whether the daemon takes more now."""


class Far(asyncio.Protocol):
    """`welcome`: done when the daemon has let us in; Refused, or ConnectionError."""

    def __init__(self, pool: Pool, pin: str) -> None:
        self._pool, self._pin = pool, pin
        self._decoder = Decoder(wire.MAX_FRAME)
        self.welcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._near: Near | None = None
        self._we_ended = self._they_ended = True
        self._is_full = False
        self._why = "it ended the connection"
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        keep_alive(transport.get_extra_info("socket"))

    def shaken(self, der: bytes | None) -> None:
        if hash_of(der or b"") != self._pin:
            self._give_up(Refused("the daemon there has another certificate than the one in daemon.pin"))

    def failed(self, reason: str) -> None:
        """In TLS a daemon that does not know our certificate says so after its own part is done."""
        refusals = ("UNKNOWN_CA", "CERTIFICATE_EXPIRED", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "ACCESS_DENIED")
        if any(word in reason for word in refusals):
            self._give_up(Refused(f"the daemon does not take this agent's certificate ({reason})"))
        self._why = reason

    def _give_up(self, fault: Exception) -> None:
        if not self.welcome.done():
            self.welcome.set_exception(fault)
        self.transport.abort()

    # ---- one caller

    def begin(self, near: Near, caller: wire.Caller) -> None:
        """Everything from here on is his, until both sides have said all."""
        self._near, self._we_ended, self._they_ended = near, False, False
        self.transport.write(frame(wire.CALLER, wire.encode_caller(caller)))
        if self._is_full:
            near.hold(True)

    def say(self, data: bytes) -> None:
        if not self._we_ended:
            self.transport.write(wire.data(data))

    def end(self) -> None:
        """The caller says no more."""
        if not self._we_ended:
            self._we_ended = True
            self.transport.write(frame(wire.END, b""))
            self._settle()

    def let_go(self) -> None:
        """The caller is gone: what still comes for him is dropped."""
        self.end()
        self._near = None
        self.hold(False)

    def hold(self, full: bool) -> None:
        """Whether the caller takes nothing now."""
        if self.transport.is_closing():
            return
        if full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _settle(self) -> None:
        if self._we_ended and self._they_ended:
            self._near = None
            self._pool.free(self)

    # ---- the daemon's side

    def data_received(self, data: bytes) -> None:
        try:
            for kind, payload in self._decoder.feed(data):
                self._take(kind, payload)
        except ValueError as fault:
            log.error("event=daemon.nonsense reason=%r", str(fault)[:200])
            self.transport.abort()

    def _take(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.DATA and not self._they_ended:
            if self._near is not None:
                self._near.came(payload)
        elif kind == wire.END and not self._they_ended:
            self._they_ended = True
            if self._near is not None:
                self._near.ended()
            if self._we_ended:
                self._settle()
            else:
                self.end()
        elif kind == wire.NO:
            self._give_up(Refused(payload.decode(errors="replace")[:200]))
        elif kind == wire.WELCOME and not self.welcome.done():
            if payload == wire.VERSION:
                self.welcome.set_result(None)
            else:
                self._give_up(Refused(f"it speaks version {payload!r}, which this agent does not"))
        else:
            raise ValueError(f"frame {kind!r} is out of place")

    def pause_writing(self) -> None:
        self._is_full = True
        if self._near is not None:
            self._near.hold(True)

    def resume_writing(self) -> None:
        self._is_full = False
        if self._near is not None:
            self._near.hold(False)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.welcome.done():
            self.welcome.set_exception(ConnectionError(self._why))
        self._pool.lost(self)
        near, self._near = self._near, None
        if near is not None:
            near.cut()


class Pool:
    """All connections to the daemon at host:port."""

    def __init__(self, host: str, port: int, credentials: Credentials) -> None:
        self._host, self._port, self._credentials = host, port, credentials
        self._idle: list[Far] = []
        self._all: set[Far] = set()
        self._dialling = asyncio.Semaphore(MOST_AT_ONCE)

    def renew(self, credentials: Credentials) -> None:
        """For connections that are dialled from here on; those that wait for a caller go."""
        self._credentials = credentials
        for far in list(self._idle):
            far.transport.abort()

    async def take(self) -> Far:
        """A connection without a caller: the last one used, or a new one. Refused, OSError."""
        while self._idle:
            far = self._idle.pop()
            if not far.transport.is_closing():
                return far
        async with self._dialling:
            return await self._dial()

    async def _dial(self) -> Far:
        far = Far(self, self._credentials.pin)
        try:
            async with asyncio.timeout(DIAL_S):
                await asyncio.get_running_loop().create_connection(
                    lambda: Tls(
                        self._credentials.context, far, server_side=False, shaken=far.shaken, failed=far.failed
                    ),
                    self._host, self._port,
                )  # fmt: skip
                self._all.add(far)
                await far.welcome
        except TimeoutError:
            if far in self._all:
                far.transport.abort()
            raise ConnectionError("no answer in time") from None
        except BaseException:
            if far in self._all:
                far.transport.abort()
            raise
        return far

    def free(self, far: Far) -> None:
        if far.transport.is_closing():
            return
        if len(self._idle) >= MOST_KEPT:
            far.transport.close()
            return
        far.idle_since = asyncio.get_running_loop().time()
        self._idle.append(far)

    def lost(self, far: Far) -> None:
        self._all.discard(far)
        if far in self._idle:
            self._idle.remove(far)

    def tidy(self) -> None:
        """Close those that nobody has needed for long."""
        now = asyncio.get_running_loop().time()
        for far in [far for far in self._idle if now - far.idle_since > KEPT_S]:
            far.transport.close()

    def close(self) -> None:
        for far in list(self._all):
            far.transport.abort()
