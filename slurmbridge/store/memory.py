"""The store without a disk: the same rules on dictionaries, for tests and simulations.

Callbacks come from the calling thread, before `write` returns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.commands.effects import JobFilter, JobRow
from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Accounting, Transaction, UsageRow
from slurmbridge.model.cluster import Node, NodeEvent, Partition
from slurmbridge.model.job import Job, Step
from slurmbridge.model.mail import Mail
from slurmbridge.model.plan import Reservation
from slurmbridge.store import filter as selection
from slurmbridge.store.protocol import (
    DropMail,
    InsertJobs,
    Limits,
    Loaded,
    Op,
    Purge,
    PutAccounting,
    PutJobs,
    PutMail,
    PutMark,
    PutNodes,
    PutPartitions,
    PutReservations,
    PutSteps,
    PutUsage,
    Use,
)
from slurmbridge.store.queries import row_of
from slurmbridge.store.records import ended_at, is_final
from slurmbridge.store.schema import ALIVE
from slurmbridge.store.trouble import node_trouble
from slurmbridge.store.usage import DEFAULT_HALF_LIFE, rows_after


class MemoryStore:
    """`store.protocol.Store`, gone with the process."""

    def __init__(self, *, decay_half_life: float = DEFAULT_HALF_LIFE) -> None:
        self._half_life = decay_half_life
        self._lock = threading.RLock()
        self._runs: dict[tuple[int, int], Job] = {}
        self._rolled: set[tuple[int, int]] = set()
        self._nonces: dict[tuple[int, str], int] = {}
        self._blobs: dict[str, bytes] = {}
        self._steps: dict[tuple[int, int, int], Step] = {}
        self._nodes: dict[str, Node] = {}
        self._partitions: tuple[Partition, ...] = ()
        self._reservations: tuple[Reservation, ...] = ()
        self._accounting: Accounting | None = None
        self._usage: dict[int, UsageRow] = {}
        self._transactions: list[Transaction] = []
        self._marks: dict[str, str] = {}
        self._mails: dict[int, Mail] = {}
        self._events: list[NodeEvent] = []
        self._next_job_id = 0
        self._closed = False
        self.healthy = True

    def load(self, recent_since: float) -> Loaded:
        with self._lock:
            last = selection.last_runs(self._runs.values())
            living = {job.array_job_id for job in last if job.array_job_id and ended_at(job) == ALIVE}
            jobs = sorted(
                (job for job in last if ended_at(job) >= recent_since or job.array_job_id in living),
                key=lambda job: job.job_id,
            )
            alive = {(job.job_id, job.restarts) for job in jobs}
            return Loaded(
                jobs=tuple(jobs),
                steps=tuple(
                    step
                    for step in self._steps.values()
                    if not step.state.is_finished and (step.job_id, step.restarts) in alive
                ),
                nodes=tuple(sorted(self._nodes.values(), key=lambda node: (node.conf.index, node.name))),
                partitions=self._partitions,
                reservations=self._reservations,
                accounting=self._accounting,
                usage=tuple(self._usage[assoc_id] for assoc_id in sorted(self._usage)),
                next_job_id=self._next_job_id,
                marks=tuple(sorted(self._marks.items())),
                mails=tuple(self._mails[mail_id] for mail_id in sorted(self._mails)),
            )

    def write(self, ops: Sequence[Op], done: Callable[[Exception | None], None], *, droppable: bool = False) -> None:
        with self._lock:
            error = self._refuse(ops)
            if error is None:
                for op in ops:
                    self._apply(op)
        done(error)

    def nonces(self, most: int) -> dict[tuple[int, str], int]:
        with self._lock:
            latest = sorted(self._nonces.items(), key=lambda item: item[1])
        return dict(latest[-most:])

    def blob(self, sha: str) -> bytes | None:
        return self._blobs.get(sha)

    def history(self, wanted: JobFilter) -> tuple[JobRow, ...]:
        with self._lock:
            runs = list(self._runs.values()) if wanted.duplicates else selection.last_runs(self._runs.values())
            jobs = sorted((job for job in runs if selection.wants(wanted, job)), key=selection.order)
            steps: dict[tuple[int, int], list[Step]] = {}
            if wanted.with_steps:
                for step in self._steps.values():
                    steps.setdefault((step.job_id, step.restarts), []).append(step)
            return tuple(row_of(job, steps.get((job.job_id, job.restarts), ()), self._blobs, wanted) for job in jobs)

    def transactions(self, start: float | None, end: float | None) -> tuple[Transaction, ...]:
        return tuple(
            one
            for one in self._transactions
            if (start is None or one.time >= start) and (end is None or one.time < end)
        )

    def events(self, start: float | None, end: float | None) -> tuple[NodeEvent, ...]:
        found = [
            event
            for event in self._events
            if (start is None or event.end is None or event.end >= start) and (end is None or event.start <= end)
        ]
        return tuple(sorted(found, key=lambda event: event.start))

    def expired(self, limits: Limits, most: int) -> Purge:
        with self._lock:
            runs = [] if limits.jobs is None else self._old_runs(limits.jobs)[:most]
            blobs = [Use(sha=sha, since=-1.0) for job in runs for sha in (job.spec.script_sha, job.spec.env_sha) if sha]
            for field, before in (("script_sha", limits.scripts), ("env_sha", limits.environments)):
                if before is not None:
                    named = {getattr(job.spec, field) for job in self._runs.values()}
                    unused = [sha for sha in sorted(named & self._blobs.keys()) if not self._is_used(sha, before)]
                    blobs += [Use(sha=sha, since=before) for sha in unused[:most]]
            steps = [
                key
                for key, step in self._steps.items()
                if limits.steps is not None
                and step.state.is_finished
                and (run := self._runs.get(key[:2])) is not None
                and ended_at(run) < limits.steps
            ]
            old = limits.transactions is not None and any(one.time < limits.transactions for one in self._transactions)
            return Purge(
                runs=tuple((job.job_id, job.restarts) for job in runs),
                steps=tuple(steps[:most]),
                blobs=tuple(blobs),
                transactions_before=limits.transactions if old else None,
            )

    def _old_runs(self, before: float) -> list[Job]:
        alive = [job for job in self._runs.values() if not is_final(job)]
        families = {key for job in alive for key in (job.job_id, job.array_job_id, job.het_job_id)} - {0}
        old = (job for job in self._runs.values() if ended_at(job) < before)
        kept = (job for job in old if not families & {job.job_id, job.array_job_id, job.het_job_id})
        return sorted(kept, key=lambda job: (ended_at(job), job.job_id))

    def _is_used(self, sha: str, since: float) -> bool:
        runs = self._runs.values()
        return any(sha in (job.spec.script_sha, job.spec.env_sha) and ended_at(job) >= since for job in runs)

    def close(self) -> None:
        self._closed = True

    def _refuse(self, ops: Sequence[Op]) -> StoreError | None:
        """The conflicts that a database would find."""
        if self._closed:
            return StoreError("the store is closed")
        for op in ops:
            if not isinstance(op, InsertJobs) or not op.jobs:
                continue
            known = self._nonces.get((op.uid, op.nonce)) if op.nonce else None
            if known is not None and known != op.jobs[0].job_id:
                return StoreError(f"this submission was stored before, as job {known}")
            if known is None and any((job.job_id, job.restarts) in self._runs for job in op.jobs):
                return StoreError(f"job id {op.jobs[0].job_id} was given out before")
        return None

    def _apply(self, op: Op) -> None:
        match op:
            case InsertJobs():
                if op.nonce and (op.uid, op.nonce) in self._nonces:
                    return
                self._put_runs(op.jobs)
                if op.nonce and op.jobs:
                    self._nonces[(op.uid, op.nonce)] = op.jobs[0].job_id
                for sha, content in op.blobs:
                    self._blobs.setdefault(sha, content)
            case PutJobs():
                self._put_runs(op.jobs)
            case PutSteps():
                self._steps.update(((step.job_id, step.restarts, step.step_id), step) for step in op.steps)
            case PutNodes():
                self._nodes.update((node.name, node) for node in op.nodes)
                for node in op.nodes if op.shown is None else op.shown:
                    self._note_trouble(node)
            case PutPartitions():
                self._partitions = op.partitions
            case PutReservations():
                self._reservations = op.reservations
            case PutAccounting():
                self._accounting = op.accounting
                self._transactions.extend(op.transactions)
            case PutUsage():
                self._usage.update((row.assoc_id, row) for row in op.rows)
            case PutMail():
                self._mails.update((one.mail_id, one) for one in op.mails)
            case DropMail():
                for mail_id in op.mail_ids:
                    self._mails.pop(mail_id, None)
            case Purge():
                self._purge(op)
            case PutMark():
                if op.name == "next_job_id":
                    self._next_job_id = max(self._next_job_id, int(op.value))
                else:
                    self._marks[op.name] = op.value

    def _note_trouble(self, node: Node) -> None:
        """End the open event of a node whose trouble changed, and open one for the new trouble."""
        trouble, now = node_trouble(node), time.time()
        place = next((at for at, e in enumerate(self._events) if e.node == node.name and e.end is None), None)
        if place is not None:
            current = self._events[place]
            if (current.state, current.reason) == (trouble, node.reason):
                return
            self._events[place] = msgspec.structs.replace(current, end=max(now, current.start))
        if trouble:
            start = node.reason_time or now
            event = NodeEvent(
                node=node.name, start=start, end=None, state=trouble, reason=node.reason, uid=node.reason_uid
            )
            self._events.append(event)

    def _purge(self, op: Purge) -> None:
        for key in op.runs:
            job = self._runs.get(key)
            if job is not None and is_final(job):
                del self._runs[key]
                self._steps = {at: step for at, step in self._steps.items() if at[:2] != key}
        known = {job.job_id for job in self._runs.values()}
        gone = {number for number, _ in op.runs} - known
        self._nonces = {nonce: number for nonce, number in self._nonces.items() if number not in gone}
        for step in op.steps:
            self._steps.pop(step, None)
        for use in op.blobs:
            if not self._is_used(use.sha, use.since):
                self._blobs.pop(use.sha, None)
        for assoc_id in op.usage:
            self._usage.pop(assoc_id, None)
        if op.transactions_before is not None:
            self._transactions = [one for one in self._transactions if one.time >= op.transactions_before]

    def _put_runs(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            key = (job.job_id, job.restarts)
            self._runs[key] = job
            self._next_job_id = max(self._next_job_id, job.job_id + 1)
            if not is_final(job) or key in self._rolled:
                continue
            self._rolled.add(key)
            self._usage.update((row.assoc_id, row) for row in rows_after(self._usage, job, self._half_life))
