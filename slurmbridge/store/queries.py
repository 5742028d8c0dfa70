"""Reading back: what the daemon loads at start, and the runs that sacct asks for.

Rows are fetched inside one short read transaction and decoded after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from slurmbridge.commands.effects import JobFilter, JobRow
from slurmbridge.model.accounts import Transaction, UsageRow
from slurmbridge.model.cluster import Node, NodeEvent, Partition
from slurmbridge.model.job import Job, Step
from slurmbridge.model.mail import Mail
from slurmbridge.model.plan import Reservation
from slurmbridge.store import filter as selection
from slurmbridge.store import records, schema
from slurmbridge.store.protocol import Loaded
from slurmbridge.store.writes import NEXT_JOB_ID, OWN_MARKS

RUNS, SPECS, STEPS = schema.runs.c, schema.specs.c, schema.steps.c
_AT_ONCE = 500
"""Values of one IN list."""

_RUN_COLUMNS = sa.select(RUNS.live, RUNS.spec, SPECS.data).join_from(
    schema.runs, schema.specs, RUNS.spec == SPECS.digest
)
_NEWER = schema.runs.alias("newer")
_LAST_RUN = ~sa.exists().where(_NEWER.c.job_id == RUNS.job_id, _NEWER.c.restarts > RUNS.restarts)


def loaded_runs(recent_since: float) -> tuple[sa.Select[Any], ...]:
    """Those that memory holds. Of an array that is not over all tasks: what depends on it asks for them.

    Two statements: PostgreSQL would read the whole table for one with an OR of the two.
    """
    alive = schema.runs.alias("alive")
    living_arrays = sa.select(alive.c.array_job_id).where(
        alive.c.ended == schema.ALIVE, alive.c.array_job_id.is_not(None)
    )
    return (
        _RUN_COLUMNS.where(RUNS.ended >= recent_since, _LAST_RUN),
        _RUN_COLUMNS.where(RUNS.ended < recent_since, RUNS.array_job_id.in_(living_arrays), _LAST_RUN),
    )


def wanted_runs(wanted: JobFilter) -> sa.Select[Any]:
    """Those that a filter may want."""
    query = _RUN_COLUMNS.where(*_conditions(wanted))
    return query if wanted.duplicates else query.where(_LAST_RUN)


def load(connection: Connection, recent_since: float) -> Loaded:
    """Everything the daemon keeps in memory."""
    with connection.begin():
        runs = [row for query in loaded_runs(recent_since) for row in connection.execute(query)]
        steps = connection.execute(sa.select(STEPS.data).where(STEPS.running == 1)).scalars().all()
        entities = connection.execute(
            sa.select(schema.entities.c.kind, schema.entities.c.data).order_by(
                schema.entities.c.kind, schema.entities.c.place, schema.entities.c.name
            )
        ).all()
        usage = connection.execute(sa.select(schema.usage.c.data)).scalars().all()
        mails = connection.execute(sa.select(schema.mail.c.data).order_by(schema.mail.c.mail_id)).scalars().all()
        marks = [(name, value) for name, value in connection.execute(sa.select(schema.marks)).all()]
    decoder = records.JobDecoder()
    jobs = sorted((decoder.job(*row) for row in runs), key=lambda job: job.job_id)
    loaded = {(job.job_id, job.restarts) for job in jobs}
    running = (records.decode(data, Step) for data in steps)
    kinds: dict[str, list[bytes]] = {}
    for kind, data in entities:
        kinds.setdefault(kind, []).append(data)
    accounting = kinds.get("accounting")
    return Loaded(
        jobs=tuple(jobs),
        steps=tuple(step for step in running if (step.job_id, step.restarts) in loaded),
        nodes=tuple(records.decode(data, Node) for data in kinds.get("node", ())),
        partitions=tuple(records.decode(data, Partition) for data in kinds.get("partition", ())),
        reservations=tuple(records.decode(data, Reservation) for data in kinds.get("reservation", ())),
        accounting=records.decode_accounting(accounting[0]) if accounting else None,
        usage=tuple(records.decode(data, UsageRow) for data in usage),
        next_job_id=int(dict(marks).get(NEXT_JOB_ID, 0)),
        marks=tuple(sorted((name, value) for name, value in marks if name not in OWN_MARKS)),
        mails=tuple(records.decode(data, Mail) for data in mails),
    )


def history(connection: Connection, wanted: JobFilter) -> tuple[JobRow, ...]:
    """Runs with their steps, in the order of `store.filter.order`."""
    with connection.begin():
        rows = connection.execute(wanted_runs(wanted)).all()
        decoder = records.JobDecoder()
        jobs = [job for job in (decoder.job(*row) for row in rows) if selection.wants(wanted, job)]
        jobs.sort(key=selection.order)
        steps = _steps(connection, jobs) if wanted.with_steps else {}
        shas = {job.spec.script_sha for job in jobs} if wanted.with_script else set()
        shas |= {job.spec.env_sha for job in jobs} if wanted.with_env else set()
        blobs = _blobs(connection, sorted(shas - {""}))
    return tuple(row_of(job, steps.get((job.job_id, job.restarts), ()), blobs, wanted) for job in jobs)


def row_of(job: Job, steps: Sequence[Step], blobs: dict[str, bytes], wanted: JobFilter) -> JobRow:
    """One answer of `history`; steps by start, then id."""
    env = blobs.get(job.spec.env_sha) if wanted.with_env else None
    return JobRow(
        job=job,
        steps=tuple(sorted(steps, key=lambda step: (step.start_time, step.step_id))),
        script=blobs.get(job.spec.script_sha) if wanted.with_script else None,
        env=records.decode_environment(env) if env is not None else None,
    )


def transactions(connection: Connection, start: float | None, end: float | None) -> tuple[Transaction, ...]:
    """Changes of accounting entities with start <= time < end, in order."""
    table = schema.transactions.c
    query = sa.select(table.time, table.action, table.actor, table.where_text, table.info)
    if start is not None:
        query = query.where(table.time >= start)
    if end is not None:
        query = query.where(table.time < end)
    rows = connection.execute(query.order_by(table.txn_id)).all()
    return tuple(
        Transaction(time=moment, action=action, actor=actor, where=where, info=info)
        for moment, action, actor, where, info in rows
    )


def events(connection: Connection, start: float | None, end: float | None) -> tuple[NodeEvent, ...]:
    """Events that overlap [start, end], by start."""
    table = schema.events.c
    query = sa.select(table.node, table.started, table.ended, table.state, table.reason, table.uid)
    if start is not None:
        query = query.where(table.ended >= start)
    if end is not None:
        query = query.where(table.started <= end)
    rows = connection.execute(query.order_by(table.started, table.event_id)).all()
    return tuple(
        NodeEvent(
            node=node,
            start=started,
            end=None if ended >= schema.ALIVE else ended,
            state=state,
            reason=reason,
            uid=uid,
        )
        for node, started, ended, state, reason, uid in rows
    )


def _conditions(wanted: JobFilter) -> list[Any]:
    """What an index or a column can tell; never narrower than `selection.wants`."""
    conditions: list[Any] = []
    if wanted.job_ids:
        numbers = sorted({number for number, _task, _step in wanted.job_ids})
        conditions.append(
            sa.or_(RUNS.job_id.in_(numbers), RUNS.array_job_id.in_(numbers), RUNS.het_job_id.in_(numbers))
        )
    for column, values in (
        (RUNS.uid, wanted.users),
        (RUNS.account, wanted.accounts or None),
        (RUNS.qos, wanted.qos or None),
        (RUNS.name, wanted.names or None),
    ):
        if values is not None:
            conditions.append(column.in_(values))
    if wanted.partitions:
        conditions.append(sa.or_(RUNS.partition.in_(wanted.partitions), RUNS.partition.contains(",")))
    if wanted.nodes:
        conditions.append(sa.or_(*(RUNS.nodes.contains(f",{node},", autoescape=True) for node in wanted.nodes)))
    if wanted.start is not None:
        conditions.append(RUNS.ended >= wanted.start)
    if wanted.end is not None:
        conditions.append(RUNS.submitted <= wanted.end)
    return conditions


def _steps(connection: Connection, jobs: Sequence[Job]) -> dict[tuple[int, int], list[Step]]:
    found: dict[tuple[int, int], list[Step]] = {}
    for numbers in records.chunks(sorted({job.job_id for job in jobs}), _AT_ONCE):
        for data in connection.execute(sa.select(STEPS.data).where(STEPS.job_id.in_(numbers))).scalars():
            step = records.decode(data, Step)
            found.setdefault((step.job_id, step.restarts), []).append(step)
    return found


def _blobs(connection: Connection, shas: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for names in records.chunks(shas, _AT_ONCE):
        query = sa.select(schema.blobs.c.sha, schema.blobs.c.data).where(schema.blobs.c.sha.in_(names))
        found.update((sha, data) for sha, data in connection.execute(query).all())
    return found
