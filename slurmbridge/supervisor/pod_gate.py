"""How does a pod speak with the daemon? Over TLS, whose certificate is known by its hash, with its token in the first frame.

Everything else here knows plain sockets: what stands for the daemon is the near end of a relay. A supervisor's relay
dials again, with longer and longer pauses that differ from pod to pod, until the daemon says something; so a daemon that is
away, or does not know the pod yet, is waited for without end. What became of other connections makes none of them longer. The token is read at each dial: the kubelet renews it.
"""

from __future__ import annotations

import math
import os
import socket
from typing import Any, NamedTuple

from slurmbridge.supervisor import pinned
from slurmbridge.supervisor.kernel import boottime
from slurmbridge.supervisor.loop import Loop
from slurmbridge.supervisor.pod_names import Names
from slurmbridge.supervisor.pod_relay import Relay
from slurmbridge.supervisor.pod_space import PodSpace, say
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import BY_YOURSELF, frame

CLIENT_S = 8.0
"""How long the daemon is tried for a command: less than the command itself waits for its first answer."""
MOST_CLIENTS = 256
"""Commands of a job at the same time; one more is turned away."""


class Who(NamedTuple):
    """What the arguments of a supervisor say."""

    host: str
    port: int
    pin: str  # SHA-256 of the daemon's certificate, in hex
    token_file: str
    job: int
    restarts: int
    rank: int


class Gate:
    """Makes all connections of the pod to the daemon."""

    def __init__(self, loop: Loop, space: PodSpace, who: Who) -> None:
        self.loop, self.who = loop, who
        self.names = Names(loop, space, who.host, who.port)
        self.tls = pinned.context()
        self._said = ""
        self._relays: set[Relay] = set()

    def supervisor(self, run: str = "", sequence: int = 0) -> socket.socket:
        """The daemon, for the supervisor: `run` is the run's token, once it had its launch."""
        return self._open(wire.SUPERVISOR, math.inf, run=run, sequence=sequence)

    def step(self, connection: str) -> socket.socket:
        """Somebody outside, who wants a step; the daemon has asked for it."""
        return self._open(wire.STEP, 0.0, connection=connection)

    def client(self, near: socket.socket, uid: int) -> None:
        """A command of the job dialled in."""
        if uid not in (0, os.getuid()) or len(self._relays) >= MOST_CLIENTS:
            near.close()
            return
        self._begin(near, {"what": wire.CLIENT}, boottime() + CLIENT_S, frame(BY_YOURSELF, b""))

    def _open(self, what: str, until: float, **said: object) -> socket.socket:
        ours, near = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._begin(near, {"what": what, **said}, until)
        return ours

    def _begin(self, near: socket.socket, said: dict[str, Any], until: float, parting: bytes = b"") -> None:
        relay = Relay(self, near, said, until=until, parting=parting)
        self._relays.add(relay)
        relay.dial()

    # ---- for relays

    def opening(self, said: dict[str, Any]) -> bytes:
        """The first frame of a connection. OSError: the token cannot be read."""
        with open(self.who.token_file, encoding="ascii") as file:
            token = file.read().strip()
        opening = wire.Opening(self.who.job, self.who.restarts, self.who.rank, token)._replace(**said)
        return frame(wire.OPENING, wire.encode_opening(opening))

    def failed(self, why: str) -> None:
        """In the container's log, once for each reason."""
        if why != self._said:
            say(f"the daemon at {self.who.host}:{self.who.port}: {why}; trying again")
            self._said = why

    def reached(self) -> None:
        """The daemon said something to the supervisor."""
        self._said = ""

    def ended(self, relay: Relay) -> None:
        self._relays.discard(relay)
