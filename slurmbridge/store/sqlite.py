"""The store on SQLite: one writing thread, one that copies the write-ahead log back, readers on pooled connections."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from slurmbridge.commands.effects import JobFilter, JobRow
from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Transaction
from slurmbridge.model.cluster import NodeEvent
from slurmbridge.store import dialect, purging, queries, schema
from slurmbridge.store.protocol import Limits, Loaded, Op, Purge
from slurmbridge.store.usage import DEFAULT_HALF_LIFE
from slurmbridge.store.writer import Request, Writer
from slurmbridge.store.writes import Known

LOG = logging.getLogger(__name__)
CHECKPOINT_AT = 16 * 1024 * 1024
"""Size of the write-ahead log from which it is copied back and cut."""
CUT_WAIT_MS = 200
"""How long the cut may wait for readers (and keep the writer waiting); it comes again after a later commit."""


class SqliteStore:
    """`store.protocol.Store` in one file (0600). Raises StoreError when the file cannot be used.

    `decay_half_life`: PriorityDecayHalfLife in seconds, for the usage of runs that end (0 = it never fades).
    """

    def __init__(self, path: str | os.PathLike[str], *, decay_half_life: float = DEFAULT_HALF_LIFE) -> None:
        self._path = Path(path)
        self._engine = dialect.open_engine(self._path)
        loaded = self.load(schema.ALIVE * 2)
        known = Known(next_job_id=loaded.next_job_id, usage={row.assoc_id: row for row in loaded.usage})
        # Held to the end, never in a transaction: the log and its index must not be folded up when others reconnect.
        self._anchor = self._engine.connect()
        self._log_path = str(self._path) + "-wal"
        self._checkpoint_due = threading.Event()
        self._closed = False
        self._writer = Writer(self._engine, self._path, known, decay_half_life, self._look_at_log)
        self._checkpointer = threading.Thread(target=self._checkpoint, name="store-checkpoint", daemon=True)
        self._checkpointer.start()

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
        if self._closed:
            return
        self._writer.close()
        self._closed = True
        self._checkpoint_due.set()
        self._checkpointer.join()
        self._anchor.close()
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(dialect.describe(self._path, error)) from error

    def _look_at_log(self) -> None:
        """After each commit, on the writer's thread: one stat."""
        if self._log_size() > CHECKPOINT_AT:
            self._checkpoint_due.set()

    def _log_size(self) -> int:
        try:
            return os.stat(self._log_path).st_size
        except FileNotFoundError:
            return 0

    def _checkpoint(self) -> None:
        while True:
            self._checkpoint_due.wait()
            self._checkpoint_due.clear()
            try:
                with self._engine.connect() as connection:
                    connection.exec_driver_sql(f"PRAGMA busy_timeout = {CUT_WAIT_MS}").close()
                    # The bulk without stopping the writer, then the rest and the cut, which does for a moment.
                    for mode in ("PASSIVE", "TRUNCATE"):
                        connection.exec_driver_sql(f"PRAGMA wal_checkpoint({mode})").all()
                    connection.exec_driver_sql("PRAGMA busy_timeout = 10000").close()
            except SQLAlchemyError as error:
                LOG.error("event=store.checkpoint_failed %s", dialect.describe(self._path, error))
            if self._closed:
                return
