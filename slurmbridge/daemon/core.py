"""The one place where jobs change: memory, dependents, store, planner and waiters kept in step.

`update` puts records into memory, follows the dependencies that this touches, queues everything for one commit and
tells the planner. Its future resolves when all of it is durable; only then may anything be answered, launched or
acknowledged. Everything runs on the event loop.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from slurmbridge.daemon.jobtable import is_over
from slurmbridge.daemon.journal import Journal
from slurmbridge.daemon.mail import Mailer
from slurmbridge.daemon.memory import Memory
from slurmbridge.lifecycle import arrays, dependencies
from slurmbridge.lifecycle.mail import Move
from slurmbridge.model.job import Job
from slurmbridge.model.mail import Mail
from slurmbridge.model.states import JobState, Reason
from slurmbridge.store.protocol import Op, PutJobs, PutMark

log = logging.getLogger(__name__)

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]


class Planner(Protocol):
    """What the core tells the planner."""

    def job_changed(self, job: Job) -> None: ...
    def job_gone(self, job_id: int) -> None: ...
    def usage_changed(self) -> None: ...
    def wake(self) -> None: ...


class Ids:
    """Job ids, never given out twice. The store keeps the high-water mark."""

    def __init__(self, following: int, maximum: int) -> None:
        self.following, self.maximum = following, maximum

    def take(self, count: int = 1) -> int | None:
        """The first of `count` consecutive ids; None when they are used up."""
        if self.following + count - 1 > self.maximum:
            return None
        first = self.following
        self.following += count
        return first


class Core:
    def __init__(
        self, memory: Memory, journal: Journal, planner: Planner, ids: Ids, clock: Callable[[], float]
    ) -> None:
        self.memory, self.journal, self.planner, self.ids, self.clock = memory, journal, planner, ids, clock
        self._waiters: dict[int, list[asyncio.Future[None]]] = defaultdict(list)
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._watchers: dict[int, list[asyncio.Future[None]]] = {}
        self._ready: set[tuple[int, int]] = set()  # runs whose supervisors met
        self.on_ended: list[Callable[[Job], None]] = []
        self.withhold: Callable[[Sequence[Job]], Sequence[Job]] = lambda jobs: jobs  # `daemon.accruing`
        self.mailer: Mailer | None = None  # set when what the store remembers is in memory
        self._moves: list[Move] = []  # since the last update

    # ---- changes ----

    def update(
        self,
        jobs: Sequence[Job],
        *,
        history: Sequence[Job] = (),
        ops: Sequence[Op] = (),
        new_ids: bool = False,
        placed: bool = False,
    ) -> asyncio.Future[None]:
        """Take these records over. history: finished runs that only the store keeps (an earlier restart).

        placed: `place` was called for each already.
        """
        jobs = self.withhold(jobs)
        changed, following = list(jobs), self.ids.following
        if not placed:
            for job in jobs:
                self.place(job)
        changed += self._follow(jobs)
        writes: list[Op] = [*ops, PutJobs(jobs=(*history, *changed))]
        if new_ids or self.ids.following != following:
            writes.append(PutMark(name="next_job_id", value=str(self.ids.following)))
        mails = self._mails()
        if mails and self.mailer is not None:
            writes += self.mailer.ops(mails)
        durable = self.journal.write(writes)
        durable.add_done_callback(lambda done: self._settled(done, changed))
        if mails and self.mailer is not None:
            send = self.mailer.send
            durable.add_done_callback(lambda done: None if done.exception() else send(mails))
        return durable

    def _mails(self) -> tuple[Mail, ...]:
        """What the changes since the last update have to tell."""
        moves, self._moves = self._moves, []
        return self.mailer.compose(moves, self.clock()) if self.mailer is not None and moves else ()

    def _settled(self, done: asyncio.Future[None], jobs: Sequence[Job]) -> None:
        fault = done.exception()
        if fault is None:
            self._announce(jobs)
        else:  # a record that the store cannot take: what it takes next of these jobs makes it right again
            log.error("event=core.not_stored jobs=%r", [job.job_id for job in jobs[:20]], exc_info=fault)

    def place(self, job: Job) -> None:
        """Memory, node use, licences and planner; nothing durable."""
        memory = self.memory
        before = memory.table.put(job)
        if job.spec.mail_type and self.mailer is not None:
            self._moves.append((before, job))
        memory.tally.moved(before, job)
        memory.node_table.account(before, job, self.clock())
        if before is not None or job.allocation is not None:
            memory.count_licenses(before, job)
        self.tell_planner(job)

    def tell_planner(self, job: Job) -> None:
        if is_over(job):
            self.planner.job_gone(job.job_id)
        else:
            self.planner.job_changed(job)

    def see(self, job: Job) -> None:
        """A change that need not survive (reason, priority, expected start): the planner made it."""
        self.memory.table.put(job)
        self._stir(job)

    def show(self, job: Job) -> None:
        """The same, where nodes and planner have to know too."""
        self.place(job)
        self._stir(job)

    def _follow(self, parents: Iterable[Job]) -> list[Job]:
        """Re-evaluate what waits for these jobs; cancelled children touch their own children in turn."""
        changed: list[Job] = []
        queue = list(parents)
        while queue:
            parent = queue.pop()
            for child in self.memory.table.children(parent):
                for after in self.settled(child):
                    self.place(after)
                    changed.append(after)
                    if is_over(after):
                        queue.append(after)
        return changed

    def settled(self, job: Job) -> list[Job]:
        """What has changed of a job that waits: itself, or tasks that its array gives away because their own parents ended."""
        changed: list[Job] = []
        left: Job | None = job
        for task in dependencies.decided_tasks(job, self.memory.table.kin):
            assert left is not None  # the last one is not followed by another
            new_id = 0 if arrays.count(left.tasks) == 1 else self.ids.take()
            if new_id is None:
                break
            left, one = arrays.split(left, task, new_id, new_sluid())
            changed.append(self.evaluated(one))
        if left is not None:
            after = self.evaluated(left)
            if after is not job:
                changed.append(after)
        return changed

    def evaluated(self, job: Job) -> Job:
        """The job with its dependency looked at again: eligible, still waiting, or never."""
        now = self.clock()
        table = self.memory.table
        after = dependencies.evaluate(job, table.kin, table.twins(job), now)
        if dependencies.is_impossible(after) and self._kills_invalid(after):
            return replace(
                after,
                state=JobState.CANCELLED,
                end_time=now,
                start_time=now,
                reason=Reason.DEPENDENCY,
                cancelled_by=0,
            )
        if dependencies.is_satisfied(after):
            if after.eligible_time is None and after.priority != 0 and not after.held_by:
                begin = after.spec.begin
                eligible = float(begin) if begin is not None and begin > now else now
                after = replace(after, eligible_time=eligible, accrue_time=eligible, reason=Reason.NONE)
            return after
        reason = dependencies.waiting_reason(after)
        if after.priority != 0 and not after.held_by and after.reason != reason:
            after = replace(after, reason=reason)
        due = dependencies.due_at(after, table.kin)
        if due is not None:
            self._look_again(after.job_id, due - now)
        return after

    def _kills_invalid(self, job: Job) -> bool:
        asked = job.spec.request.kill_on_invalid_dep
        return asked if asked is not None else "kill_invalid_depend" in self.memory.config.dependency_parameters

    def _look_again(self, job_id: int, delay: float) -> None:
        """For `after:ID+minutes`: time alone satisfies it."""
        old = self._timers.pop(job_id, None)
        if old is not None:
            old.cancel()
        loop = asyncio.get_running_loop()
        self._timers[job_id] = loop.call_later(max(0.0, delay) + 0.01, self.look, job_id)

    def look(self, job_id: int) -> None:
        """A job that may no longer wait for its parents."""
        self._timers.pop(job_id, None)
        job = self.memory.table.get(job_id)
        if job is not None and job.is_pending:
            after = self.settled(job)
            if after:
                self.update(after)

    # ---- those who wait for an end ----

    def wait(self, job_ids: Iterable[int]) -> asyncio.Future[None]:
        """Resolves when every job (or array, or het job) of these ids has durably ended or is not known any more."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = [job_id for job_id in job_ids if not self._is_family_over(job_id)]
        if not left:
            future.set_result(None)
            return future
        missing = set(left)

        def one_ended(job_id: int, _: asyncio.Future[None]) -> None:
            missing.discard(job_id)
            if not missing and not future.done():
                future.set_result(None)

        for job_id in left:
            single: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            single.add_done_callback(functools.partial(one_ended, job_id))
            self._waiters[job_id].append(single)
        return future

    def _is_family_over(self, job_id: int) -> bool:
        return all(is_over(job) for job in self.memory.table.kin(job_id))

    def _announce(self, jobs: Iterable[Job]) -> None:
        """These are durable: tell who waits."""
        for job in jobs:
            self._stir(job)
            if not is_over(job):
                continue
            self._ready.discard((job.job_id, job.restarts))
            for listener in self.on_ended:
                listener(job)
            for key in {job.job_id, job.array_job_id, job.het_job_id} - {0}:
                if key in self._waiters and self._is_family_over(key):
                    for waiter in self._waiters.pop(key):
                        if not waiter.done():
                            waiter.set_result(None)

    # ---- those who wait for a start ----

    def note_ready(self, job: Job) -> None:
        """All supervisors of this run met: steps can be run in it."""
        self._ready.add((job.job_id, job.restarts))
        self._stir(job)

    def progress(self, job_id: int) -> str:
        """How far a job has come: see `commands.effects.Progress`."""
        family = self.memory.table.family(job_id)
        if all(is_over(job) for job in family):
            return "gone"
        if any(job.is_finished for job in family):
            return "over"
        if all((job.job_id, job.restarts) in self._ready for job in family):
            return "ready"
        if not any(job.is_pending for job in family):
            return "allocated"
        return "new" if all(job.reason in ("", Reason.NONE) for job in family) else "waiting"

    def moved(self, job_id: int) -> asyncio.Future[None]:
        """Resolves when something about this job (or a component of it) changes."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.setdefault(job_id, []).append(future)
        return future

    def _stir(self, job: Job) -> None:
        if not self._watchers:
            return
        for key in {job.job_id, job.het_job_id} - {0}:
            for watcher in self._watchers.pop(key, ()):
                if not watcher.done():
                    watcher.set_result(None)

    # ---- housekeeping ----

    def purge(self) -> None:
        """Forget jobs that ended MinJobAge ago (the store keeps them); a MinJobAge of 0 keeps them all."""
        if not self.memory.config.min_job_age:
            return
        limit = self.clock() - self.memory.config.min_job_age
        table = self.memory.table
        old = [job for job in table if is_over(job) and (job.end_time or 0.0) < limit]
        unfinished = {job.array_job_id for job in table if job.array_job_id and not is_over(job)} if old else set()
        for job in old:
            if job.array_job_id not in unfinished:
                table.forget(job)


def new_sluid() -> str:
    """A cluster-wide unique id in Slurm's form: `s` and 13 Crockford base-32 digits."""
    number = int.from_bytes(os.urandom(8), "big")
    digits = [_CROCKFORD[number & 31]]
    for shift in range(5, 65, 10):
        digits.append(_PAIRS[number >> shift & 1023])
    return "s" + "".join(digits)
