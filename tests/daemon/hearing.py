"""Frames up to one of a kind."""

from __future__ import annotations

import asyncio

from slurmbridge.wire import client as frames


async def frames_until(reader: asyncio.StreamReader, last: bytes) -> list[tuple[bytes, bytes]]:
    """Up to the first of this kind, or the end."""
    decoder, found = frames.Decoder(), list[tuple[bytes, bytes]]()
    while not any(kind == last for kind, _ in found):
        data = await reader.read(65536)
        if not data:
            break
        found += decoder.feed(data)
    return found
