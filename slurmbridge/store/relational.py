"""A store in a database of tables: reading through SQLAlchemy's pool, writing by the one writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from slurmbridge.commands.effects import JobFilter, JobRow
from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Transaction
from slurmbridge.model.cluster import NodeEvent
from slurmbridge.store import purging, queries, schema
from slurmbridge.store.dialect import Database
from slurmbridge.store.protocol import Limits, Loaded, Op, Purge
from slurmbridge.store.writer import Request, Writer
from slurmbridge.store.writes import Known


class RelationalStore:
    """`store.protocol.Store` on an engine for reading, whose schema is the newest, and a database to write to."""

    def __init__(
        self,
        engine: Engine,
        database: Database,
        decay_half_life: float,
        *,
        committed: Callable[[], None] = lambda: None,
        lost: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """As `Writer` has the two. StoreError: it cannot be read."""
        self._engine, self._database = engine, database
        loaded = self.load(schema.ALIVE * 2)
        known = Known(next_job_id=loaded.next_job_id, usage={row.assoc_id: row for row in loaded.usage})
        self._writer = Writer(database, known, decay_half_life, committed=committed, lost=lost)

    @property
    def healthy(self) -> bool:
        return self._writer.healthy

    @property
    def commits(self) -> int:
        """Since it was opened."""
        return self._writer.commits

    def load(self, recent_since: float) -> Loaded:
        with self._reading() as connection:
            return queries.load(connection, recent_since)

    def write(self, ops: Sequence[Op], done: Callable[[Exception | None], None], *, droppable: bool = False) -> None:
        self._writer.submit(Request(ops=tuple(ops), done=done, droppable=droppable))

    def nonces(self, most: int) -> dict[tuple[int, str], int]:
        table = schema.submissions.c
        latest = sa.select(table.uid, table.nonce, table.job_id).order_by(table.job_id.desc()).limit(most)
        with self._reading() as connection:
            return {(uid, nonce): job_id for uid, nonce, job_id in connection.execute(latest)}

    def blob(self, sha: str) -> bytes | None:
        with self._reading() as connection:
            return connection.execute(sa.select(schema.blobs.c.data).where(schema.blobs.c.sha == sha)).scalar()

    def history(self, wanted: JobFilter) -> tuple[JobRow, ...]:
        with self._reading() as connection:
            return queries.history(connection, wanted)

    def expired(self, limits: Limits, most: int) -> Purge:
        with self._reading() as connection:
            return purging.expired(connection, limits, most)

    def transactions(self, start: float | None, end: float | None) -> tuple[Transaction, ...]:
        with self._reading() as connection:
            return queries.transactions(connection, start, end)

    def events(self, start: float | None, end: float | None) -> tuple[NodeEvent, ...]:
        """Times in which nodes were down or drained, overlapping [start, end]."""
        with self._reading() as connection:
            return queries.events(connection, start, end)

    def close(self) -> None:
        self._writer.close()
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(self._database.describe(error)) from error
