"""A token is one user, from anywhere: bounded, revocable, and worth nothing to the daemon's records' readers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmbridge.commands.effects import Alter, Call
from slurmbridge.daemon import remote, tokens
from slurmbridge.daemon.tokens import Tokens
from slurmbridge.errors import ConfigError
from slurmbridge.model.states import JobState
from slurmbridge.wire import agent as wire
from slurmbridge.wire.client import frame, pack
from tests.agent.login_node import LoginNode, keep, plain_context, text_of
from tests.daemon.hearing import frames_until
from tests.daemon.post import hello
from tests.patience import comes


def caller(uid: int = 1001, *, by_token: bool = False) -> Call:
    return Call(argv=("slurmbridge", "token"), env={}, cwd="/", uid=uid, user="alice", by_token=by_token)


async def made(there: LoginNode, uid: int = 1001, days: int = 5) -> tuple[str, str]:
    """(id, secret)"""
    outcome = await there.tokens.alter(caller(uid), Alter(kind="token", verb="create", fields=(("days", days),)))
    assert outcome.errno is None, outcome
    form, pin, name, secret = outcome.detail.split(".")
    assert form == wire.TOKEN_FORM and len(pin) == 64 and len(secret) == 64
    return name, secret


def shown(name: str, secret: str) -> bytes:
    return frame(wire.TOKEN, pack(wire.VERSION, name.encode(), secret.encode()))


async def dial(there: LoginNode, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", there.port, ssl=plain_context())
    writer.write(data)
    return reader, writer


async def answered(there: LoginNode, data: bytes, last: bytes = b"X") -> list[tuple[bytes, bytes]]:
    reader, writer = await dial(there, data)
    try:
        return await frames_until(reader, last)
    finally:
        writer.transport.abort()


def test_a_token_is_its_user_whatever_else_is_said(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        given = frame(b"G", pack(b"job.sh", b"/j/job.sh", b"#!/bin/sh\ntrue\n"))
        data = shown(*await made(there)) + given + hello("sbatch", "--parsable", "job.sh")
        answer = await answered(there, data)
        assert answer[0] == (wire.WELCOME, wire.VERSION)
        spec = there.made.job(int(text_of(answer, b"O"))).spec
        assert (spec.uid, spec.gid, spec.user) == (1001, 1001, "alice")

    keep(tmp_path, rule)


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(lambda name, secret: shown(name, "0" * 64), id="another-secret"),
        pytest.param(lambda name, secret: shown("0" * 16, secret), id="another-id"),
        pytest.param(lambda name, secret: shown(name, secret[:-1]), id="a-part"),
        pytest.param(lambda name, secret: shown(name, "\N{SNOWMAN}"), id="no-hex"),
        pytest.param(lambda name, secret: frame(wire.TOKEN, b"\0\0\0\1"), id="broken"),
        pytest.param(lambda name, secret: frame(wire.TOKEN, b"x" * 2000), id="too-long"),
        pytest.param(lambda name, secret: (1 << 31).to_bytes(4, "big"), id="endless"),
        pytest.param(lambda name, secret: frame(b"H", b"x"), id="no-token"),
    ],
)
def test_what_is_no_token_is_refused_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: Callable[[str, str], bytes]
) -> None:
    monkeypatch.setattr(remote, "GUESS_S", 0.2)

    async def rule(there: LoginNode) -> None:
        good = await made(there)
        clock = asyncio.get_running_loop().time
        began = clock()
        answer = await answered(there, spoilt(*good) + hello("squeue"), wire.NO)
        assert [kind for kind, _ in answer] == [wire.NO]
        assert clock() - began >= 0.2
        assert there.service.memory.tally.open == 0
        await comes(lambda: not there.remote.half_open)

    keep(tmp_path, rule)


def test_a_token_ends_when_its_time_is_over_or_it_is_revoked_and_its_connections_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(remote, "GUESS_S", 0.0)

    async def rule(there: LoginNode) -> None:
        for how in ("revoked", "run out"):
            name, secret = await made(there, days=1)
            reader, writer = await dial(there, shown(name, secret) + hello("squeue", "-h"))
            assert text_of(await frames_until(reader, b"X"), b"X") == "0"
            if how == "revoked":
                await there.tokens.alter(caller(), Alter(kind="token", verb="delete", target=name))
            else:
                await there.made.advance(86_401.0, step=43_200.0)
            assert await reader.read() == b""
            writer.transport.abort()
            assert [kind for kind, _ in await answered(there, shown(name, secret), wire.NO)] == [wire.NO]

    keep(tmp_path, rule)


def test_tokens_outlive_the_daemon_and_are_kept_as_hashes(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        name, secret = await made(there)
        path = Path(there.state, tokens.FILE)
        assert path.stat().st_mode & 0o777 == 0o600
        assert secret not in path.read_text()
        again = Tokens(there.state, "", there.service.memory, there.made.clock)
        found = again.find(name, secret)
        assert found is not None and found.uid == 1001
        path.write_text("{")
        with pytest.raises(ConfigError, match="cannot be read"):
            Tokens(there.state, "", there.service.memory, there.made.clock)

    keep(tmp_path, rule)


def test_who_gets_no_token(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        create = Alter(kind="token", verb="create", fields=(("days", 1),))
        for one in (caller(0), caller(4711), caller(by_token=True)):
            assert (await there.tokens.alter(one, create)).errno is not None
        for _ in range(tokens.MOST_OF_ONE):
            await made(there)
        assert "revoke one first" in (await there.tokens.alter(caller(), create)).detail
        await made(there, uid=1002)

    keep(tmp_path, rule)


def test_a_user_lists_and_revokes_his_own_and_root_all(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        mine, yours = (await made(there))[0], (await made(there, uid=1002))[0]
        listing = Alter(kind="token", verb="list")
        assert (await there.tokens.alter(caller(), listing)).detail.split()[0] == mine
        assert len((await there.tokens.alter(caller(0), listing)).detail.splitlines()) == 2
        end = Alter(kind="token", verb="delete", target=yours)
        assert (await there.tokens.alter(caller(), end)).errno is not None
        assert (await there.tokens.alter(caller(0), end)).errno is None

    keep(tmp_path, rule)


@pytest.mark.parametrize(("how", "state"), [("leaves", JobState.CANCELLED), ("is cut off", JobState.RUNNING)])
def test_an_allocation_outlives_a_broken_network_and_not_its_caller(tmp_path: Path, how: str, state: JobState) -> None:
    async def rule(there: LoginNode) -> None:
        reader, writer = await dial(there, shown(*await made(there)) + hello("salloc", "-n1", "true"))
        await comes(lambda: any(True for _ in there.made.controller.memory.jobs()))
        await there.made.settle()
        await frames_until(reader, b"J")
        if how == "leaves":
            writer.close()
        else:
            plain = writer.transport.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, without TLS's own end
            writer.transport.abort()
        await comes(lambda: there.service.crowd.connections == 0)
        await there.made.settle()
        assert there.made.job(1).state is state

    keep(tmp_path, rule)
