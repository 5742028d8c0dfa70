"""Where pods dial in: who is it, what does it want, and to whom is it handed over?

The first frame says so (P of `wire.supervisor`); until its token is proved a connection counts as half-open: there are only
so many of them, in all and from one address, for so long, and each may say so much. Who is not proved finds the connection
closed without a word and dials again. Knows nothing of Kubernetes: whether a token is good is asked of `why_not`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable

from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.daemon.peer import Peer
from slurmbridge.daemon.server import Connection, Service
from slurmbridge.daemon.threshold import TOO_MANY, HalfOpen, Told, Unproved, listen
from slurmbridge.daemon.tls import Tls
from slurmbridge.errors import BridgeError
from slurmbridge.model.run import RunKey
from slurmbridge.wire import supervisor as wire

log = logging.getLogger(__name__)

OPENING_S = 10.0
"""From the beginning of a connection until its first frame is whole."""
PROVING_S = 30.0

WhyNot = Callable[[str, RunKey, int], Awaitable[str]]
"""(token, run, rank): empty, or why it is not proved to be of that pod. BridgeError: that cannot be told."""
Welcome = Callable[[asyncio.Transport, wire.Opening, bytes], None]
"""Takes a proved supervisor's transport, with the bytes that came behind its opening."""


class Door:
    """Made on the event loop."""

    def __init__(self, context: ssl.SSLContext, service: Service, why_not: WhyNot, welcome: Welcome) -> None:
        self._context, self._service, self._welcome = context, service, welcome
        self.why_not = why_not
        self.half_open = HalfOpen()
        self._told = Told(log, "pod.refused")
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, sock: socket.socket) -> asyncio.Server:
        """Listen on a socket that has its address."""
        return await listen(sock, lambda: Tls(self._context, Knock(self)))

    # ---- judged

    def opened(self, knock: Knock, opening: wire.Opening, first: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._judge(knock, opening, first))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _judge(self, knock: Knock, opening: wire.Opening, first: bytes) -> None:
        key = RunKey(opening.job, opening.restarts)
        try:
            async with asyncio.timeout(PROVING_S):
                why = await self.why_not(opening.token, key, opening.rank)
        except (BridgeError, TimeoutError) as fault:
            why = f"nobody could tell whose the token is: {fault}"
        if why:
            self.refuse(knock, why, key)
        elif not knock.transport.is_closing():
            knock.leave()
            self._admit(knock.transport, opening, key, first)

    def _admit(self, transport: asyncio.Transport, opening: wire.Opening, key: RunKey, first: bytes) -> None:
        if opening.what == wire.SUPERVISOR:
            self._welcome(transport, opening, first)
        elif opening.what == wire.STEP:
            if not self._service.through.arrived(key, opening.connection, transport, first):
                transport.close()
        else:
            self._serve(transport, key, first)

    def _serve(self, transport: asyncio.Transport, key: RunKey, first: bytes) -> None:
        """A command in a job is its user's, whoever he is inside the pod."""
        job = self._service.memory.table.get(key.job_id)
        if job is None or not self._runs(key):
            transport.close()
            return
        peer = Peer(uid=job.spec.uid, gid=job.spec.gid, groups=job.spec.groups)
        connection = Commands(self._service, peer, functools.partial(self._runs, key))
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if first and not transport.is_closing():
            connection.data_received(first)
        transport.resume_reading()

    def _runs(self, key: RunKey) -> bool:
        job = self._service.memory.table.get(key.job_id)
        return job is not None and job.restarts == key.restarts and holds_resources(job)

    def refuse(self, knock: Knock, why: str, key: RunKey | None = None) -> None:
        of = "" if key is None else f" job={key.job_id} restart={key.restarts}"
        self._told.say("event=pod.refused address=%s%s reason=%r", knock.address, of, why[:200])
        knock.transport.abort()


class Commands(Connection):
    """Of a pod. They are its user's while the run goes on: who kept the connection longer than the pod is somebody else."""

    def __init__(self, service: Service, peer: Peer, runs: Callable[[], bool]) -> None:
        super().__init__(service, peer)
        self._runs = runs

    def _begin(self, payload: bytes, given: list[bytes]) -> None:
        if self._runs():
            super()._begin(payload, given)
        else:
            self._transport.close()


class Knock(Unproved):
    """What says an opening in time, or is refused."""

    def __init__(self, door: Door) -> None:
        super().__init__(door.half_open)
        self._door, self._said = door, bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._half_open.may_knock(self.address):
            self.wait(OPENING_S)
        else:
            self.refuse(TOO_MANY)

    def refuse(self, why: str) -> None:
        self._door.refuse(self, why)

    def data_received(self, data: bytes) -> None:
        self._said += data
        if len(self._said) < 4:
            return
        size = int.from_bytes(self._said[:4], "big")
        if not 1 <= size <= wire.MAX_OPENING:
            self.refuse("it does not speak as pods do")
            return
        if len(self._said) < 4 + size:
            return
        frame, first = bytes(self._said[4 : 4 + size]), bytes(self._said[4 + size :])
        self.transport.pause_reading()
        assert self._timer is not None
        self._timer.cancel()
        try:
            if frame[:1] != wire.OPENING:
                raise ValueError("another frame")
            opening = wire.decode_opening(frame[1:])
        except (ValueError, RecursionError):
            self.refuse("it does not speak as pods do")
            return
        self._door.opened(self, opening, first)
