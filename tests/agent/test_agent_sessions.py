"""Callers of a login node are served as at the daemon's own socket, one after the other on few connections."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmbridge.agent import near
from slurmbridge.agent.far import Far
from slurmbridge.daemon import attached, crowd
from slurmbridge.model.states import JobState
from slurmbridge.wire import client as frames
from slurmbridge.wire import step
from tests.agent.login_node import ALICE, LoginNode, keep, text_of
from tests.daemon.hearing import frames_until
from tests.daemon.post import hello
from tests.patience import comes

SCRIPT = frames.frame(b"G", frames.pack(b"job.sh", b"/home/alice/job.sh", b"#!/bin/sh\nsleep 10\n"))
Rule = Callable[[LoginNode], None]


async def granted(there: LoginNode, command: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, dict[str, Any]]:
    """A connection whose command has its job, and what it was told of it."""
    reader, writer = await there.dial()
    writer.write(hello(command, "-n1", "true"))
    await comes(lambda: any(True for _ in there.made.controller.memory.jobs()))
    await there.made.settle()
    answer = await frames_until(reader, b"J")
    return reader, writer, json.loads(frames.unpack(next(payload for kind, payload in answer if kind == b"J"))[1])


def test_a_job_is_his_whom_the_agent_names_wherever_he_says_he_is(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        there.lookup.caller = ALICE._replace(groups=((1001, "alice"), (2005, "lab")))
        env = hello("sbatch", "--parsable", "job.sh", host=b"elsewhere")
        answer = await there.say(SCRIPT + env)
        spec = there.made.job(int(text_of(answer, b"O"))).spec
        assert (spec.uid, spec.gid, spec.groups, spec.user) == (1001, 1001, (1001, 2005), "alice")
        assert spec.submit_host == "login1"

    keep(tmp_path, rule)


def test_commands_one_after_the_other_share_one_connection(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        for _ in range(20):
            assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
        assert there.lanes <= 2  # the next may dial in before the last one's end has come back
        reader, writer = await there.dial()
        writer.write(hello("squeue", "-h") + hello("squeue", "-h"))
        writer.write_eof()
        assert text_of(await frames_until(reader, b"X"), b"X").startswith("0")
        writer.close()
        assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
        assert there.lanes <= 2

    keep(tmp_path, rule)


def test_callers_at_the_same_time_do_not_hear_each_other(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        await there.say(SCRIPT + hello("sbatch", "--parsable", "job.sh"))
        for _ in range(3):  # the second and third time over connections that were used before
            words = [f"{number:04d}" for number in range(200)]
            answers = await asyncio.gather(*(there.say(hello("squeue", "-h", "-o", word)) for word in words))
            assert [text_of(answer, b"O") for answer in answers] == [f"{word}\n" for word in words]
            await comes(lambda: len(there.pool._idle) == there.lanes)
            assert len(set(map(id, there.pool._idle))) == len(there.pool._idle) <= 32

    keep(tmp_path, rule)


def test_who_does_not_read_holds_little_and_gets_all(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        for number in range(40):
            await there.say(SCRIPT + hello("sbatch", "--parsable", "job.sh", nonce=b"%016d" % number))
        far: list[Far] = []
        reader, writer = await there.dial()
        writer.write(b"".join(hello("squeue", "-h", "-o", "x" * 400 + "%i") for _ in range(60)))
        await comes(lambda: bool(there.pool._all))
        far.extend(there.pool._all)
        held, since = -1, 0
        while since < 20:  # until nothing moves any more
            transports = [each.transport for each in far] + [lane.transport for lane in there.remote._lanes]
            now = sum(each.get_write_buffer_size() for each in transports)
            held, since = now, since + 1 if now == held else 0
            await asyncio.sleep(0.01)
        assert held < 1 << 20
        decoder, ends, size = frames.Decoder(), 0, 0
        while ends < 60:
            for kind, payload in decoder.feed(await reader.read(65536)):
                ends += kind == b"X"
                size += len(payload) if kind == b"O" else 0
        assert size >= 60 * 40 * 400
        writer.close()

    keep(tmp_path, rule)


def test_who_says_nothing_costs_the_daemon_nothing(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        held = [await there.dial() for _ in range(50)]
        assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
        assert there.lanes == 1
        for reader, writer in held:
            writer.write_eof()
            assert await reader.read() == b""
        await comes(lambda: there.agent.crowd.connections == 0)

    keep(tmp_path, rule)


def test_an_allocation_goes_with_its_caller(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        _, writer, _ = await granted(there, "salloc")
        writer.transport.abort()
        await comes(lambda: there.made.job(1).state is not JobState.RUNNING)
        assert there.made.job(1).state is JobState.CANCELLED

    keep(tmp_path, rule)


def test_an_allocation_outlives_the_agent_and_is_given_back_to_who_comes_again(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        reader, writer, _ = await granted(there, "salloc")
        there.pool.close()  # as when it is killed
        assert await reader.read() == b""
        await comes(lambda: there.lanes == 0)
        await there.made.settle()
        assert there.made.job(1).state is JobState.RUNNING
        reader, writer, facts = await granted(there, "salloc")  # with the same nonce
        assert facts["job"] == 1
        assert len(list(there.made.controller.memory.jobs())) == 1
        writer.write(frames.frame(b"D", frames.pack(b"0", b"0")))
        assert text_of(await frames_until(reader, b"X"), b"X") == "0"

    keep(tmp_path, rule)


def test_an_allocation_whose_caller_never_comes_again_is_ended(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        _, writer, _ = await granted(there, "salloc")
        there.pool.close()
        await comes(lambda: there.lanes == 0)
        there.made.controller.end_forsaken(there.service.attached)
        await there.made.advance(attached.GRACE_S + 1, step=30)
        there.made.controller.end_forsaken(there.service.attached)
        await there.made.settle()
        assert there.made.job(1).state is JobState.CANCELLED
        writer.close()

    keep(tmp_path, rule)


def test_steps_are_reached_through_the_daemon(tmp_path: Path) -> None:
    """Even where the daemon's own host has their sockets."""

    async def rule(there: LoginNode) -> None:
        there.service.step_address = lambda job: "unix:/here/alone"
        _, writer, facts = await granted(there, "srun")
        assert facts["address"] == "through:1"
        writer.close()

    keep(tmp_path, rule)


def test_of_one_user_there_are_so_many_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the daemon: an agent counts by who dialled its socket, which here is one user who may be root."""

    async def rule(there: LoginNode) -> None:
        monkeypatch.setattr(crowd, "MAX_CONNECTIONS", 3)
        there.agent.crowd.may_come = lambda uid: True  # type: ignore[method-assign]
        held = [await there.dial() for _ in range(3)]
        for _, writer in held:
            writer.write(hello("sinfo", "-h"))
        for reader, _ in held:
            await frames_until(reader, b"X")
        assert "Access/permission denied" in text_of(await there.say(hello("squeue", "-h")), b"E")
        for _, writer in held:
            writer.close()
        await comes(lambda: there.service.crowd.connections == 0)
        assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"

    keep(tmp_path, rule)


def test_who_finds_no_daemon_is_told_to_say_so_himself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def rule(there: LoginNode) -> None:
        there.remote.close()
        monkeypatch.setattr(near, "PATIENCE_S", 0.3)
        assert await there.say(hello("squeue", "-h")) == [(b"L", b"")]
        answer = await there.say(frames.frame(b"T", frames.pack(b"7", b"srun")) + frames.frame(step.REQUEST, b"x" * 9))
        assert [kind for kind, _ in answer] == [step.REFUSED]
        assert b"job 7: Communication connection failure" in answer[0][1]

    keep(tmp_path, rule)


def test_a_daemon_that_comes_back_in_time_is_waited_for(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        await there.say(hello("squeue", "-h"))
        there.remote.close()
        asked = asyncio.ensure_future(there.say(hello("squeue", "-h")))
        await asyncio.sleep(0.2)
        again = type(there.remote)(there.service, there.remote.enrolled, there.tokens)
        await again.open(socket.create_server(("127.0.0.1", there.port)))
        assert text_of(await asked, b"X") == "0"
        there.remote = again

    keep(tmp_path, rule)


def test_nonsense_of_a_caller_costs_him_alone(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        for data in (b"\xff" * 64, frames.frame(b"Z", b"x"), frames.frame(b"V", b"{}"), b"\0\0\0\0"):
            answer = await there.say(data)
            assert "Protocol error" in text_of(answer, b"E")
            assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
        assert there.lanes <= 2

    keep(tmp_path, rule)
