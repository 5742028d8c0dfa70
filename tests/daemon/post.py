"""A controller behind a real socket, and what callers say to it byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

from slurmbridge.daemon import server
from slurmbridge.wire import client as wire
from tests.daemon.controlled import Site, site
from tests.patience import play

TURNS = 500


class Post:
    """A controller behind a real socket."""

    def __init__(self, made: Site, path: str) -> None:
        self.made, self.path = made, path

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(self.path)

    async def say(self, data: bytes) -> bytes:
        """All that is answered to this, until there is an exit code or nothing comes any more."""
        reader, writer = await self.dial()
        writer.write(data)
        answer, decoder, kinds = b"", wire.Decoder(), [b""]
        with contextlib.suppress(ConnectionError):
            while b"X" not in kinds and (part := await soon(reader)):
                answer += part
                kinds += [kind for kind, _ in decoder.feed(part)]
        writer.close()
        return answer

    async def is_alive(self) -> bool:
        answer = await self.say(hello("squeue", "-h"))
        return wire.frame(b"X", b"0") in answer


async def soon(reader: asyncio.StreamReader) -> bytes | None:
    """What comes, nothing at the end; None when all that is to be done was done and nothing has come.

    Both ends are on this event loop: by its turns, not by a clock, it is known when nobody has anything left to do.
    """
    coming = asyncio.ensure_future(reader.read(65536))
    for _ in range(TURNS):
        if coming.done():
            return coming.result()
        await asyncio.sleep(0)
    coming.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await coming
    return None


def _close(sock: socket.socket, _hello: bytes, _uid: int) -> bool:
    sock.close()
    return True


@contextlib.asynccontextmanager
async def post(folder: pathlib.Path) -> AsyncIterator[Post]:
    made = await site()
    controller = made.controller
    service = server.Service(controller.memory, controller.performer, made.clock, _close)
    path = str(folder / "socket")
    opened = await asyncio.get_running_loop().create_unix_server(lambda: server.Connection(service), path)
    try:
        yield Post(made, path)
    finally:
        opened.close()


def with_post(rule: Callable[[Post], Awaitable[None]], folder: pathlib.Path) -> None:
    async def and_lives(there: Post) -> None:
        await rule(there)
        assert await there.is_alive()

    play(post(folder), and_lives)


def hello(*argv: str, **changes: bytes) -> bytes:
    """A greeting; `changes` replace its fields."""
    fields = {
        "version": wire.VERSION, "nonce": b"n" * 16, "umask": b"22", "columns": b"80", "sid": b"1", "tty": b"",
        "host": b"h", "cwd": b"/", "rlimits": b"", "argc": b"%d" % len(argv), **changes,
    }  # fmt: skip
    return wire.frame(b"H", wire.pack(*fields.values(), *(os.fsencode(word) for word in argv), b"PATH=/bin"))
