"""Runs: launched when their start is durable, settled when their supervisors report, acknowledged when that is durable.

Reports may come twice (after a reconnect, a restart): the run's key decides whether they still mean anything. Source:
design 4.8, 8.6.
"""

from __future__ import annotations

import asyncio
import logging
import time as clocks
from collections.abc import Sequence

from msgspec.structs import replace

from slurmbridge.daemon import messages
from slurmbridge.daemon.core import Core
from slurmbridge.daemon.evictions import Evictions
from slurmbridge.daemon.jobtable import holds_resources, is_over
from slurmbridge.daemon.requests import Blobs, decode_environment
from slurmbridge.daemon.spending import charge_of
from slurmbridge.errors import StoreError
from slurmbridge.lifecycle import starts
from slurmbridge.lifecycle.ends import Again, Death, settle
from slurmbridge.lifecycle.evictions import in_grace
from slurmbridge.manifest.launch import UserEntry, build_launch
from slurmbridge.model.job import Job, Step
from slurmbridge.model.states import JobFlag
from slurmbridge.runtime.protocol import (
    Ended,
    Ending,
    Launch,
    Lost,
    Report,
    RunKey,
    Runtime,
    Started,
    StepChanged,
    Told,
)
from slurmbridge.store.protocol import Op, PutSteps
from slurmbridge.store.usage import rows_after

log = logging.getLogger(__name__)

READ_AGAIN_S = 1.0
"""After a store that could not be read."""


class Running:
    def __init__(self, core: Core, runtime: Runtime, blobs: Blobs, daemon_addr: str) -> None:
        self.core, self.runtime, self.blobs, self.daemon_addr = core, runtime, blobs, daemon_addr
        self.evictions: Evictions
        self.reading: dict[RunKey, asyncio.Task[None]] = {}  # what is needed for launches

    # ---- starting ----

    def launch(self, jobs: Sequence[Job]) -> None:
        """These starts are durable: let them begin. What memory does not hold of them is read first."""
        for job in jobs:
            if all(self.blobs.holds(sha) for sha in (job.spec.script_sha, job.spec.env_sha) if sha):
                self._launch(job, self.blobs.get(job.spec.script_sha), self.blobs.get(job.spec.env_sha))
            elif _key(job) not in self.reading:  # a supervisor asks for its launch whenever it dials in
                self.reading[_key(job)] = asyncio.get_running_loop().create_task(self._read_and_launch(job))

    async def _read_and_launch(self, job: Job) -> None:
        try:
            self._launch(job, *await self._read(job))
        finally:
            del self.reading[_key(job)]

    async def _read(self, job: Job) -> tuple[bytes | None, bytes | None]:
        """Script and environment; a run is durable, and begins when they can be read."""
        spec = job.spec
        while True:
            try:
                script = await self.blobs.fetch(spec.script_sha) if spec.script_sha else None
                return script, await self.blobs.fetch(spec.env_sha)
            except StoreError as fault:
                log.warning("event=launch.waits job=%d reason=%r", job.job_id, str(fault))
                await asyncio.sleep(READ_AGAIN_S)

    def _launch(self, job: Job, script: bytes | None, env: bytes | None) -> None:
        current = self.core.memory.table.get(job.job_id)
        if current is None or current.restarts != job.restarts or not holds_resources(current):
            return
        try:
            self.runtime.launch(self._launch_of(current, script, env))
        except (OSError, ValueError) as fault:
            log.error("event=launch.failed job=%d reason=%r", job.job_id, fault)
            self._finish(current, Death.LAUNCH, 0, self.core.clock(), None, ())
            return
        if JobFlag.COMPLETING in current.flags:
            self.runtime.kill(_key(current), current.kill_reason or Death.CANCEL.value)

    def _launch_of(self, job: Job, script: bytes | None, env_blob: bytes | None) -> Launch:
        spec = job.spec
        memory = self.core.memory
        if spec.is_batch and job.het_offset == 0 and script is None:
            raise ValueError("the stored script is missing")
        user = memory.names.user(spec.uid)
        entry = UserEntry(
            name=user.name if user else spec.user,
            home=user.home if user else "/",
            shell=user.shell if user else "/bin/sh",
        )
        components = memory.table.of_het(job.het_job_id) if job.het_job_id else ()
        return build_launch(
            job,
            script=script if job.het_offset == 0 else None,
            env=decode_environment(env_blob or b""),
            config=memory.config,
            nodes={share.node: memory.node(share.node) for share in (job.allocation.nodes if job.allocation else ())},
            user=entry,
            components=tuple(components),
            daemon_addr=self.daemon_addr,
            partition=memory.partition(job.allocation.partition) if job.allocation else None,
        )

    # ---- after a restart of the daemon ----

    async def adopt(self) -> None:
        """Find the runs that the store says are there."""
        await self.runtime.adopt([_key(job) for job in self.core.memory.table if holds_resources(job)])
        for job in list(self.core.memory.table):
            if holds_resources(job):
                self.core.note_ready(job)
            if holds_resources(job) and JobFlag.COMPLETING in job.flags:
                self.runtime.kill(_key(job), job.kill_reason or Death.CANCEL.value)
        self.evictions.adopt()

    # ---- reports ----

    def on_report(self, report: Told) -> None:
        job = self.core.memory.table.get(report.key.job_id)
        if job is not None and (job.restarts != report.key.restarts or not holds_resources(job)):
            job = None
        if isinstance(report, Ending):
            if job is not None:
                self._ending(job, report.end)
            return
        if job is None:
            self.runtime.acknowledge(report.key, report.sequence)
            return
        began = clocks.perf_counter()
        self._take(job, report)
        self.core.memory.tally.request(messages.of_report(report), 0, clocks.perf_counter() - began)

    def _take(self, job: Job, report: Report) -> None:
        if isinstance(report, Started):
            self._started(job, report)
        elif isinstance(report, StepChanged):
            self._step_changed(job, report)
        elif isinstance(report, Ended):
            self._ended(job, report)
        elif isinstance(report, Lost):
            self._lost(job, report)

    def _started(self, job: Job, report: Started) -> None:
        self.core.note_ready(job)
        self.runtime.acknowledge(report.key, report.sequence)

    def _step_changed(self, job: Job, report: StepChanged) -> None:
        table = self.core.memory.table
        step = report.step
        if step.end_time is None:
            table.put_step(step)
        else:
            table.drop_step(step.job_id, step.step_id)
        self._note_derived(job, (step,))
        self._acknowledge_after(self.core.journal.write([PutSteps(steps=(step,))]), report)

    def _note_derived(self, job: Job, steps: Sequence[Step]) -> Job:
        """DerivedExitCode: the highest of the job's numbered steps."""
        worst = max([step.exit_code for step in steps if step.step_id >= 0 and step.end_time is not None], default=0)
        if worst <= job.derived_exit_code:
            return job
        changed = replace(job, derived_exit_code=worst)
        self.core.see(changed)
        return changed

    def _ending(self, job: Job, report: Ended) -> None:
        """Completing until its nodes are free; what it will be is seen at once, as Slurm shows it while an epilog runs."""
        if JobFlag.COMPLETING in job.flags:
            return
        death, status = self._outcome(job, report)
        settled = settle(job, death, status, self._moment(job, report.time), report.usage, self._allowed())
        shown = settled.ended if settled.again is None else replace(job, end_time=settled.ended.end_time)
        self.core.show(replace(shown, flags=shown.flags | {JobFlag.COMPLETING}))

    def _outcome(self, job: Job, report: Ended) -> tuple[Death, int]:
        death = self._death(job, report.why)
        is_returned = death is Death.EXIT and not job.spec.is_batch  # its owner said how it went
        return death, job.exit_code if is_returned else report.status

    def _ended(self, job: Job, report: Ended) -> None:
        job = self._note_derived(job, report.steps)
        death, status = self._outcome(job, report)
        if report.message:
            log.info(
                "event=job.trouble job=%d restart=%d why=%s reason=%r",
                job.job_id,
                job.restarts,
                death.value,
                report.message,
            )
        durable = self._finish(job, death, status, report.time, report, report.steps)
        self._acknowledge_after(durable, report)

    def _death(self, job: Job, why: str) -> Death:
        """What was decided here counts more than what the supervisor saw, but a limit it enforced stays one."""
        if job.kill_reason:
            return Death(job.kill_reason)
        if in_grace(job):  # whatever ends it then counts as the preemption
            return Death.PREEMPT
        try:
            return Death(why)
        except ValueError:
            return Death.EXIT

    def _lost(self, job: Job, report: Lost) -> None:
        if report.message == "never started":
            self.launch([job])
            return
        death = Death(job.kill_reason) if job.kill_reason else Death.NODE_FAIL
        log.info("event=job.lost job=%d restart=%d reason=%r", job.job_id, job.restarts, report.message)
        self._acknowledge_after(self._finish(job, death, 0, report.time, None, ()), report)

    def _finish(
        self, job: Job, death: Death, status: int, time: float, report: Ended | None, steps: Sequence[Step]
    ) -> asyncio.Future[None]:
        time = self._moment(job, time)
        settled = settle(job, death, status, time, report.usage if report else None, self._allowed())
        settled = replace(settled, ended=self._counted(settled.ended))
        table = self.core.memory.table
        running = {step.step_id: step for step in table.steps(job.job_id)}
        own = starts.batch_step(job)
        if own is not None:  # a supervisor knows nothing of devices that are whole
            steps = [replace(step, tres=own.tres) if step.step_id == own.step_id else step for step in steps]
        final = {step.step_id: step for step in steps}
        closed = [
            final.get(step_id)
            or replace(step, end_time=time, state=settled.ended.state, exit_code=settled.ended.exit_code)
            for step_id, step in running.items()
        ]
        closed += [step for step_id, step in final.items() if step_id not in running]
        table.drop_steps(job.job_id)
        ops: list[Op] = [PutSteps(steps=tuple(closed))] if closed else []
        self._charge(settled.ended)
        log.info("event=job.ended job=%d restart=%d state=%s", job.job_id, job.restarts, settled.ended.state.name)
        if settled.again is not None:
            again = self.core.evaluated(settled.again) if settled.again.spec.dependency else settled.again
            return self.core.update([again], history=[settled.ended], ops=ops)
        durable = self.core.update([settled.ended], ops=ops)
        if job.het_job_id and job.het_offset == 0:
            self._end_components(job)
        return durable

    def _moment(self, job: Job, time: float) -> float:
        """When a run ended, by a clock that need not be ours: not before it began, nor later than now."""
        return max(min(time, self.core.clock()), job.start_time or 0.0)

    def _allowed(self) -> Again:
        config = self.core.memory.config
        return Again(max_failures=config.max_batch_requeue, on=config.requeue_exit, hold_on=config.requeue_exit_hold)

    def _charge(self, ended: Job) -> None:
        """What the store adds to use with the same commit, here for sshare and the planner."""
        memory = self.core.memory
        changed = rows_after(memory.usage_rows, ended, memory.config.priority_decay_half_life)
        if changed:
            memory.usage_rows.update((row.assoc_id, row) for row in changed)
            self.core.planner.usage_changed()

    def _counted(self, ended: Job) -> Job:
        """The run with how its use counts."""
        memory = self.core.memory
        if ended.allocation is None:
            return ended
        partition = memory.partition(ended.allocation.partition)
        return replace(ended, charge=charge_of(ended, memory.accounting, memory.config, partition))

    def _end_components(self, leader: Job) -> None:
        """The batch script of a heterogeneous job ran in its first component: the others end with it."""
        for part in self.core.memory.table.of_het(leader.het_job_id):
            if part.job_id != leader.job_id and holds_resources(part) and not is_over(part):
                self.runtime.kill(_key(part), Death.EXIT.value)

    def _acknowledge_after(self, durable: asyncio.Future[None], report: Report) -> None:
        def acknowledge(done: asyncio.Future[None]) -> None:
            if done.exception() is None:
                self.runtime.acknowledge(report.key, report.sequence)

        durable.add_done_callback(acknowledge)


def _key(job: Job) -> RunKey:
    return RunKey(job.job_id, job.restarts)
