"""`--metrics HOST:PORT`: a listener that gives figures to whoever asks, and nothing else.

Off unless an administrator names the address. What it says has no names of users or jobs. Few connections at a time, each
for a short time: whoever holds them all keeps out other readers of figures, and nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from slurmbridge.errors import ConfigError
from slurmbridge.wire import plain_http

log = logging.getLogger(__name__)

MOST = 16
"""Connections at a time; beyond it 503."""
WITHIN_S = 10.0
"""In which a request has to come, and its answer has to be taken."""

Page = Callable[[], tuple[str, str]]
"""(content type, text)"""


class Pages:
    """What all connections share: pages by path, and how many connections there are."""

    def __init__(self, pages: Mapping[str, Page], *, within_s: float = WITHIN_S, most: int = MOST) -> None:
        self.pages, self.within_s, self.most = pages, within_s, most
        self.open = 0

    async def listen(self, place: str) -> asyncio.Server:
        """ConfigError: not an address, or not one where this process may listen."""
        found = plain_http.read_place(place)
        if found is None:
            raise ConfigError(f"--metrics={place}: not HOST:PORT")
        try:
            return await asyncio.get_running_loop().create_server(lambda: _Connection(self), *found, backlog=MOST)
        except OSError as fault:
            raise ConfigError(f"--metrics={place}: {fault.strerror or fault}") from fault

    def answer(self, path: str) -> bytes:
        page = self.pages.get(path)
        if page is None:
            return plain_http.answer(404)
        kind, text = page()
        return plain_http.answer(200, text.encode(), kind)


class _Connection(asyncio.Protocol):
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._head = b""
        self._is_answered = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._pages.open += 1
        self._timer = asyncio.get_running_loop().call_later(self._pages.within_s, transport.abort)
        if self._pages.open > self._pages.most:
            self._give(plain_http.answer(503))

    def connection_lost(self, exc: Exception | None) -> None:
        self._pages.open -= 1
        self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return
        self._head += data
        asked = plain_http.read(self._head)
        if asked is None:
            return
        if asked.refusal:
            self._give(plain_http.answer(asked.refusal))
            return
        try:
            self._give(self._pages.answer(asked.path))
        except Exception:  # figures that cannot be told must not end what they are about
            log.exception("event=metrics.failed path=%r", asked.path)
            self._give(plain_http.answer(503))

    def _give(self, answer: bytes) -> None:
        self._is_answered = True
        self._transport.write(answer)
        self._transport.close()
