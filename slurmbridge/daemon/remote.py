"""Where login nodes come in (`up --remote HOST:PORT`): who is it, and is he believed?

TLS 1.3 alone. Who shows the certificate of an enrolled agent (`enrolment`) brings callers from then on (`lane`); who shows
none has a user's own token to show, in the first frame, or nothing. Until then a connection is half-open, as at the door
for pods: bounded in number, time and bytes. An agent that is revoked, or whose certificate runs out, is cut within seconds.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable

from slurmbridge.daemon import pod_address
from slurmbridge.daemon.enrolment import Agent, Enrolled
from slurmbridge.daemon.lane import Lane
from slurmbridge.daemon.server import Service
from slurmbridge.daemon.threshold import HalfOpen, Told, keep_alive
from slurmbridge.daemon.tls import Tls
from slurmbridge.errors import ConfigError
from slurmbridge.wire import agent as wire
from slurmbridge.wire.client import frame

log = logging.getLogger(__name__)

PROVED_S = 10.0
"""From the beginning of a connection until it is known who is there."""
LOOK_EVERY_S = 2.0
MOST_LANES = 4096
"""Connections of one agent: callers that are there at the same time, and some that wait for the next."""
BACKLOG = 512


def bind(place: str) -> socket.socket:
    """A socket that has the address. ConfigError: it cannot be had, or is none."""
    host, port = pod_address.split(place, "--remote")
    try:
        if host in pod_address.WILD:
            if socket.has_dualstack_ipv6():
                sock = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1)
            else:
                sock = socket.create_server(("0.0.0.0", port), backlog=1)
        else:
            family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            sock = socket.create_server(target[:2], family=family, backlog=1)
    except OSError as fault:
        raise ConfigError(f"--remote {place}: cannot listen there: {fault.strerror or fault}") from fault
    sock.setblocking(False)
    return sock


class Remote:
    """Made on the event loop. `clock`: seconds of the epoch, as certificates have them."""

    def __init__(self, service: Service, enrolled: Enrolled, clock: Callable[[], float] = time.time) -> None:
        self.service, self.enrolled, self.clock = service, enrolled, clock
        self.half_open = HalfOpen()
        self.told = Told(log, "remote.refused")
        self._lanes: set[Lane] = set()
        self._count: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, sock: socket.socket) -> None:
        """Listen on a socket that has its address."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accepted, sock=sock, backlog=BACKLOG)
        self._timer = loop.call_later(LOOK_EVERY_S, self._look)

    def shut(self) -> None:
        """Nobody new any more."""
        if self._server is not None:
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        self.shut()
        for lane in list(self._lanes):
            lane.transport.abort()

    def _accepted(self) -> Tls:
        self._renew()
        knock = Knock(self)
        return Tls(self.enrolled.context, knock, shaken=knock.shaken, failed=knock.failed)

    def _look(self) -> None:
        self._renew()
        now = self.clock()
        for lane in [lane for lane in self._lanes if not self.enrolled.is_good(lane.agent, now)]:
            log.warning("event=agent.cut agent=%s", lane.agent.name)
            lane.transport.abort()
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)

    def _renew(self) -> None:
        try:
            self.enrolled.renew()
        except ConfigError:  # our own certificate: what we have goes on
            log.exception("event=remote.certificate")

    # ---- judged

    def admit(self, agent: Agent, transport: asyncio.Transport) -> bool:
        """False: it has too many connections."""
        if self._count[agent.name] >= MOST_LANES:
            return False
        if not self._count[agent.name]:
            name = transport.get_extra_info("peername")
            log.info("event=agent.came agent=%s address=%s", agent.name, name[0] if name else "")
        self._count[agent.name] += 1
        self._lanes.add(Lane(self.service, agent, transport, self.told, self._lane_lost))
        return True

    def _lane_lost(self, lane: Lane) -> None:
        self._lanes.discard(lane)
        self._count[lane.agent.name] -= 1
        if not self._count[lane.agent.name]:
            del self._count[lane.agent.name]
            log.info("event=agent.went agent=%s", lane.agent.name)


class Knock(asyncio.Protocol):
    """A connection of somebody who has proved nothing yet."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._timer: asyncio.TimerHandle | None = None
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        name = transport.get_extra_info("peername")
        self.address = str(name[0]) if name else ""
        if not self._remote.half_open.may_knock(self.address):
            self._refuse("too many connections that prove nothing")
            return
        self._remote.half_open.came(self.address)
        sock = transport.get_extra_info("socket")
        keep_alive(sock)
        self._timer = asyncio.get_running_loop().call_later(PROVED_S, self._refuse, "it did not say who it is in time")

    def shaken(self, der: bytes | None) -> None:
        if der is None:
            return  # who has no certificate has a token, in the first frame
        agent = self._remote.enrolled.find(der, self._remote.clock())
        if agent is None:
            self._no("this agent is not enrolled any more")
        else:
            self._leave()
            if not self._remote.admit(agent, self.transport):
                self._no("this agent has too many connections")

    def failed(self, reason: str) -> None:
        if self._timer is not None:
            self._remote.told.say("event=remote.refused address=%s reason=%r", self.address, f"TLS: {reason}"[:200])

    def data_received(self, data: bytes) -> None:
        self._no("no agent's certificate was shown")

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def _leave(self) -> None:
        """It is no longer half-open."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._remote.half_open.went(self.address)

    def _no(self, why: str) -> None:
        self._remote.told.say("event=remote.refused address=%s reason=%r", self.address, why)
        self.transport.write(frame(wire.NO, why.encode()))
        self.transport.close()

    def _refuse(self, why: str) -> None:
        self._remote.told.say("event=remote.refused address=%s reason=%r", self.address, why)
        self.transport.abort()
