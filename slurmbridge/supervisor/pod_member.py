"""The supervisor of another rank in a pod: finds rank 0 by its host name, for as long as it takes until it is there.

It keeps dialling the daemon too, which may say that it is not wanted. Where its own folders are not what they should be, or
its pod is deleted, rank 0 is told and ends the run.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

from slurmbridge.spool import claim
from slurmbridge.supervisor import pod_folders
from slurmbridge.supervisor.kernel import boottime
from slurmbridge.supervisor.loop import Link, Listener
from slurmbridge.supervisor.member import Member
from slurmbridge.supervisor.pod_cast import FIRST_NUMBER, Receiver
from slurmbridge.supervisor.pod_head import DELETED
from slurmbridge.supervisor.pod_meeting import Caller, Claim, Run, ports
from slurmbridge.supervisor.pod_names import Address, literal, look_up
from slurmbridge.supervisor.pod_output import Output
from slurmbridge.supervisor.pod_place import Place
from slurmbridge.supervisor.pod_space import say
from slurmbridge.supervisor.pod_splice import Splice
from slurmbridge.wire import step as step_wire
from slurmbridge.wire import supervisor as wire

FIRST_S, LAST_S = 0.1, 2.0
GIVE_UP_S = 3600.0
"""Rank 0 is the last to be made, and its image may take long; who ends the run before that deletes this pod."""
OF_THE_RUN = (wire.KILL, wire.UNWANTED, wire.SIGNAL)
"""Frames that are of no step."""


class PodMember(Member):
    """See the module docstring."""

    def __init__(self, place: Place, sock: socket.socket, header: dict[str, Any], base_env: dict[str, str]) -> None:
        self._place = place
        record = {"token": str(header["token"])}
        base_env = {**base_env, "SLURMBRIDGE_ADDR": place.address}
        super().__init__(place.loop, sock, place.folder, header, base_env, record, place.space)
        place.space.part(place.loop)
        self._run = Run(int(header["job"]), int(header["restarts"]), str(header["token"]))
        self._host = str(header.get("head") or header["address_of_node"])
        self._files = Receiver(self.node, self._emit)
        self._output = Output(place.loop, header, place.base)
        self._output.connected(self._daemon)
        self.node.place = self._output.place
        self._is_greeted = True
        self._pause_s = FIRST_S
        self._give_up = boottime() + GIVE_UP_S
        self._tries: list[tuple[str, int]] = []
        self._where: Address | None = None  # where rank 0 answered
        self.code = 0
        self._trouble = ""  # why nothing can run here
        signal.signal(signal.SIGTERM, lambda number, where: place.loop.after(0, self._deleted) and None)

    def run(self) -> None:
        try:
            self._place.listen()
            head = os.path.join(self._place.spool, claim.folder_name(self._run.job, self._run.restarts, 0))
            os.makedirs(head, 0o700)
            Listener(self.loop, head, claim.STEP_SOCKET, self._step)
            if self._run.restarts:
                claim.set_pointer(self._place.spool, self._run.job, self._run.restarts)
        except OSError as error:
            self._trouble = f"{self._place.base}: {error.strerror}"
            say(self._trouble)
        super().run()

    # ---- rank 0

    def _find_head(self) -> None:
        """Nothing runs here yet: a name server may be waited for."""
        if self.node.is_ending or boottime() > self._give_up:
            self.code = 1
            self._leave()
            return
        candidates = ports(self._run)
        addresses = literal(self._host, candidates[0]) or look_up(self._host, candidates[0])
        self._try([(family, (where[0], port)) for port in candidates for family, where in addresses])

    def _try(self, addresses: list[Address]) -> None:
        if not addresses:
            self.loop.after(self._pause_s, self._find_head)
            self._pause_s = min(self._pause_s * 1.5, LAST_S)
            return

        def done(link: Link | None) -> None:
            if link is None:
                self._try(addresses[1:])
            else:
                self._where = addresses[0]
                self._met(link)

        claim_ = Claim(int(self.header["rank"]), "")
        Caller(self.loop, addresses[0], self._run, claim_, done, self._from_head, self._head_lost)

    def _from_head(self, kind: bytes, payload: bytes) -> None:
        number = step_wire.unnumber(payload)[0] if kind not in OF_THE_RUN else 0
        if number >= FIRST_NUMBER:
            self._files.frame(number, kind, payload[4:])
        else:
            super()._from_head(kind, payload)

    def _met(self, link: Link) -> None:
        self._follow(link)
        trouble = self._trouble or pod_folders.trouble(self._place.folders)
        if trouble:
            self._say_leaving("launch", trouble)

    def _say_leaving(self, why: str, message: str) -> None:
        if self._head is not None:
            self._head.send(wire.LEAVING, wire.encode({"why": why, "message": message}))

    def _deleted(self) -> None:
        say("the pod is being deleted")
        if self._head is not None:
            self._say_leaving("node_fail", DELETED)
        else:
            self.node.end()
            self._leave()

    def _step(self, sock: socket.socket, uid: int, pid: int) -> None:
        """An srun in a task here: it goes to rank 0, which owns the steps."""
        if uid not in (0, os.getuid()) or self._where is None:
            sock.close()
            return

        def done(link: Link | None) -> None:
            if link is None:
                sock.close()
            else:
                Splice(self.loop, sock, link.detach())

        claim_ = Claim(int(self.header["rank"]), wire.STEP)
        Caller(self.loop, self._where, self._run, claim_, done, lambda kind, payload: None, lambda: None)

    # ---- the daemon

    def _daemon_lost(self) -> None:
        self._output.connected(None)
        self._is_greeted = False
        sock = self._place.gate.supervisor(str(self.record["token"]))
        self._daemon = Link(self.loop, sock, self._from_daemon, self._daemon_lost)

    def _from_daemon(self, kind: bytes, payload: bytes) -> None:
        if not self._is_greeted:
            self._is_greeted = True
            self._output.connected(self._daemon)
        if kind == wire.KEPT:
            self._output.kept(payload)
        else:
            super()._from_daemon(kind, payload)

    def _empty(self) -> None:
        """Rank 0 hears of it when the daemon has all that was written here."""
        self._output.finish(super()._empty)

    def _leave(self) -> None:
        if self.node.is_empty and not self._output.is_finished:
            self._output.finish(super()._leave)
        else:
            super()._leave()
