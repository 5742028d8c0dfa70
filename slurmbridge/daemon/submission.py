"""From a Submit effect to durable jobs: resolve, number, store, and only then answer.

A nonce makes it idempotent: a client that lost its answer asks again and gets the first id. Source: design 8.1, 8.2.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict
from collections.abc import Sequence

from msgspec.structs import replace

from slurmbridge.commands.effects import Call, Component, Submit, Submitted
from slurmbridge.daemon.core import Core, new_sluid
from slurmbridge.daemon.recent import Accepted, Recent
from slurmbridge.daemon.requests import Blobs, encode_environment
from slurmbridge.errors import SlurmErrno
from slurmbridge.lang import arrays, rlimits
from slurmbridge.lifecycle import dependencies
from slurmbridge.manifest import pod_output
from slurmbridge.manifest.pod_container import why_not
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.model.states import Reason
from slurmbridge.model.verdict import Refused
from slurmbridge.store.protocol import InsertJobs, Store
from slurmbridge.submit.components import keep_apart
from slurmbridge.submit.resolve import Caller, Resolved, resolve

MAX_ENVIRONMENT = 2 * 1024 * 1024
NONCE_KEEP_S = 120.0
AFTER_START_S = 300.0  # how long a retry may come from before a restart
EARLIER = 50_000  # submissions before the restart that are remembered so long


class Submissions:
    def __init__(self, core: Core, store: Store, blobs: Blobs) -> None:
        self.core, self.store, self.blobs = core, store, blobs
        self._nonces: OrderedDict[tuple[int, str], tuple[float, asyncio.Future[Submitted | Refused]]] = OrderedDict()
        self._recent = Recent(core.memory)
        self._began = time.monotonic()
        self._earlier = store.nonces(EARLIER)

    def submit(self, call: Call, wanted: Submit) -> asyncio.Future[Submitted | Refused]:
        """The answer, once durable."""
        key = (call.uid, call.nonce)
        if call.nonce:
            known = self._nonces.get(key)
            if known is not None and not wanted.test_only:
                return known[1] if wanted.batch else _repeated(known[1])
            if self._earlier:
                if time.monotonic() - self._began >= AFTER_START_S:
                    self._earlier = {}
                first = self._earlier.get(key)
                if first is not None:
                    return _resolved(Submitted(job_id=first, repeated=True))
        answer = self._submit(call, wanted)
        if call.nonce and not wanted.test_only:
            self._remember(key, answer)
        return answer

    def _remember(self, key: tuple[int, str], answer: asyncio.Future[Submitted | Refused]) -> None:
        now = time.monotonic()
        self._nonces[key] = (now, answer)
        while self._nonces:
            oldest = next(iter(self._nonces.values()))
            if now - oldest[0] < NONCE_KEEP_S:
                break
            self._nonces.popitem(last=False)

    def _submit(self, call: Call, wanted: Submit) -> asyncio.Future[Submitted | Refused]:
        core = self.core
        if not core.journal.healthy:
            return _resolved(Refused(errno=SlurmErrno.IO_ERROR))
        specs: list[Accepted] = []
        for component in wanted.components:
            verdict = self._resolve(call, component, wanted)
            if isinstance(verdict, Refused):
                return _resolved(verdict)
            specs.append(verdict)
        if len(specs) > 1:
            apart = keep_apart([each.resolved.spec for each in specs], [node.name for node in core.memory.config.nodes])
            if isinstance(apart, Refused):
                return _resolved(apart)
            specs = [
                Accepted(each.request, replace(each.resolved, spec=spec))
                for each, spec in zip(specs, apart, strict=True)
            ]
            if any(each.request.array is not None for each in specs):
                return _resolved(Refused(errno=SlurmErrno.INVALID_ARRAY))
        if len(core.memory.table) + len(specs) > core.memory.config.max_job_count:
            return _resolved(Refused(errno=SlurmErrno.MAX_JOB_COUNT))
        first = core.ids.take(len(specs))
        if first is None:
            return _resolved(Refused(errno=SlurmErrno.JOB_ID_EXHAUSTED))
        warnings = tuple(dict.fromkeys(line for each in specs for line in each.resolved.warnings))
        jobs = self._jobs(call, wanted.components, specs, first)
        return self._store(call, jobs, warnings)

    def trial(self, call: Call, wanted: Submit) -> tuple[Job, tuple[str, ...]] | Refused:
        """The job that --test-only asks about; it takes an id, as Slurm does, but is never stored."""
        component = wanted.components[0]
        verdict = self._resolve(call, component, wanted)
        if isinstance(verdict, Refused):
            return verdict
        number = self.core.ids.take()
        if number is None:
            return Refused(errno=SlurmErrno.JOB_ID_EXHAUSTED)
        job = self._job(call, verdict.resolved.spec, verdict.resolved, number, 0, 0, ())
        return replace(job, priority=1, held_by=""), verdict.resolved.warnings

    def _resolve(self, call: Call, component: Component, wanted: Submit) -> Accepted | Refused:
        memory = self.core.memory
        if sum(len(name) + len(value) + 2 for name, value in component.env) > MAX_ENVIRONMENT:
            return Refused(errno=SlurmErrno.ENVIRONMENT_TOO_LARGE)
        request, caller = component.request, caller_of(call, memory.is_operator(call.uid))
        known = self._recent.find(request, caller, component.script_path, wanted.batch)
        if known is not None:
            return known
        resolved = resolve(
            request,
            caller,
            memory.config,
            memory.limiting(),
            memory.partition_list,
            memory,
            now=call.now,
            script_path=component.script_path,
            batch=wanted.batch,
            job_exists=memory.table.knows,
            count_jobs=memory.table.count_open,
        )
        if isinstance(resolved, Refused):
            return resolved
        user = memory.names.user(resolved.spec.uid) if memory.capabilities.containers else None
        reason = why_not(request, resolved.spec.partitions, user.home if user else "/", memory.capabilities)
        if reason is not None:
            return Refused(errno=SlurmErrno.INVALID_PARAMETER, before=(reason,))
        return self._recent.keep(request, caller, component.script_path, wanted.batch, resolved)

    def _jobs(self, call: Call, components: Sequence[Component], specs: Sequence[Accepted], first: int) -> list[Job]:
        jobs = []
        het = first if len(specs) > 1 else 0
        ids = tuple(range(first, first + len(specs))) if het else ()
        for offset, (component, accepted) in enumerate(zip(components, specs, strict=True)):
            spec = self._with_blobs(call, component, accepted)
            jobs.append(self._job(call, spec, accepted.resolved, first + offset, het, offset, ids))
        return jobs

    def _with_blobs(self, call: Call, component: Component, accepted: Accepted) -> JobSpec:
        script_sha = self.blobs.keep(component.script) if component.script else ""
        env_sha = self.blobs.keep(encode_environment(component.env))
        rlimits = self._propagated(call, component)
        return accepted.complete(
            (script_sha, env_sha, component.script_args, rlimits),
            lambda: replace(
                accepted.resolved.spec,
                script_sha=script_sha,
                env_sha=env_sha,
                script_args=component.script_args,
                groups=call.groups,
                rlimits=rlimits,
            ),
        )

    def _propagated(self, call: Call, component: Component) -> tuple[tuple[str, int, int], ...]:
        """The caller's limits that travel with the job: --propagate, else PropagateResourceLimits[Except]."""
        asked, config = component.request.propagate, self.core.memory.config
        if not asked and (kept := config.propagate_limits_except):
            return rlimits.without(call.rlimits, kept)
        names = rlimits.parse(asked) if asked else config.propagate_limits
        return rlimits.among(call.rlimits, names)

    def _job(
        self,
        call: Call,
        spec: JobSpec,
        resolved: Resolved,
        job_id: int,
        het: int,
        offset: int,
        het_ids: tuple[int, ...],
    ) -> Job:
        request = spec.request
        now = call.now
        held = request.hold or request.priority == 0
        begin = float(spec.begin) if spec.begin is not None and spec.begin > now else None
        eligible = begin if begin is not None else (None if held else now)
        job = Job(
            job_id=job_id,
            sluid=new_sluid(),
            spec=spec,
            het_job_id=het,
            het_offset=offset,
            het_ids=het_ids,
            priority=0 if held else 1,
            held_by="user" if held else "",
            reason=Reason.HELD_USER if held else (Reason.BEGIN_TIME if begin else Reason.NONE),
            reason_text=resolved.reason_text,
            submit_time=now,
            eligible_time=eligible,
            accrue_time=None if begin is not None else eligible,
            start_time=begin,
            last_sched_eval=now,
        )
        if resolved.reason:
            job = replace(job, reason=resolved.reason)
        if request.array is not None and request.array.runs:
            runs = request.array.runs
            tasks = list(arrays.expand_runs(runs))
            job = replace(
                job,
                array_job_id=job_id,
                tasks=runs,
                array_limit=request.array.limit,
                array_first=runs[0][0],
                array_last=max(last - (last - at) % step for at, last, step in runs),
                array_step=runs[0][2] if len(runs) == 1 and runs[0][0] != runs[0][1] else _step(tasks),
                array_count=len(tasks),
            )
        if spec.dependency is not None:
            job = replace(job, eligible_time=None, accrue_time=None)
            job = self.core.evaluated(job)
        return job

    def _notes(self, job: Job) -> tuple[str, ...]:
        memory = self.core.memory
        if not memory.capabilities.containers:
            return ()
        user = memory.names.user(job.spec.uid)
        note = pod_output.note(job, user.home if user else "/", memory.capabilities)
        return (note,) if note else ()

    def _store(self, call: Call, jobs: list[Job], warnings: tuple[str, ...]) -> asyncio.Future[Submitted | Refused]:
        core = self.core
        jobs = list(core.withhold(jobs))
        for job in jobs:
            core.memory.table.put(job)
        shas = [sha for job in jobs for sha in (job.spec.script_sha, job.spec.env_sha)]
        answer: asyncio.Future[Submitted | Refused] = asyncio.get_running_loop().create_future()

        def settle(error: Exception | None) -> None:
            if error is not None:
                for job in jobs:
                    core.memory.table.forget(job)
                self._nonces.pop((call.uid, call.nonce), None)
                result: Submitted | Refused = Refused(errno=SlurmErrno.IO_ERROR, detail=str(error))
            else:
                self.blobs.confirm(shas)
                core.memory.tally.submitted(sum(max(1, job.array_count) for job in jobs))
                for job in jobs:
                    current = core.memory.table.get(job.job_id)
                    if current is not None:
                        core.tell_planner(current)
                        if dependencies.decided_tasks(current, core.memory.table.family):
                            core.look(current.job_id)
                result = Submitted(job_id=jobs[0].job_id, warnings=warnings, notes=self._notes(jobs[0]))
            if not answer.done():
                answer.set_result(result)

        core.journal.call_when_durable(
            [InsertJobs(jobs=tuple(jobs), nonce=call.nonce, uid=call.uid, blobs=self.blobs.unstored(shas))],
            settle,
            droppable=True,
        )
        return answer


def caller_of(call: Call, is_operator: bool) -> Caller:
    """The caller as `submit` wants to know it."""
    return Caller(
        uid=call.uid,
        gid=call.gid,
        user=call.user,
        group=call.group,
        groups=call.groups,
        host=call.host,
        sid=call.sid,
        cwd=call.cwd,
        umask=call.umask,
        argv=call.argv,
        is_operator=is_operator,
    )


def _step(tasks: Sequence[int]) -> int:
    """SLURM_ARRAY_TASK_STEP of an irregular array is 1."""
    if len(tasks) < 2:
        return 1
    steps = {second - first for first, second in itertools.pairwise(tasks)}
    return steps.pop() if len(steps) == 1 else 1


def _repeated(first: asyncio.Future[Submitted | Refused]) -> asyncio.Future[Submitted | Refused]:
    """The first answer, marked as one that was given before."""
    again: asyncio.Future[Submitted | Refused] = asyncio.get_running_loop().create_future()

    def pass_on(done: asyncio.Future[Submitted | Refused]) -> None:
        answer = done.result()
        if not again.done():
            again.set_result(replace(answer, repeated=True) if isinstance(answer, Submitted) else answer)

    first.add_done_callback(pass_on)
    return again


def _resolved(value: Submitted | Refused) -> asyncio.Future[Submitted | Refused]:
    future: asyncio.Future[Submitted | Refused] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future
