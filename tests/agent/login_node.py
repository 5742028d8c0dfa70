"""A daemon and the agent of a login node on one event loop: the real listener, real TLS, real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from slurmbridge.agent import credentials
from slurmbridge.agent.far import Pool
from slurmbridge.agent.lookup import Lookup
from slurmbridge.agent.main import Agent
from slurmbridge.agent.near import Near
from slurmbridge.daemon import certificate, enrolment
from slurmbridge.daemon.enrolment import Enrolled
from slurmbridge.daemon.peer import Peer
from slurmbridge.daemon.remote import Remote
from slurmbridge.daemon.server import Service
from slurmbridge.daemon.tokens import Tokens
from slurmbridge.wire.agent import Caller
from tests.daemon.controlled import Site, site
from tests.daemon.hearing import frames_until
from tests.patience import play

ALICE = Caller(1001, 1001, "alice", "alice", "/home/alice", "/bin/bash", "login1", ((1001, "alice"),))


class Says(Lookup):
    """The name service of another machine: whoever dials in is `caller`."""

    def __init__(self, caller: Caller) -> None:
        super().__init__("login1")
        self.caller = caller

    async def find(self, peer: Peer) -> Caller:
        return self.caller


class LoginNode:
    """`state`: the daemon's folder, `path`: the agent's socket."""

    def __init__(self, made: Site, folder: Path) -> None:
        self.made, self.state, self.path = made, str(folder / "state"), str(folder / "socket")
        (folder / "state").mkdir()
        controller = made.controller
        self.service = Service(controller.memory, controller.performer, made.clock, lambda *_: False)
        self.keys = folder / "keys"
        self.enrol("login1", self.keys)
        pin = certificate.ensure(self.state)[1]
        self.tokens = controller.performer.tokens = Tokens(self.state, pin, controller.memory, made.clock)
        self.remote = Remote(self.service, Enrolled(self.state), self.tokens)
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    def enrol(self, name: str, folder: Path, *, days: int = 1, trusts_root: bool = False, ago: float = 0.0) -> None:
        now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=ago)
        made = enrolment.enrol(self.state, name, days=days, trusts_root=trusts_root, now=now)
        enrolment.give(made, str(folder))

    async def open(self) -> None:
        sock = socket.create_server(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        await self.remote.open(sock)
        self.lookup = Says(ALICE)
        self.pool = Pool("127.0.0.1", self.port, credentials.load(str(self.keys)))
        self.agent = Agent(self.pool, self.lookup)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Near(self.agent), self.path, backlog=512)

    async def close(self) -> None:
        self._server.close()
        self.pool.close()
        self.lookup.close()
        self.remote.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0.02)

    @property
    def lanes(self) -> int:
        """Connections of agents, as the daemon counts them."""
        return len(self.remote._lanes)

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(self.path)
        self._writers.append(writer)
        return reader, writer

    async def say(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """All frames of the answer to this on a connection of its own."""
        reader, writer = await self.dial()
        writer.write(data)
        found = await frames_until(reader, b"X")
        writer.close()
        return found


def text_of(answer: list[tuple[bytes, bytes]], kind: bytes) -> str:
    return b"".join(payload for each, payload in answer if each == kind).decode()


@contextlib.asynccontextmanager
async def login_node(folder: Path) -> AsyncIterator[LoginNode]:
    there = LoginNode(await site(), folder)
    await there.open()
    try:
        yield there
    finally:
        await there.close()


def keep(folder: Path, rule: Callable[[LoginNode], Awaitable[None]]) -> None:
    play(login_node(folder), rule)


def plain_context() -> ssl.SSLContext:
    """Of a client that shows no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
