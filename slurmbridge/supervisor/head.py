"""The supervisor of rank 0: the batch script, the time limit, the steps, the other ranks, and the talk with the daemon.

A run ends once: by its script, its time limit, or a kill. Then everything of it on every node is ended, the exit record
is written, sent, and kept until the daemon has acknowledged it. A daemon that is away stops nothing; it is dialled
again for ever, as long as the run's folder is there.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from slurmbridge.spool import claim
from slurmbridge.supervisor import login
from slurmbridge.supervisor.batch import Batch, store_script
from slurmbridge.supervisor.casting import Cast
from slurmbridge.supervisor.limits import Limits
from slurmbridge.supervisor.loop import Link, Listener, Loop, Timer, dial
from slurmbridge.supervisor.node import BATCH, NodeRun
from slurmbridge.supervisor.peers import Peers
from slurmbridge.supervisor.space import Space
from slurmbridge.supervisor.step_state import tres_of
from slurmbridge.supervisor.steps import Steps
from slurmbridge.supervisor.usage import add
from slurmbridge.wire import supervisor as wire

if TYPE_CHECKING:
    from slurmbridge.supervisor.pod_cast import Spread

DIAL_FIRST_S, DIAL_LAST_S = 0.1, 2.0
KEEP_AGAIN_S = 1.0

WORDS = {
    "timeout": "DUE TO TIME LIMIT",
    "requeue": "DUE TO JOB REQUEUE",
    "requeue_hold": "DUE TO JOB REQUEUE",
    "preempt": "DUE TO PREEMPTION",
    "node_fail": "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}
"""What slurmstepd says after CANCELLED AT; anything else was a signal."""


class Head:
    """See the module docstring; `run` returns when nothing is left to do."""

    assemble_s = 60.0
    told_with_steps: dict[str, object] = {}

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        folder: str,
        header: dict[str, Any],
        script: bytes,
        env: dict[str, str],
        base_env: dict[str, str],
        record: dict[str, Any],
        space: Space,
    ) -> None:
        self.loop, self.folder, self.header, self.record = loop, folder, header, record
        self.key = (int(header["job"]), int(header["restarts"]), 0)
        self.job_id = self.key[0]
        self._script, self._env = script, env
        self._sequence = 0
        self._unacknowledged: dict[int, dict[str, Any]] = {}
        self._link: Link | None = Link(loop, sock, self._command, self._link_lost)
        self._is_greeted = True
        self._dial_s = DIAL_FIRST_S
        self._batch: Batch | None = None
        self._batch_status = 0
        self._batch_start = 0.0
        self._why = ""
        self._message = ""
        self._killer: Timer | None = None
        self._is_over = False
        self._unwanted = False
        self.node = NodeRun(loop, header, space)
        self.node.on_empty = self._check_over
        self.peers = self._meet()
        self.steps = Steps(self, base_env)
        self.limits = Limits(self)

    def _meet(self) -> Peers:
        return Peers(self)

    def cast(self, link: Link) -> Cast | Spread:
        """Somebody brings a file for the nodes."""
        return Cast(self.node, link)

    def lay(self, path: str, source: int) -> None:
        """An srun here writes a file that has to be kept elsewhere; what is in it comes from `source`. OSError: no."""
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), path)

    def run(self) -> None:
        """Until the run is over and acknowledged."""
        uid = int(self.header["uid"])
        try:
            self._step_listener = Listener(self.loop, self.folder, claim.STEP_SOCKET, self.steps.connected, owner=uid)
            if self.key[1]:
                claim.set_pointer(os.path.dirname(self.folder), self.job_id, self.key[1])
            self.peers.assemble(self.assemble_s)
        except OSError as error:  # a full disk
            self.fail(f"spool: {error}")
        self.loop.run()

    # ---- the run's beginning

    def assembled(self) -> None:
        """All ranks are here: begin."""
        self.limits.begin()
        if self.header["batch"] and self.header["login_env"]:
            login.fetch(self.node, self.header, self._begin)
        else:
            self._begin({})

    def _begin(self, login_env: dict[str, str]) -> None:
        if self._why:
            return
        self._batch_start = time.time()
        if self.header["batch"]:
            env = {**login_env, **self._env}
            try:
                path = store_script(self.folder, self._script, int(self.header["uid"]))
                self._batch = Batch(self.node, self.header, env, path, self._batch_ended)
                self._batch.start()
            except OSError as error:
                self.fail(f"batch script: {error}")
                return
        pid = self._batch.pid if self._batch else 0
        self.report({"kind": "started", "time": self._batch_start, "pid": pid})
        for note in self.node.space.notes:
            self._message = self._message or note

    def fail(self, message: str, why: str = "launch") -> None:
        """The run cannot be, or not go on."""
        self._message = self._message if self._why else message
        self.kill(why)

    # ---- its end

    def _batch_ended(self, status: int) -> None:
        self._batch_status = status
        self._batch_end = time.time()
        self.limits.cancel()
        if self._batch is not None and self._batch.problem:
            self._message = self._message or f"could not open {self._batch.problem}"
        if not self._why:
            self._why = "exit"
        if self.steps.is_running:
            self.steps.terminate("")
            self._arm(float(self.header["kill_wait"]))
        else:
            self.end()

    _batch_end: float | None = None

    def kill(self, why: str) -> None:
        """Say it, SIGCONT and SIGTERM to everything, SIGKILL after KillWait."""
        if self._why:
            if self._killer is None and not self.node.is_ending:
                self.end()
            return
        self._why = why
        self.limits.cancel()
        if why != "exit":
            words = WORDS.get(why, "DUE to SIGNAL Terminated")
            self.steps.say_cancelled(words)
            self.notify(f"*** JOB {self.job_id} ON {self.node.node} CANCELLED AT {_now()} {words} ***")
        self.steps.terminating = True
        for number in (signal.SIGCONT, signal.SIGTERM):
            self.signal_everything(number)
        if self._batch is None and not self.steps.is_running:
            self.end()
        else:
            self._arm(float(self.header["kill_wait"]))

    def signal_everything(self, number: int) -> None:
        """All processes on all nodes."""
        self.peers.broadcast(wire.SIGNAL, {"signal": number, "scope": "full"})
        self.node.signal_all(number)

    def _arm(self, seconds: float) -> None:
        if self._killer is None:
            self._killer = self.loop.after(seconds, self.end)

    def end(self) -> None:
        """SIGKILL everything everywhere."""
        self.limits.cancel()
        self.peers.broadcast(wire.KILL, {})
        self.node.end()
        self._check_over()

    @property
    def is_ending(self) -> bool:
        return bool(self._why)

    def peer_is_empty(self) -> None:
        self._check_over()

    def node_failed(self, rank: int) -> None:
        """A rank's supervisor died."""
        if not self._why:
            self._message = f"node {self.header['ranks'][rank]['node']} failed: {self._last_words(rank)}"
            self.kill("node_fail")
        self._check_over()

    def _last_words(self, rank: int) -> str:
        folder = claim.folder_name(self.job_id, self.key[1], rank)
        return claim.last_words(os.path.join(os.path.dirname(self.folder), folder))

    def steps_done(self) -> None:
        """The last running step has ended."""
        batch_is_gone = self._batch is None or self._batch_end is not None
        if self._why and batch_is_gone and not self.node.is_ending:
            self.end()

    def _check_over(self) -> None:
        if self._is_over or not self.node.is_empty or not self.peers.are_empty:
            return
        self._is_over = True
        self.steps.finish_all(self._why)
        if self._unwanted:
            self._leave()
            return
        usage = add(self.node.total(), self.peers.usage())
        steps = self.steps.records()
        if self._batch is not None:
            steps = [self._batch_step(), *steps]
        report = {
            "kind": "ended",
            "time": time.time(),
            "status": self._batch_status,
            "why": self._why or "node_fail",
            "usage": usage,
            "steps": steps,
            "message": self._message,
        }
        if self.peers.lost:
            report["lost"] = self.peers.lost
        report["sequence"] = self._sequence + 1
        self._keep(report, sync=False)
        self.report(report)

    def _keep(self, report: dict[str, Any], *, sync: bool = True) -> None:
        """The exit record, in the run's folder before it is told: whoever is killed from here on, it is found there.

        Against a power failure it is what the daemon has stored that counts, as always; on the disk the record itself
        goes only when the daemon does not acknowledge it soon. While the disk is full the run's end is told all the
        same, and this is tried again: only a supervisor that is killed meanwhile takes the record along."""
        try:
            claim.write_file(os.path.join(self.folder, claim.EXIT), json.dumps(report).encode("ascii"), sync=sync)
        except OSError:
            sync = False
        if not sync:
            self.loop.after(KEEP_AGAIN_S, lambda: self._keep(report))

    def _batch_step(self) -> dict[str, object]:
        ended = self._batch_end is not None or self._is_over
        status = self._batch_status
        state = "RUNNING"
        if ended:
            state = "COMPLETED" if status == 0 else "FAILED"
            if self._why == "oom":
                state = "OUT_OF_MEMORY"
            elif self._why != "exit" or status == 53:
                state = "CANCELLED"
        return {
            "step_id": BATCH,
            "name": "batch",
            "state": state,
            "start": self._batch_start,
            "end": (self._batch_end or time.time()) if ended else None,
            "nodes": [self.node.node],
            "tasks": 1,
            "cpus": int(self.header["cpus"]),
            "tres": tres_of(self.header["ranks"][:1], [int(self.header["cpus"])]),
            "exit": status,
            "usage": self.node.usage(BATCH) if ended else None,
        }

    # ---- words with the daemon

    def report(self, report: dict[str, Any]) -> None:
        """Send until acknowledged."""
        self._sequence += 1
        report["sequence"] = self._sequence
        self._unacknowledged[self._sequence] = report
        if self._link is not None and self._is_greeted:
            self._link.send(wire.REPORT, wire.encode(report))

    def _command(self, kind: bytes, payload: bytes) -> None:
        if not self._is_greeted:
            self._greeted()
        try:
            value = wire.decode(payload) if payload and kind != wire.NOTIFY else {}
        except ValueError:
            return
        if kind == wire.ACK:
            for sequence in [each for each in self._unacknowledged if each <= int(value["sequence"])]:
                del self._unacknowledged[sequence]
            if self._is_over and not self._unacknowledged:
                self._leave()
        elif kind == wire.KILL:
            self.kill(str(value.get("why", "cancelled")))
        elif kind == wire.SIGNAL:
            self.signal(int(value["signal"]), str(value.get("scope", "")), value.get("step"))
        elif kind == wire.SUSPEND:
            self.limits.suspend()
            self.signal_everything(signal.SIGSTOP)
        elif kind == wire.RESUME:
            self.signal_everything(signal.SIGCONT)
            self.limits.resume()
        elif kind == wire.LIMIT:
            self.limits.set(value.get("limit"))
        elif kind == wire.NOTIFY:
            self.notify(payload.decode("utf-8", "replace"))
        elif kind == wire.UNWANTED:
            self._unwanted = True
            self._why = self._why or "stale"
            if self._is_over:
                self._leave()
            else:
                self.end()

    def signal(self, number: int, scope: str, step_id: int | None) -> None:
        """As scancel: a step, the batch shell, everything, or steps (the batch script's processes when there is none)."""
        if step_id is not None:
            if step_id == BATCH:
                self.node.signal_group(BATCH, number)
            else:
                self.steps.signal(step_id, number)
        elif scope == "batch":
            self.node.signal_group(BATCH, number, leader_only=True)
        elif scope == "full":
            self.steps.signal_all(number)
            self.node.signal_group(BATCH, number)
        else:
            self.steps.signal_all(number)

    def notify(self, text: str) -> None:
        """A line in the job's stderr."""
        if self._batch is not None:
            self._batch.say(text)

    def _link_lost(self) -> None:
        self._link = None
        self._dial_s = DIAL_FIRST_S
        self.loop.after(self._dial_s, self._dial)

    def _dial(self) -> None:
        held = claim.read_json(os.path.join(self.folder, claim.RECORD))
        if held is None or held.get("token") != self.record["token"]:
            # the folder was taken away: nobody will ever ask for this run
            self._unwanted = True
            self._why = self._why or "stale"
            self.loop.stop() if self._is_over else self.end()
            return
        try:
            sock = dial(self.header["address"])
        except OSError:
            self._dial_s = min(self._dial_s * 2, DIAL_LAST_S)
            self.loop.after(self._dial_s, self._dial)
            return
        self._link = Link(self.loop, sock, self._command, self._redial)
        self._is_greeted = False
        self._link.send(wire.HELLO, wire.encode_hello(*self.key, self.record["token"], self._sequence))

    def _greeted(self) -> None:
        """The daemon has taken the new link over: say again what it has not acknowledged."""
        self._is_greeted = True
        for report in list(self._unacknowledged.values()):
            if self._link is not None:
                self._link.send(wire.REPORT, wire.encode(report))

    def _redial(self) -> None:
        self._link = None
        self._dial_s = min(self._dial_s * 2, DIAL_LAST_S)
        self.loop.after(self._dial_s, self._dial)

    def _leave(self) -> None:
        if self.key[1]:
            claim.drop_pointer(os.path.dirname(self.folder), self.job_id, self.key[1])
        claim.release(self.folder)
        if self._link is not None:
            self._link.abandon()
        self.loop.stop()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime())
