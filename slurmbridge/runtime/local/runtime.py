"""Runs as processes on virtual nodes: launches through the fork server, listens to supervisors, finds them again.

What is known of a run is kept in its spool folder (`supervisor.claim`), never here: after a restart `adopt` reads the
folders, living supervisors dial in (`take_over`), and what is missing is proved to be gone before it is reported so.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence

from slurmbridge.model.capabilities import VIRTUAL_NODES, Capabilities
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.runtime import files, launch_frame
from slurmbridge.runtime.local import found
from slurmbridge.runtime.local.channel import Channel
from slurmbridge.runtime.local.hosts import addresses, extended, write_hosts
from slurmbridge.runtime.local.machine import Machine
from slurmbridge.runtime.local.reports import report_of
from slurmbridge.runtime.local.server import ForkServer
from slurmbridge.runtime.orders import Orders
from slurmbridge.runtime.protocol import NEVER_STARTED, Ended, Launch, Lost, NodeSample, Report, RunKey
from slurmbridge.spool import claim
from slurmbridge.wire import supervisor as wire

PROVED = 1 << 30
"""Sequence number of reports made here: above any that a supervisor gives."""
LOOK_FIRST_S, LOOK_LAST_S = 0.02, 1.0


class Run:
    """What the daemon's process remembers of a run."""

    __slots__ = ("channels", "ended_here", "is_ended", "key", "look_s", "looking", "pending", "ranks")

    def __init__(self, key: RunKey) -> None:
        self.key = key
        self.ranks = 0  # not known: it was found, not launched
        self.channels: dict[int, Channel] = {}
        self.pending: list[tuple[bytes, bytes]] = []  # commands for a supervisor that has not dialled in yet
        self.is_ended = False
        self.ended_here = False  # the end was reported from here, not by a supervisor's own channel
        self.look_s = LOOK_FIRST_S
        self.looking: asyncio.TimerHandle | None = None


class LocalRuntime(Orders):
    """Starts its fork server when it is made, before its owner opens anything. See `runtime.protocol`.

    `spaces`: namespaces for jobs where this process may make them (root).
    """

    capabilities: Capabilities = VIRTUAL_NODES

    def __init__(self, state_dir: str | os.PathLike[str], *, spaces: bool = True) -> None:
        self._state, self._spaces = os.path.abspath(os.fspath(state_dir)), spaces and os.getuid() == 0
        self._spool = os.path.join(self._state, "spool")
        self._server = ForkServer()
        self._runs: dict[RunKey, Run] = {}
        self._listener: Callable[[Report], None] = lambda report: None
        self._epoch = self._address = self._hosts = ""
        self._unknown: set[RunKey] = set()
        self._stopped = False

    async def start(self, listener: Callable[[Report], None], config: ClusterConfig, *, daemon_addr: str) -> None:
        """Make the spool, end the reign of earlier daemons. `daemon_addr` ("unix:PATH") is where supervisors dial in."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._address = daemon_addr.removeprefix("unix:")
        files.allow_many()
        self._machine = Machine(config)
        self._addresses = addresses(tuple(node.name for node in config.nodes))
        is_root = os.getuid() == 0
        os.makedirs(self._spool, exist_ok=True)
        os.chmod(self._spool, 0o711 if is_root else 0o700)
        self._hosts = write_hosts(self._spool, self._addresses, config.control_host) if is_root else ""
        self._epoch = claim.new_epoch(self._spool)
        claim.sweep(self._spool)

    def reconfigure(self, config: ClusterConfig) -> None:
        """New nodes get addresses; running jobs keep the hosts file that they were started with."""
        self._machine = Machine(config)
        self._addresses = extended(self._addresses, tuple(node.name for node in config.nodes))
        if self._hosts:
            self._hosts = write_hosts(self._spool, self._addresses, config.control_host)

    async def adopt(self, expected: Sequence[RunKey]) -> None:
        """See the protocol; reports come as supervisors dial in or are proved gone."""
        known = set(expected)
        claimed: set[RunKey] = set()
        with_head: set[RunKey] = set()
        for job, restarts, rank in found.claims(self._spool):
            key = RunKey(job, restarts)
            claimed.add(key)
            if key in known:
                if rank == 0:
                    with_head.add(key)
                    self._look_soon(self._run(key))
            else:
                self._unknown.add(key)
        rebooted = found.is_rebooted(self._state)
        for key in known - claimed:
            self._report(Lost(key=key, sequence=PROVED, time=time.time(), message=rebooted or NEVER_STARTED))
        for key in (known & claimed) - with_head:
            self._look_soon(self._run(key))
        for key in self._unknown:
            self._sweep_soon(key)
        found.remember_boot(self._state)

    def take_over(self, sock: socket.socket, hello: bytes, uid: int) -> bool:
        """A supervisor dialled the daemon's socket: `hello` is the payload of its V frame, `uid` its peer's. The socket
        is the runtime's from here on. False: not one of ours, and it is closed."""
        accepted = uid in (0, os.getuid()) and self._take_over(sock, hello)
        if not accepted:
            sock.close()
        return accepted

    def _take_over(self, sock: socket.socket, hello: bytes) -> bool:
        try:
            job, restarts, rank, token, _ = wire.decode_hello(hello)
        except ValueError:
            return False
        key = RunKey(job, restarts)
        record = claim.read_json(os.path.join(self._spool, claim.folder_name(job, restarts, rank), claim.RECORD))
        if record is None or not secrets.compare_digest(str(record.get("token", "")), token):
            return False
        if key in self._unknown or key not in self._runs:
            self._refuse(sock)
            return True
        run = self._runs[key]
        self._attach(run, rank, sock)
        run.channels[rank].send(wire.ACK, wire.encode({"sequence": 0}))
        for kind, payload in run.pending:
            run.channels[rank].send(kind, payload)
        run.pending.clear()
        return True

    def launch(self, launch: Launch) -> None:
        """Fork the supervisors of all ranks. OSError: not all could be; what was begun ends by itself."""
        run = self._fresh_run(launch.key)
        run.ranks = len(launch.nodes)
        token = secrets.token_hex(16)
        ranks, own = launch_frame.ranks_of(launch), self._own(launch, token)
        for node in launch.nodes:
            payload = launch_frame.payload(launch, node.rank, ranks, own)
            try:
                link = self._server.fork(namespaces=self._spaces)
            except OSError:
                self._forget(run)  # a rank that was begun dials in and hears that it is not wanted
                raise
            self._attach(run, node.rank, link)
            run.channels[node.rank].send(wire.LAUNCH, payload)

    def _own(self, launch: Launch, token: str) -> dict[str, object]:
        """What is of this machine in a launch."""
        return {
            "token": token,
            "epoch": self._epoch,
            "spool": self._spool,
            "address": self._address,
            "hosts": self._hosts,
            "address_of_node": self._addresses.get(launch.nodes[0].node, "127.0.0.1"),
        }

    def acknowledge(self, key: RunKey, sequence: int) -> None:
        run = self._runs.get(key)
        if run is None:
            return
        if run.ended_here:
            found.release_run(self._spool, key, run.ranks)
            self._forget(run)
            return
        channel = run.channels.get(0)
        if channel is not None:
            channel.send(wire.ACK, wire.encode({"sequence": sequence}))

    def kill(self, key: RunKey, why: str) -> None:
        if key not in self._runs:  # nobody would ever report its end: prove it
            self._look_soon(self._run(key))
        self._command(key, wire.KILL, wire.encode({"why": why}))

    def step_address(self, key: RunKey) -> str:
        folder = claim.folder_name(key.job_id, key.restarts, 0)
        return "unix:" + os.path.join(self._spool, folder, claim.STEP_SOCKET)

    def sample(self) -> Sequence[NodeSample]:
        return self._machine.sample()

    async def stop(self, *, end_jobs: bool) -> None:
        """Let go of everything; `end_jobs`: end what runs first, and wait until it has ended and was acknowledged."""
        if end_jobs:
            for key in list(self._runs):
                self.kill(key, "cancelled")
            while self._runs:
                await asyncio.sleep(0.05)
        self._stopped = True
        for run in self._runs.values():
            for channel in run.channels.values():
                channel.close()
            if run.looking is not None:
                run.looking.cancel()
        self.close()

    def close(self) -> None:
        """End the fork server; supervisors live on. Idempotent."""
        self._server.close()

    # ---- inside

    def _run(self, key: RunKey) -> Run:
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = Run(key)
        return run

    def _fresh_run(self, key: RunKey) -> Run:
        """For a (new) launch: nothing of an earlier attempt counts any more but the commands that wait."""
        run = Run(key)
        old = self._runs.get(key)
        if old is not None:
            run.pending, run.look_s = old.pending, old.look_s  # an attempt that fails again comes later
            self._forget(old)
        self._runs[key] = run
        return run

    def _forget(self, run: Run) -> None:
        for channel in run.channels.values():
            channel.close()
        if run.looking is not None:
            run.looking.cancel()
        self._runs.pop(run.key, None)

    def _command(self, key: RunKey, kind: bytes, payload: bytes) -> None:
        run = self._runs.get(key)
        if run is None or run.is_ended:
            return
        channel = run.channels.get(0)
        if channel is not None:
            channel.send(kind, payload)
        else:
            run.pending.append((kind, payload))

    def _attach(self, run: Run, rank: int, sock: socket.socket) -> None:
        old = run.channels.pop(rank, None)
        if old is not None:
            old.close()
        run.channels[rank] = Channel(
            self._loop, sock, lambda kind, load: self._told(run, kind, load), lambda: self._lost(run, rank)
        )

    def _told(self, run: Run, kind: bytes, payload: bytes) -> None:
        if kind != wire.REPORT:
            return
        report = report_of(run.key, wire.decode(payload))
        if report is None:
            return
        if isinstance(report, Ended):
            run.is_ended = True
        self._report(report)

    def _report(self, report: Report) -> None:
        self._listener(report)

    def _lost(self, run: Run, rank: int) -> None:
        run.channels.pop(rank, None)
        if rank == 0 and not self._stopped:
            self._look_soon(run)

    def _look_soon(self, run: Run) -> None:
        if run.looking is None:
            run.looking = self._loop.call_later(run.look_s, self._look, run)
            run.look_s = min(run.look_s * 2, LOOK_LAST_S)

    def _look(self, run: Run) -> None:
        """The supervisor of rank 0 is not connected: what became of it?"""
        run.looking = None
        if 0 in run.channels or self._stopped:
            run.look_s = LOOK_FIRST_S
            return
        verdict, value = found.examine(self._spool, run.key, run.ranks)
        if verdict == found.GONE:
            # folders of ranks whose supervisors died, or of a launch that lost its first rank
            found.release_run(self._spool, run.key, run.ranks)
        if verdict == found.GONE and run.is_ended:
            self._forget(run)
        elif verdict in (found.ALIVE, found.DYING):
            self._look_soon(run)
        elif verdict == found.ENDED:
            report = report_of(run.key, value)
            if isinstance(report, Ended):
                run.is_ended = run.ended_here = True
                self._report(report)
        else:
            message = NEVER_STARTED if verdict == found.GONE else str(value.get("message", ""))
            run.is_ended = run.ended_here = True
            self._report(Lost(key=run.key, sequence=PROVED, time=time.time(), message=message))

    def _refuse(self, sock: socket.socket) -> None:
        channel = Channel(self._loop, sock, lambda kind, load: None, lambda: None)
        channel.send(wire.UNWANTED)
        self._loop.call_later(60.0, channel.close)

    def _sweep_soon(self, key: RunKey) -> None:
        self._loop.call_later(0.5, self._sweep, key)

    def _sweep(self, key: RunKey) -> None:
        """A run that nobody knows: its supervisor is told when it dials in; a dead one's folder goes."""
        if self._stopped:
            return
        verdict, _ = found.examine(self._spool, key)
        if verdict in (found.ALIVE, found.DYING):
            self._sweep_soon(key)
            return
        found.release_run(self._spool, key)
        self._unknown.discard(key)
