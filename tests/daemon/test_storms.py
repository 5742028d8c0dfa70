"""Storms of commands, lost supervisors and restarts in any order: what must hold holds all the time, and at the end.

Virtual time; every storm is a seed, so that what fails can be run again.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.daemon.jobtable import is_over
from slurmbridge.model.plan import Eviction, Plan
from tests.daemon.controlled import Site, site
from tests.daemon.invariants import check, check_quiet

STEPS = 120


class Storm:
    """One seed's choices."""

    def __init__(self, made: Site, seed: int) -> None:
        self.made, self.chance = made, random.Random(seed)
        self.log: list[str] = []

    def some_job(self) -> str:
        """A job id, an array task or a whole array; now and then one that does not exist."""
        jobs = list(self.made.controller.memory.jobs())
        if not jobs or self.chance.random() < 0.05:
            return "9999"
        job = self.chance.choice(jobs)
        if job.array_job_id and self.chance.random() < 0.7:
            return f"{job.array_job_id}_{self.chance.randrange(6)}"
        return str(job.array_job_id or job.job_id)

    async def type(self, line: str, user: str = "") -> None:
        user = user or self.chance.choice(("alice", "alice", "bob", "root"))
        self.log.append(f"{user}: {line}")
        first = self.chance.choice(("", "trap '' TERM", ""))
        body = f"#!/bin/sh\n{first}\nsleep {self.chance.randrange(1, 40)}\nexit {self.chance.choice((0, 0, 0, 3))}\n"
        answer = await self.made.run(line, user=user, files={"job.sh": body.encode()})
        assert "Internal" not in answer.err, answer

    async def submit(self) -> None:
        words = [f"-n{self.chance.choice((1, 1, 2, 8, 20))}"]
        extra = self.chance.choice(
            ("", "", "--hold", "--array=0-5", "--array=0-5%2", "-L matlab", "-N2", "--exclusive", "--no-requeue",
             "--requeue", "--begin=now+20", "-t 1", "-d singleton -J twin", "--kill-on-invalid-dep=yes")
        )  # fmt: skip
        words.append(extra)
        if "singleton" not in extra and self.chance.random() < 0.3:
            kind = self.chance.choice(("afterok", "afternotok", "afterany", "after", "aftercorr"))
            words.append(f"-d {kind}:{self.some_job().split('_')[0]}")
        await self.type(f"sbatch {' '.join(words)} job.sh", self.chance.choice(("alice", "bob")))

    async def control(self) -> None:
        verb = self.chance.choice(
            ("scancel {}", "scancel {}", "scancel -s USR1 {}", "scancel --me", "scontrol hold {}", "scontrol uhold {}",
             "scontrol release {}", "scontrol requeue {}", "scontrol requeuehold {}", "scontrol suspend {}",
             "scontrol resume {}", "scontrol update jobid={} timelimit=+1", "scontrol update jobid={} priority=0",
             "scontrol update jobid={} priority=77", "scontrol update jobid={} nice=5", "scontrol top {}",
             "scontrol update jobid={} dependency=", "scontrol update jobid={} numcpus=3", "scontrol notify {} hello",
             "scancel -t PENDING -u alice", "scontrol update jobid={} starttime=now+10", "squeue -j {}")
        )  # fmt: skip
        await self.type(verb.format(self.some_job()))

    async def nodes(self) -> None:
        name = f"n{self.chance.randrange(1, 5)}"
        state = self.chance.choice(("down reason=x", "drain reason=x", "resume", "resume", "resume"))
        await self.type(f"scontrol update nodename={name} state={state}", "root")

    async def lose(self) -> None:
        """Supervisors die."""
        runs = [key for key, run in self.made.runtime._runs.items() if not run.is_over]
        if runs:
            key = self.chance.choice(runs)
            self.log.append(f"lost {key}")
            self.made.runtime.lose(key)
            await self.made.settle()

    async def evict(self) -> None:
        """A plan lets some runs give way, to a job that waits or to one that does not, or to nobody."""
        jobs = list(self.made.controller.memory.jobs())
        if not jobs:
            return
        chosen = tuple(
            Eviction(
                job_id=self.chance.choice(jobs).job_id,
                mode=self.chance.choice(("REQUEUE", "REQUEUE", "CANCEL", "SUSPEND")),
                for_job=self.chance.choice((0, self.chance.choice(jobs).job_id)),
                grace_s=self.chance.choice((0, 0, 7)),
                moved=self.chance.random() < 0.3,
                reason=self.chance.choice(("preempt", "reclaim", "consolidate", "stale")),
            )
            for _ in range(self.chance.randrange(1, 4))
        )
        self.log.append(f"evict {[(each.job_id, each.mode, each.for_job, each.grace_s) for each in chosen]}")
        if self.chance.random() < 0.7:
            self.made.plans.apply(Plan(version=0, evictions=chosen))
            await self.made.settle()
            return
        deaf = self.made.controller.evictions  # the daemon dies when they are marked and nobody was told
        deaf._do = lambda after: None  # type: ignore[method-assign]
        self.made.plans.apply(Plan(version=0, evictions=chosen))
        await self.made.settle()
        await self.restart()

    async def restart(self) -> None:
        self.log.append("restart")
        await self.made.restart()

    async def time(self) -> None:
        await self.made.advance(self.chance.choice((0.5, 1.0, 5.0, 17.0)))

    async def step(self) -> None:
        deeds: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.submit, 10), (self.control, 12), (self.nodes, 2), (self.lose, 2), (self.restart, 1), (self.time, 6), (self.evict, 3),
        ]  # fmt: skip
        (deed,) = self.chance.choices([deed for deed, _ in deeds], [weight for _, weight in deeds])
        await deed()

    async def end(self) -> None:
        """Let everything go on and run out."""
        for name in ("n1", "n2", "n3", "n4"):
            await self.type(f"scontrol update nodename={name} state=resume", "root")
        for _ in range(3):
            for job in list(self.made.controller.memory.jobs()):
                if not is_over(job):
                    await self.type(f"scontrol resume {job.job_id}", "root")
            await self.made.advance(120, step=10)
        await self.type("scancel -u alice", "root")
        await self.type("scancel -u bob", "root")
        await self.made.advance(30)


@pytest.mark.parametrize("seed", range(int(os.environ.get("STORMS", "12"))))
def test_a_storm_leaves_the_controller_in_order(seed: int) -> None:
    async def whole() -> None:
        storm = Storm(await site(), seed)
        try:
            for _ in range(STEPS):
                await storm.step()
                check(storm.made)
            await storm.end()
            check(storm.made)
            check_quiet(storm.made)
        except BaseException:
            print("\n".join(storm.log[-25:]))
            raise

    asyncio.run(whole())
