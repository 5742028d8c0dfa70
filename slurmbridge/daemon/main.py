"""`slurmbridge up`: puts the parts together, recovers what was there, serves until it is told to stop.

Order matters: the fork server of the runtime starts before any key, configuration or database is opened; the socket
opens last, when every command can be answered.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import signal
import socket
import sys
import time

from msgspec.structs import replace

from slurmbridge.daemon import configuration
from slurmbridge.daemon.alterations import Alterations
from slurmbridge.daemon.changes import Changes
from slurmbridge.daemon.core import Core, Ids
from slurmbridge.daemon.deadlines import end_missed
from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.daemon.journal import Journal
from slurmbridge.daemon.locking import Lock
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.names import Names
from slurmbridge.daemon.performing import Performer
from slurmbridge.daemon.planning import Planning
from slurmbridge.daemon.requests import Blobs
from slurmbridge.daemon.running import Running
from slurmbridge.daemon.server import Connection, Service
from slurmbridge.daemon.submission import Submissions
from slurmbridge.lifecycle.ends import Death
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.runtime.local import LocalRuntime
from slurmbridge.runtime.protocol import RunKey
from slurmbridge.store.protocol import Loaded, Op, PutAccounting, PutJobs
from slurmbridge.store.sqlite import SqliteStore
from slurmbridge.submit.associations import initial_accounting

log = logging.getLogger(__name__)

ROOT_STATE = "/var/lib/slurmbridge"
ROOT_SOCKET = "/run/slurmbridge/socket"
PURGE_EVERY_S = 10.0
SAMPLE_EVERY_S = 5.0
DEADLINE_EVERY_S = 5.0
BACKLOG = 512


def run(*, slurm_conf: str | None, state: str, detach: bool, ready_fd: int | None) -> int:
    """Serve; returns the exit status. BridgeError: it did not come up, with the reason."""
    os.umask(0o022)
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="[%(asctime)s] %(levelname)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    lock = Lock(state)
    lock.take()
    runtime = LocalRuntime(state)
    try:
        config = configuration.read(slurm_conf)
        daemon = Daemon(config, slurm_conf, state, runtime)
        asyncio.run(daemon.serve(ready_fd))
    finally:
        runtime.close()
        lock.release()
    return 0


def socket_path(state: str) -> str:
    """root's default socket is where every user looks; any other is in its state folder."""
    return ROOT_SOCKET if os.geteuid() == 0 and state == ROOT_STATE else os.path.join(state, "socket")


class Daemon:
    def __init__(self, config: ClusterConfig, conf_path: str | None, state: str, runtime: LocalRuntime) -> None:
        self.config, self.conf_path, self.state, self.runtime = config, conf_path, state, runtime
        self.socket_path = socket_path(state)
        self.stopping = asyncio.Event()
        self.end_jobs = False

    async def serve(self, ready_fd: int | None) -> None:
        """Recover, open the socket, wait for the end, leave in order."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        store = SqliteStore(os.path.join(self.state, "state.db"), decay_half_life=self.config.priority_decay_half_life)
        try:
            await self._compose(store)
            await self.runtime.start(self.running.on_report, self.config, daemon_addr=f"unix:{self.socket_path}")
            await self.running.adopt()
            self.planning.start()
            server = await self._listen()
            tasks = [loop.create_task(self._every(PURGE_EVERY_S, self.core.purge))]
            tasks.append(loop.create_task(self._every(SAMPLE_EVERY_S, self._sample)))
            tasks.append(loop.create_task(self._every(DEADLINE_EVERY_S, lambda: end_missed(self.core))))
            self._sample()
            self._tell_ready(ready_fd)
            log.info("event=daemon.up pid=%d socket=%s jobs=%d", os.getpid(), self.socket_path, len(self.memory.table))
            await self.stopping.wait()
            server.close()
            for task in tasks:
                task.cancel()
            await self.planning.stop()
            await self.runtime.stop(end_jobs=self.end_jobs)
        finally:
            store.close()
        log.info("event=daemon.down pid=%d", os.getpid())

    # ---- composition ----

    async def _compose(self, store: SqliteStore) -> None:
        now = time.time()
        loop = asyncio.get_running_loop()
        loaded = store.load(now - self.config.min_job_age)
        names = Names()
        memory = Memory(self.config, names, owner_uid=os.geteuid(), host=configuration.host_name(), now=now)
        journal = Journal(store, loop)
        planning = Planning(time.time)
        following = max(loaded.next_job_id, self.config.first_job_id)
        core = Core(memory, journal, planning.plans, Ids(following, self.config.max_job_id), time.time)
        planning.plans.core = core
        blobs = Blobs(store.blob)
        self.memory, self.core, self.planning = memory, core, planning
        self.running = Running(core, self.runtime, blobs, f"unix:{self.socket_path}")
        planning.plans.launch, planning.plans.evict = self.running.launch, self.running.evict
        self._recover(loaded, journal)
        changes = Changes(core, self.runtime)
        alterations = Alterations(
            core,
            planning.plans.everything_changed,
            planning.plans.node_changed,
            self._fail_jobs,
            lambda: configuration.read(self.conf_path),
            self._shut_down,
        )
        performer = Performer(core, store, blobs, Submissions(core, store, blobs), changes, alterations, planning)
        self.service = Service(memory, performer, time.time, self.runtime.take_over)
        self.service.step_address = self._step_address

    def _recover(self, loaded: Loaded, journal: Journal) -> None:
        """What the store remembers, into memory. A new store gets its first entities."""
        memory = self.memory
        ops: list[Op] = []
        if loaded.accounting is None:
            memory.accounting = initial_accounting(self.config.cluster_name, enforced=bool(self.config.enforce))
            ops.append(PutAccounting(accounting=memory.accounting))
        else:
            memory.accounting = loaded.accounting
        for node in loaded.nodes:
            known = memory.node_table.admin(node.conf.name)
            if known is not None:
                memory.node_table.put_admin(
                    replace(
                        known,
                        base=node.base,
                        flags=node.flags,
                        reason=node.reason,
                        reason_uid=node.reason_uid,
                        reason_time=node.reason_time,
                        comment=node.comment,
                        extra=node.extra,
                    )
                )
        if loaded.partitions:
            memory.partition_list = list(loaded.partitions)
        memory.reservation_list = list(loaded.reservations)
        memory.usage_rows = {row.assoc_id: row for row in loaded.usage}
        for job in sorted(loaded.jobs, key=lambda job: job.job_id):
            self.core.place(job)
        for step in loaded.steps:
            memory.table.put_step(step)
        settled = [after for job in memory.table.waiting() if (after := self.core.evaluated(job)) is not job]
        for job in settled:
            self.core.place(job)
        if settled:
            ops.append(PutJobs(jobs=tuple(settled)))
        if ops:
            journal.write(ops)

    async def _listen(self) -> asyncio.AbstractServer:
        path = self.socket_path
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        sock.bind(path)
        os.chmod(path, 0o666 if os.geteuid() == 0 else 0o600)
        return await asyncio.get_running_loop().create_unix_server(
            lambda: Connection(self.service), sock=sock, backlog=BACKLOG
        )

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

    def _sample(self) -> None:
        """What the runtime measures on the nodes."""
        for sample in self.runtime.sample():
            changed = self.memory.node_table.measured(
                sample.node,
                responding=sample.responding,
                free_memory=sample.free_memory_mib,
                load=sample.cpu_load,
                boot_time=sample.boot_time,
                os=sample.os,
            )
            if changed:
                self.planning.plans.node_changed(sample.node)

    def _fail_jobs(self, node: str, death: Death) -> None:
        """A node went down: every run on it ends, and is requeued once its processes are proved gone."""
        affected = [
            job
            for job in self.memory.table
            if holds_resources(job)
            and JobFlag.COMPLETING not in job.flags
            and job.allocation is not None
            and any(share.node == node for share in job.allocation.nodes)
        ]
        now = self.core.clock()
        for job in affected:
            state = job.state if job.spec.requeue else JobState.NODE_FAIL
            changed = replace(
                job, state=state, flags=job.flags | {JobFlag.COMPLETING}, kill_reason=death.value, end_time=now
            )
            key = RunKey(job.job_id, job.restarts)
            self.core.update([changed]).add_done_callback(functools.partial(self._kill, key, death.value))

    def _kill(self, key: RunKey, why: str, _: asyncio.Future[None]) -> None:
        self.runtime.kill(key, why)

    def _shut_down(self, end_jobs: bool = False) -> None:
        self.end_jobs = end_jobs
        asyncio.get_running_loop().call_later(0.05, self.stopping.set)

    def _step_address(self, job_id: int) -> str:
        job = self.memory.table.get(job_id)
        return "" if job is None else self.runtime.step_address(RunKey(job.job_id, job.restarts))
