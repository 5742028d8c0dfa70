"""One connection of a pod to the daemon: what comes is passed on whole, and what is broken breaks nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurmbridge.supervisor import pod_relay
from slurmbridge.supervisor.loop import Loop
from slurmbridge.supervisor.pod_gate import Gate, Who
from slurmbridge.supervisor.pod_place import Place
from slurmbridge.supervisor.pod_relay import ENOUGH
from slurmbridge.supervisor.pod_space import PodSpace
from tests.patience import until
from tests.supervisor.pods import Line, ScriptedDaemon

RECORD = 1 << 14
"""Most that one record of TLS carries."""
MANY = 2000
"""Turns of a loop, a hundredth of a second each, for what must come."""


class Way:
    """A command, its relay in this process, and the daemon at the other end."""

    def __init__(self, gate: Gate, daemon: ScriptedDaemon) -> None:
        self.loop = gate.loop
        self.command, near = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ENOUGH)  # the kernel doubles it: all that a relay holds
        self.command.setblocking(False)
        gate.client(near, os.getuid())
        (self.relay,) = gate._relays
        self.turn_until(lambda: self.relay._is_secure)
        self.line: Line = daemon.line("client")
        self.line._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.said = 0

    def close(self) -> None:
        self.command.close()

    def turn(self, seconds: float = 0.0) -> None:
        """What is ready, or gets ready in that time."""
        self.loop.after(seconds, self.loop.stop)
        self.loop.run()

    def turn_until(self, reached: Callable[[], bool]) -> None:
        def turned() -> bool:
            self.turn()
            return reached()

        until(turned)

    def say(self, size: int) -> None:
        self.line._socket.sendall(bytes(size))
        self.said += size

    def say_until_it_holds(self, size: int) -> None:
        """The command reads nothing meanwhile."""
        while len(self.relay._to_near) < size:
            self.say(RECORD // 2)
            self.turn()

    def say_more_than_it_holds(self) -> None:
        self.say_until_it_holds(ENOUGH - RECORD)
        self.say(3 * RECORD)
        self.turn_until(lambda: len(self.relay._to_near) >= ENOUGH)
        assert self.relay._incoming.pending

    def hears_it_all(self, *, ended: bool) -> bool:
        """Whether the command gets what was said, and the end of the connection where that is awaited."""
        got = 0
        for _ in range(MANY):
            with contextlib.suppress(BlockingIOError):
                while data := self.command.recv(1 << 20):
                    got += len(data)
                return ended and got == self.said
            if got == self.said and not ended:
                return True
            self.turn(0.01)
        return False


@pytest.fixture
def gate(daemon: ScriptedDaemon, tmp_path: Path) -> Iterator[Gate]:
    token = tmp_path / "token"
    token.write_text("projected")
    handler = signal.getsignal(signal.SIGCHLD)
    who = Who("127.0.0.1", daemon.port, daemon.pin, str(token), 7, 0, 0)
    made = Gate(Loop(), PodSpace(), who)
    yield made
    for relay in list(made._relays):
        relay._close()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, handler)


def test_who_looks_a_name_up_is_forgotten_when_it_has_ended(gate: Gate, daemon: ScriptedDaemon, tmp_path: Path) -> None:
    """Also before a run has begun: its number may be a process of the job's later."""
    who, space = gate.who._replace(host="localhost"), PodSpace()
    place = Place(gate.loop, space, who, [], base=str(tmp_path / "base"), words="")
    found: list[int] = []
    place.gate.names.find(lambda addresses: found.append(len(addresses)))
    while not found or space.aside:
        gate.loop.after(0.01, gate.loop.stop)
        gate.loop.run()
    assert found[0]


def test_what_has_come_is_passed_on_when_there_is_room_though_nothing_follows(
    gate: Gate, daemon: ScriptedDaemon
) -> None:
    with contextlib.closing(Way(gate, daemon)) as way:
        way.say_more_than_it_holds()
        assert way.hears_it_all(ended=False)


def test_what_has_come_before_the_end_of_a_connection_is_passed_on(gate: Gate, daemon: ScriptedDaemon) -> None:
    with contextlib.closing(Way(gate, daemon)) as way:
        way.say_more_than_it_holds()
        way.line.close()
        assert way.hears_it_all(ended=True)


def test_a_connection_that_somebody_breaks_is_ended_and_nothing_else(gate: Gate, daemon: ScriptedDaemon) -> None:
    with contextlib.closing(Way(gate, daemon)) as way:
        way.say_until_it_holds(1)
        with socket.socket(fileno=os.dup(way.line._socket.fileno())) as wire:
            wire.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))  # a record of nobody who has the keys
        way.turn_until(lambda: way.relay._far_ended)
        way.command.send(b"more")
        assert way.hears_it_all(ended=True)


def test_an_address_that_says_nothing_keeps_no_other_from_being_tried(
    gate: Gate, daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_relay, "CONNECT_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        places = [silent.getsockname(), ("127.0.0.1", daemon.port)]
        gate.names._known = [(int(socket.AF_INET), place) for place in places]
        with contextlib.closing(Way(gate, daemon)) as way:
            assert way.line.opening.what == "client"
