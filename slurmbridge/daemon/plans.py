"""What changed since the planner last heard of it, and what its plans make of the jobs.

`delta` collects for the next cycle; `apply` checks every start again against memory before it is committed, since the
plan was made from a snapshot (design 8.3). Knows nothing of the process that plans.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from slurmbridge.daemon.accrual import for_planner
from slurmbridge.daemon.core import Core, new_sluid
from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.daemon.spending import faded
from slurmbridge.lifecycle import arrays, starts
from slurmbridge.model.accounts import UsageRow
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta, Eviction, Nomination, Plan, Start, Verdict
from slurmbridge.model.states import Reason
from slurmbridge.store.protocol import PutSteps
from slurmbridge.submit.lifting import with_lifted
from slurmbridge.submit.memory_limits import effective

AT_ONCE = 100
"""Nodes at most on which starts are made without anybody served in between; one start may have more."""
USAGE_EVERY_S = 30.0
FIRST_LOOK_S = 3.0
"""A job with a dependency is told why it waits so long after it came (batch_sched_delay): Slurm does not look at it when
it is submitted, so that a chain of jobs does not flicker through reasons."""


def look_ahead_s(config: ClusterConfig) -> float:
    """How long a job waits before its expected start is told: bf_interval, 30 s by default."""
    for word in config.scheduler_parameters.replace(" ", "").split(","):
        name, _, value = word.partition("=")
        if name == "bf_interval" and value.isascii() and value.isdecimal():
            return float(min(int(value), 10_800))
    return 30.0


_LOOKED = frozenset({Reason.RESOURCES, Reason.PRIORITY})


class Plans:
    """Implements `daemon.core.Planner`. `wake` is called whenever a cycle is due."""

    def __init__(self, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self._clock, self.wake = clock, wake
        self.core: Core
        self.launch: Callable[[Sequence[Job]], None]
        self.evict: Callable[[Sequence[Eviction]], None]
        self.settle_evicted: Callable[[], None]  # what is due of earlier evictions
        self.nominations: dict[int, Nomination] = {}  # places that are being freed, by who gets them
        self.verdicts: dict[int, Verdict] = {}
        self.whole = True  # the planner knows nothing yet
        self.is_urgent = False  # something was freed or changed for many; a job that came is not
        self._waiting: set[int] = set()  # jobs that may start: where there are none, nothing that ends calls for a plan
        self._jobs: dict[int, Job] = {}
        self._gone: dict[int, None] = {}
        self._nodes: dict[str, None] = {}
        self._usage_is_new = False
        self._usage_told = 0.0
        self._counted_is_new = False
        self._version = 0

    # ---- what others tell ----

    def job_changed(self, job: Job) -> None:
        if job.is_pending and (job.priority == 0 or job.held_by):
            self._forget(job.job_id)
            self.wake()
            return
        self._gone.pop(job.job_id, None)
        self._jobs[job.job_id] = job
        if job.is_pending:
            self._waiting.add(job.job_id)
        else:
            self._waiting.discard(job.job_id)
        if self._waiting:
            self.wake()

    def job_gone(self, job_id: int) -> None:
        self._forget(job_id)
        if self._waiting:
            self.is_urgent = True
            self.wake()

    def _forget(self, job_id: int) -> None:
        self._waiting.discard(job_id)
        self._jobs.pop(job_id, None)
        self._gone[job_id] = None
        self.verdicts.pop(job_id, None)

    def node_changed(self, name: str) -> None:
        self._nodes[name] = None
        self.is_urgent = True
        self.wake()

    def everything_changed(self) -> None:
        """Configuration, partitions, accounts, usage or reservations: tell all of it again."""
        self.whole = True
        self.is_urgent = True
        self.wake()

    def usage_changed(self) -> None:
        """An association used something: the planner hears of it now and then, as Slurm's decay thread does."""
        self._usage_is_new = True

    def usage_counted(self) -> None:
        """Fair-share factors are due."""
        self._counted_is_new = self._usage_is_new = True
        self.wake()

    # ---- what it is told ----

    def delta(self) -> Delta:
        memory = self.core.memory
        self.is_urgent = False
        self._version += 1
        if self.whole:
            self.whole = False
            self._jobs.clear()
            relevant = list(self._relevant(memory.jobs()))
            self._waiting = {job.job_id for job in relevant if job.is_pending}
            gone, self._gone = tuple(self._gone), {}
            self._nodes.clear()
            return Delta(
                version=self._version,
                config=memory.config,
                accounting=memory.limiting(),
                partitions=tuple(effective(each, memory.config) for each in memory.partition_list),
                nodes=tuple(memory.nodes()),
                jobs=tuple(self._planned(relevant)),
                gone=gone,
                usage=self._faded(),
                counted=memory.counted,
                reservations=tuple(memory.reservation_list),
            )
        nodes = tuple(node for name in self._nodes if (node := memory.node(name)) is not None)
        jobs, gone = tuple(self._planned(self._jobs.values())), tuple(self._gone)
        self._jobs, self._gone, self._nodes = {}, {}, {}
        counted = memory.counted if self._counted_is_new else None
        self._counted_is_new = False
        return Delta(version=self._version, nodes=nodes, jobs=jobs, gone=gone, usage=self._usage(), counted=counted)

    def _usage(self) -> tuple[UsageRow, ...] | None:
        """All rows when one changed and the last time is long ago; None: unchanged."""
        now = self._clock()
        if not self._usage_is_new or now - self._usage_told < USAGE_EVERY_S:
            return None
        self._usage_is_new, self._usage_told = False, now
        return self._faded()

    def _faded(self) -> tuple[UsageRow, ...]:
        """Use of associations and QOS as of now."""
        memory = self.core.memory
        half_life = memory.config.priority_decay_half_life
        return faded(memory.all_usage(), memory.accounting, half_life, self._clock())

    def _planned(self, jobs: Iterable[Job]) -> Iterable[Job]:
        """As the planner has to have them: with limits on who grows older, and what their QOS lift."""
        memory = self.core.memory
        if memory.limits_accruing:
            jobs = map(for_planner, jobs)
        lifted = memory.lifted()
        return (with_lifted(job, lifted) for job in jobs) if lifted else jobs

    @staticmethod
    def _relevant(jobs: Iterable[Job]) -> Iterable[Job]:
        for job in jobs:
            if (job.is_pending and job.priority != 0 and not job.held_by) or holds_resources(job):
                yield job

    # ---- the plan ----

    def apply(self, plan: Plan) -> None:
        """All of it at once."""
        for _ in self.applying(plan):
            pass

    def applying(self, plan: Plan) -> Iterator[None]:
        """Make of a plan what still holds, a step at a time: whoever iterates lets others be served in between.

        The starts of a step are committed together and launched when that is durable, while later ones are still being made.
        """
        self.settle_evicted()
        for job_id, priority in plan.priorities:
            job = self.core.memory.table.get(job_id)
            if job is not None and job.is_pending and job.priority != 0 and job.priority != priority:
                self.core.see(replace(job, priority=max(1, priority)))
        now = self._clock()
        for verdict in plan.verdicts:
            self._explain(verdict, now)
        self.nominations = {each.job_id: each for each in plan.nominations}
        for nomination in plan.nominations:
            self._nominate(nomination, now)
        for some in self._portions(plan.starts):
            self._start(some, self._clock())
            yield
        if plan.evictions:
            self.evict(plan.evictions)

    def _nominate(self, nomination: Nomination, now: float) -> None:
        """Show where and when a job starts once those who give way to it are gone."""
        job = self.core.memory.table.get(nomination.job_id)
        shown = nomination.start, nomination.nodes
        if job is not None and job.is_pending and job.priority != 0 and (job.start_time, job.sched_nodes) != shown:
            self.core.see(replace(job, start_time=nomination.start, sched_nodes=nomination.nodes, last_sched_eval=now))

    def _explain(self, verdict: Verdict, now: float) -> None:
        self.verdicts[verdict.job_id] = verdict
        job = self.core.memory.table.get(verdict.job_id)
        if job is None or not job.is_pending or job.priority == 0:
            return
        if job.spec.dependency is not None and verdict.reason in _LOOKED and now < job.submit_time + FIRST_LOOK_S:
            self._later(job.submit_time + FIRST_LOOK_S - now, verdict)
            return
        begin = job.spec.begin
        start = verdict.start
        if start is not None and now < job.submit_time + (wait := look_ahead_s(self.core.memory.config)):
            start = None
            self._later(job.submit_time + wait - now, verdict)
        if start is None and begin is not None and begin > now:
            start = float(begin)
        nodes = verdict.nodes if start is not None and start == verdict.start else ()
        known = job.reason, job.reason_text, job.start_time, job.sched_nodes
        if known != (verdict.reason, verdict.detail, start, nodes):
            self.core.see(
                replace(
                    job,
                    reason=verdict.reason,
                    reason_text="",
                    start_time=start,
                    sched_nodes=nodes,
                    last_sched_eval=now,
                )
            )

    def _later(self, delay: float, verdict: Verdict) -> None:
        asyncio.get_running_loop().call_later(max(delay, 0.0) + 0.01, self._explain_late, verdict)

    def _explain_late(self, verdict: Verdict) -> None:
        if self.verdicts.get(verdict.job_id) is verdict:
            self._explain(verdict, self._clock())

    def _portions(self, planned: Sequence[Start]) -> Iterator[list[Start]]:
        """A few starts each, in their order; the components of a heterogeneous job, which start all or none, with the first."""
        table = self.core.memory.table
        groups: dict[tuple[bool, int], list[Start]] = {}
        for place, item in enumerate(planned):
            job = table.get(item.job_id)
            leader = job.het_job_id if job is not None else 0
            groups.setdefault((True, leader) if leader else (False, place), []).append(item)
        some: list[Start] = []
        nodes = 0
        for group in groups.values():
            some += group
            nodes += sum(len(item.allocation.nodes) for item in group)
            if nodes >= AT_ONCE:
                yield some
                some, nodes = [], 0
        if some:
            yield some

    def _start(self, planned: Sequence[Start], now: float) -> None:
        core, table = self.core, self.core.memory.table
        records: list[Job] = []
        started: list[Job] = []
        new_ids = False
        refused_hets = self._broken_hets(planned, now)
        for item in planned:
            job = table.get(item.job_id)
            if job is None or not starts.may_start(job, now) or not self._has_room(item):
                if job is not None and job.is_pending:
                    self.job_changed(job)
                continue
            if job.het_job_id and job.het_job_id in refused_hets:
                self.job_changed(job)
                continue
            if item.array_task_id is not None:
                if not arrays.contains(job.tasks, item.array_task_id):
                    continue
                new_id = 0 if arrays.count(job.tasks) == 1 else core.ids.take()
                if new_id is None:
                    continue
                rest, job = arrays.split(job, item.array_task_id, new_id, new_sluid())
                new_ids = True
                if rest is not None:
                    core.place(rest)
                    records.append(rest)
            partition = core.memory.partition(item.allocation.partition)
            running = starts.start(job, item.allocation, partition, now, cut_to=item.time_limit)
            core.place(running)
            records.append(running)
            started.append(running)
        if not started:
            return
        latest = {job.job_id: job for job in records}
        steps = tuple(step for job in started if (step := starts.batch_step(job)) is not None)
        for step in steps:
            table.put_step(step)
        ops = (PutSteps(steps=steps),) if steps else ()
        durable = core.update(list(latest.values()), ops=ops, new_ids=new_ids, placed=True)
        durable.add_done_callback(lambda done: self.launch(started) if done.exception() is None else None)

    def _has_room(self, item: Start) -> bool:
        memory = self.core.memory
        partition = memory.partition(item.allocation.partition)
        shared = partition is not None and partition.oversubscribe.upper().startswith(("FORCE", "YES"))
        return memory.node_table.has_room(item.allocation, shared_cpus=shared)

    def _broken_hets(self, planned: Sequence[Start], now: float) -> set[int]:
        """Het jobs of which not every component can start: then none does."""
        table = self.core.memory.table
        planned_ids = {item.job_id for item in planned}
        broken: set[int] = set()
        for item in planned:
            job = table.get(item.job_id)
            if job is None or not job.het_job_id:
                continue
            for part in table.of_het(job.het_job_id):
                if part.is_pending and (part.job_id not in planned_ids or not starts.may_start(part, now)):
                    broken.add(job.het_job_id)
        return broken
