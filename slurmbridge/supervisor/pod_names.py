"""Where is the daemon? Addresses of a name, asked for in a process aside: a name server that is silent stops no job.

What was found is kept until it leads nowhere.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from slurmbridge.supervisor.loop import IN, Loop
from slurmbridge.supervisor.pod_space import PodSpace

Address = tuple[int, tuple[Any, ...]]
"""Family, and what `connect` takes."""
Found = Callable[[list[Address]], None]


def literal(host: str, port: int) -> list[Address]:
    """The address that a text is already; nothing for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    return []


def look_up(host: str, port: int) -> list[Address]:
    """Waits. Nothing when the name is not known. As bytes, for which Python needs no tables of its own."""
    try:
        found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [(int(family), address) for family, _, _, _, address in found]


class Names:
    """Of one host and port."""

    def __init__(self, loop: Loop, space: PodSpace, host: str, port: int) -> None:
        self._loop, self._space, self._host, self._port = loop, space, host, port
        self._known = literal(host, port)
        self._is_literal = bool(self._known)
        self._waiting: list[Found] = []
        self._data = bytearray()

    def find(self, found: Found) -> None:
        """Calls `found` once, perhaps at once; with nothing where there is no such name at present."""
        if self._known:
            found(list(self._known))
            return
        self._waiting.append(found)
        if len(self._waiting) == 1:
            self._ask()

    def forget(self) -> None:
        """They led nowhere."""
        if not self._is_literal:
            self._known = []

    def _ask(self) -> None:
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._data.clear()
        try:
            self._space.fork(self._loop, lambda: self._answer(write_end))
        except OSError:
            os.close(read_end)
            self._tell()
            return
        finally:
            os.close(write_end)
        self._loop.watch(read_end, IN, lambda events: self._read(read_end))

    def _answer(self, write_end: int) -> None:
        """In the process aside."""
        lines = [f"{family} {address[0]}\n" for family, address in look_up(self._host, self._port)]
        os.write(write_end, "".join(lines).encode())

    def _read(self, read_end: int) -> None:
        try:
            data = os.read(read_end, 4096)
        except BlockingIOError:
            return
        self._data += data
        if data:
            return
        self._loop.forget(read_end)
        os.close(read_end)
        for line in self._data.decode().splitlines():
            family, _, host = line.partition(" ")
            self._known.append((int(family), (host, self._port)))
        self._tell()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for found in waiting:
            found(list(self._known))
