"""The listener of figures: it answers GET, is bounded, and harms nobody else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.daemon.page import Pages
from slurmbridge.errors import ConfigError

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def broken() -> tuple[str, str]:
    raise RuntimeError("no figures today")


PAGES = {"/metrics": lambda: ("text/plain", "figures\n"), "/broken": broken}


def with_pages(rule: Callable[[Pages, int], Awaitable[None]], *, within_s: float = 30.0, most: int = 16) -> None:
    async def whole() -> None:
        pages = Pages(PAGES, within_s=within_s, most=most)
        server = await pages.listen("127.0.0.1:0")
        try:
            await rule(pages, server.sockets[0].getsockname()[1])
        finally:
            server.close()
            await server.wait_closed()

    asyncio.run(whole())


async def said(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    await _closed(writer)
    return answer


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (GET, b"200 OK", b"figures\n"),
        (b"GET /other HTTP/1.1\r\n\r\n", b"404 Not Found", b"Not Found\n"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed", b"Method Not Allowed\n"),
        (b"GET /broken HTTP/1.1\r\n\r\n", b"503 Service Unavailable", b"Service Unavailable\n"),
        (GET + GET, b"200 OK", b"figures\n"),
    ],
)
def test_a_request_is_answered_and_the_connection_closed(request_: bytes, status: bytes, body: bytes) -> None:
    async def rule(pages: Pages, port: int) -> None:
        answer = await said(port, request_)
        assert answer.startswith(b"HTTP/1.1 " + status) and answer.endswith(b"\r\n\r\n" + body)

    with_pages(rule)


def test_a_request_may_come_in_pieces() -> None:
    async def rule(pages: Pages, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for place in range(len(GET)):
            writer.write(GET[place : place + 1])
            await writer.drain()
        assert (await reader.read()).endswith(b"figures\n")
        await _closed(writer)

    with_pages(rule)


def test_a_head_that_does_not_end_is_refused_before_it_fills_memory() -> None:
    async def rule(pages: Pages, port: int) -> None:
        assert (await said(port, b"GET / HTTP/1.1\r\n" + b"x" * 10_000)).startswith(b"HTTP/1.1 431 ")

    with_pages(rule)


def test_who_says_nothing_is_cut_off() -> None:
    async def rule(pages: Pages, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        await _closed(writer)
        assert pages.open == 0

    with_pages(rule, within_s=0.05)


def test_beyond_so_many_connections_the_next_is_told_to_come_later() -> None:
    async def rule(pages: Pages, port: int) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        while pages.open < 2:
            await asyncio.sleep(0)
        assert (await said(port, b"")).startswith(b"HTTP/1.1 503 ")
        for _, writer in silent:
            await _closed(writer)
        while pages.open:
            await asyncio.sleep(0)
        assert (await said(port, GET)).endswith(b"figures\n")

    with_pages(rule, most=2)


@pytest.mark.parametrize("place", ["", "9817", "192.0.2.1:9817", "nobody.invalid:1"])
def test_an_address_where_nobody_can_listen_is_told(place: str) -> None:
    async def whole() -> None:
        await Pages(PAGES).listen(place)

    with pytest.raises(ConfigError, match=f"--metrics={place}"):
        asyncio.run(whole())
