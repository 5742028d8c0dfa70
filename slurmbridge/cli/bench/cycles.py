"""A generated cluster in the planner's hands: full cycles, cycles after a change, and a world that has come to rest.

The snapshot and the memo are fed as `sched.worker` feeds them. A plan is carried out as the daemon does it: what starts
runs, what is evicted has died and waits again by the next cycle.

A world is at rest when a plan starts and ends nothing: until then every cycle has the work that the one before made, and how
much that is says something of that cycle, not of the change.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from slurmbridge.model.cluster import Node
from slurmbridge.model.job import Evicted, Job
from slurmbridge.model.plan import Delta, Eviction, Plan
from slurmbridge.model.states import JobState, NodeFlag
from slurmbridge.sched import frames
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sim.clusters import NOW, World

STEP_S = 10.0
"""Virtual time between cycles."""


class Spent(NamedTuple):
    """Seconds by the clock, and of the processor."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Spent:
        return cls(time.perf_counter(), time.process_time())

    @classmethod
    def since(cls, began: Spent) -> Spent:
        return cls(time.perf_counter() - began.wall, time.process_time() - began.cpu)


class Cycle(NamedTuple):
    """`wire`: CPU seconds of the delta's and the plan's way through the pipe, on both sides; not part of `taken`."""

    taken: Spent
    applying: Spent  # of it, what the delta took
    wire: float
    plan: Plan


class Planned:
    """The planner of a world, and the daemon that carries its plans out."""

    def __init__(self, world: World) -> None:
        self.world, self.now = world, NOW
        self.snapshot, self.memo = Snapshot.empty(), Memo.empty()
        self.requests: list[bytes] = []  # since the last full cycle, and that one
        self._plan = Plan(version=0)  # the last one, not carried out yet
        self._draw = random.Random("changes")
        self._coming = list(reversed(world.more))
        self._drained: list[Node] = []

    def full(self) -> Cycle:
        """From records, nothing remembered."""
        world = self.world
        delta = Delta(
            version=1, config=world.config, accounting=world.accounting, partitions=world.config.partitions,
            nodes=tuple(Node(conf=conf) for conf in world.config.nodes), jobs=world.running + world.pending,
            usage=(), counted=(),
        )  # fmt: skip
        self.snapshot, self.memo = Snapshot.empty(), Memo.empty()
        self.requests.clear()
        gc.collect()
        return self._cycle(delta)

    def settle(self, most: int) -> int:
        """Cycles until a plan starts and ends nothing; `most` + 1: so many did not do."""
        for cycles in range(most):
            if not (self._plan.starts or self._plan.evictions):
                return cycles
            jobs = self._carried_out()
            self.now += STEP_S
            self._cycle(self._delta(jobs))
        return most if not (self._plan.starts or self._plan.evictions) else most + 1

    def changed(self, part: float) -> Cycle:
        """Of the jobs this part changes, half of it ends and half comes, and of the nodes: half is drained, half resumed."""
        running, waiting = sorted(self.snapshot.running), len(self.snapshot.waiting)
        some = max(round(part * (len(running) + waiting)) // 2, 1)
        jobs = self._carried_out()  # nothing, where the world is at rest
        told = {job.job_id for job in jobs}
        ends = [job_id for job_id in self._draw.sample(running, min(some, len(running))) if job_id not in told]
        self.now += STEP_S
        came = [self._coming.pop() for _ in range(min(some, len(self._coming)))]
        times = {"submit_time": self.now, "eligible_time": self.now, "accrue_time": self.now}
        jobs += [msgspec.structs.replace(job, **times) for job in came]
        return self._cycle(self._delta(jobs, ends, self._states(part)))

    def _states(self, part: float) -> list[Node]:
        nodes = [msgspec.structs.replace(node, flags=frozenset()) for node in self._drained]
        drained = self._draw.sample(self.snapshot.columns.nodes, max(round(part * self.snapshot.columns.count) // 2, 1))
        self._drained = [msgspec.structs.replace(node, flags=frozenset({NodeFlag.DRAIN})) for node in drained]
        return list({node.name: node for node in (*nodes, *self._drained)}.values())

    def _delta(self, jobs: Sequence[Job], gone: Sequence[int] = (), nodes: Sequence[Node] = ()) -> Delta:
        return Delta(version=self.snapshot.version + 1, jobs=tuple(jobs), gone=tuple(gone), nodes=tuple(nodes))

    def _cycle(self, delta: Delta) -> Cycle:
        began = Spent.now()
        request = frames.encode_request(delta, self.now)
        decoded = frames.decode_request(request[frames.HEADER.size :])
        wire = Spent.since(began)
        self.requests.append(request)
        assert isinstance(decoded, frames.CycleRequest)
        began = Spent.now()
        self.snapshot = self.snapshot.apply(decoded.delta).at(self.now)
        applying = Spent.since(began)
        plan = self.plan()
        self.snapshot = self.snapshot.noted(plan)
        taken = Spent.since(began)
        began = Spent.now()
        answer = frames.encode_answer(frames.PlanAnswer(plan=plan))
        frames.decode_plan(answer[frames.HEADER.size :])
        self._plan = plan
        return Cycle(taken, applying, wire.cpu + Spent.since(began).cpu, plan)

    def plan(self) -> Plan:
        """One cycle of the core."""
        plan, self.memo = plan_cycle(self.snapshot, self.world.config, self.now, self.memo)
        return plan

    def _carried_out(self) -> list[Job]:
        """The records after the last plan."""
        plan, self._plan = self._plan, Plan(version=0)
        return [*self._evicted(plan.evictions), *self._started(plan)]

    def _evicted(self, evictions: Sequence[Eviction]) -> list[Job]:
        jobs = []
        for each in evictions:
            victim = self.snapshot.running.get(each.job_id)
            if victim is not None:
                again = victim.job.restarts + 1
                mark = Evicted(
                    mode=each.mode, for_job=each.for_job, reason=each.reason, until=self.now, moved=each.moved
                )
                jobs.append(
                    msgspec.structs.replace(
                        victim.job, state=JobState.PENDING, restarts=again, allocation=None, start_time=None,
                        time_limit_end=None, evicted=mark,
                    )
                )  # fmt: skip
        return jobs

    def _started(self, plan: Plan) -> list[Job]:
        jobs = []
        for start in plan.starts:
            known = self.snapshot.waiting.get(start.job_id)
            if known is None:
                continue
            limit = known.job.spec.time_limit or 60
            jobs.append(
                msgspec.structs.replace(
                    known.job, state=JobState.RUNNING, start_time=self.now, allocation=start.allocation, reason="",
                    time_limit_end=self.now + 60.0 * limit, evicted=None,
                )
            )  # fmt: skip
        return jobs
