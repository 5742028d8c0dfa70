"""The store on SQLite: the common one, and a thread that copies the write-ahead log back."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from slurmbridge.store.relational import RelationalStore
from slurmbridge.store.sqlite_file import SqliteFile, open_engine
from slurmbridge.store.usage import DEFAULT_HALF_LIFE

LOG = logging.getLogger(__name__)
CHECKPOINT_AT = 16 * 1024 * 1024
"""Size of the write-ahead log from which it is copied back and cut."""
CUT_WAIT_MS = 200
"""How long the cut may wait for readers (and keep the writer waiting); it comes again after a later commit."""


class SqliteStore(RelationalStore):
    """`store.protocol.Store` in one file (0600). Raises StoreError when the file cannot be used.

    `decay_half_life`: PriorityDecayHalfLife in seconds, for the usage of runs that end (0 = it never fades).
    """

    def __init__(self, path: str | os.PathLike[str], *, decay_half_life: float = DEFAULT_HALF_LIFE) -> None:
        file = Path(path)
        engine = open_engine(file)
        self._log_path = str(file) + "-wal"
        self._checkpoint_due = threading.Event()
        self._closed = False
        super().__init__(engine, SqliteFile(file), decay_half_life, committed=self._look_at_log)
        # Held to the end, never in a transaction: the log and its index must not be folded up when others reconnect.
        self._anchor = engine.connect()
        self._checkpointer = threading.Thread(target=self._checkpoint, name="store-checkpoint", daemon=True)
        self._checkpointer.start()

    def close(self) -> None:
        if self._closed:
            return
        self._writer.close()
        self._closed = True
        self._checkpoint_due.set()
        self._checkpointer.join()
        self._anchor.close()
        self._engine.dispose()

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
                LOG.error("event=store.checkpoint_failed %s", self._database.describe(error))
            if self._closed:
                return
