"""What one transaction writes: ops gathered by table, then a few statements with many rows each.

`Batch` collects the rows of any number of ops in order (a later row of the same key wins) and `apply` sends them. It
also keeps what the writer knows of the database, so that no row is read twice: the id high-water mark and the usage.
"""

from __future__ import annotations

import functools
import itertools
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Transaction, UsageRow
from slurmbridge.model.cluster import Node
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.store import purging, records, schema
from slurmbridge.store.dialect import Session
from slurmbridge.store.protocol import (
    DropMail,
    InsertJobs,
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
)
from slurmbridge.store.trouble import node_trouble
from slurmbridge.store.usage import rows_after

NEXT_JOB_ID = "next_job_id"
WRITER = "writer"
"""The mark of who writes to a server: DAEMON:NUMBER, the number of the last transaction."""
IDENTITY = "identity"
"""The mark by which a state folder knows its records on a server again."""
PROBE = "probe"
OWN_MARKS = frozenset({NEXT_JOB_ID, WRITER, IDENTITY, PROBE})
"""Marks of the store itself, which nobody else is told."""


class Known(msgspec.Struct, kw_only=True):
    """The writer's memory of what is committed (a copy is worked on and kept only when the commit succeeds)."""

    next_job_id: int
    usage: dict[int, UsageRow]
    specs: dict[int, tuple[JobSpec, bytes, bytes]] = {}
    """(record, digest, data) of what was written of late, by identity: equal submissions share a record. No part of what
    is committed: it is shared by all copies."""


def _text(statement: Any) -> str:
    """A statement as text with `?` in the order of the table's columns: bound rows are plain tuples."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="qmark")))


def _insert(table: sa.Table) -> str:
    return _text(sa.insert(table))


def _upsert(table: sa.Table, keep: frozenset[str] = frozenset()) -> str:
    """Insert, or replace all but the key and the columns in `keep`."""
    statement = sqlite.insert(table)
    keys = [column.name for column in table.primary_key.columns]
    changed = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys and c.name not in keep}
    return _text(statement.on_conflict_do_update(index_elements=keys, set_=changed))


def _insert_once(table: sa.Table) -> str:
    return _text(sqlite.insert(table).on_conflict_do_nothing())


INSERT_RUN = _insert(schema.runs)
PUT_RUN = _upsert(schema.runs, keep=frozenset({"rolled"}))
INSERT_SUBMISSION = _insert(schema.submissions)
PUT_SPEC = _insert_once(schema.specs)
PUT_BLOB = _insert_once(schema.blobs)
PUT_USE = _insert_once(schema.blob_uses)
PUT_MAIL = _upsert(schema.mail)
PUT_STEP = _upsert(schema.steps)
PUT_ENTITY = _upsert(schema.entities)
PUT_MARK = _upsert(schema.marks)
PUT_USAGE = _upsert(schema.usage)
INSERT_TRANSACTION = _text(sa.insert(schema.transactions).values(
    {c.name: sa.bindparam(c.name) for c in schema.transactions.columns if c.name != "txn_id"}))  # fmt: skip
INSERT_EVENT = _text(sa.insert(schema.events).values(
    {c.name: sa.bindparam(c.name) for c in schema.events.columns if c.name != "event_id"}))  # fmt: skip


MOST_ROWS = 32  # of one statement
MOST_SPECS = 256  # remembered


def _send(session: Session, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """All rows by few statements: between two the thread gives way to the event loop, and has to wait for its turn."""
    at, left = 0, len(rows)
    while left:
        count = min(1 << (left.bit_length() - 1), MOST_ROWS)
        part = rows[at : at + count]
        session.execute(
            _widened(statement, count), part[0] if count == 1 else list(itertools.chain.from_iterable(part))
        )
        at, left = at + count, left - count


@functools.lru_cache(maxsize=128)
def _widened(statement: str, count: int) -> str:
    """The insertion of one row as that of `count` rows."""
    found = _VALUES.search(statement)
    assert found is not None
    return f"{statement[: found.start()]}VALUES {', '.join([found[1]] * count)}{statement[found.end() :]}"


_VALUES = re.compile(r"VALUES (\([?, ]+\))")


class Batch:
    """Rows of one transaction."""

    def __init__(self, known: Known, half_life: float) -> None:
        self.known = Known(next_job_id=known.next_job_id, usage=dict(known.usage), specs=known.specs)
        self._half_life = half_life
        self._new_runs: list[tuple[Any, ...]] = []
        self._runs: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._finished: dict[tuple[int, int], Job] = {}
        self._specs: dict[bytes, bytes] = {}
        self._uses: list[tuple[str, bytes, str]] = []
        self._purges: list[Purge] = []
        self._mails: dict[int, bytes | None] = {}  # None: gone
        self._submissions: list[tuple[int, str, int]] = []
        self._blobs: dict[str, bytes] = {}
        self._steps: dict[tuple[int, int, int], tuple[Any, ...]] = {}
        self._entities: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._cleared: set[str] = set()
        self._nodes: list[Node] = []
        self._marks: dict[str, str] = {}
        self._usage: set[int] = set()
        self._transactions: list[Transaction] = []

    def add(self, op: Op) -> None:
        """Gather one op; later ones see what earlier ones did."""
        _GATHER[type(op)](self, op)

    def apply(self, session: Session) -> None:
        """Send everything; the caller begins and commits."""
        many = functools.partial(_send, session)
        for statement, rows in (
            (PUT_BLOB, list(self._blobs.items())),
            (PUT_SPEC, list(self._specs.items())),
            (PUT_USE, self._uses),
            (INSERT_SUBMISSION, self._submissions),
            (INSERT_RUN, self._new_runs),
            (PUT_RUN, list(self._runs.values())),
            (PUT_STEP, list(self._steps.values())),
        ):
            if rows:
                many(statement, rows)
        if self._finished:
            self._roll_up(session)
        for kind in self._cleared:
            session.execute("DELETE FROM entities WHERE kind = ?", (kind,))
        if self._nodes:
            _put_events(session, self._nodes)
        rest: tuple[tuple[str, list[Any]], ...] = (
            (PUT_ENTITY, list(self._entities.values())),
            (PUT_MARK, list(self._marks.items())),
            (PUT_USAGE, [(i, records.encode(self.known.usage[i])) for i in sorted(self._usage)]),
            (INSERT_TRANSACTION, [(t.time, t.action, t.actor, t.where, t.info) for t in self._transactions]),
        )
        for statement, rows in rest:
            if rows:
                many(statement, rows)
        for mail_id, data in self._mails.items():
            if data is None:
                session.execute("DELETE FROM mail WHERE mail_id = ?", (mail_id,))
            else:
                session.execute(PUT_MAIL, (mail_id, data))
        if self._purges:
            purging.apply(session, self._purges)

    # what each op brings

    def _insert_jobs(self, op: InsertJobs) -> None:
        for job in op.jobs:
            self._new_runs.append(self._row(job))
        if op.nonce and op.jobs:
            self._submissions.append((op.uid, op.nonce, op.jobs[0].job_id))
        self._blobs.update(op.blobs)

    def _put_jobs(self, op: PutJobs) -> None:
        for job in op.jobs:
            self._runs[(job.job_id, job.restarts)] = self._row(job)

    def _row(self, job: Job) -> tuple[Any, ...]:
        digest = self._digest(job.spec)
        if job.job_id >= self.known.next_job_id:
            self._raise_next_id(job.job_id + 1)
        if records.is_final(job):
            self._finished[(job.job_id, job.restarts)] = job
        return records.run_row(job, digest)

    def _digest(self, spec: JobSpec) -> bytes:
        known = self.known.specs
        found = known.get(id(spec))
        if found is None:
            if len(known) >= MOST_SPECS:
                known.clear()
            found = known[id(spec)] = (spec, *records.encode_spec(spec))
        digest, data = found[1:]
        if digest not in self._specs:
            self._specs[digest] = data
            self._uses += records.blob_uses(digest, spec)
        return digest

    def _raise_next_id(self, number: int) -> None:
        if number > self.known.next_job_id:
            self.known.next_job_id = number
            self._marks[NEXT_JOB_ID] = str(number)

    def _put_steps(self, op: PutSteps) -> None:
        for step in op.steps:
            key = (step.job_id, step.restarts, step.step_id)
            self._steps[key] = (*key, int(not step.state.is_finished), records.encode(step))

    def _put_nodes(self, op: PutNodes) -> None:
        for node in op.nodes:
            self._entities[("node", node.name)] = ("node", node.name, node.conf.index, records.encode(node))
        self._nodes.extend(op.nodes if op.shown is None else op.shown)

    def _put_partitions(self, op: PutPartitions) -> None:
        self._replace("partition", [(p.name, p) for p in op.partitions])

    def _put_reservations(self, op: PutReservations) -> None:
        self._replace("reservation", [(r.name, r) for r in op.reservations])

    def _replace(self, kind: str, named: Sequence[tuple[str, msgspec.Struct]]) -> None:
        self._cleared.add(kind)
        for key in [key for key in self._entities if key[0] == kind]:
            del self._entities[key]
        for place, (name, record) in enumerate(named):
            self._entities[(kind, name)] = (kind, name, place, records.encode(record))

    def _put_accounting(self, op: PutAccounting) -> None:
        self._entities[("accounting", "")] = ("accounting", "", 0, records.encode(op.accounting))
        self._transactions.extend(op.transactions)

    def _put_usage(self, op: PutUsage) -> None:
        for row in op.rows:
            self.known.usage[row.assoc_id] = row
            self._usage.add(row.assoc_id)

    def _put_mail(self, op: PutMail) -> None:
        self._mails.update((one.mail_id, records.encode(one)) for one in op.mails)

    def _drop_mail(self, op: DropMail) -> None:
        self._mails.update((mail_id, None) for mail_id in op.mail_ids)

    def _purge(self, op: Purge) -> None:
        self._purges.append(op)
        for assoc_id in op.usage:
            self.known.usage.pop(assoc_id, None)
            self._usage.discard(assoc_id)

    def _put_mark(self, op: PutMark) -> None:
        if op.name == NEXT_JOB_ID:
            self._raise_next_id(int(op.value))
        else:
            self._marks[op.name] = op.value

    def _roll_up(self, session: Session) -> None:
        """Charge finished runs that were not yet charged, in the transaction that marks them."""
        for keys in records.chunks(list(self._finished), 400):
            marks = ",".join("?" * len(keys))
            fresh = session.execute(
                f"SELECT job_id, restarts FROM runs WHERE rolled = 0 AND job_id IN ({marks})",
                tuple(number for number, _ in keys),
            ).fetchall()
            wanted = set(keys)
            charged = [(number, restarts) for number, restarts in fresh if (number, restarts) in wanted]
            if not charged:
                continue
            session.executemany("UPDATE runs SET rolled = 1 WHERE job_id = ? AND restarts = ?", charged)
            for key in charged:
                job = self._finished[key]
                for row in rows_after(self.known.usage, job, self._half_life):
                    self.known.usage[row.assoc_id] = row
                    self._usage.add(row.assoc_id)


_GATHER: dict[type, Callable[[Batch, Any], None]] = {
    InsertJobs: Batch._insert_jobs,
    PutJobs: Batch._put_jobs,
    PutSteps: Batch._put_steps,
    PutNodes: Batch._put_nodes,
    PutPartitions: Batch._put_partitions,
    PutReservations: Batch._put_reservations,
    PutAccounting: Batch._put_accounting,
    PutUsage: Batch._put_usage,
    PutMark: Batch._put_mark,
    Purge: Batch._purge,
    PutMail: Batch._put_mail,
    DropMail: Batch._drop_mail,
}


def already_stored(session: Session, op: Op) -> bool:
    """Whether this very submission is there (a commit that was reported as failed may have reached the disk).

    StoreError when its nonce belongs to another one.
    """
    if not isinstance(op, InsertJobs) or not op.nonce or not op.jobs:
        return False
    found = session.execute("SELECT job_id FROM submissions WHERE uid = ? AND nonce = ?", (op.uid, op.nonce)).fetchone()
    if found is None:
        return False
    if found[0] != op.jobs[0].job_id:
        raise StoreError(f"this submission was stored before, as job {found[0]}")
    return True


def _put_events(session: Session, nodes: Sequence[Node]) -> None:
    """End the open event of a node whose trouble changed, and open one for the new trouble."""
    now = time.time()
    for node in nodes:
        trouble = node_trouble(node)
        current = session.execute(
            "SELECT event_id, state, reason FROM events WHERE node = ? AND ended = ?", (node.name, schema.ALIVE)
        ).fetchone()
        if current is not None and (current[1], current[2]) == (trouble, node.reason):
            continue
        if current is not None:
            session.execute("UPDATE events SET ended = ? WHERE event_id = ?", (now, current[0]))
        if trouble:
            row = (node.name, node.reason_time or now, schema.ALIVE, trouble, node.reason, node.reason_uid)
            session.execute(INSERT_EVENT, row)
