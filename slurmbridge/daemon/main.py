"""`slurmbridge up`: puts the parts together, recovers what was there, serves until it is told to stop.

Order matters: the fork server of the runtime starts before any key, configuration or database is opened; the socket
opens last, when every command can be answered.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import logging
import os
import signal
import socket
import time

from slurmbridge.commands import quotas
from slurmbridge.daemon import asserted, certificate, configuration, loglines, remote, threshold
from slurmbridge.daemon.controller import Controller
from slurmbridge.daemon.crowd import Crowd
from slurmbridge.daemon.enrolment import Enrolled
from slurmbridge.daemon.hosting import Hosting, VirtualNodes
from slurmbridge.daemon.locking import Lock
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.metrics import Metrics, Planned
from slurmbridge.daemon.names import Names
from slurmbridge.daemon.page import Pages
from slurmbridge.daemon.planning import Planning
from slurmbridge.daemon.pod_options import PodOptions
from slurmbridge.daemon.server import Connection, Service
from slurmbridge.daemon.tokens import Tokens
from slurmbridge.errors import ConfigError, RuntimeFault
from slurmbridge.lang.slurm_conf import why_without_effect
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.store.place import Place, find, open_store
from slurmbridge.store.relational import RelationalStore

log = logging.getLogger(__name__)

ROOT_STATE = "/var/lib/slurmbridge"
ROOT_SOCKET = "/run/slurmbridge/socket"
COUNT_EVERY_S = 300.0  # PriorityCalcPeriod
PURGE_EVERY_S = 10.0
SAMPLE_EVERY_S = 5.0
DEADLINE_EVERY_S = 5.0


def run(
    *, slurm_conf: str | None, state: str, detach: bool, ready_fd: int | None, site: str | None = None,
    socket: str | None = None, metrics: str | None = None, pods: PodOptions | None = None, remote_at: str | None = None,
    database: str | None = None,
) -> int:  # fmt: skip
    """Serve; returns the exit status. BridgeError: it did not come up, with the reason. `pods`: jobs run as pods;
    `remote_at`: where login nodes come in, HOST:PORT; `database`: where the records are (`store.place`)."""
    os.umask(0o022)
    loglines.begin()
    lock = Lock(state, socket or "")
    lock.take()
    hosting: Hosting | None = None
    try:
        records = find(state, database)
        if pods is None:
            hosting = VirtualNodes(state, slurm_conf, site)
        else:
            from slurmbridge.daemon.pods import Pods  # with a client for clusters, for few

            hosting = Pods(pods, state, slurm_conf, site)
        asyncio.run(Daemon(hosting, state, socket, metrics, remote_at, records).serve(ready_fd))
    finally:
        if hosting is not None:
            hosting.release()
        lock.release()
    return 0


def _tame_collector() -> None:
    """Cycles are rare here and what was made so far stays: look for them seldom, and among newer things alone."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def socket_path(state: str) -> str:
    """root's default socket is where every user looks; any other is in its state folder."""
    return ROOT_SOCKET if os.geteuid() == 0 and state == ROOT_STATE else os.path.join(state, "socket")


class Daemon:
    config: ClusterConfig

    def __init__(
        self, hosting: Hosting, state: str, socket: str | None, metrics: str | None, remote_at: str | None,
        records: Place,
    ) -> None:  # fmt: skip
        self.hosting, self.state, self.metrics, self.remote_at = hosting, state, metrics, remote_at
        self.socket_path = socket or socket_path(state)
        self.records = records
        self.stopping = asyncio.Event()
        self.end_jobs = False
        self.fault = ""  # why it ends without being told to

    async def serve(self, ready_fd: int | None) -> None:
        """Recover, open the socket, wait for the end, leave in order."""
        loop = self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        try:
            self.config = await self.hosting.prepare()
            gate = self._bind_remote()
            half_life = self.config.priority_decay_half_life
            store = open_store(self.records, decay_half_life=half_life, lost=self._lost)
        except BaseException:
            await self.hosting.close()
            raise
        try:
            self._compose(store)
            controller = self.controller
            pages = await self._listen_for_metrics(store)  # before anything runs: the address may be taken
            runtime = self.hosting.runtime
            await runtime.start(controller.running.on_report, self.config, daemon_addr=f"unix:{self.socket_path}")
            await controller.running.adopt()
            await self.hosting.open(controller, self.service)
            self.planning.start()
            server = await self._listen()
            far = await self._open_remote(gate)
            tasks = [loop.create_task(self._every(PURGE_EVERY_S, controller.purge))]
            tasks.append(loop.create_task(self._every(SAMPLE_EVERY_S, controller.sample)))
            tasks.append(loop.create_task(self._every(DEADLINE_EVERY_S, controller.end_missed)))
            tasks.append(loop.create_task(self._every(COUNT_EVERY_S, controller.count_usage)))
            tasks.append(loop.create_task(self._every(DEADLINE_EVERY_S, self._end_forsaken)))
            tasks.append(loop.create_task(controller.retaining.run()))
            tasks.append(loop.create_task(self._every(DEADLINE_EVERY_S, controller.mail_of_limits)))
            controller.sample()
            for place, line, key in self.config.without_effect:
                why = why_without_effect(key)
                log.warning("event=config.without_effect key=%r at=%s:%d why=%r", key, place, line, why)
            for who, pool in quotas.without_pool(controller.memory.accounting, self.config):
                log.warning("event=quota.without_pool who=%s pool=%s", who, pool)
            _tame_collector()
            self._tell_ready(ready_fd)
            log.info(
                "event=daemon.up pid=%d socket=%s jobs=%d", os.getpid(), self.socket_path, len(controller.memory.table)
            )
            await self.stopping.wait()
            self.service.is_stopping = True
            if not self.end_jobs:  # else supervisors that look for a new daemon must find it, to be told to end
                server.close()
                self.hosting.shut()
                if far is not None:
                    far.shut()
            for task in tasks:
                task.cancel()
            if pages is not None:
                pages.close()
            controller.mailer.stop()
            await self.planning.stop()
            await runtime.stop(end_jobs=self.end_jobs)
            server.close()
            self.hosting.shut()
            if far is not None:
                far.close()
            controller.core.journal.hand_over()
        finally:
            store.close()
            await self.hosting.close()
        log.info("event=daemon.down pid=%d", os.getpid())
        if self.fault:
            raise RuntimeFault(self.fault)

    # ---- composition ----

    def _compose(self, store: RelationalStore) -> None:
        self.planning = Planning(time.time, self._give_up)
        memory = Memory(self.config, Names(), owner_uid=os.geteuid(), host=configuration.host_name(), now=time.time())
        self.controller = Controller(
            memory,
            store,
            self.hosting.runtime,
            self.planning.plans,
            clock=time.time,
            daemon_addr=f"unix:{self.socket_path}",
            estimate=self.planning.estimate,
            factors=self.planning.factors,
            shares=self.planning.shares,
            explain=self.planning.explain,
            read_config=self.hosting.read_config,
            shut_down=self._shut_down,
            cluster=self.hosting.cluster,
            instance=self.hosting.instance,
        )
        crowd = Crowd(0 if self.hosting.is_shared else memory.owner_uid)
        self.service = Service(memory, self.controller.performer, time.time, self.hosting.take_over, crowd)
        self.service.step_address = self.controller.step_address

    def _give_up(self) -> None:
        self._end(
            "the process that plans does not start, see its words in the log; `slurmbridge doctor` looks for the reason"
        )

    def _lost(self, reason: str) -> None:
        """Another daemon has the records. On the store's thread."""
        self._loop.call_soon_threadsafe(self._end, reason)

    def _end(self, fault: str) -> None:
        """It cannot go on; jobs do."""
        self.fault = fault
        self.stopping.set()

    def _end_forsaken(self) -> None:
        self.controller.end_forsaken(self.service.attached)

    async def _listen(self) -> asyncio.AbstractServer:
        path = self.socket_path
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        sock.bind(path)
        os.chmod(path, 0o666 if self.hosting.is_shared else 0o600)
        return await threshold.listen(sock, lambda: Connection(self.service))

    def _bind_remote(self) -> socket.socket | None:
        if self.remote_at and not self.hosting.is_shared:
            raise ConfigError(
                "--remote lets users of other machines in, and this daemon serves you alone: start it as root, or in a pod"
            )
        return remote.bind(self.remote_at) if self.remote_at else None

    async def _open_remote(self, gate: socket.socket | None) -> remote.Remote | None:
        memory = self.controller.memory
        asserted.learn_again(memory, self.state)
        if gate is None:
            return None
        _, pin = certificate.ensure(self.state)
        tokens = self.controller.performer.tokens = Tokens(self.state, pin, memory, time.time)
        far = remote.Remote(self.service, Enrolled(self.state), tokens, keep=lambda: asserted.keep(memory, self.state))
        await far.open(gate)
        log.info("event=remote.up address=%s", self.remote_at)
        return far

    async def _listen_for_metrics(self, store: RelationalStore) -> asyncio.Server | None:
        if self.metrics is None:
            return None
        memory, planning = self.controller.memory, self.planning
        found = Metrics(
            memory, planned=lambda: Planned(planning.cycles, planning.failures, planning.cycles_s, planning.last_cycle_s),
            commits=lambda: store.commits, is_healthy=lambda: store.healthy,
            connections=lambda: self.service.crowd.connections, version=importlib.metadata.version("slurmbridge"),
            asked=self.hosting.requests,
        )  # fmt: skip
        return await Pages({"/metrics": found.page, "/healthz": lambda: ("text/plain", "ok\n")}).listen(self.metrics)

    def _tell_ready(self, ready_fd: int | None) -> None:
        if ready_fd is not None:
            os.write(ready_fd, f"ready pid={os.getpid()} address=unix:{self.socket_path}\n".encode())
            os.close(ready_fd)

    # ---- now and then ----

    async def _every(self, seconds: float, action: object) -> None:
        assert callable(action)
        while True:
            await asyncio.sleep(seconds)
            action()

    def _shut_down(self, end_jobs: bool = False) -> None:
        self.end_jobs = end_jobs
        asyncio.get_running_loop().call_later(0.05, self.stopping.set)
