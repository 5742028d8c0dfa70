"""Runs that give way to other jobs: chosen by a plan, marked durably, then warned, ended or suspended, and let go on.

What a plan says was true of its snapshot, so each eviction is looked at again before it is committed: the run must be
the one that is meant and still be there, and whoever it gives way to must still wait. The mark is durable before
anything is done to the run; after a restart what was marked is done again, and every step may be done twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from slurmbridge.daemon.core import Core
from slurmbridge.daemon.resuming import may_go_on
from slurmbridge.lifecycle import control, evictions
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Eviction
from slurmbridge.model.states import JobState
from slurmbridge.runtime.protocol import RunKey, Runtime

log = logging.getLogger(__name__)

PATIENCE_S = 60.0
"""A job that others were suspended for, and that neither runs nor is promised their place by then, has lost it."""


class Evictions:
    """`is_promised`: whether the planner holds a place for a job."""

    def __init__(self, core: Core, runtime: Runtime, is_promised: Callable[[int], bool]) -> None:
        self.core, self.runtime, self._is_promised = core, runtime, is_promised
        self._marked: set[int] = set()  # runs in their grace time or suspended for others
        self._timer: asyncio.TimerHandle | None = None
        core.on_ended.append(self._ended)

    # ---- what a plan says ----

    def evict(self, planned: Sequence[Eviction]) -> None:
        """All of a plan's evictions, durable together."""
        now, own_signal = self.core.clock(), self._sends_own_signal()
        records: dict[int, Job] = {}
        after: list[tuple[RunKey, evictions.Effect]] = []
        for eviction in self._whole(planned):
            job = self.core.memory.table.get(eviction.job_id)
            if job is None or job.job_id in records or not self._still_wanted(eviction):
                continue
            begun = evictions.begin(job, eviction, now, own_signal=own_signal)
            if begun is None:
                continue
            records[job.job_id] = begun.job
            after += [(_key(job), effect) for effect in begun.effects]
            log.info(
                "event=job.evicted job=%d restart=%d mode=%s for=%d reason=%s",
                job.job_id, job.restarts, eviction.mode, eviction.for_job, eviction.reason or "preempt",
            )  # fmt: skip
        self._commit(records.values(), after)

    def _whole(self, planned: Sequence[Eviction]) -> Iterable[Eviction]:
        """With all components of heterogeneous jobs."""
        table = self.core.memory.table
        groups: dict[int, list[Eviction]] = defaultdict(list)
        for eviction in planned:
            job = table.get(eviction.job_id)
            if job is not None and job.het_job_id:
                groups[job.het_job_id].append(eviction)
            else:
                yield eviction
        for leader, some in groups.items():
            yield from evictions.of_group(some, table.of_het(leader))

    def _still_wanted(self, eviction: Eviction) -> bool:
        """Whoever the run is to give way to still waits."""
        if not eviction.for_job:
            return True
        winner = self.core.memory.table.get(eviction.for_job)
        return winner is not None and winner.is_pending and winner.priority != 0 and not winner.held_by

    def _sends_own_signal(self) -> bool:
        return "send_user_signal" in self.core.memory.config.preempt_parameters.lower().split(",")

    # ---- later ----

    def look(self) -> None:
        """End what has used its grace time; let go on what was suspended for jobs that are gone."""
        if not self._marked:
            return
        now = self.core.clock()
        records: list[Job] = []
        after: list[tuple[RunKey, evictions.Effect]] = []
        for job_id in sorted(self._marked):
            job = self.core.memory.table.get(job_id)
            if job is None or not (evictions.in_grace(job) or job.gave_way):
                self._marked.discard(job_id)
                continue
            begun = None
            if job.gave_way:
                if self._may_go_on(job, now):
                    begun = evictions.go_on(job, now)
            elif job.evicted is not None and job.evicted.until <= now:
                begun = evictions.end_grace(job, now)
            if begun is not None:
                self.core.place(begun.job)  # at once: two of them may want the same CPUs
                records.append(begun.job)
                after += [(_key(job), effect) for effect in begun.effects]
        self._commit(records, after, placed=True)

    def _may_go_on(self, job: Job, now: float) -> bool:
        assert job.evicted is not None
        table = self.core.memory.table
        winner = table.get(job.evicted.for_job)
        if winner is not None and winner.state in (JobState.RUNNING, JobState.SUSPENDED):
            return False
        if winner is not None and winner.is_pending:
            waited = now - (job.suspend_time or now) >= PATIENCE_S
            if self._is_promised(winner.job_id) or not waited:
                return False
        return may_go_on(self.core.memory, job)

    def _ended(self, job: Job) -> None:
        if self._marked:
            self.look()

    def adopt(self) -> None:
        """After a restart of the daemon: nobody knows how far the last one came, so all of it is done once more."""
        own_signal = self._sends_own_signal()
        for job in list(self.core.memory.table):
            if evictions.in_grace(job):
                self._marked.add(job.job_id)
                self._do([(_key(job), effect) for effect in evictions.warning(job, own_signal=own_signal)])
            elif job.state is JobState.SUSPENDED:
                if job.gave_way:
                    self._marked.add(job.job_id)
                self.runtime.suspend(_key(job))
            elif job.state is JobState.RUNNING and job.suspend_time is not None:
                self.runtime.resume(_key(job))
        self._arm()
        self.look()

    # ---- both ----

    def _commit(
        self, records: Iterable[Job], after: Sequence[tuple[RunKey, evictions.Effect]], *, placed: bool = False
    ) -> None:
        changed = list(records)
        if not changed:
            return
        durable = self.core.update(changed, placed=placed)
        self._marked |= {job.job_id for job in changed if evictions.in_grace(job) or job.gave_way}
        self._arm()
        durable.add_done_callback(lambda done: self._do(after) if done.exception() is None else None)

    def _do(self, after: Iterable[tuple[RunKey, evictions.Effect]]) -> None:
        for key, effect in after:
            match effect:
                case control.Kill(why=why):
                    self.runtime.kill(key, why)
                case control.Deliver(signal=signal, scope=scope):
                    self.runtime.signal(key, signal, scope)
                case control.Suspend(resume=True):
                    self.runtime.resume(key)
                case control.Suspend():
                    self.runtime.suspend(key)

    def _arm(self) -> None:
        """Look again when the next grace time is over, and at suspended runs now and then."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        table, now = self.core.memory.table, self.core.clock()
        due: list[float] = []
        for job_id in self._marked:
            job = table.get(job_id)
            if job is not None and job.evicted is not None:
                until = (job.suspend_time or now) + PATIENCE_S if job.gave_way else job.evicted.until
                due.append(until if until > now else now + PATIENCE_S)
        if due:
            self._timer = asyncio.get_running_loop().call_later(min(due) - now + 0.01, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.look()
        self._arm()


def _key(job: Job) -> RunKey:
    return RunKey(job.job_id, job.restarts)
