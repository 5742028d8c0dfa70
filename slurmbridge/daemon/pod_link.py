"""The link to a supervisor in a pod: frames over a transport, as the runtime wants them (`runtime.kube.runtime.Link`).

A pod is its user's: what it sends may be anything, and it need not read. Either costs it the link.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from slurmbridge.wire.client import Decoder, frame
from slurmbridge.wire.supervisor import MAX_FRAME

log = logging.getLogger(__name__)

MOST_UNREAD = 2 * MAX_FRAME
"""Bytes for a supervisor that does not read."""


class PodLink(asyncio.Protocol):
    """`on_frame(kind, payload)` for each frame; `on_lost()` once, unless it was closed here."""

    def __init__(
        self,
        transport: asyncio.Transport,
        first: bytes,
        on_frame: Callable[[bytes, bytes], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._transport, self._on_frame, self._on_lost = transport, on_frame, on_lost
        self._decoder = Decoder(MAX_FRAME)
        self._is_closed = False
        transport.set_protocol(self)
        asyncio.get_running_loop().call_soon(self._begin, first)  # its owner has the link by then

    def _begin(self, first: bytes) -> None:
        if first:
            self.data_received(first)
        self._transport.resume_reading()

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Queue one frame; dropped when the link is gone."""
        if self._transport.is_closing():
            return
        self._transport.write(frame(kind, payload))
        if self._transport.get_write_buffer_size() > MOST_UNREAD:
            self._transport.abort()

    def close(self) -> None:
        """After what was sent, and without a call of `on_lost`."""
        self._is_closed = True
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        try:
            for kind, payload in self._decoder.feed(data):
                if self._is_closed:
                    return
                self._on_frame(kind, payload)
        except (ValueError, KeyError, TypeError, RecursionError) as fault:
            log.warning("event=pod.nonsense reason=%r", f"{type(fault).__name__}: {fault}"[:200])
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._on_lost()
