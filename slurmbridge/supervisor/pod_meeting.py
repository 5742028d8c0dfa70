"""How do the ranks of a run find each other, and know each other? TCP to rank 0 by its host name, and a proof on both sides.

Rank 0 listens on a port that follows from job and restart alone, so that nobody has to tell it: above the range from which
kernels give ports (ip_local_port_range) and above that of node ports. Pods that share their node's network may find it
taken; so there are several candidates, and the proof tells whether the right one answers. The token itself is never sent.
What follows the proof is neither secret nor signed, as it is between the nodes of a Slurm cluster.
"""

from __future__ import annotations

import errno
import os
import socket
import zlib
from collections.abc import Callable
from typing import NamedTuple

from slurmbridge.supervisor.loop import IN, OUT, Link, Loop, Timer
from slurmbridge.supervisor.pod_names import Address
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import pack, unpack

FIRST_PORT, PORTS = 61000, 4000
CANDIDATES = 8
NONCE = 16
PROVE_S = 20.0
"""From a connection to its proof."""
MOST_UNPROVED = 128
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 30), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 8),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300_000), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)  # fmt: skip
"""A rank that is not heard for five minutes is lost, as a node is by Slurm's default (SlurmdTimeout)."""


class Run(NamedTuple):
    """What both sides know."""

    job: int
    restarts: int
    token: str


class Claim(NamedTuple):
    """What has been proved of a connection."""

    rank: int
    what: str  # "" or "step"


Calls = tuple[Callable[[bytes, bytes], None], Callable[[], None]]
"""For the frames of a link, and for its end."""
OnProved = Callable[[Link, Claim], "Calls | None"]


def ports(run: Run) -> list[int]:
    """In the order in which they are tried."""
    first = zlib.crc32(b"%d.%d" % (run.job, run.restarts))
    return [FIRST_PORT + (first + index * 499) % PORTS for index in range(CANDIDATES)]


def _prepared(sock: socket.socket) -> socket.socket:
    for level, option, value in KEEPALIVE:
        sock.setsockopt(level, option, value)
    return sock


class Meeting:
    """Rank 0's side. `on_proved(link, claim)` returns what hears the frames and the end of that link, or nothing."""

    def __init__(self, loop: Loop, run: Run, on_proved: OnProved) -> None:
        """OSError: no port is free."""
        self._loop, self._run, self._on_proved = loop, run, on_proved
        self._socket = _listen(ports(run))
        self.port = int(self._socket.getsockname()[1])
        self._unproved = 0
        loop.watch(self._socket.fileno(), IN, self._accept)

    def _accept(self, events: int) -> None:
        try:
            sock, _ = self._socket.accept()
        except OSError:
            return
        if self._unproved >= MOST_UNPROVED:
            sock.close()
            return
        self._unproved += 1
        _Caller(self._loop, _prepared(sock), self._run, self._proved, self._gone)

    def _gone(self) -> None:
        self._unproved -= 1

    def _proved(self, link: Link, claim: Claim) -> Calls | None:
        self._unproved -= 1
        return self._on_proved(link, claim)

    def close(self) -> None:
        self._loop.forget(self._socket.fileno())
        self._socket.close()


def _listen(candidates: list[int]) -> socket.socket:
    problem = OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    for port in candidates:
        for family, everywhere in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
            try:
                sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            except OSError as error:  # a kernel without IPv6
                problem = error
                continue
            try:
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                sock.setsockopt(
                    socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
                )  # what is left of ended connections is no matter
                sock.bind((everywhere, port))
                sock.listen(1024)
                return sock
            except OSError as error:
                problem = error
                sock.close()
    raise problem


class _Caller:
    """A connection to rank 0 until it is proved, and from then on the calls of its owner."""

    def __init__(
        self, loop: Loop, sock: socket.socket, run: Run, on_proved: OnProved, on_gone: Callable[[], None]
    ) -> None:  # fmt: skip
        self._run, self._on_proved, self._on_gone = run, on_proved, on_gone
        self._asked = os.urandom(NONCE)
        self._rank = -1
        self._what = ""
        self._theirs = b""
        self._link = Link(loop, sock, self._frame, self._lost, wire.MAX_OPENING)
        self._on_frame: Callable[[bytes, bytes], None] = self._hear
        self._on_lost = self._fail
        self._timer: Timer = loop.after(PROVE_S, self._drop)

    def _frame(self, kind: bytes, payload: bytes) -> None:
        self._on_frame(kind, payload)

    def _lost(self) -> None:
        self._on_lost()

    def _fail(self) -> None:
        self._timer.cancel()
        self._on_gone()

    def _drop(self) -> None:
        self._link.abandon()
        self._fail()

    def _hear(self, kind: bytes, payload: bytes) -> None:
        try:
            parts = unpack(payload)
            if kind == wire.REGISTER and self._rank < 0:
                version, rank, self._theirs, what = parts[:4]
                self._rank, self._what = int(rank), what.decode("ascii")
                if version != wire.VERSION or len(self._theirs) != NONCE or self._rank < 0:
                    raise ValueError("not one of ours")
                self._link.send(wire.CHALLENGE, pack(self._asked, self._proof(b"head", self._theirs, self._asked)))
                return
            if kind != wire.PROOF or self._rank < 0:
                raise ValueError("not a proof")
            if not _equal(parts[0], self._proof(b"rank", self._asked, self._theirs)):
                raise ValueError("no proof")
        except (ValueError, IndexError):
            self._drop()
            return
        self._timer.cancel()
        calls = self._on_proved(self._link, Claim(self._rank, self._what))
        if calls is None:
            self._link.abandon()
        else:
            self._on_frame, self._on_lost = calls
            self._link.allow(wire.MAX_FRAME)
            self._link.send(wire.ACK, wire.encode({}))

    def _proof(self, side: bytes, asked: bytes, own: bytes) -> bytes:
        return wire.proof(self._run.token, side, (self._run.job, self._run.restarts), self._rank, asked, own)


def _equal(left: bytes, right: bytes) -> bool:
    import hmac

    return hmac.compare_digest(left, right)


class Caller:
    """Another rank's side: one try at one address. `done(link)` with a proved link, or with None.

    The link's frames go to `on_frame`, its end to `on_lost`, once it is proved.
    """

    def __init__(
        self, loop: Loop, address: Address, run: Run, claim: Claim, done: Callable[[Link | None], None],
        on_frame: Callable[[bytes, bytes], None], on_lost: Callable[[], None],
    ) -> None:  # fmt: skip
        self._loop, self._run, self._claim, self._done = loop, run, claim, done
        self._calls = (on_frame, on_lost)
        self._own = os.urandom(NONCE)
        self._link: Link | None = None
        self._is_right = self._is_proved = False  # what answers, and all of it
        family, where = address
        self._timer: Timer = loop.after(PROVE_S, self._fail)
        self._socket: socket.socket | None = None
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            self._socket = _prepared(sock)
            number = sock.connect_ex(where)
        except OSError as error:
            number = error.errno or errno.EIO
        if number not in (0, errno.EINPROGRESS):
            loop.after(0, self._fail)
            return
        loop.watch(sock.fileno(), OUT, self._connected)

    def _connected(self, events: int) -> None:
        sock = self._socket
        assert sock is not None
        self._loop.forget(sock.fileno())
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._fail()
            return
        self._socket = None
        self._link = Link(self._loop, sock, self._frame, self._lost, wire.MAX_OPENING)
        rank, what = self._claim
        self._link.send(wire.REGISTER, pack(wire.VERSION, b"%d" % rank, self._own, what.encode("ascii")))

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if self._is_proved:
            self._calls[0](kind, payload)
            return
        link = self._link
        assert link is not None
        if kind == wire.ACK and self._is_right:
            self._timer.cancel()
            self._is_proved = True
            link.allow(wire.MAX_FRAME)
            self._done(link)
            return
        try:
            asked, theirs = unpack(payload)
        except ValueError:
            self._fail()
            return
        key, rank = (self._run.job, self._run.restarts), self._claim.rank
        right = wire.proof(self._run.token, b"head", key, rank, self._own, asked)
        if kind != wire.CHALLENGE or not _equal(theirs, right):
            self._fail()  # somebody else's port
            return
        self._is_right = True
        link.send(wire.PROOF, pack(wire.proof(self._run.token, b"rank", key, rank, asked, self._own)))

    def _lost(self) -> None:
        if self._is_proved:
            self._calls[1]()
        else:
            self._fail()

    def _fail(self) -> None:
        self._timer.cancel()
        if self._socket is not None:
            self._loop.forget(self._socket.fileno())
            self._socket.close()
            self._socket = None
        if self._link is not None:
            self._link.abandon()
        done, self._done = self._done, lambda link: None
        done(None)
