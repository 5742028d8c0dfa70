"""Pods dial in: proved first, bounded before that, and then a supervisor, a user's command, or a step for somebody outside."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from slurmbridge.daemon import certificate, door, threshold, through
from slurmbridge.daemon.door import Door
from slurmbridge.daemon.pod_link import PodLink
from slurmbridge.daemon.server import Connection, Service
from slurmbridge.errors import RuntimeFault
from slurmbridge.model.run import RunKey
from slurmbridge.wire import client as frames
from slurmbridge.wire import step
from slurmbridge.wire import supervisor as wire
from tests.daemon.controlled import Site, site
from tests.daemon.test_hostile_callers import hello
from tests.daemon.test_tls import client, gone

TOKENS = {"t1": (RunKey(1, 0), 0), "t2": (RunKey(2, 0), 0)}
WITHIN = 30


class Porch:
    """A controller, its unix socket and its door; `TOKENS` are good."""

    def __init__(self, made: Site, folder: Path) -> None:
        self.made, self.path = made, str(folder / "socket")
        controller = made.controller
        self.service = Service(controller.memory, controller.performer, made.clock, lambda *_: False)
        self.door = Door(certificate.ensure(str(folder))[0], self.service, self.why_not, self.welcome)
        self.port = 0
        self.links: list[PodLink] = []
        self.heard: list[tuple[bytes, bytes]] = []
        self.openings: list[wire.Opening] = []
        self.judging = asyncio.Event()
        self.may_judge = asyncio.Event()
        self.may_judge.set()
        self.fault: Exception | None = None

    async def why_not(self, token: str, key: RunKey, rank: int) -> str:
        self.judging.set()
        await self.may_judge.wait()
        if self.fault is not None:
            raise self.fault
        return "" if TOKENS.get(token) == (key, rank) else "not its pod"

    def welcome(self, transport: asyncio.Transport, opening: wire.Opening, first: bytes) -> None:
        self.openings.append(opening)
        self.links.append(PodLink(transport, first, lambda *each: self.heard.append(each), lambda: None))

    async def dial(
        self, opening: wire.Opening | None, more: bytes = b""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=client())
        if opening is not None:
            writer.write(frames.frame(wire.OPENING, wire.encode_opening(opening)) + more)
        return reader, writer


Rule = Callable[[Porch], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def porch(folder: Path) -> AsyncIterator[Porch]:
    there = Porch(await site(), folder)
    servers = [
        await there.door.open(socket.create_server(("127.0.0.1", 0))),
        await asyncio.get_running_loop().create_unix_server(lambda: Connection(there.service), there.path),
    ]
    there.port = servers[0].sockets[0].getsockname()[1]
    try:
        yield there
    finally:
        for server in servers:
            server.close()
        for link in there.links:
            link.close()
        await asyncio.sleep(0.01)


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[Rule], None]:
    async def whole(rule: Rule) -> None:
        async with porch(tmp_path) as there:
            await asyncio.wait_for(rule(there), WITHIN)

    return lambda rule: asyncio.run(whole(rule))


def opening(what: str, job: int = 1, token: str = "t1", **more: Any) -> wire.Opening:
    return wire.Opening(job=job, restarts=0, rank=0, token=token, what=what, **more)


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.005)


async def is_cut(reader: asyncio.StreamReader) -> bool:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        return await reader.read() == b""
    return True


def answer_of(data: bytes) -> list[tuple[bytes, bytes]]:
    return frames.Decoder().feed(data)


async def frames_until(reader: asyncio.StreamReader, last: bytes) -> list[tuple[bytes, bytes]]:
    decoder, found = frames.Decoder(), list[tuple[bytes, bytes]]()
    while not any(kind == last for kind, _ in found):
        data = await reader.read(65536)
        if not data:
            break
        found += decoder.feed(data)
    return found


def test_a_proved_supervisor_gets_a_link_and_nothing_it_said_is_lost(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        early = frames.frame(wire.REPORT, b"1") + frames.frame(wire.REPORT, b"2")[:3]
        reader, writer = await there.dial(opening("supervisor", run="r", sequence=4), early)
        await until(lambda: bool(there.links))
        writer.write(frames.frame(wire.REPORT, b"2")[3:])
        await until(lambda: len(there.heard) == 2)
        assert there.heard == [(wire.REPORT, b"1"), (wire.REPORT, b"2")]
        assert there.openings[0].run == "r" and there.openings[0].sequence == 4
        there.links[0].send(wire.KILL, b"{}")
        assert await reader.readexactly(7) == frames.frame(wire.KILL, b"{}")
        there.links[0].close()
        assert await is_cut(reader)
        await gone(writer)

    keep(rule)


@pytest.mark.parametrize("what", ["supervisor", "client", "step"])
def test_who_is_not_proved_is_cut_without_a_word(
    keep: Callable[[Rule], None], what: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def rule(there: Porch) -> None:
        reader, writer = await there.dial(opening(what, token="SECRET"), hello("squeue"))
        assert await is_cut(reader)
        assert not there.links and "SECRET" not in caplog.text
        assert "event=pod.refused" in caplog.text and "job=1" in caplog.text
        await gone(writer)

    keep(rule)


def test_who_cannot_be_proved_now_is_cut_and_may_come_again(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        there.fault = RuntimeFault("the API server is away")
        reader, writer = await there.dial(opening("supervisor"))
        assert await is_cut(reader)
        await gone(writer)
        there.fault = None
        _, writer = await there.dial(opening("supervisor"))
        await until(lambda: bool(there.links))
        await gone(writer)

    keep(rule)


NONSENSE = {
    "nothing of ours": b"GET / HTTP/1.1\r\n\r\n",
    "a command": hello("squeue"),
    "an endless frame": b"\xff\xff\xff\xff",
    "an empty frame": bytes(4),
    "no JSON": frames.frame(wire.OPENING, b"{"),
    "nested": frames.frame(wire.OPENING, b"[" * 60000),
    "no opening": frames.frame(wire.OPENING, b"{}"),
    "a local supervisor": frames.frame(wire.HELLO, wire.encode_hello(1, 0, 0, "t", 0)),
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_costs_its_own_connection(keep: Callable[[Rule], None], data: bytes) -> None:
    async def rule(there: Porch) -> None:
        reader, writer = await there.dial(None)
        writer.write(data)
        assert await is_cut(reader)
        assert not there.judging.is_set()
        await gone(writer)

    keep(rule)


def test_who_says_nothing_is_cut_in_bounded_time(keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "OPENING_S", 0.05)

    async def rule(there: Porch) -> None:
        plain, writer = await asyncio.open_connection("127.0.0.1", there.port)  # not even TLS
        half, other = await there.dial(None)
        other.write(b"\0\0")
        assert await is_cut(plain) and await is_cut(half)
        await gone(writer)
        await gone(other)
        assert not there.door.half_open._count

    keep(rule)


def test_only_so_many_wait_to_be_proved_and_they_make_room(
    keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threshold, "MOST_OF_ONE", 3)

    async def rule(there: Porch) -> None:
        there.may_judge.clear()
        waiting = [await there.dial(opening("supervisor")) for _ in range(3)]
        await until(lambda: there.door.half_open._count.total() == 3)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            reader, writer = await there.dial(opening("supervisor"))
            assert await is_cut(reader)
            await gone(writer)
        there.may_judge.set()
        await until(lambda: len(there.links) == 3)
        assert not there.door.half_open._count
        waiting.append(await there.dial(opening("supervisor")))
        await until(lambda: len(there.links) == 4)
        for _, writer in waiting:
            await gone(writer)

    keep(rule)


def test_a_command_in_a_pod_is_the_user_of_its_job(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        reader, writer = await there.dial(opening("client"), hello("sbatch", "--parsable", "--wrap", "true"))
        assert (b"O", b"2\n") in await frames_until(reader, b"X")
        spec = there.made.job(2).spec
        assert (spec.user, spec.uid, spec.gid, spec.groups) == ("alice", 1001, 1001, there.made.job(1).spec.groups)
        writer.write(hello("scontrol", "update", "jobid=1", "priority=1000000000"))
        assert (b"X", b"0") not in await frames_until(reader, b"X"), "nobody is an administrator by being in a pod"
        await gone(writer)

    keep(rule)


def test_a_command_of_a_job_that_is_over_is_cut(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        await there.made.submit("", "true")
        await there.made.advance(5)
        reader, writer = await there.dial(opening("client"), hello("squeue"))
        assert await is_cut(reader)
        await gone(writer)

    keep(rule)


def test_a_connection_that_outlives_its_job_runs_no_commands(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        await there.made.submit("", "true")
        await there.made.settle()
        reader, writer = await there.dial(opening("client"), hello("squeue", "-h"))
        assert (b"X", b"0") in await frames_until(reader, b"X")
        await there.made.advance(5)
        writer.write(hello("sbatch", "--wrap", "true"))
        assert await is_cut(reader)
        assert there.made.controller.memory.table.get(2) is None
        await gone(writer)

    keep(rule)


def test_a_pod_hands_nothing_over_on_a_command_s_connection(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        reader, writer = await there.dial(
            opening("client"), frames.frame(wire.HELLO, wire.encode_hello(1, 0, 0, "t", 0))
        )
        assert any(b"unexpected frame" in load for _, load in await frames_until(reader, b"X"))
        await gone(writer)

    keep(rule)


def ordered(there: Porch) -> list[tuple[RunKey, str]]:
    """What supervisors are told to dial for, from here on."""
    orders: list[tuple[RunKey, str]] = []

    def order(key: RunKey, name: str) -> bool:
        orders.append((key, name))
        return True

    there.service.through.order = order
    return orders


async def asked(
    there: Porch, job: int, command: bytes = b"srun", more: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(there.path)
    writer.write(frames.frame(b"T", frames.pack(b"%d" % job, command)) + more)
    return reader, writer


def test_a_step_from_outside_is_joined_with_what_the_supervisor_dials(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        orders = ordered(there)
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        large = bytes(1 << 20)
        early = frames.frame(step.REQUEST, b"please") + frames.frame(step.STDIN, large)[:1000]
        outside, out_writer = await asked(there, 1, more=early)
        out_writer.write(frames.frame(step.STDIN, large)[1000:])
        await until(lambda: bool(orders))
        assert orders[0][0] == RunKey(1, 0)
        inside, in_writer = await there.dial(
            opening("step", connection=orders[0][1]), frames.frame(step.CREATED, b"{}")
        )
        whole = frames.frame(step.REQUEST, b"please") + frames.frame(step.STDIN, large)
        assert await inside.readexactly(len(whole)) == whole
        assert await outside.readexactly(7) == frames.frame(step.CREATED, b"{}")
        in_writer.write(large)
        assert await outside.readexactly(len(large)) == large
        out_writer.close()
        assert await is_cut(inside)
        await gone(in_writer)

    keep(rule)


def test_only_the_supervisor_of_that_run_is_joined_and_only_once(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        orders = ordered(there)
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        _, asking = await asked(there, 1)
        await until(lambda: bool(orders))
        for refused in (
            opening("step", job=2, token="t2", connection=orders[0][1]),
            opening("step", connection="another"),
        ):
            reader, writer = await there.dial(refused)
            assert await is_cut(reader)
            await gone(writer)
        _, writer = await there.dial(opening("step", connection=orders[0][1]))
        await until(lambda: not there.service.through._waiting)
        reader, again = await there.dial(opening("step", connection=orders[0][1]))
        assert await is_cut(reader)
        for each in (writer, again):
            await gone(each)
        asking.close()

    keep(rule)


def test_a_step_of_another_s_job_or_of_none_is_refused(
    keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurmbridge.daemon.peer.struct.unpack", lambda form, data: (1, 1002, 1002))

    async def rule(there: Porch) -> None:
        there.service.through.order = lambda key, name: True
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        for job, why in ((1, through.DENIED), (9, through.INVALID)):
            reader, writer = await asked(there, job)
            ((kind, load),) = answer_of(await reader.read())
            assert kind == step.REFUSED
            assert wire.decode(load)["lines"][0] == f"srun: error: Unable to confirm allocation for job {job}: {why}"
            writer.close()

    keep(rule)


def test_a_supervisor_that_does_not_dial_is_told_in_bounded_time(
    keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(through, "WITHIN_S", 0.05)

    async def rule(there: Porch) -> None:
        there.service.through.order = lambda key, name: True
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        reader, writer = await asked(there, 1, b"sattach")
        ((_, load),) = answer_of(await reader.read())
        assert wire.decode(load)["lines"] == [f"sattach: error: Unable to reach the step of job 1: {through.SILENT}"]
        writer.close()
        await until(lambda: not there.service.through._waiting)

    keep(rule)


def test_a_supervisor_that_talks_nonsense_loses_its_link(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        def hear(kind: bytes, load: bytes) -> None:
            raise KeyError("kind")

        there.welcome = lambda transport, opening, first: there.links.append(  # type: ignore[method-assign]
            PodLink(transport, first, hear, lambda: there.heard.append((b"lost", b"")))
        )
        there.door._welcome = there.welcome
        reader, writer = await there.dial(opening("supervisor"), frames.frame(wire.REPORT, b"{}"))
        assert await is_cut(reader)
        await until(lambda: there.heard == [(b"lost", b"")])
        await gone(writer)

    keep(rule)
