"""The unix socket: who is calling (SO_PEERCRED), frames in, commands run, frames out.

Each connection runs one command at a time, several in sequence. A command is a generator; its effects are performed by
the client (files, standard input), by `performing`, or here (output). Nothing of a caller is believed but what the
kernel says about the peer.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from slurmbridge.commands import effects as fx
from slurmbridge.commands.table import find
from slurmbridge.daemon import messages
from slurmbridge.daemon.attached import Attached
from slurmbridge.daemon.crowd import Crowd
from slurmbridge.daemon.held import Held
from slurmbridge.daemon.hello import Hellos
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.performing import Performer
from slurmbridge.errors import BridgeError
from slurmbridge.wire import client as wire

log = logging.getLogger(__name__)

CHUNK = 1 << 20
MOST_GIVEN = 16  # files that come before one hello
TURN_S = 0.01
"""A command that prints and prints lets others be served after so long, and whenever its caller does not read."""
INTERNAL = "Internal error in the controller; its log says more"

TakeOver = Callable[[socket.socket, bytes, int], bool]


class Service:
    """What all connections share."""

    def __init__(self, memory: Memory, performer: Performer, clock: Callable[[], float], take_over: TakeOver) -> None:
        self.memory, self.performer, self.clock, self.take_over = memory, performer, clock, take_over
        self.crowd = Crowd(memory.owner_uid)
        self.attached = Attached()
        self.is_stopping = False
        self.step_address: Callable[[int], str] = lambda job_id: ""


class Connection(asyncio.Protocol):
    def __init__(self, service: Service) -> None:
        self._service = service
        self._decoder = wire.Decoder()
        self._transport: asyncio.Transport
        self._uid = self._gid = self._pid = -1
        self._counted = False
        self._held = 0
        self._is_read = True  # whether the caller takes what is written
        self._run: Run | None = None
        self._given: list[bytes] = []  # files for the next command
        self._ahead: list[tuple[bytes, list[bytes]]] = []  # hellos that came before the command in hand was over

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        self._pid, self._uid, self._gid = struct.unpack(
            "3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        )
        self._hellos = Hellos(self._service.memory, self._service.clock, self._uid, self._gid)
        if not self._service.crowd.may_come(self._uid):
            self.fail("Access/permission denied")
            return
        self._service.crowd.came(self._uid)
        self._counted = True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted:
            self._service.crowd.went(self._uid, self._held)
        if self._run is not None:
            self._run.abandon()
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
        for kind, payload in frames:
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
            elif kind == b"V":
                self._hand_over(payload)
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
        self._run = Run(self._service, self._transport, call, command, self._over, lambda: self._is_read)
        self._run.given = given
        self._run.advance(None)

    def _over(self) -> None:
        self._run = None
        self._weigh()
        if self._ahead and self._is_read and not self._transport.is_closing():
            self._begin(*self._ahead.pop(0))


class Run:
    """One command under way on a connection."""

    def __init__(
        self,
        service: Service,
        transport: asyncio.Transport,
        call: fx.Call,
        command: fx.Command,
        over: Callable[[], None],
        is_read: Callable[[], bool],
    ) -> None:
        self._service, self._transport, self._call = service, transport, call
        self._command, self._over, self._is_read = command, over, is_read
        self._is_resting = False
        self._out: list[bytes] = []
        self._future: asyncio.Future[Any] | None = None
        self._asked = False
        self._ended = False
        self._effect: fx.Effect | None = None
        self._held = Held(call, service.performer, service.attached, service.step_address, self._out.append)
        self._busy_s = 0.0  # time spent in the command itself
        self.given: list[bytes] = []  # files that the client sent without being asked
        service.memory.tally.open += 1

    def advance(self, answer: Any) -> None:
        """Run the command until it ends or must wait."""
        send = self._command.send
        turn = time.perf_counter()
        while not self._ended:
            began = time.perf_counter()
            try:
                effect = send(answer)
                now = time.perf_counter()
                self._busy_s += now - began
            except StopIteration as stop:
                self._finish(int(stop.value or 0))
                return
            except BridgeError as fault:
                self._complain(str(fault), fault.exit_code)
                return
            except Exception:
                log.exception("event=command.failed argv=%r", self._call.argv[:4])
                self._complain(INTERNAL, 1)
                return
            if type(effect) is fx.Print:
                self._print(effect)
                answer = None
                if now - turn > TURN_S:
                    self._rest()
                    return
                continue
            self._effect = effect
            if self.given and type(effect) is fx.ReadFile:
                answer = self._was_given(effect)
                if answer is not None:
                    continue
            if self._is_for_client(effect):
                self._flush()
                return
            try:
                future = self._held.perform(effect)
                future.add_done_callback(functools.partial(self._served, effect, time.perf_counter()))
                if future.done():
                    answer = future.result()
                    self._held.note(effect, answer)
                    continue
            except Exception:  # the border of a request: it fails alone, and says so
                log.exception("event=effect.failed argv=%r", self._call.argv[:4])
                self._complain(INTERNAL, 1)
                return
            self._future = future
            future.add_done_callback(self._resume)
            self._flush()
            return

    def _rest(self) -> None:
        """Others first; and nothing is made that nobody reads."""
        self._flush()
        self._is_resting = True
        if self._is_read():
            asyncio.get_running_loop().call_soon(self.go_on)

    def go_on(self) -> None:
        """After a rest."""
        if self._is_resting and self._is_read():
            self._is_resting = False
            self.advance(None)

    def _served(self, effect: fx.Effect, began: float, future: asyncio.Future[Any]) -> None:
        """For sdiag: who asked for what, and how long that took."""
        kinds = messages.of_effect(effect)
        if kinds:
            self._service.memory.tally.request(kinds, self._call.uid, time.perf_counter() - began)

    def _resume(self, future: asyncio.Future[Any]) -> None:
        self._future = None
        if self._ended or future.cancelled():
            return
        fault = future.exception()
        if fault is not None:
            log.error("event=effect.failed argv=%r", self._call.argv[:4], exc_info=fault)
            self._complain(INTERNAL, 1)
            return
        self._held.note(self._effect, future.result())
        self.advance(future.result())

    def signalled(self, payload: bytes) -> bool:
        """The caller's process caught a signal. False: the command knows none."""
        found = self._held.signalled(payload, self._effect if self._future is not None else None)
        if isinstance(found, fx.Progress):
            self._forget_future()
            self.advance(found)
        return found is not False

    def client_returned(self, payload: bytes) -> None:
        """What was handed over to the caller's process is done."""
        try:
            self._held.returned(payload)
        except ValueError as fault:
            self._complain(f"Protocol error: {fault}", 1)

    def _forget_future(self) -> None:
        future, self._future = self._future, None
        if future is not None:
            future.remove_done_callback(self._resume)
            if type(self._effect) is fx.WaitStart:
                future.cancel()

    def _print(self, effect: fx.Print) -> None:
        data = effect.text.encode("utf-8", "surrogateescape")
        kind = b"O" if effect.fd == 1 else b"E"
        for at in range(0, len(data), CHUNK):
            self._out.append(wire.frame(kind, data[at : at + CHUNK]))

    def _was_given(self, effect: fx.ReadFile) -> fx.FileData | None:
        """A file that came before it was asked for."""
        wanted = os.fsencode(effect.name)
        for payload in self.given:
            try:
                name, path, content = wire.unpack(payload)
            except ValueError:
                continue  # never asked for, so never missed
            if name == wanted and len(content) <= effect.limit:
                return fx.FileData(data=content, path=os.fsdecode(path))
        return None

    def _is_for_client(self, effect: fx.Effect) -> bool:
        if type(effect) is fx.ReadFile:
            payload = wire.pack(
                os.fsencode(effect.name), str(effect.limit).encode(), b"p" if effect.search_path else b""
            )
            self._out.append(wire.frame(b"A", payload))
        elif type(effect) is fx.ReadStdin:
            self._out.append(wire.frame(b"I", wire.pack(str(effect.limit).encode(), b"l" if effect.line else b"")))
        elif type(effect) is fx.WriteFile:
            payload = wire.pack(os.fsencode(effect.name), b"%o" % effect.mode, effect.data)
            self._out.append(wire.frame(b"W", payload))
        else:
            return False
        self._asked = True
        return True

    def client_answered(self, payload: bytes) -> None:
        if not self._asked:
            self._complain("Protocol error: an answer that nobody asked for", 1)
            return
        self._asked = False
        try:
            errno, path, content = wire.unpack(payload)
            data = fx.FileData(data=content, path=os.fsdecode(path), errno=int(errno))
        except ValueError as fault:
            self._complain(f"Protocol error: {fault}", 1)
            return
        self.advance(data)

    def abandon(self) -> None:
        """The caller is gone: a batch job stays submitted, an allocation of its own ends, nothing more is done."""
        if not self._ended:
            self._service.memory.tally.open -= 1
        self._ended = True
        self._forget_future()
        self._command.close()
        self._held.let_go(is_lost=not self._service.is_stopping)

    def _complain(self, message: str, code: int) -> None:
        name = os.path.basename(self._call.argv[0])
        self._print(fx.Print(f"{name}: error: {message}\n", 2))
        self._command.close()
        self._held.let_go(is_lost=True)
        self._finish(code)

    def _finish(self, code: int) -> None:
        tally, kinds = self._service.memory.tally, messages.of_command(self._call.argv)
        if kinds:
            tally.request(kinds, self._call.uid, self._busy_s)
        if not self._ended:
            tally.open -= 1
        self._ended = True
        self._held.let_go(is_lost=False)
        self._out.append(wire.frame(b"X", str(code).encode()))
        self._flush()
        self._over()

    def _flush(self) -> None:
        if self._out:
            self._transport.write(b"".join(self._out))
            self._out.clear()
