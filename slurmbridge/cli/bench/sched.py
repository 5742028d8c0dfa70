"""`slurmbridge bench sched`: how long does the scheduler core take for a cycle?

A full cycle begins with records: a delta of everything is applied to an empty snapshot (columns and free space are built)
and planned with an empty memo. Then the plan is carried out, and steady cycles follow: 1 % of the jobs changed (some end,
as many arrive), the delta is applied and planned. Medians; the memory is the peak of this process, which looks for garbage as
the planner's does.
"""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from slurmbridge.model.cluster import Node
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.states import JobState
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sched.worker import collect_seldom
from slurmbridge.sim.clusters import NOW, Size, World, build

CHANGED = 0.01
SWEEP = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
STEP_S = 10.0
"""Virtual time between steady cycles."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints. `starts` and the rest: of the full cycle's plan."""

    scenario: str
    nodes: int
    gpus_per_node: int
    queues: int
    pending: int
    running: int
    full_cycle_s: float
    steady_cycle_s: float
    peak_rss_mib: float
    starts: int
    evictions: int
    moves: int
    reservations: int
    apply_s: float  # of the full cycle, the part that builds columns
    full_cpu_s: float  # CPU time: what is left of the figures on a machine that does other things
    steady_cpu_s: float
    steady_starts: int


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


class _Core:
    """Snapshot and memo, fed as the planner's process is."""

    def __init__(self, world: World) -> None:
        self.world, self.now = world, NOW
        self.snapshot, self.memo = Snapshot.empty(), Memo.empty()

    def full(self) -> tuple[Spent, float, Plan]:
        """What all took, seconds of applying alone, and the plan."""
        world = self.world
        delta = Delta(
            version=1, config=world.config, accounting=world.accounting, partitions=world.config.partitions,
            nodes=tuple(Node(conf=conf) for conf in world.config.nodes), jobs=world.running + world.pending,
            usage=(), counted=(),
        )  # fmt: skip
        gc.collect()
        began = Spent.now()
        self.snapshot = Snapshot.empty().apply(delta).at(self.now)
        applied = Spent.now()
        plan, self.memo = plan_cycle(self.snapshot, world.config, self.now, Memo.empty())
        return Spent.since(began), applied.wall - began.wall, plan

    def steady(self, jobs: Sequence[Job], gone: Sequence[int]) -> tuple[Spent, Plan]:
        delta = Delta(version=self.snapshot.version + 1, jobs=tuple(jobs), gone=tuple(gone))
        began = Spent.now()
        self.snapshot = self.snapshot.apply(delta).at(self.now)
        plan, self.memo = plan_cycle(self.snapshot, self.world.config, self.now, self.memo)
        return Spent.since(began), plan

    def carried_out(self, plan: Plan) -> list[Job]:
        """The records after a plan: what started runs, what was evicted waits again."""
        self.snapshot = self.snapshot.noted(plan)
        jobs = []
        for eviction in plan.evictions:
            victim = self.snapshot.running.get(eviction.job_id)
            if victim is not None:
                again = victim.job.restarts + 1
                jobs.append(
                    msgspec.structs.replace(
                        victim.job, state=JobState.PENDING, restarts=again, allocation=None, start_time=None,
                        time_limit_end=None,
                    )
                )  # fmt: skip
        for start in plan.starts:
            known = self.snapshot.waiting.get(start.job_id)
            if known is None:
                continue
            limit = known.job.spec.time_limit or 60
            jobs.append(
                msgspec.structs.replace(
                    known.job, state=JobState.RUNNING, start_time=self.now, allocation=start.allocation, reason="",
                    time_limit_end=self.now + 60.0 * limit,
                )
            )  # fmt: skip
        return jobs


def measure(size: Size, scenario: str, cycles: int) -> Result:
    """All figures of one scenario."""
    world = build(size, scenario)
    core = _Core(world)
    fulls = [core.full() for _ in range(cycles)]
    plan = fulls[-1][2]
    jobs = core.carried_out(plan)
    core.now += STEP_S
    _, settled = core.steady(jobs, ())  # not counted: the full plan's starts come in
    steady: list[Spent] = []
    steady_starts = 0
    more = list(world.more)
    for _ in range(max(cycles * 2, 3)):
        jobs = core.carried_out(settled)
        core.now += STEP_S
        part = max(round(CHANGED * (len(core.snapshot.running) + len(core.snapshot.waiting))) - len(jobs), 2)
        told = {job.job_id for job in jobs}
        ending = [number for number in sorted(core.snapshot.running) if number not in told][: max(part // 2, 1)]
        coming, more = more[: max(part - len(ending), 1)], more[max(part - len(ending), 1) :]
        came = [
            msgspec.structs.replace(job, submit_time=core.now, eligible_time=core.now, accrue_time=core.now)
            for job in coming
        ]
        taken, settled = core.steady([*jobs, *came], ending)
        steady.append(taken)
        steady_starts += len(settled.starts)
    return Result(
        scenario=scenario,
        nodes=size.nodes,
        gpus_per_node=size.gpus_per_node,
        queues=size.queues,
        pending=len(world.pending),
        running=len(world.running),
        full_cycle_s=statistics.median(each[0].wall for each in fulls),
        steady_cycle_s=statistics.median(each.wall for each in steady),
        peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        starts=len(plan.starts),
        evictions=sum(1 for each in plan.evictions if not each.moved),
        moves=sum(1 for each in plan.evictions if each.moved),
        reservations=plan.promises,
        apply_s=statistics.median(each[1] for each in fulls),
        full_cpu_s=statistics.median(each[0].cpu for each in fulls),
        steady_cpu_s=statistics.median(each.cpu for each in steady),
        steady_starts=steady_starts,
    )


def sized(size: Size, factor: float) -> Size:
    """A cluster of the same make, so many times as large."""
    return Size(
        nodes=max(round(size.nodes * factor), 2),
        gpus_per_node=size.gpus_per_node,
        queues=size.queues,
        pending=max(round(size.pending * factor), 10),
        running=round(size.running * factor),
    )


HEADING = (
    f"{'scenario':<12}{'nodes':>7}{'pending':>9}{'running':>9}{'full s':>9}{'CPU s':>9}{'steady s':>10}{'CPU s':>9}"
    f"{'MiB':>7}{'starts':>8}{'evicted':>9}{'moved':>7}{'promised':>10}\n"
)


def line(found: Result) -> str:
    return (
        f"{found.scenario:<12}{found.nodes:>7}{found.pending:>9}{found.running:>9}{found.full_cycle_s:>9.3f}"
        f"{found.full_cpu_s:>9.3f}{found.steady_cycle_s:>10.4f}{found.steady_cpu_s:>9.4f}{found.peak_rss_mib:>7.0f}{found.starts:>8}"
        f"{found.evictions:>9}{found.moves:>7}{found.reservations:>10}\n"
    )


def main(size: Size, scenario: str, *, cycles: int, sweep: bool, as_json: bool) -> int:
    """Measure and print; a sweep prints one line (one object of a list) for each size."""
    collect_seldom()
    sizes = [sized(size, factor) for factor in SWEEP] if sweep else [size]
    if not as_json:
        sys.stdout.write(HEADING)
    rows: list[Result] = []
    for each in sizes:
        rows.append(measure(each, scenario, cycles if each.pending <= 20_000 else min(cycles, 2)))
        if not as_json:
            sys.stdout.write(line(rows[-1]))
            sys.stdout.flush()
    if as_json:
        sys.stdout.write(msgspec.json.encode(rows if sweep else rows[0]).decode() + "\n")
    return 0
