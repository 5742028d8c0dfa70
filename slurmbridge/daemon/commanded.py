"""One command under way on a connection: a generator whose effects are performed, and what it prints.

Effects are performed by the client (files, standard input), by `held` and `performing`, or here (output). A command that
prints much lets others be served meanwhile, and makes nothing that its caller does not read.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slurmbridge.commands import effects as fx
from slurmbridge.daemon import messages
from slurmbridge.daemon.held import Held
from slurmbridge.errors import BridgeError, StoreError
from slurmbridge.wire import client as wire

if TYPE_CHECKING:
    from slurmbridge.daemon.server import Service

log = logging.getLogger(__name__)

CHUNK = 1 << 20
TURN_S = 0.01
"""A command that prints and prints lets others be served after so long, and whenever its caller does not read."""
INTERNAL = "Internal error in the controller; its log says more"
NO_RECORDS = "Problem talking to the database"


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
        step_address: Callable[[int], str],
    ) -> None:
        self._service, self._transport, self._call = service, transport, call
        self._command, self._over, self._is_read = command, over, is_read
        self._is_resting = False
        self._out: list[bytes] = []
        self._future: asyncio.Future[Any] | None = None
        self._asked = False
        self._ended = False
        self._effect: fx.Effect | None = None
        self._held = Held(call, service.performer, service.attached, step_address, self._out.append)
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
        if isinstance(fault, StoreError):
            self._complain(f"{NO_RECORDS}: {fault}", 1)
            return
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

    def abandon(self, *, is_gone: bool = True) -> None:
        """The caller is gone: a batch job stays submitted, an allocation of its own ends, nothing more is done.

        Not `is_gone`: only the connection is, and the allocation has its time until he comes again (`attached`)."""
        if not self._ended:
            self._service.memory.tally.open -= 1
        self._ended = True
        self._let_go(is_gone)
        self._forget_future()
        self._command.close()

    def _let_go(self, is_gone: bool) -> None:
        """Of an allocation, also of one that is being stored."""
        self._held.let_go(is_lost=is_gone and not self._service.is_stopping)
        if self._future is not None and type(self._effect) is fx.Submit:
            self._future.add_done_callback(functools.partial(self._came_too_late, self._effect, is_gone))

    def _came_too_late(self, effect: fx.Submit, is_gone: bool, future: asyncio.Future[Any]) -> None:
        """What was asked for is there; who asked is not."""
        if not future.cancelled() and future.exception() is None:
            self._held.note(effect, future.result())
            self._held.let_go(is_lost=is_gone and not self._service.is_stopping)

    def _complain(self, message: str, code: int) -> None:
        name = os.path.basename(self._call.argv[0])
        self._print(fx.Print(f"{name}: error: {message}\n", 2))
        self._command.close()
        self._let_go(is_gone=True)
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
