"""A transport that lies on another: what TLS (`tls`) and the callers of an agent (`lane`) have in common.

Follows "asyncio Transports and Protocols" of Python's documentation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


class Layered(asyncio.Transport):
    """`protocol`: what it tells of what comes. How bytes are written, and the ends, are for who lies on it to say."""

    def __init__(self, outer: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._outer, self.protocol = outer, protocol

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return self._outer.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._outer.set_write_buffer_limits(high, low)

    def can_write_eof(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._outer.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol
