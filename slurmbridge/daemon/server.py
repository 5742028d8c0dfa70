"""Connections of clients: who is calling, frames in, commands run, frames out.

Each connection runs one command at a time, several in sequence (`commanded`). Nothing of a caller is believed but what
the kernel says about the peer of the unix socket, or what is known of a job from whose pod it comes (`peer`).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Sequence

from slurmbridge.commands.table import find
from slurmbridge.daemon.attached import Attached
from slurmbridge.daemon.commanded import Run
from slurmbridge.daemon.crowd import Crowd
from slurmbridge.daemon.hello import Hellos
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.peer import Peer, of_socket
from slurmbridge.daemon.performing import Performer
from slurmbridge.daemon.through import Through, through
from slurmbridge.wire import client as wire

log = logging.getLogger(__name__)

MOST_GIVEN = 16  # files that come before one hello

TakeOver = Callable[[socket.socket, bytes, int], bool]


class Service:
    """What all connections share. `crowd`: who may come; else the daemon's owner, or everybody where that is root."""

    def __init__(
        self, memory: Memory, performer: Performer, clock: Callable[[], float], take_over: TakeOver,
        crowd: Crowd | None = None,
    ) -> None:  # fmt: skip
        self.memory, self.performer, self.clock, self.take_over = memory, performer, clock, take_over
        self.crowd = crowd or Crowd(memory.owner_uid)
        self.attached = Attached()
        self.is_stopping = False
        self.step_address: Callable[[int], str] = lambda job_id: ""
        self.through = Through(memory.table)


class Connection(asyncio.Protocol):
    """`peer`: who it is when the socket cannot say it."""

    def __init__(self, service: Service, peer: Peer | None = None) -> None:
        self._service, self._peer = service, peer
        self._decoder = wire.Decoder()
        self._transport: asyncio.Transport
        self._uid = -1
        self._counted = False
        self._held = 0
        self._is_read = True  # whether the caller takes what is written
        self._run: Run | None = None
        self._given: list[bytes] = []  # files for the next command
        self._ahead: list[tuple[bytes, list[bytes]]] = []  # hellos that came before the command in hand was over

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._caller = caller = self._peer or of_socket(transport.get_extra_info("socket"))
        self._uid = caller.uid
        self._hellos = Hellos(self._service.memory, self._service.clock, caller)
        if not self._service.crowd.may_come(self._uid):
            self.fail("Access/permission denied")
            return
        self._service.crowd.came(self._uid)
        self._counted = True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted:
            self._service.crowd.went(self._uid, self._held)
        if self._run is not None:
            self._run.abandon(is_gone=exc is None or not self._caller.is_remote)  # he may be there, and come again
            self._run = None

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._decoder.feed(data)
        except ValueError as fault:
            self.fail(f"Protocol error: {fault}")
            return
        self._take(frames)
        self._weigh()

    def pause_writing(self) -> None:
        self._is_read = False

    def resume_writing(self) -> None:
        self._is_read = True
        if self._run is None:
            self._over()
        else:
            self._run.go_on()

    def _weigh(self) -> None:
        """Count what this connection holds; one too heavy for its user is cut."""
        if not self._counted:
            return
        held = self._decoder.pending + self._transport.get_write_buffer_size()
        if self._ahead or self._given or self._run is not None:
            given = [self._given, self._run.given if self._run is not None else [], *(part for _, part in self._ahead)]
            held += sum(len(payload) for payload, _ in self._ahead) + sum(map(len, itertools.chain(*given)))
        before, self._held = self._held, held
        if not self._service.crowd.holds(self._uid, before, held):
            log.warning("event=connection.cut uid=%d bytes=%d", self._uid, held)
            self._transport.abort()

    def _take(self, frames: Sequence[tuple[bytes, bytes]]) -> None:
        for place, (kind, payload) in enumerate(frames):
            if self._transport.is_closing():
                return
            if kind == b"H":
                given, self._given = self._given, []
                if self._run is None:
                    self._begin(payload, given)
                elif len(self._ahead) < 64:
                    self._ahead.append((payload, given))
                else:
                    self.fail("Protocol error: too many commands at once")
            elif kind == b"G" and len(self._given) < MOST_GIVEN:
                self._given.append(payload)
            elif kind == b"F" and self._run is not None:
                self._run.client_answered(payload)
            elif kind == b"S" and self._run is not None:
                if not self._run.signalled(payload):
                    self._run.abandon()
                    self._transport.close()
            elif kind == b"D" and self._run is not None:
                self._run.client_returned(payload)
            elif kind == b"V" and self._peer is None:
                self._hand_over(payload)
                return
            elif kind == b"T" and self._run is None:
                self._go_through(payload, frames[place + 1 :])
                return
            else:
                self.fail(f"Protocol error: unexpected frame {kind!r}")
                return

    def _hand_over(self, payload: bytes) -> None:
        """A supervisor came back: its socket belongs to the runtime from here on."""
        sock: socket.socket = self._transport.get_extra_info("socket")
        duplicate = socket.socket(fileno=os.dup(sock.fileno()))
        uid = self._uid
        self._transport.abort()
        self._service.take_over(duplicate, payload, uid)

    def _go_through(self, payload: bytes, more: Sequence[tuple[bytes, bytes]]) -> None:
        """What else comes is for a job's supervisor, who answers here."""
        first = b"".join(wire.frame(*each) for each in more) + self._decoder.take()
        self._service.through.begin(payload, self._caller, self._transport, first, self.connection_lost)

    def fail(self, message: str) -> None:
        self._transport.write(wire.frame(b"E", f"slurm: error: {message}\n".encode()) + wire.frame(b"X", b"1"))
        self._transport.close()

    def _begin(self, payload: bytes, given: list[bytes]) -> None:
        try:
            call = self._hellos.read(payload)
        except (ValueError, IndexError) as fault:
            self.fail(f"Protocol error: {fault}")
            return
        name = os.path.basename(call.argv[0]) if call.argv else ""
        main = find(name)
        if main is None:
            self.fail(f"Unknown command {name}")
            return
        command = main(call, self._service.memory)
        self._run = Run(
            self._service, self._transport, call, command, self._over, lambda: self._is_read,
            through if self._caller.is_remote else self._service.step_address,
        )  # fmt: skip
        self._run.given = given
        self._run.advance(None)

    def _over(self) -> None:
        self._run = None
        self._weigh()
        if self._ahead and self._is_read and not self._transport.is_closing():
            self._begin(*self._ahead.pop(0))
