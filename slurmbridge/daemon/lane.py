"""A connection of an agent, which brings callers one after the other (`wire.agent`).

Each caller is served as if he had dialled the daemon's own socket: `Stream` is the transport that his `Connection` sees.
What is not read at one end is not read from the other, so nothing piles up between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from slurmbridge.daemon.asserted import judge
from slurmbridge.daemon.enrolment import Agent
from slurmbridge.daemon.layered import Layered
from slurmbridge.daemon.peer import LinkCut
from slurmbridge.daemon.server import Connection, Service
from slurmbridge.daemon.threshold import Told
from slurmbridge.wire import agent as wire
from slurmbridge.wire.client import Decoder, frame

log = logging.getLogger(__name__)


class Lane(asyncio.Protocol):
    """From the welcome on. `lost`: told once when the connection is gone."""

    def __init__(
        self, service: Service, agent: Agent, transport: asyncio.Transport, told: Told, lost: Callable[[Lane], None]
    ) -> None:
        self.agent, self.transport = agent, transport
        self._service, self._told, self._lost = service, told, lost
        self._decoder = Decoder(wire.MAX_FRAME)
        self._stream: Stream | None = None
        self._is_full = False
        transport.set_protocol(self)
        transport.write(frame(wire.WELCOME, wire.VERSION))

    def data_received(self, data: bytes) -> None:
        try:
            for kind, payload in self._decoder.feed(data):
                self._take(kind, payload)
        except ValueError as fault:
            log.warning("event=agent.nonsense agent=%s reason=%r", self.agent.name, str(fault)[:200])
            self.transport.abort()

    def _take(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.CALLER and self._stream is None:
            self._begin(wire.decode_caller(payload))
        elif kind == wire.DATA and self._stream is not None:
            self._stream.came(payload)
        elif kind == wire.END and self._stream is not None:
            self._stream.said_all()
        else:
            raise ValueError(f"frame {kind!r} is out of place")

    def _begin(self, caller: wire.Caller) -> None:
        found = judge(caller, self.agent, self._service.memory)
        stream = self._stream = Stream(self)
        if isinstance(found, str):
            self._told.say("event=caller.refused agent=%s uid=%d reason=%r", self.agent.name, caller.uid, found)
            stream.write(frame(b"E", f"slurm: error: Access/permission denied: {found}\n".encode(errors="replace")))
            stream.write(frame(b"X", b"1"))
            stream.close()
            return
        connection = Connection(self._service, found)
        stream.set_protocol(connection)
        if self._is_full:
            connection.pause_writing()
        connection.connection_made(stream)

    def is_over(self) -> None:
        """Both have said all: the next may come."""
        self._stream = None

    def pause_writing(self) -> None:
        self._is_full = True
        if self._stream is not None:
            self._stream.protocol.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        if self._stream is not None:
            self._stream.protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self)
        if self._stream is not None:
            self._stream.cut()


class Stream(Layered):
    """One caller. It ends with E on both sides, or with the connection."""

    def __init__(self, lane: Lane) -> None:
        super().__init__(lane.transport, asyncio.Protocol())
        self._lane = lane
        self._has_closed = self._has_heard_all = self._is_lost = False

    # ---- the agent's side

    def came(self, data: bytes) -> None:
        if self._has_heard_all:
            raise ValueError("bytes after the end")
        if not self._has_closed:
            self.protocol.data_received(data)

    def said_all(self) -> None:
        if self._has_heard_all:
            raise ValueError("a second end")
        self._has_heard_all = True
        if not self._has_closed and not self.protocol.eof_received():
            self.close()
        self._settle()

    def cut(self) -> None:
        """The connection is gone, and perhaps not the caller."""
        self._has_closed = self._has_heard_all = True
        if not self._is_lost:
            self._is_lost = True
            self.protocol.connection_lost(LinkCut("the connection of the agent was cut"))

    def _settle(self) -> None:
        if self._has_heard_all and self._is_lost:
            self._lane.is_over()

    def _let_go(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self.protocol.connection_lost(None)
            self._settle()

    # ---- what the protocol sees

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if data and not self._has_closed:
            self._outer.write(wire.data(bytes(data)))

    def close(self) -> None:
        """After all that was written."""
        if not self._has_closed:
            self._has_closed = True
            self._outer.write(frame(wire.END, b""))
            self.resume_reading()
            asyncio.get_running_loop().call_soon(self._let_go)

    def abort(self) -> None:
        """What waits to be written goes with the connection."""
        self._outer.abort()

    def is_closing(self) -> bool:
        return self._has_closed or self._outer.is_closing()

    def pause_reading(self) -> None:
        if not self._has_closed:
            self._outer.pause_reading()

    def resume_reading(self) -> None:
        self._outer.resume_reading()

    def is_reading(self) -> bool:
        return self._outer.is_reading()
