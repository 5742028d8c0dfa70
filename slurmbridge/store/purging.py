"""What may be forgotten, and forgetting it: the store's side of slurmdbd's PurgeJobAfter and kin.

`expired` reads a small list of keys; `apply` deletes them in the writer's transaction, looking again whether each may
go. A run stays while its job, its array or its heterogeneous job has a run that lives, since memory holds these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from slurmbridge.store import schema
from slurmbridge.store.dialect import Session
from slurmbridge.store.protocol import Limits, Purge, Use

RUNS, STEPS, USES, EVENTS = schema.runs.c, schema.steps.c, schema.blob_uses.c, schema.events.c
EVER = -1.0
"""`Use.since`: any run that uses it keeps it."""


def expired(connection: Connection, limits: Limits, most: int) -> Purge:
    """At most `most` runs, steps and blobs, the oldest runs first."""
    with connection.begin():
        runs = _runs(connection, limits.jobs, most)
        blobs = [Use(sha=sha, since=EVER) for sha in _blobs_of(connection, [digest for _, _, digest in runs])]
        steps = _steps(connection, limits.steps, most)
        for kind, before in (("script", limits.scripts), ("env", limits.environments)):
            blobs += _blobs(connection, kind, before, most)
        events = _any(connection, EVENTS.ended, limits.events)
        transactions = _any(connection, schema.transactions.c.time, limits.transactions)
    return Purge(
        runs=tuple((job_id, restarts) for job_id, restarts, _ in runs),
        steps=steps,
        blobs=tuple(blobs),
        events_before=events,
        transactions_before=transactions,
    )


def _runs(connection: Connection, before: float | None, most: int) -> list[tuple[int, int, bytes]]:
    if before is None:
        return []
    alive = schema.runs.alias("alive").c
    conditions = [RUNS.ended < before, RUNS.job_id.not_in(sa.select(alive.job_id).where(alive.ended == schema.ALIVE))]
    for family, of_living in ((RUNS.array_job_id, alive.array_job_id), (RUNS.het_job_id, alive.het_job_id)):
        living = sa.select(of_living).where(alive.ended == schema.ALIVE, of_living.is_not(None))
        conditions.append(sa.or_(family.is_(None), family.not_in(living)))
    query = sa.select(RUNS.job_id, RUNS.restarts, RUNS.spec).where(*conditions).order_by(RUNS.ended).limit(most)
    return [(job_id, restarts, digest) for job_id, restarts, digest in connection.execute(query)]


def _blobs_of(connection: Connection, digests: Sequence[bytes]) -> list[str]:
    if not digests:
        return []
    return list(connection.execute(sa.select(USES.sha).where(USES.spec.in_(set(digests))).distinct()).scalars())


def _steps(connection: Connection, before: float | None, most: int) -> tuple[tuple[int, int, int], ...]:
    if before is None:
        return ()
    query = (
        sa.select(STEPS.job_id, STEPS.restarts, STEPS.step_id)
        .join_from(schema.steps, schema.runs, sa.and_(RUNS.job_id == STEPS.job_id, RUNS.restarts == STEPS.restarts))
        .where(STEPS.running == 0, RUNS.ended < before)
        .limit(most)
    )
    return tuple((job_id, restarts, step_id) for job_id, restarts, step_id in connection.execute(query))


def _blobs(connection: Connection, kind: str, before: float | None, most: int) -> list[Use]:
    """Scripts or environments that no run of late uses; those that are not stored any more are left out."""
    if before is None:
        return []
    inner = schema.blob_uses.alias("of_late").c
    late = sa.select(1).where(inner.sha == schema.blobs.c.sha, RUNS.spec == inner.spec, RUNS.ended >= before)
    used = sa.select(1).where(USES.sha == schema.blobs.c.sha, USES.kind == kind)
    query = sa.select(schema.blobs.c.sha).where(used.exists(), ~late.exists()).limit(most)
    return [Use(sha=sha, since=before) for sha in connection.execute(query).scalars()]


def _any(connection: Connection, column: sa.ColumnElement[float], before: float | None) -> float | None:
    """The moment again where something is older."""
    if before is None:
        return None
    return before if connection.execute(sa.select(1).where(column < before).limit(1)).scalar() else None


# ---- in the writer's transaction ----

_NO_RUN = "NOT EXISTS (SELECT 1 FROM runs WHERE"
_DROP_USE = f"DELETE FROM blob_uses WHERE spec = ? AND {_NO_RUN} spec = ?)"
_DROP_SPEC = f"DELETE FROM specs WHERE digest = ? AND {_NO_RUN} spec = ?)"
_DROP_NONCE = f"DELETE FROM submissions WHERE job_id = ? AND {_NO_RUN} job_id = ?)"
_DROP_BLOB = (
    "DELETE FROM blobs WHERE sha = ? AND NOT EXISTS (SELECT 1 FROM blob_uses JOIN runs ON runs.spec = blob_uses.spec "
    "WHERE blob_uses.sha = ? AND runs.ended >= ?)"
)


def apply(session: Session, purges: Iterable[Purge]) -> None:
    """Delete; the caller begins and commits."""
    run, run_many = session.execute, session.executemany
    for purge in purges:
        specs: set[bytes] = set()
        for job_id, restarts in purge.runs:
            key = (job_id, restarts, schema.ALIVE)
            found = run("SELECT spec FROM runs WHERE job_id = ? AND restarts = ? AND ended < ?", key).fetchone()
            if found is None:
                continue
            run("DELETE FROM runs WHERE job_id = ? AND restarts = ?", (job_id, restarts))
            specs.add(bytes(found[0]))
            run("DELETE FROM steps WHERE job_id = ? AND restarts = ?", (job_id, restarts))
            run(_DROP_NONCE, (job_id, job_id))
        for digest in specs:
            run(_DROP_USE, (digest, digest))
            run(_DROP_SPEC, (digest, digest))
        if purge.steps:
            run_many("DELETE FROM steps WHERE job_id = ? AND restarts = ? AND step_id = ? AND running = 0", purge.steps)
        if purge.blobs:
            run_many(_DROP_BLOB, [(use.sha, use.sha, use.since) for use in purge.blobs])
        if purge.usage:
            run_many("DELETE FROM usage WHERE assoc_id = ?", [(assoc_id,) for assoc_id in purge.usage])
        if purge.events_before is not None:
            run("DELETE FROM events WHERE ended < ?", (purge.events_before,))
        if purge.transactions_before is not None:
            run("DELETE FROM transactions WHERE time < ?", (purge.transactions_before,))
