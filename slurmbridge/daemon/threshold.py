"""How many who have proved nothing yet may be at a door, in all and from one address, and how often is said that one was
turned away? Shared by the door for pods and the one for login nodes."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable

from slurmbridge.daemon.crowd import part_of_the_files
from slurmbridge.supervisor.pinned import keep_alive

TOO_MANY = "too many connections that prove nothing"
MOST, MOST_OF_ONE = 2048, 256
"""Half-open connections, in all and from one address: nodes may share one, and gangs begin at once."""
TOLD, TOLD_EACH_S = 20, 60.0
"""So many refusals are logged in so long, and then their number."""

BACKLOG, AT_ONCE = 1024, 32
"""Connections that the kernel keeps, and that are taken from it before one of them is looked at and too many are cut: each is
a file from then on."""


class HalfOpen:
    """By address, in the order in which they came. `len`: how many there are in all."""

    def __init__(self) -> None:
        self._there: dict[str, dict[object, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._there.values()))

    def may_knock(self, address: str) -> bool:
        return not self._is_full_of(address) and len(self) < min(MOST, part_of_the_files(8))

    def _is_full_of(self, address: str) -> bool:
        return len(self._there.get(address, ())) >= MOST_OF_ONE

    def in_the_way(self, address: str) -> object | None:
        """Who has to go so that one more of this address may knock: the oldest of its own, or of the address that has the
        most; None: nobody has to. Who proves himself does so at once, who only holds a place does not."""
        if self.may_knock(address):
            return None
        crowd = self._there[address] if self._is_full_of(address) else max(self._there.values(), key=len)
        return next(iter(crowd))

    def came(self, address: str, who: object) -> None:
        self._there.setdefault(address, {})[who] = None

    def went(self, address: str, who: object) -> None:
        del self._there[address][who]
        if not self._there[address]:
            del self._there[address]


class Unproved(asyncio.Protocol):
    """A connection of somebody who has proved nothing yet."""

    def __init__(self, half_open: HalfOpen) -> None:
        self._half_open = half_open
        self._timer: asyncio.TimerHandle | None = None
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Where it is from; what is done about it is for the door to say."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        name = transport.get_extra_info("peername")
        self.address = str(name[0]) if name else ""

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()

    def refuse(self, why: str) -> None:
        """Cut it, and say so in the log."""
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """It is half-open from here on, for so long at most."""
        self._half_open.came(self.address, self)
        keep_alive(self.transport.get_extra_info("socket"))
        self._timer = asyncio.get_running_loop().call_later(seconds, self.refuse, "it did not say who it is in time")

    def leave(self) -> None:
        """It is no longer half-open."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._half_open.went(self.address, self)


async def listen(sock: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> asyncio.Server:
    """At a socket that has its address. asyncio takes as many at once as it has the kernel keep."""
    loop = asyncio.get_running_loop()
    create = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
    server = await create(protocol, sock=sock, backlog=AT_ONCE)
    sock.listen(BACKLOG)
    return server


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
