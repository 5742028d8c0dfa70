"""Where login nodes come in (`up --remote HOST:PORT`): who is it, and is he believed?

TLS 1.3 alone. Who shows the certificate of an enrolled agent (`enrolment`) brings callers from then on (`lane`); who shows
none has a user's own token to show, in the first frame, or nothing. Until then a connection is half-open, as at the door
for pods: bounded in number, time and bytes; where there are too many the oldest gives way. An agent that is revoked, or whose certificate runs out, is cut within seconds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable

from slurmbridge.daemon import pod_address
from slurmbridge.daemon.crowd import part_of_the_files
from slurmbridge.daemon.enrolment import Agent, Enrolled
from slurmbridge.daemon.lane import Lane
from slurmbridge.daemon.peer import Peer
from slurmbridge.daemon.server import Connection, Service
from slurmbridge.daemon.threshold import TOO_MANY, HalfOpen, Told, Unproved, listen
from slurmbridge.daemon.tls import Tls
from slurmbridge.daemon.tokens import Token, Tokens
from slurmbridge.errors import ConfigError
from slurmbridge.wire import agent as wire
from slurmbridge.wire.client import frame, unpack

log = logging.getLogger(__name__)

PROVED_S = 10.0
"""From the beginning of a connection until it is known who is there."""
GUESS_S = 1.0
"""Before a token is refused."""
LOOK_EVERY_S = 2.0
MOST_LANES = 1 << 16
"""Connections of one agent: callers that are there at the same time, each user's bounded by `crowd`, and some that wait.
All agents together have a quarter of the daemon's files."""


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
    """Made on the event loop. `keep`: called now and then, to put away what was learned of callers. `clock`: seconds of the
    epoch, as certificates have them."""

    def __init__(
        self,
        service: Service,
        enrolled: Enrolled,
        tokens: Tokens,
        *,
        keep: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.service, self.enrolled, self.tokens, self.clock = service, enrolled, tokens, clock
        self._keep = keep
        self.half_open = HalfOpen()
        self.told = Told(log, "remote.refused")
        self._lanes: set[Lane] = set()
        self._guests: set[Guest] = set()
        self._count: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, sock: socket.socket) -> None:
        """Listen on a socket that has its address."""
        self._server = await listen(sock, self._accepted)
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)

    def shut(self) -> None:
        """Nobody new any more."""
        if self._server is not None:
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        self.shut()
        for transport in [lane.transport for lane in self._lanes] + [guest.transport for guest in self._guests]:
            transport.abort()

    def _accepted(self) -> Tls:
        self._renew()
        knock = Knock(self)
        return Tls(self.enrolled.context, knock, shaken=knock.shaken, failed=knock.failed)

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)
        self._renew()
        self._keep()
        now = self.clock()
        for lane in [lane for lane in self._lanes if not self.enrolled.is_good(lane.agent, now)]:
            log.warning("event=agent.cut agent=%s", lane.agent.name)
            lane.transport.abort()
        for guest in [guest for guest in self._guests if not self.tokens.is_good(guest.token)]:
            guest.transport.abort()

    def _renew(self) -> None:
        try:
            self.enrolled.renew()
        except ConfigError as fault:  # our own certificate: what we have goes on
            self.told.say("event=remote.certificate reason=%r", str(fault))

    # ---- judged

    def admit(self, agent: Agent, transport: asyncio.Transport) -> bool:
        """False: it has too many connections."""
        if self._count[agent.name] >= MOST_LANES or self._count.total() >= part_of_the_files(4):
            return False
        if not self._count[agent.name]:
            name = transport.get_extra_info("peername")
            log.info("event=agent.came agent=%s address=%s", agent.name, name[0] if name else "")
        self._count[agent.name] += 1
        self._lanes.add(Lane(self.service, agent, transport, self.told, self._lane_lost))
        return True

    def admit_user(self, token: Token, transport: asyncio.Transport, first: bytes) -> bool:
        """False: nobody of this uid is known here."""
        user = self.service.memory.names.user(token.uid)
        if user is None:
            return False
        peer = Peer(uid=token.uid, gid=user.gid, by_token=True, is_remote=True)
        guest = Guest(self.service, peer, token, transport, self._guests.discard)
        self._guests.add(guest)
        transport.write(frame(wire.WELCOME, wire.VERSION))
        transport.set_protocol(guest)
        guest.connection_made(transport)
        if first and not transport.is_closing():
            guest.data_received(first)
        return True

    def _lane_lost(self, lane: Lane) -> None:
        self._lanes.discard(lane)
        self._count[lane.agent.name] -= 1
        if not self._count[lane.agent.name]:
            del self._count[lane.agent.name]
            log.info("event=agent.went agent=%s", lane.agent.name)


class Guest(Connection):
    """A user who has shown a token."""

    def __init__(
        self, service: Service, peer: Peer, token: Token, transport: asyncio.Transport, lost: Callable[[Guest], None]
    ) -> None:
        super().__init__(service, peer)
        self.token, self.transport, self._lost = token, transport, lost

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self)
        super().connection_lost(exc)


class Knock(Unproved):
    """What shows a certificate or a token in time, or is refused."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote.half_open)
        self._said = bytearray()
        self._remote = remote
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        oldest = self._half_open.in_the_way(self.address)
        if isinstance(oldest, Knock):  # not this one: users of a login node must not keep its agent out
            oldest.give_way()
        self.wait(PROVED_S)

    def shaken(self, der: bytes | None) -> None:
        if der is None:
            return  # who has no certificate has a token, in the first frame
        agent = self._remote.enrolled.find(der, self._remote.clock())
        if agent is None:
            self._no("this agent is not enrolled any more")
        else:
            self.leave()
            if not self._remote.admit(agent, self.transport):
                self.refuse("this agent has too many connections")  # not a No: it may come again in a moment

    def failed(self, reason: str) -> None:
        if self._timer is not None:
            self._remote.told.say("event=remote.refused address=%s reason=%r", self.address, f"TLS: {reason}"[:200])

    def data_received(self, data: bytes) -> None:
        """A token, whole."""
        if self._is_refused:
            return
        self._said += data
        size = int.from_bytes(self._said[:4], "big")
        if len(self._said) < 4 or (size <= wire.MAX_TOKEN and len(self._said) < 4 + size):
            return
        said, first = bytes(self._said[4 : 4 + size]), bytes(self._said[4 + size :])
        token, why = None, "neither an agent's certificate nor a token was shown"
        if said[:1] == wire.TOKEN and size <= wire.MAX_TOKEN:
            try:
                version, name, secret = unpack(said[1:])
            except ValueError:
                version, name, secret = b"", b"", b""
            why = "the token is not known, or not good any more: make another"
            if version == wire.VERSION:
                token = self._remote.tokens.find(os.fsdecode(name), os.fsdecode(secret))
        if token is None:
            self._is_refused = True  # later: whoever tries tokens tries few
            asyncio.get_running_loop().call_later(GUESS_S, self._no, why)
            return
        self.leave()
        if not self._remote.admit_user(token, self.transport, first):
            self._no("nobody of this token's uid is known here")

    def give_way(self) -> None:
        """There are too many of them, and this is the one that has taken longest."""
        self.leave()
        self.refuse(TOO_MANY)

    def _no(self, why: str) -> None:
        self._remote.told.say("event=remote.refused address=%s reason=%r", self.address, why)
        if self.transport.is_closing():
            return
        self.transport.write(frame(wire.NO, why.encode()))
        self.transport.close()

    def refuse(self, why: str) -> None:
        self._remote.told.say("event=remote.refused address=%s reason=%r", self.address, why)
        self.transport.abort()
