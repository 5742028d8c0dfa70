"""`slurmbridge agent`: listens on a socket of this host and brings who dials in to the daemon, until it is told to stop.

Credentials are read again on SIGHUP. One agent holds a socket at a time (a lock beside it); what a killed one left of it is
replaced.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import socket

from slurmbridge.agent import credentials
from slurmbridge.agent.far import Pool
from slurmbridge.agent.lookup import Lookup
from slurmbridge.agent.near import Near
from slurmbridge.daemon import loglines, threshold
from slurmbridge.daemon.configuration import host_name
from slurmbridge.daemon.crowd import Crowd
from slurmbridge.errors import ConfigError
from slurmbridge.runtime import files

log = logging.getLogger(__name__)

TIDY_EVERY_S = 30.0


def run(*, host: str, port: int, folder: str, path: str) -> int:
    """Serve; the exit status. ConfigError: it did not come up, with the reason."""
    os.umask(0o022)
    loglines.begin()
    found = credentials.load(folder)
    lock = _hold(path)
    try:
        files.allow_many()
        sock = _listen(path)
        asyncio.run(_serve(sock, host, port, folder, path, found))
    finally:
        os.close(lock)
    return 0


class Agent:
    """What all callers share."""

    def __init__(self, pool: Pool, lookup: Lookup) -> None:
        self.pool, self.lookup = pool, lookup
        self.crowd = Crowd(0)
        self._said = ""

    def say(self, why: str) -> None:
        """Why the daemon is not reached; once for each reason."""
        if why != self._said:
            log.warning("event=daemon.unreachable reason=%r", why)
            self._said = why

    def reached(self) -> None:
        if self._said:
            log.info("event=daemon.reached")
            self._said = ""


async def _serve(
    sock: socket.socket, host: str, port: int, folder: str, path: str, found: credentials.Credentials
) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    pool, lookup = Pool(host, port, found), Lookup(host_name())
    agent = Agent(pool, lookup)
    loop.add_signal_handler(signal.SIGHUP, _read_again, pool, folder)
    server = await threshold.listen(sock, lambda: Near(agent))
    tidying = loop.create_task(_tidy(pool))
    log.info("event=agent.up pid=%d socket=%s daemon=%s:%d", os.getpid(), path, host, port)
    await stopping.wait()
    tidying.cancel()
    server.close()
    pool.close()
    lookup.close()
    os.unlink(path)
    log.info("event=agent.down pid=%d", os.getpid())


async def _tidy(pool: Pool) -> None:
    while True:
        await asyncio.sleep(TIDY_EVERY_S)
        pool.tidy()


def _read_again(pool: Pool, folder: str) -> None:
    try:
        pool.renew(credentials.load(folder))
    except ConfigError as fault:
        log.error("event=credentials.bad reason=%r", str(fault))
        return
    log.info("event=credentials.read")


def _hold(path: str) -> int:
    """The lock of a socket, a descriptor. ConfigError: another agent has it, or its folder is not to be trusted."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        status = os.stat(folder)
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise ConfigError("others could put a socket of theirs there: it must be the agent's alone", file=folder)
        lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=folder) from fault
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConfigError("another agent has this socket", file=path) from None
    return lock


def _listen(path: str) -> socket.socket:
    """In the place of one that nobody has any more. ConfigError: somebody answers there."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    made = path + ".new"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(path) == 0:
                raise ConfigError("a daemon answers there: name another place with --socket", file=path)
        if os.path.lexists(made):
            os.unlink(made)
        sock.bind(made)
        os.chmod(made, 0o666)
        sock.listen(threshold.BACKLOG)
        os.rename(made, path)
    except OSError as fault:
        sock.close()
        raise ConfigError(f"cannot listen there: {fault.strerror or fault}", file=path) from fault
    except ConfigError:
        sock.close()
        raise
    return sock
