"""How does somebody on another machine reach the supervisor of a job that runs here? The daemon dials its socket for him.

On virtual nodes supervisors listen on unix sockets beside the daemon. Whether he may is judged by `through` before.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable

from slurmbridge.daemon.through import Through
from slurmbridge.model.run import RunKey

log = logging.getLogger(__name__)


class StepDial:
    """`address(run)`: unix:PATH of the socket of its first supervisor."""

    def __init__(self, address: Callable[[RunKey], str], through: Through) -> None:
        self._address, self._through = address, through
        self._tasks: set[asyncio.Task[None]] = set()

    def order(self, key: RunKey, name: str) -> bool:
        """As `Through` wants it: dial, and tell it under this name. False: there is no socket."""
        path = self._address(key).removeprefix("unix:")
        if not os.path.exists(path):
            return False
        task = asyncio.get_running_loop().create_task(self._dial(path, key, name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _dial(self, path: str, key: RunKey, name: str) -> None:
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:  # a path longer than an address may be
                await loop.sock_connect(sock, f"/proc/self/fd/{folder}/{os.path.basename(path)}")
            finally:
                os.close(folder)
            await loop.create_unix_connection(lambda: Dialled(self._through, key, name), sock=sock)
        except OSError as fault:
            log.warning("event=step.unreachable job=%d reason=%r", key.job_id, str(fault))
            sock.close()
            self._through.failed(name)
            return


class Dialled(asyncio.Protocol):
    """The connection, until it is joined with that of who asked."""

    def __init__(self, through: Through, key: RunKey, name: str) -> None:
        self._through, self._key, self._name = through, key, name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._through.arrived(self._key, self._name, transport, b""):
            transport.close()
