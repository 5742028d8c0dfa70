"""TLS between a connection and a protocol: nothing lost, nothing that is no TLS let in."""

from __future__ import annotations

import _ssl
import asyncio
import contextlib
import ctypes
import functools
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from slurmbridge.daemon import certificate
from slurmbridge.daemon import tls as tls_module
from slurmbridge.daemon.tls import Tls
from tests.patience import PATIENCE_S

MANY = bytes(range(256)) * 20_000


class Noting(asyncio.Protocol):
    """A protocol that keeps what comes."""

    def __init__(self) -> None:
        self.came = bytearray()
        self.lost = asyncio.get_running_loop().create_future()
        self.something = asyncio.Event()
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.came += data
        self.something.set()

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


class Echo(Noting):
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.write(data)


def client() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.fixture(scope="module")
def server_side(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    return certificate.ensure(str(tmp_path_factory.mktemp("state")))[0]


@contextlib.asynccontextmanager
async def listening(context: ssl.SSLContext, kind: Callable[[], Noting]) -> AsyncIterator[tuple[int, list[Noting]]]:
    made: list[Noting] = []

    def accepted() -> Tls:
        made.append(kind())
        return Tls(context, made[-1])

    server = await asyncio.get_running_loop().create_server(accepted, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], made
    finally:
        server.close()
        for each in made:
            each.transport.abort()
        await asyncio.sleep(0)


async def gone(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()


def rule(test: Callable[[ssl.SSLContext], Awaitable[None]]) -> Callable[[ssl.SSLContext], None]:
    @functools.wraps(test)
    def whole(server_side: ssl.SSLContext) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(server_side), PATIENCE_S)

        asyncio.run(bounded())

    return whole


@rule
async def test_what_one_side_writes_the_other_reads_whole(server_side: ssl.SSLContext) -> None:
    async with listening(server_side, Echo) as (port, made):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client())
        writer.write(MANY)
        assert await reader.readexactly(len(MANY)) == MANY
        assert bytes(made[0].came) == MANY
        writer.close()
        assert await made[0].lost is None
        await gone(writer)


@rule
async def test_all_that_was_written_comes_before_the_end(server_side: ssl.SSLContext) -> None:
    class Last(Noting):
        def data_received(self, data: bytes) -> None:
            self.transport.write(MANY)
            self.transport.close()
            self.transport.write(b"too late")

    async with listening(server_side, Last) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client())
        writer.write(b"?")
        assert await reader.read() == MANY
        await gone(writer)


@rule
async def test_a_protocol_that_does_not_read_stops_the_other_side_and_loses_nothing(
    server_side: ssl.SSLContext,
) -> None:
    class Slow(Noting):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.transport.pause_reading()

    async with listening(server_side, Slow) as (port, made):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client())
        for _ in range(8):
            writer.write(MANY)
        while len(made) < 1 or not made[0].came:
            await asyncio.sleep(0)
        while len(made[0].came) < 8 * len(MANY):
            made[0].something.clear()
            before = len(made[0].came)
            made[0].transport.resume_reading()
            await made[0].something.wait()
            assert len(made[0].came) - before <= 1 << 16
        assert bytes(made[0].came) == MANY * 8
        await gone(writer)


@rule
async def test_a_protocol_hears_when_the_other_side_does_not_read(server_side: ssl.SSLContext) -> None:
    async with listening(server_side, Noting) as (port, made):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client(), limit=1 << 16)
        writer.write(b"?")
        while not made or not made[0].came:
            await asyncio.sleep(0)
        inside = made[0]
        written = 0
        while not inside.is_full:
            inside.transport.write(MANY)
            written += len(MANY)
        assert inside.transport.get_write_buffer_size() > 0
        assert len(await reader.readexactly(written)) == written
        while inside.is_full:
            await asyncio.sleep(0)
        await gone(writer)


@rule
async def test_what_is_not_tls_is_shown_the_door(server_side: ssl.SSLContext) -> None:
    async with listening(server_side, Noting) as (port, made):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 100)
        await reader.read()
        await made[0].lost
        assert not made[0].came
        await gone(writer)


@rule
async def test_another_protocol_takes_over_within_the_first_bytes(server_side: ssl.SSLContext) -> None:
    class First(Noting):
        def data_received(self, data: bytes) -> None:
            second = Echo()
            self.transport.pause_reading()
            self.transport.set_protocol(second)
            second.connection_made(self.transport)
            second.data_received(data[1:])
            self.transport.resume_reading()

    async with listening(server_side, First) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client())
        writer.write(b"1" + MANY)
        assert await reader.readexactly(len(MANY)) == MANY
        await gone(writer)


@rule
async def test_a_connection_that_breaks_is_told_once(server_side: ssl.SSLContext) -> None:
    async with listening(server_side, Noting) as (port, made):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client())
        writer.write(b"?")
        while not made or not made[0].came:
            await asyncio.sleep(0)
        writer.transport.abort()
        await made[0].lost
        made[0].transport.write(b"nobody hears")
        made[0].transport.close()


def ask_for_new_keys(port: int, times: int) -> bytes:
    """Without ever reading; what comes when the other side ends it. Python's ssl has no call for it: its library has."""
    library = ctypes.CDLL(_ssl.__file__)
    library.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.SSL_do_handshake.argtypes = [ctypes.c_void_p]
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client().wrap_bio(incoming, outgoing)
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                incoming.write(sock.recv(1 << 16))
        tls.write(b"hello")
        sock.sendall(outgoing.read())
        at = (
            id(tls._sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)  # type: ignore[attr-defined]
        )  # the second member of _ssl._SSLSocket
        handle = ctypes.cast(at, ctypes.POINTER(ctypes.c_void_p))[0]
        for _ in range(times):
            assert library.SSL_key_update(handle, 1) == 1
            library.SSL_do_handshake(handle)
        with contextlib.suppress(OSError):
            sock.sendall(outgoing.read())
            time.sleep(0.2)
            while sock.recv(1 << 16):
                pass
            return b"ended"
        return b"cut"


@rule
async def test_who_has_keys_renewed_without_end_is_cut(server_side: ssl.SSLContext) -> None:
    async with listening(server_side, Noting) as (port, made):
        few = asyncio.create_task(asyncio.to_thread(ask_for_new_keys, port, 20))
        while not made or not made[0].came:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert not made[0].lost.done()
        made[0].transport.abort()
        await few
        many = asyncio.create_task(asyncio.to_thread(ask_for_new_keys, port, tls_module.MOST_OF_ITS_OWN // 20))
        while len(made) < 2:
            await asyncio.sleep(0.01)
        await made[1].lost
        assert bytes(made[1].came) == b"hello"
        await many
