"""A controller on the shipped fakes: the store in memory, runs on a virtual clock, plans made in this process.

`run("sbatch -n2 job.sh")` types a command as a user; `advance(60)` lets time pass. Everything between is the real code.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.commands import effects as fx
from slurmbridge.commands.table import find
from slurmbridge.daemon.controller import Controller
from slurmbridge.daemon.fleet import Source
from slurmbridge.daemon.learned import UserRecord
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.names import Names
from slurmbridge.daemon.plans import Plans
from slurmbridge.lang.site_file import read_site, with_site
from slurmbridge.lang.slurm_conf import read_cluster
from slurmbridge.model.cluster import ClusterConfig, Node
from slurmbridge.model.explain import Explanation
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Factors, QueueShare, Verdict
from slurmbridge.runtime.memory import MemoryRuntime
from slurmbridge.sched import priority
from slurmbridge.sched.cycle import Memo, estimate, plan_cycle
from slurmbridge.sched.explain import explain
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sched.standings import standings
from slurmbridge.store.memory import MemoryStore

CONF = """
ClusterName=test
SlurmctldHost=ctl
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
MinJobAge=300
KillWait=5
MaxArraySize=1001
Licenses=matlab:2
NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=16000
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=INFINITE
"""
START = 1_800_000_000.0
LIMITS = (("CORE", 0, -1), ("MEMLOCK", 65536, 65536), ("NOFILE", 1024, 4096))  # of each caller: name, soft, hard
USERS = {"root": 0, "alice": 1001, "bob": 1002}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    code: int
    out: str
    err: str


class TestNames(Names):
    """Three users that need not exist on this machine."""

    __test__ = False

    def user(self, uid: int) -> UserRecord | None:
        name = next((name for name, number in USERS.items() if number == uid), None)
        return UserRecord(uid=uid, gid=uid, name=name, home=f"/home/{name}", shell="/bin/sh") if name else None

    def user_id(self, name: str) -> int | None:
        return USERS.get(name)

    def group_name(self, gid: int) -> str:
        return self.user_name(gid)

    def groups(self, user: str, gid: int) -> tuple[int, ...]:
        return (gid,)


class Site:
    """One controller; `restart` makes another from what the store remembers."""

    def __init__(self, conf: str = CONF, site_file: str = "") -> None:
        self.conf, self.site_file = conf, site_file  # the files as `scontrol reconfigure` finds them
        self.config: ClusterConfig = self.read_config()
        self.store = MemoryStore()
        self.runtime = MemoryRuntime(START)
        self.cluster: Source | None = None  # where nodes come from, if not from slurm.conf
        self.nonces = 0

    async def start(self) -> None:
        self.plans = Plans(self.clock, lambda: None)
        self._snapshot, self._memo, self._planned_at = Snapshot.empty(), Memo.empty(), 0.0
        memory = Memory(self.config, TestNames(), owner_uid=0, host="ctl", now=self.clock(), clock=self.clock)
        self.controller = Controller(
            memory,
            self.store,
            self.runtime,
            self.plans,
            clock=self.clock,
            daemon_addr="unix:/run/slurmbridge/socket",
            estimate=self._estimate,
            factors=self._factors,
            shares=self._shares,
            explain=self._explain,
            read_config=self.read_config,
            shut_down=lambda jobs: None,
            cluster=self.cluster,
            instance="t",
        )
        await self.runtime.start(self.controller.running.on_report, self.config, daemon_addr="")
        await self.controller.running.adopt()
        await self.settle()

    def read_config(self) -> ClusterConfig:
        config = read_cluster({"slurm.conf": self.conf}, "slurm.conf", cpus=8, memory_mib=16000)
        return with_site(config, read_site(self.site_file, "site.yaml"))

    async def restart(self) -> None:
        """As after kill -9: memory is gone, store and runs are not."""
        self.runtime.crash()
        await self.start()

    def clock(self) -> float:
        return self.runtime.now

    async def settle(self) -> None:
        """Until the planner has nothing left to do."""
        for _ in range(60):
            for _ in range(8):
                await asyncio.sleep(0)
            self._snapshot, self._planned_at = self._snapshot.apply(self.plans.delta()), self.clock()
            plan, self._memo = plan_cycle(self._snapshot, self._snapshot.config, self._planned_at, self._memo)
            self._snapshot = self._snapshot.noted(plan)
            self.plans.apply(plan)
            if not plan.starts:
                break
        for _ in range(8):
            await asyncio.sleep(0)
        await asyncio.gather(*self.controller.running.reading.values())

    def planned_nodes(self) -> Sequence[Node]:
        """As the planner was told of them."""
        return self._snapshot.columns.nodes

    async def advance(self, seconds: float, step: float = 1.0) -> None:
        end = self.clock() + seconds
        while self.clock() < end:
            self.runtime.advance(min(step, end - self.clock()))
            await self.settle()

    async def _estimate(self, job: Job) -> Verdict | None:
        return estimate(self._snapshot, self.config, job, self.clock())

    async def _explain(self, job: Job) -> Explanation | None:
        return explain(self._snapshot, self.config, job, self.clock())

    async def _factors(self) -> tuple[Factors, ...]:
        waiting = list(self._snapshot.waiting.values())
        return priority.explain(self._snapshot, waiting, self.config, self._memo.shares, self.clock())

    async def _shares(self) -> tuple[QueueShare, ...]:
        return standings(self._snapshot, self._memo, self._planned_at)

    async def run(
        self,
        line: str,
        *,
        user: str = "alice",
        files: Mapping[str, bytes] | None = None,
        nonce: str = "",
    ) -> Answer:
        """Type a command line; files are the caller's, by name."""
        self.nonces += 1
        uid = USERS[user]
        call = fx.Call(
            argv=tuple(shlex.split(line)),
            env={"HOME": f"/home/{user}", "USER": user, "PATH": "/usr/bin:/bin"},
            cwd=f"/home/{user}",
            uid=uid,
            gid=uid,
            groups=(uid,),
            user=user,
            group=user,
            host="ctl",
            now=self.clock(),
            nonce=nonce or f"{self.nonces:032x}",
            rlimits=LIMITS,
        )
        main = find(call.argv[0])
        assert main is not None
        command = main(call, self.controller.memory)
        printed: dict[int, list[str]] = {1: [], 2: []}
        answer: object = None
        while True:
            try:
                effect = command.send(answer)
            except StopIteration as stop:
                await self.settle()
                return Answer(code=stop.value or 0, out="".join(printed[1]), err="".join(printed[2]))
            if isinstance(effect, fx.Print):
                printed[effect.fd].append(effect.text)
                answer = None
            elif isinstance(effect, fx.ReadFile):
                data = (files or {}).get(effect.name)
                answer = (
                    fx.FileData(errno=2) if data is None else fx.FileData(data=data, path=f"{call.cwd}/{effect.name}")
                )
            elif isinstance(effect, fx.ReadStdin):
                answer = fx.FileData(data=(files or {}).get("-", b""))
            elif isinstance(effect, fx.Sleep):
                await self.advance(effect.seconds)
                answer = None
            else:
                answer = await self.controller.performer.perform(call, effect)

    async def submit(self, options: str, body: str = "sleep 10", *, user: str = "alice") -> int:
        """The id of a job whose script is `body`."""
        answer = await self.run(
            f"sbatch --parsable {options} job.sh", user=user, files={"job.sh": f"#!/bin/sh\n{body}\n".encode()}
        )
        assert answer.code == 0, answer
        return int(answer.out)

    def job(self, job_id: int) -> Job:
        job = self.controller.memory.job(job_id)
        assert job is not None
        return job

    def states(self, *job_ids: int) -> list[str]:
        return [self.job(job_id).state.name for job_id in job_ids]


async def site(conf: str = CONF) -> Site:
    made = Site(conf)
    await made.start()
    return made


def check_use(made: Site) -> None:
    """What nodes say is in use is what running jobs hold, no node holds more than it has."""
    memory = made.controller.memory
    held: dict[str, list[int]] = {}
    for job in memory.jobs():
        if job.allocation is None or job.is_pending or (job.is_finished and not job.flags):
            continue
        for share in job.allocation.nodes:
            amounts = held.setdefault(share.node, [0, 0])
            amounts[0] += 0 if job.is_without_cpus else share.cpus
            amounts[1] += share.memory_mib
    for node in memory.nodes():
        assert [node.alloc_cpus, node.alloc_memory] == held.get(node.name, [0, 0]), node.name
        assert node.alloc_cpus <= node.conf.cpus


Sites = Sequence[Site]
