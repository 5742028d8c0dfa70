"""A door for pods on a real socket, with the daemon behind it: who knocks, and what came through."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from slurmbridge.daemon import certificate
from slurmbridge.daemon.door import Door
from slurmbridge.daemon.pod_link import PodLink
from slurmbridge.daemon.server import Connection, Service
from slurmbridge.model.run import RunKey
from slurmbridge.wire import client as frames
from slurmbridge.wire import supervisor as wire
from tests.daemon.controlled import Site, site
from tests.daemon.test_tls import client
from tests.patience import play

TOKENS = {"t1": (RunKey(1, 0), 0), "t2": (RunKey(2, 0), 0)}


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


def kept(folder: Path) -> Callable[[Rule], None]:
    """Runs a rule there, on an event loop of its own."""

    return lambda rule: play(porch(folder), rule)


def opening(what: str, job: int = 1, token: str = "t1", **more: Any) -> wire.Opening:
    return wire.Opening(job=job, restarts=0, rank=0, token=token, what=what, **more)


async def is_cut(reader: asyncio.StreamReader) -> bool:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        return await reader.read() == b""
    return True
