"""Scripts and environments: stored once by SHA-256, kept in memory while their jobs are likely to start soon."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable

MEMORY_LIMIT = 48 * 1024 * 1024

Environment = tuple[tuple[str, str], ...]


def encode_environment(env: Environment) -> bytes:
    """NAME=VALUE strings, each ended by NUL, as execve would see them."""
    return "".join([f"{name}={value}\0" for name, value in env]).encode("utf-8", "surrogateescape")


def decode_environment(blob: bytes) -> Environment:
    pairs = []
    for item in blob.decode("utf-8", "surrogateescape").split("\0"):
        name, equals, value = item.partition("=")
        if equals:
            pairs.append((name, value))
    return tuple(pairs)


class Blobs:
    """A bounded cache in front of the store."""

    def __init__(self, read: Callable[[str], bytes | None], limit: int = MEMORY_LIMIT) -> None:
        self._read, self._limit = read, limit
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._stored: set[str] = set()
        self._size = 0

    def keep(self, content: bytes) -> str:
        """The hex SHA-256 of content that a job will need."""
        sha = hashlib.sha256(content).hexdigest()
        if sha in self._kept:
            self._kept.move_to_end(sha)
        else:
            self._add(sha, content)
        return sha

    def unstored(self, shas: Iterable[str]) -> tuple[tuple[str, bytes], ...]:
        """Those that no commit of this process has confirmed yet, with their content."""
        return tuple((sha, self._kept[sha]) for sha in shas if sha and sha not in self._stored)

    def confirm(self, shas: Iterable[str]) -> None:
        """A commit that held them is durable."""
        self._stored.update(sha for sha in shas if sha in self._kept)

    def doubt(self, shas: Iterable[str]) -> None:
        """They may be deleted from the store: the next that needs one stores it again."""
        self._stored.difference_update(shas)

    def holds(self, sha: str) -> bool:
        """Whether it is in memory."""
        return sha in self._kept

    def get(self, sha: str) -> bytes | None:
        """Of what memory holds; None: it holds it not."""
        kept = self._kept.get(sha)
        if kept is not None:
            self._kept.move_to_end(sha)
        return kept

    async def fetch(self, sha: str) -> bytes | None:
        """Of memory or the store, which others do not wait for. StoreError: it cannot be asked now."""
        kept = self.get(sha)
        if kept is not None:
            return kept
        content = await asyncio.get_running_loop().run_in_executor(None, self._read, sha)
        if content is not None and sha not in self._kept:
            self._add(sha, content)
        return content

    def _add(self, sha: str, content: bytes) -> None:
        self._kept[sha] = content
        self._size += len(content)
        while self._size > self._limit and len(self._kept) > 1:
            gone, old = self._kept.popitem(last=False)
            self._stored.discard(gone)
            self._size -= len(old)
