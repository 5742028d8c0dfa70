"""What a supervisor in a pod has around it: folders, its gate to the daemon, and what the container brought."""

from __future__ import annotations

import os
import socket

from slurmbridge.spool import claim
from slurmbridge.supervisor.loop import Listener, Loop
from slurmbridge.supervisor.pod_gate import Gate, Who
from slurmbridge.supervisor.pod_space import PodSpace

BASE = "/dev/shm/.slurmbridge"
"""In the one folder that a container can write to whatever its root is like. A dot, so that a job that clears /dev/shm
does not see it."""
SOCKET, SPOOL = "socket", "spool"
WORDS = "/dev/termination-log"


class Place:
    """One per pod. OSError: the folder cannot be made."""

    def __init__(
        self, loop: Loop, space: PodSpace, who: Who, folders: list[tuple[str, str]], *, base: str, words: str
    ) -> None:
        self.loop, self.space, self.who, self.folders, self.base, self.words = loop, space, who, folders, base, words
        space.part(loop)  # until a run has calls of its own: those who look names up end before it begins
        self.gate = Gate(loop, space, who)
        self.container = dict(os.environ)
        self.spool = os.path.join(base, SPOOL)
        self.folder = os.path.join(self.spool, claim.folder_name(who.job, who.restarts, who.rank))
        os.makedirs(self.folder, 0o700)

    @property
    def address(self) -> str:
        """Of the daemon, for the job's commands."""
        return "unix:" + os.path.join(self.base, SOCKET)

    def listen(self) -> None:
        """From here on the job's commands reach the daemon. OSError."""
        Listener(self.loop, self.base, SOCKET, self._command)

    def _command(self, sock: socket.socket, uid: int, pid: int) -> None:
        self.gate.client(sock, uid)
