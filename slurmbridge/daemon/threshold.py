"""How many who have proved nothing yet may be at a door, in all and from one address, and how often is said that one was
turned away? Shared by the door for pods and the one for login nodes."""

from __future__ import annotations

import logging
import socket
import time
from collections import Counter

MOST, MOST_OF_ONE = 2048, 256
"""Half-open connections, in all and from one address: nodes may share one, and gangs begin at once."""
TOLD, TOLD_EACH_S = 20, 60.0
"""So many refusals are logged in so long, and then their number."""

KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000),
)  # fmt: skip
"""Who is gone without a word is noticed after a minute."""


def keep_alive(sock: socket.socket) -> None:
    for level, option, value in KEEPALIVE:
        sock.setsockopt(level, option, value)


class HalfOpen:
    """Counts by address."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()

    def may_knock(self, address: str) -> bool:
        return self._count[address] < MOST_OF_ONE and self._count.total() < MOST

    def came(self, address: str) -> None:
        self._count[address] += 1

    def went(self, address: str) -> None:
        self._count[address] -= 1
        if not self._count[address]:
            del self._count[address]


class Told:
    """Keeps a flood of refusals out of the log. `more`: the event that gives the number of what was left out."""

    def __init__(self, log: logging.Logger, more: str) -> None:
        self._log, self._more = log, more
        self._since, self._count = 0.0, 0

    def say(self, text: str, *values: object) -> None:
        now = time.monotonic()
        if now - self._since >= TOLD_EACH_S:
            if self._count > TOLD:
                self._log.warning("event=%s more=%d", self._more, self._count - TOLD)
            self._since, self._count = now, 0
        self._count += 1
        if self._count <= TOLD:
            self._log.warning(text, *values)
