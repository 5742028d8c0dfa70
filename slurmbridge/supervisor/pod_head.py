"""The supervisor of rank 0 in a pod: what is other there than on a virtual node.

The daemon is reached through the pod's gate, ranks over TCP; the exit record is the container's termination message, which
outlives the container. Deletion of the pod ends the run within its kill wait, for a failed node, as the job has lost one.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

from slurmbridge.supervisor import pod_env, pod_folders, pod_memory, pod_words
from slurmbridge.supervisor.casting import Cast
from slurmbridge.supervisor.head import Head
from slurmbridge.supervisor.loop import Link
from slurmbridge.supervisor.peers import Peers
from slurmbridge.supervisor.pod_cast import FIRST_NUMBER, Spread
from slurmbridge.supervisor.pod_output import Output
from slurmbridge.supervisor.pod_peers import PodPeers
from slurmbridge.supervisor.pod_place import Place
from slurmbridge.supervisor.pod_space import say
from slurmbridge.wire import supervisor as wire

LINGER_S = 60.0
"""After the end of the run: how long a daemon that is away is waited for when the record holds all there is to tell."""
DELETED = "its pod was deleted"


class PodHead(Head):
    """`code`: of the container, when `run` has returned."""

    assemble_s = 1200.0  # images of other ranks may still be pulled: more than the daemon waits for a pod to start

    def __init__(
        self, place: Place, sock: socket.socket, header: dict[str, Any], script: bytes, env: dict[str, str],
        base_env: dict[str, str],
    ) -> None:  # fmt: skip
        self._place = place
        header["container_env"] = place.container
        base_env = {**base_env, "SLURMBRIDGE_ADDR": place.address}
        record = {"token": str(header["token"])}
        super().__init__(place.loop, sock, place.folder, header, script, env, base_env, record, place.space)
        place.space.part(place.loop)
        self.code = 0
        self.output = Output(place.loop, header, place.base)
        self.output.connected(self._link)
        self.node.place = self.output.place
        if "mounts" in header:
            self.told_with_steps = {"mounts": header["mounts"]}
        self._oom_kills = pod_memory.kills()
        self._files: dict[int, Spread] = {}  # of sbcast, under way
        self._last_file = FIRST_NUMBER
        self._is_told = False  # the termination message is all of the record
        signal.signal(signal.SIGTERM, lambda number, where: place.loop.after(0, self._deleted) and None)

    def run(self) -> None:
        try:
            self._place.listen()
        except OSError as error:
            self.fail(f"{self._place.base}: {error.strerror}")
        trouble = pod_folders.trouble(self._place.folders)
        if trouble:
            self.fail(trouble)
        super().run()

    def assembled(self) -> None:
        if not self._why:
            super().assembled()

    def _meet(self) -> Peers:
        return PodPeers(self)

    def cast(self, link: Link) -> Cast | Spread:
        ranks = len(self.header["ranks"])
        if ranks == 1:
            return super().cast(link)
        self._last_file += 1
        spread = Spread(self, link, self._last_file, ranks, self._file_over)
        self._files[self._last_file] = spread
        return spread

    def lay(self, path: str, source: int) -> None:
        self.output.take(path, source)

    def _file_over(self, number: int) -> None:
        self._files.pop(number, None)

    def file_told(self, rank: int, number: int, kind: bytes, payload: bytes) -> None:
        """Another rank has written a part of a file, or cannot."""
        if number in self._files:
            self._files[number].told(rank, kind, payload)

    def _begin(self, login_env: dict[str, str]) -> None:
        self._env = pod_env.of_job(self._place.container, self._env, login_env, self._place.address)
        super()._begin({})

    def _batch_ended(self, status: int) -> None:
        killed = pod_memory.kills() - self._oom_kills
        of_steps = any(int(str(step["exit"])) & 0x7F == signal.SIGKILL for step in self.steps.records())
        if killed > 0 and not self._why and (status or not of_steps):
            if self._batch is not None:
                self._batch.say(pod_memory.words(killed, self.job_id))
            self._why, status = "oom", pod_memory.OOM_STATUS
        super()._batch_ended(status)
        if self._message:
            say(self._message)

    def _deleted(self) -> None:
        say("the pod is being deleted")
        if not self._why:
            self.fail(f"node {self.node.node}: {DELETED}", "node_fail")
        elif self._is_over and self.output.is_empty:
            self._leave()

    def _last_words(self, rank: int) -> str:
        return "the connection to its supervisor was lost"

    # ---- words with the daemon

    def _dial(self) -> None:
        sock = self._place.gate.supervisor(str(self.record["token"]), self._sequence)
        self._link = Link(self.loop, sock, self._command, self._link_lost)
        self._is_greeted = False

    def _link_lost(self) -> None:
        self.output.connected(None)
        super()._link_lost()

    def _greeted(self) -> None:
        super()._greeted()
        self.output.connected(self._link)

    def report(self, report: dict[str, Any]) -> None:
        """The end is told when the daemon has all of the output: nothing holds this pod from then on."""
        if report["kind"] == "ended" and not self.output.is_finished:
            self.output.finish(lambda: self.report(report))
        else:
            super().report(report)

    def _leave(self) -> None:
        """Not while the end is still to be told, though all that was told before is acknowledged."""
        if self.output.is_finished or self._unwanted:
            super()._leave()

    def _command(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.KEPT:
            self.output.kept(payload)
            return
        if kind != wire.CONNECT:
            super()._command(kind, payload)
            return
        sock = self._place.gate.step(str(wire.decode(payload)["connection"]))
        self.steps.connected(sock, os.getuid(), 0, self._of_outside)

    def _of_outside(self, env: dict[str, str]) -> dict[str, str]:
        host_software = bool(self.header.get("host_software"))
        return pod_env.of_step(self._place.container, env, self._place.address, host_software=host_software)

    def _keep(self, report: dict[str, Any], *, sync: bool = True) -> None:
        words, self._is_told = pod_words.last_words(report)
        self.code = pod_words.exit_code(str(report["why"]), int(report["status"]))
        try:
            with open(self._place.words, "wb") as file:
                file.write(words)
        except OSError as error:
            say(f"{self._place.words}: {error.strerror}")
            self._is_told = False
        if self._is_told:
            self.loop.after(LINGER_S, self._linger)

    def _linger(self) -> None:
        """The daemon reads the record from the pod when it is back: until then the node's place is not held, but for output
        that is nowhere else."""
        if self._is_greeted or not self.output.is_empty:
            self.loop.after(LINGER_S, self._linger)
        else:
            self._leave()
