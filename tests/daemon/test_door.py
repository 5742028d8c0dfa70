"""Pods dial in: proved first, bounded before that, and then a supervisor or a user's command."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmbridge.daemon import door, threshold
from slurmbridge.daemon.pod_link import PodLink
from slurmbridge.errors import RuntimeFault
from slurmbridge.wire import client as frames
from slurmbridge.wire import supervisor as wire
from tests.daemon.hearing import frames_until
from tests.daemon.porch import Porch, Rule, is_cut, kept, opening
from tests.daemon.post import hello
from tests.daemon.test_tls import gone
from tests.patience import comes


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[Rule], None]:
    return kept(tmp_path)


def test_a_proved_supervisor_gets_a_link_and_nothing_it_said_is_lost(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        early = frames.frame(wire.REPORT, b"1") + frames.frame(wire.REPORT, b"2")[:3]
        reader, writer = await there.dial(opening("supervisor", run="r", sequence=4), early)
        await comes(lambda: bool(there.links))
        writer.write(frames.frame(wire.REPORT, b"2")[3:])
        await comes(lambda: len(there.heard) == 2)
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
        await comes(lambda: bool(there.links))
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
        assert not there.door.half_open

    keep(rule)


def test_only_so_many_wait_to_be_proved_and_they_make_room(
    keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threshold, "MOST_OF_ONE", 3)
    monkeypatch.setattr(door, "OPENING_S", 3600.0)

    async def rule(there: Porch) -> None:
        there.may_judge.clear()
        waiting = [await there.dial(opening("supervisor")) for _ in range(3)]
        await comes(lambda: len(there.door.half_open) == 3)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            reader, writer = await there.dial(opening("supervisor"))
            assert await is_cut(reader)
            await gone(writer)
        there.may_judge.set()
        await comes(lambda: len(there.links) == 3)
        assert not there.door.half_open
        waiting.append(await there.dial(opening("supervisor")))
        await comes(lambda: len(there.links) == 4)
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
        await comes(lambda: there.heard == [(b"lost", b"")])
        await gone(writer)

    keep(rule)
