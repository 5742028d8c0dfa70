"""Whatever happens to a cluster's nodes, in whatever order: what holds after each step, and after a restart."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.runtime.protocol import RunKey
from tests.daemon.controlled import check_use
from tests.daemon.paper_fleet import FleetSite, fleet, node

SIZES = {"a": 8, "b": 8, "c": 4, "d": 4}
GPUS = 3
STEPS = 30


class Walk:
    """Steps of chance. `theirs`: nodes that a person cordoned and did not open again."""

    def __init__(self, made: FleetSite, seed: int) -> None:
        self.made, self.chance = made, random.Random(seed)
        self.theirs: set[str] = set()
        self.proved: dict[int, int] = {}  # job -> how often its death was proved

    def some(self) -> str:
        return self.chance.choice(sorted(self.made.paper.nodes) or ["a"])

    async def come(self) -> None:
        name = self.chance.choice(sorted(SIZES))
        if name not in self.made.paper.nodes:
            self.made.paper.put(node(name, cpus=SIZES[name], gpus=GPUS))

    async def go(self) -> None:
        name = self.some()
        if name in self.made.paper.nodes:
            self.theirs.discard(name)
            self.made.paper.remove(name)

    async def health(self) -> None:
        if self.made.paper.nodes:
            self.made.paper.ready(self.some(), self.chance.choice(["True", "True", "False", "Unknown"]))

    async def cordon(self) -> None:
        name = self.some()
        if name in self.made.paper.nodes and not self.made.paper.nodes[name].is_cordoned:
            self.theirs.add(name)
            self.made.paper.change(name, is_cordoned=True, cordoned_by="")

    async def uncordon(self) -> None:
        name = self.some()
        if name in self.made.paper.nodes:
            self.theirs.discard(name)
            self.made.paper.change(name, is_cordoned=False)

    async def taint(self) -> None:
        if self.made.paper.nodes:
            self.made.paper.taint(self.some(), *self.chance.choice([(), ("broken",)]))

    async def hold(self) -> None:
        self.made.paper.hold(self.some(), cpu_milli=self.chance.choice([0, 500, 3000]))

    async def damage(self) -> None:
        """So many of a node's devices are well, and it takes so many pods."""
        if self.made.paper.nodes:
            name = self.some()
            has = self.made.paper.nodes[name].capacity
            well = {"nvidia.com/gpu": self.chance.randint(0, GPUS)}
            self.made.paper.change(name, allocatable=replace(has, resources=well, pods=self.chance.choice([3, 110])))

    async def drain(self) -> None:
        state = self.chance.choice(["drain", "resume", "resume"])
        await self.made.run(f"scontrol update nodename={self.some()} state={state} reason=x", user="root")

    async def submit(self) -> None:
        await self.made.run(
            f"sbatch --requeue -n{self.chance.randint(1, 4)} --gres=gpu:{self.chance.randint(0, GPUS)} job.sh",
            files={"job.sh": b"#!/bin/sh\nsleep %d\n" % self.chance.randint(1, 90)},
        )

    async def prove(self) -> None:
        """The runtime finds runs dead whose node is gone."""
        for job in list(self.made.controller.memory.table):
            if not holds_resources(job) or job.allocation is None:
                continue
            if any(share.node not in self.made.paper.nodes for share in job.allocation.nodes):
                self.proved[job.job_id] = self.proved.get(job.job_id, 0) + 1
                self.made.runtime.kill(RunKey(job.job_id, job.restarts), "node_fail")

    async def turn_away(self) -> None:
        """A node does not take what it was thought to have room for."""
        for job in list(self.made.controller.memory.table):
            if holds_resources(job):
                self.proved[job.job_id] = self.proved.get(job.job_id, 0) + 1
                self.made.runtime.kill(RunKey(job.job_id, job.restarts), "requeue")
                return

    async def time(self) -> None:
        await self.made.advance(self.chance.randint(1, 20))

    def check(self) -> None:
        made = self.made
        check_use(made)
        memory = made.controller.memory
        assert all(made.paper.nodes[name].is_cordoned for name in self.theirs)
        known = {each.name for each in memory.nodes()}
        told = {each.name: each.others for each in made.planned_nodes()}
        assert {each.name: each.others for each in memory.nodes()} == told  # else it plans for ever what is refused
        assert known >= set(made.paper.nodes)
        busy = {
            share.node
            for job in memory.table
            if holds_resources(job) and job.allocation
            for share in job.allocation.nodes
        }
        assert known == {*made.paper.nodes, *busy}
        assert all(job.restarts == self.proved.get(job.job_id, 0) for job in memory.table)
        assert {name for each in memory.partitions() for name in each.nodes} == known


@pytest.mark.parametrize("seed", range(12))
def test_nodes_jobs_and_cordons_stay_in_line(seed: int) -> None:
    async def whole() -> None:
        made = await fleet(node("a", gpus=GPUS), node("b", gpus=GPUS))
        walk = Walk(made, seed)
        steps: list[Callable[[], Awaitable[None]]] = [
            walk.come, walk.go, walk.health, walk.cordon, walk.uncordon, walk.taint, walk.hold, walk.drain, walk.submit,
            walk.submit, walk.prove, walk.time, walk.damage, walk.damage, walk.turn_away,
        ]  # fmt: skip
        for _ in range(STEPS):
            await walk.chance.choice(steps)()
            await made.settle()
            walk.check()
        before = await made.sinfo("%N %T %E %C")
        await made.restart()
        walk.check()
        assert await made.sinfo("%N %T %E %C") == before

    asyncio.run(whole())
