"""Effects of commands, performed: each gives a future of the answer that the command is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from slurmbridge.commands import effects as fx
from slurmbridge.daemon.alterations import Alterations
from slurmbridge.daemon.changes import Changes
from slurmbridge.daemon.core import Core
from slurmbridge.daemon.outputs import Outputs
from slurmbridge.daemon.requests import Blobs
from slurmbridge.daemon.submission import Submissions
from slurmbridge.daemon.tokens import Tokens
from slurmbridge.errors import SlurmErrno
from slurmbridge.lang.hostlist import compress
from slurmbridge.model.explain import Explanation
from slurmbridge.model.job import Job
from slurmbridge.model.kept import KeptPart
from slurmbridge.model.plan import Factors, QueueShare, Verdict
from slurmbridge.model.verdict import Refused
from slurmbridge.store.protocol import Store

Estimate = Callable[[Job], Awaitable[Verdict | None]]
"""When and where a job would start if it were submitted now."""


FactorsOf = Callable[[], Awaitable[tuple[Factors, ...]]]
SharesOf = Callable[[], Awaitable[tuple[QueueShare, ...]]]
"""What the planner makes priorities of."""


ExplanationOf = Callable[[Job], Awaitable[Explanation | None]]
"""Why a job waits."""


class Performer:
    def __init__(
        self,
        core: Core,
        store: Store,
        blobs: Blobs,
        submissions: Submissions,
        changes: Changes,
        alterations: Alterations,
        estimate: Estimate,
        factors: FactorsOf,
        shares: SharesOf,
        explain: ExplanationOf,
    ) -> None:
        self._core, self._store, self._blobs = core, store, blobs
        self._submissions, self._changes, self._alterations = submissions, changes, alterations
        self._estimate_of = estimate
        self._factors_of = factors
        self._shares_of = shares
        self._explain = explain
        self.outputs: Outputs | None = None  # where jobs have no file system for what they write
        self.tokens: Tokens | None = None  # where users may come in with tokens
        self._table: dict[type, Callable[[fx.Call, Any], asyncio.Future[Any]]] = {
            fx.Submit: self._submit,
            fx.Change: self._change,
            fx.ChangeAll: lambda call, effect: self._spawn(self._changes.change_all(call, effect.changes)),
            fx.Alter: self._alter,
            fx.WaitFor: self._wait,
            fx.WaitStart: lambda call, effect: self._spawn(self._wait_start(effect)),
            fx.History: self._history,
            fx.Fetch: self._fetch,
            fx.KeptOutput: lambda call, effect: self._spawn(self._kept_output(effect)),
            fx.Reports: self._reports,
            fx.Sleep: self._sleep,
            fx.PriorityFactors: lambda call, effect: self._spawn(self._read_factors()),
            fx.Explain: lambda call, effect: self._spawn(self._read_explanation(effect.job_id)),
            fx.QueueShares: lambda call, effect: self._spawn(self._read_shares()),
        }

    def progress(self, job_id: int) -> str:
        """How far a job has come: `commands.effects.Progress`."""
        return self._core.progress(job_id)

    def perform(self, call: fx.Call, effect: fx.Effect) -> asyncio.Future[Any]:
        """The answer to an effect that is not the client's to perform."""
        return self._table[type(effect)](call, effect)

    def _submit(self, call: fx.Call, effect: fx.Submit) -> asyncio.Future[Any]:
        if effect.test_only:
            return self._spawn(self._estimate(call, effect))
        return self._submissions.submit(call, effect)

    async def _estimate(self, call: fx.Call, effect: fx.Submit) -> fx.Submitted | Refused:
        """`--test-only`: nothing is submitted."""
        trial = self._submissions.trial(call, effect)
        if isinstance(trial, Refused):
            return trial
        job, warnings = trial
        verdict = await self._estimate_of(job)
        if verdict is None or not verdict.nodes:
            return Refused(errno=SlurmErrno.REQUESTED_NODE_CONFIG_UNAVAILABLE)
        return fx.Submitted(
            job_id=job.job_id,
            warnings=warnings,
            start=verdict.start if verdict.start is not None else call.now,
            cpus=verdict.cpus or max(job.spec.min_cpus, len(verdict.nodes)),
            nodes=compress(verdict.nodes),
            partition=verdict.partition or (job.spec.partitions[0] if job.spec.partitions else ""),
        )

    def _change(self, call: fx.Call, effect: fx.Change) -> asyncio.Future[Any]:
        many = self._changes.change(call, (effect,))
        if many.done():
            return _now(many.result()[0])
        one: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(done: asyncio.Future[Any]) -> None:
            fault = done.exception()
            if one.done():
                return
            if fault is not None:
                one.set_exception(fault)
            else:
                one.set_result(done.result()[0])

        many.add_done_callback(settle)
        return one

    def _alter(self, call: fx.Call, effect: fx.Alter) -> asyncio.Future[Any]:
        if effect.kind != "token":
            return self._alterations.alter(call, effect)
        if self.tokens is None:
            why = "the daemon lets nobody in from elsewhere (`up --remote`)"
            return _now(fx.AlterOutcome(errno=SlurmErrno.NOT_SUPPORTED, detail=why))
        return self._spawn(self.tokens.alter(call, effect))

    def _wait(self, call: fx.Call, effect: fx.WaitFor) -> asyncio.Future[Any]:
        return self._spawn(self._wait_for(effect.job_ids))

    async def _wait_for(self, job_ids: tuple[int, ...]) -> tuple[Job, ...]:
        await self._core.wait(job_ids)
        table = self._core.memory.table
        found: list[Job] = []
        for job_id in job_ids:
            family = table.family(job_id)
            if family:
                found += family
                continue
            wanted = fx.JobFilter(job_ids=((job_id, None, None),), with_steps=False)
            rows = await asyncio.get_running_loop().run_in_executor(None, self._store.history, wanted)
            found += [row.job for row in rows]
        return tuple(found)

    async def _wait_start(self, effect: fx.WaitStart) -> fx.Progress:
        core, clock = self._core, asyncio.get_running_loop().time
        due = None if effect.seconds is None else clock() + effect.seconds
        while (phase := core.progress(effect.job_id)) == effect.known:
            left = None if due is None else due - clock()
            if left is not None and left <= 0:
                break
            moved = core.moved(effect.job_id)
            await asyncio.wait((moved,), timeout=left)
            moved.cancel()
        return fx.Progress(phase=phase)

    def _history(self, call: fx.Call, effect: fx.History) -> asyncio.Future[Any]:
        return self._spawn(self._read_history(call, effect.filter))

    async def _read_history(self, call: fx.Call, wanted: fx.JobFilter) -> tuple[fx.JobRow, ...]:
        rows = await asyncio.get_running_loop().run_in_executor(None, self._store.history, wanted)
        if not (wanted.with_script or wanted.with_env):
            return rows
        return tuple(row if self._may_read(call, row.job) else replace(row, script=None, env=None) for row in rows)

    def _fetch(self, call: fx.Call, effect: fx.Fetch) -> asyncio.Future[Any]:
        job = self._core.memory.table.get(effect.job_id)
        if job is None:
            return _now(Refused(errno=SlurmErrno.INVALID_JOB_ID))
        if not self._may_read(call, job):
            return _now(Refused(errno=SlurmErrno.ACCESS_DENIED))
        sha = job.spec.script_sha if effect.what == "script" else job.spec.env_sha
        return self._spawn(self._read_blob(sha))

    async def _read_blob(self, sha: str) -> bytes | Refused:
        content = await self._blobs.fetch(sha) if sha else None
        return content if content is not None else Refused(errno=SlurmErrno.JOB_SCRIPT_MISSING)

    async def _kept_output(self, effect: fx.KeptOutput) -> KeptPart:
        if self.outputs is None:
            return KeptPart()
        return await self.outputs.read(effect.job_id, effect.name, effect.offset, effect.size, effect.wait_s)

    def _may_read(self, call: fx.Call, job: Job) -> bool:
        """Scripts and environments: the owner and operators."""
        return call.uid == job.spec.uid or self._core.memory.is_operator(call.uid)

    def _reports(self, call: fx.Call, effect: fx.Reports) -> asyncio.Future[Any]:
        if effect.what == "transactions":
            loop = asyncio.get_running_loop()
            return loop.run_in_executor(None, self._store.transactions, effect.start, effect.end)
        if effect.what == "events":
            loop = asyncio.get_running_loop()
            return loop.run_in_executor(None, self._store.events, effect.start, effect.end)
        return _now(())

    async def _read_factors(self) -> tuple[Factors, ...]:
        return await self._factors_of()

    async def _read_explanation(self, job_id: int) -> Explanation | None:
        job = self._core.memory.table.get(job_id)
        return await self._explain(job) if job is not None and job.is_pending else None

    async def _read_shares(self) -> tuple[QueueShare, ...]:
        return await self._shares_of()

    def _sleep(self, call: fx.Call, effect: fx.Sleep) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(
            effect.seconds, lambda: None if future.done() else future.set_result(None)
        )
        return future

    @staticmethod
    def _spawn(work: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_task(work)


def _now(value: Any) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future
