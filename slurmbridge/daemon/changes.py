"""Change effects: which jobs are meant, whether the caller may, what it does, all made durable together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from slurmbridge.commands.effects import Call, Change, Outcome
from slurmbridge.commands.update_fields import apply_update
from slurmbridge.daemon.core import Core, new_sluid
from slurmbridge.daemon.jobtable import is_over
from slurmbridge.daemon.resuming import may_go_on
from slurmbridge.errors import SlurmErrno
from slurmbridge.lifecycle import arrays, control
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobState
from slurmbridge.runtime.protocol import RunKey, Runtime

TOP_STEP = 1
AT_ONCE = 250
"""Changes made without anybody served in between."""


class _Target(msgspec.Struct, frozen=True, kw_only=True):
    """One addressed thing: a job, or some tasks of an array record that must split off first."""

    label: str
    job: Job | None
    task: int | None = None


class Changes:
    def __init__(self, core: Core, runtime: Runtime) -> None:
        self.core, self.runtime = core, runtime

    async def change_all(self, call: Call, changes: Sequence[Change]) -> tuple[Outcome, ...]:
        """Any number: a few at a time, so that others are served in between, and none waits for the disk before it. What
        is queued while the disk is busy is committed together."""
        parts = []
        for some in _portions(changes):
            parts.append(self.change(call, [change for _, change in some]))
            await asyncio.sleep(0)
        results: list[list[tuple[str, SlurmErrno | None]]] = [[] for _ in changes]
        for some, outcomes in zip(_portions(changes), await asyncio.gather(*parts), strict=True):
            for (place, _), outcome in zip(some, outcomes, strict=True):
                results[place] += outcome.results
        return tuple([Outcome(results=tuple(each)) for each in results])

    def change(self, call: Call, changes: Sequence[Change]) -> asyncio.Future[tuple[Outcome, ...]]:
        """One Outcome per change; resolves when all is durable."""
        outcomes: list[Outcome] = []
        jobs: list[Job] = []
        after: list[Callable[[], None]] = []
        new_ids, operator = False, self.core.memory.is_operator(call.uid)
        for change in changes:
            results: list[tuple[str, SlurmErrno | None]] = []
            for target in self._targets(change):
                if target.job is None:
                    results.append((target.label, SlurmErrno.INVALID_JOB_ID))
                    continue
                if not self._may(call, target.job, operator):
                    results.append((target.label, self._denied(change)))
                    continue
                job = target.job
                if target.task is not None:
                    split = self._split(job, target.task)
                    if split is None:
                        results.append((target.label, SlurmErrno.JOB_ID_EXHAUSTED))
                        continue
                    records, job = split
                    answer = self._apply(call, change, job, operator)
                    if isinstance(answer, SlurmErrno):
                        results.append((target.label, answer))
                        continue
                    jobs += [record for record in records if record.job_id != job.job_id]
                    for record in records:
                        self.core.place(record)
                    new_ids = True
                    if not answer.jobs:
                        jobs.append(job)
                else:
                    answer = self._apply(call, change, job, operator)
                    if isinstance(answer, SlurmErrno):
                        results.append((target.label, answer))
                        continue
                for record in answer.jobs:
                    self.core.place(record)
                jobs += answer.jobs
                if answer.effect is not None:
                    after.append(self._performer(job, answer.effect))
                self._note_limit(job, answer, after)
                results.append((target.label, None))
            outcomes.append(Outcome(results=tuple(results)))
        future: asyncio.Future[tuple[Outcome, ...]] = asyncio.get_running_loop().create_future()
        if not jobs:
            for perform in after:
                perform()
            future.set_result(tuple(outcomes))
            return future
        live, history = _split_history(jobs)
        durable = self.core.update(live, history=history, new_ids=new_ids, placed=True)

        def settle(done: asyncio.Future[None]) -> None:
            fault = done.exception()
            if fault is not None:
                if not future.done():
                    future.set_exception(fault)
                return
            for perform in after:
                perform()
            if not future.done():
                future.set_result(tuple(outcomes))

        durable.add_done_callback(settle)
        return future

    # ---- which ----

    def _targets(self, change: Change) -> list[_Target]:
        table = self.core.memory.table
        job_id = change.job_id
        if change.array_tasks is not None:
            found = []
            members = table.of_array(job_id)
            started = {job.array_task_id: job for job in members if not job.tasks}
            record = next((job for job in members if job.tasks), None)
            for task in change.array_tasks:
                job = started.get(task)
                if job is None and record is not None and arrays.contains(record.tasks, task):
                    job = record
                label = f"{job_id}_{task}"
                found.append(_Target(label=label, job=job, task=task if job is not None and job.tasks else None))
            return found
        if change.het_offset is not None:
            parts = [job for job in table.of_het(job_id) if job.het_offset == change.het_offset]
            label = f"{job_id}+{change.het_offset}"
            return [_Target(label=label, job=job) for job in parts] or [_Target(label=label, job=None)]
        family = table.family(job_id)
        if len(family) > 1:
            open_ones = [job for job in family if not is_over(job)] or list(family[:1])
            return [_Target(label=_label(job), job=job) for job in open_ones]
        return [_Target(label=str(job_id), job=family[0] if family else None)]

    def _split(self, record: Job, task: int) -> tuple[list[Job], Job] | None:
        """The record without the task, and the task on its own; it may have become the record itself."""
        current = self.core.memory.table.get(record.job_id)
        assert current is not None
        last = arrays.count(current.tasks) == 1
        new_id = 0 if last else self.core.ids.take()
        if new_id is None:
            return None
        rest, job = arrays.split(current, task, new_id, new_sluid())
        return ([rest, job] if rest is not None else [job]), job

    # ---- whether ----

    def _may(self, call: Call, job: Job, operator: bool) -> bool:
        return operator or call.uid == job.spec.uid or self.core.memory.coordinates(call.uid, job.spec.account)

    def _denied(self, change: Change) -> SlurmErrno:
        return SlurmErrno.USER_ID_MISSING if change.verb == "update" else SlurmErrno.ACCESS_DENIED

    # ---- what ----

    def _apply(self, call: Call, change: Change, job: Job, operator: bool) -> control.Answer:
        now = self.core.clock()
        match change.verb:
            case "cancel":
                if change.het_offset is not None and (job.is_pending or change.het_offset == 0):
                    return SlurmErrno.NOT_HETJOB_COMPONENT
                return control.cancel(job, uid=call.uid, now=now)
            case "complete":
                return control.complete(job, status=int(dict(change.fields)["status"]), uid=call.uid, now=now)
            case "signal":
                if change.step_id is not None:
                    return self._signal_step(job, change)
                return control.send(job, signal=change.signal, scope=change.scope, uid=call.uid, now=now)
            case "hold":
                return control.hold(job, by="admin" if operator and call.uid != job.spec.uid else "user", now=now)
            case "uhold":
                return control.hold(job, by="user", now=now)
            case "release":
                return self._released(control.release(job, operator=operator, now=now))
            case "requeue" | "requeuehold":
                return control.requeue(job, held=change.verb == "requeuehold", now=now)
            case "suspend" | "resume":
                if not operator and call.uid != job.spec.uid:
                    return SlurmErrno.ACCESS_DENIED
                if change.verb == "suspend":
                    return control.suspend(job, now=now)
                answer = control.resume(job, now=now)
                taken = isinstance(answer, control.Changed) and not may_go_on(self.core.memory, job)
                return SlurmErrno.NODES_BUSY if taken else answer
            case "top":
                return self._top(job)
            case "notify":
                if job.is_pending or is_over(job):
                    return SlurmErrno.JOB_PENDING if job.is_pending else SlurmErrno.ALREADY_DONE
                self.runtime.notify(_key(job), change.message)
                return control.NOTHING
            case "update":
                updated = apply_update(
                    job,
                    change.fields,
                    self.core.memory.config,
                    self.core.memory.accounting,
                    now=now,
                    is_operator=operator,
                    reservations=[each.name for each in self.core.memory.reservation_list],
                )
                if isinstance(updated, SlurmErrno):
                    return updated
                if self._names_unknown_parent(job, updated):
                    return SlurmErrno.DEPENDENCY
                return control.Changed(jobs=(self.core.evaluated(updated) if updated.is_pending else updated,))
        return SlurmErrno.NOT_SUPPORTED

    def _names_unknown_parent(self, before: Job, after: Job) -> bool:
        """A new dependency on a job that the controller does not know."""
        dependency = after.spec.dependency
        if dependency is None or dependency == before.spec.dependency:
            return False
        table = self.core.memory.table
        return any(term.job_id and not table.family(term.job_id) for term in dependency.terms)

    def _released(self, answer: control.Answer) -> control.Answer:
        if isinstance(answer, SlurmErrno) or not answer.jobs:
            return answer
        job = answer.jobs[-1]
        if job.spec.dependency is not None:
            job = self.core.evaluated(replace(job, eligible_time=None, accrue_time=None))
        return replace(answer, jobs=(*answer.jobs[:-1], job))

    def _signal_step(self, job: Job, change: Change) -> control.Answer:
        if job.is_pending:
            return control.NOTHING  # it has none yet
        if is_over(job):
            return SlurmErrno.ALREADY_DONE
        if not any(step.step_id == change.step_id for step in self.core.memory.steps(job.job_id)):
            return SlurmErrno.INVALID_JOB_ID
        self.runtime.signal(_key(job), change.signal, "step", change.step_id)
        return control.NOTHING

    def _top(self, job: Job) -> control.Answer:
        """Before all other pending jobs of this user: a higher priority than the highest of them."""
        if not job.is_pending:
            return SlurmErrno.JOB_NOT_PENDING
        if job.priority == 0:
            return SlurmErrno.JOB_HELD
        others = [
            other.priority
            for other in self.core.memory.table
            if other.is_pending and other.spec.uid == job.spec.uid and other.job_id != job.job_id
        ]
        if not others or max(others) <= job.priority:
            return control.NOTHING
        request = replace(job.spec.request, priority=max(others) + TOP_STEP)
        return control.Changed(
            jobs=(replace(job, priority=max(others) + TOP_STEP, spec=replace(job.spec, request=request)),)
        )

    # ---- then ----

    def _performer(self, job: Job, effect: control.Kill | control.Deliver | control.Suspend) -> Callable[[], None]:
        key = _key(job)
        match effect:
            case control.Kill(why=why):
                return lambda: self.runtime.kill(key, why)
            case control.Deliver(signal=signal, scope=scope):
                return lambda: self.runtime.signal(key, signal, scope)
            case control.Suspend(resume=True):
                return lambda: self.runtime.resume(key)
            case _:
                return lambda: self.runtime.suspend(key)

    def _note_limit(self, before: Job, answer: control.Changed, after: list[Callable[[], None]]) -> None:
        """A running job's new time limit must reach its supervisor."""
        if not answer.jobs or before.state not in (JobState.RUNNING, JobState.SUSPENDED):
            return
        job = answer.jobs[-1]
        if job.time_limit_end == before.time_limit_end or job.restarts != before.restarts:
            return
        seconds = None
        if job.time_limit_end is not None and job.start_time is not None:
            seconds = int(job.time_limit_end - job.start_time - job.suspended_s)
        after.append(lambda: self.runtime.set_time_limit(_key(job), seconds))


def _portions(changes: Sequence[Change]) -> Iterator[list[tuple[int, Change]]]:
    """The changes with their places, about as many as may be made at once; one of many array tasks is taken apart."""
    some: list[tuple[int, Change]] = []
    left = AT_ONCE
    for place, change in enumerate(changes):
        tasks = change.array_tasks
        for at in range(0, len(tasks), AT_ONCE) if tasks else (0,):
            part = change if tasks is None else replace(change, array_tasks=tasks[at : at + AT_ONCE])
            some.append((place, part))
            left -= len(part.array_tasks or (0,))
            if left <= 0:
                yield some
                some, left = [], AT_ONCE
    if some:
        yield some


def _key(job: Job) -> RunKey:
    return RunKey(job.job_id, job.restarts)


def _label(job: Job) -> str:
    if job.array_job_id:
        return f"{job.array_job_id}" if job.tasks else f"{job.array_job_id}_{job.array_task_id}"
    if job.het_job_id:
        return f"{job.het_job_id}+{job.het_offset}"
    return str(job.job_id)


def _split_history(jobs: Sequence[Job]) -> tuple[list[Job], list[Job]]:
    """Last record of each job, and the earlier runs that only history keeps."""
    last: dict[int, Job] = {}
    for job in jobs:
        known = last.get(job.job_id)
        if known is None or job.restarts >= known.restarts:
            last[job.job_id] = job
    history = [job for job in jobs if last[job.job_id].restarts > job.restarts]
    return list(last.values()), history
