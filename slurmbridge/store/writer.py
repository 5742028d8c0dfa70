"""The one thread that writes: group commit, retries, health.

It takes all that is queued, commits once, and then calls back. When the disk is full or fails, submissions (droppable)
fail at once, everything else stays in order and is tried again until it is durable. An op that is wrong in itself
(a record that cannot be encoded, an id given out twice) fails alone.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from slurmbridge.errors import StoreError
from slurmbridge.store import dialect
from slurmbridge.store.protocol import Op
from slurmbridge.store.writes import Batch, Known, already_stored

LOG = logging.getLogger(__name__)
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
_PROBE = "INSERT INTO marks VALUES ('probe', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value + 1 AS TEXT)"

Done = Callable[[Exception | None], None]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of `Store.write`: its ops are stored together or not at all."""

    ops: tuple[Op, ...]
    done: Done
    droppable: bool


class Writer:
    """Owns the writing connection. `submit` and `close` from any thread."""

    def __init__(
        self, engine: Engine, path: Path, known: Known, half_life: float, committed: Callable[[], None]
    ) -> None:
        self._engine, self._path, self._known, self._half_life = engine, path, known, half_life
        self._committed = committed
        self._queue: deque[Request] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._healthy = True
        self.commits = 0
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def healthy(self) -> bool:
        return self._healthy

    def submit(self, request: Request) -> None:
        """Queue; after `close` the request fails at once."""
        with self._wake:
            if not self._closing:
                self._queue.append(request)
                self._wake.notify()
                return
        _call(request, StoreError("the store is closed"))

    def close(self) -> None:
        """Commit what is queued and end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # the thread

    def _run(self) -> None:
        kept: list[Request] = []  # not droppable, waiting for the disk
        pause = FIRST_PAUSE_S
        while True:
            with self._wake:
                if not self._queue and not self._closing:
                    self._wake.wait(None if self._healthy else pause)
                requests = kept + list(self._queue)
                self._queue.clear()
                last = self._closing
            kept, error = self._write_all(requests)
            if error is None and not self._healthy and not requests:
                error = self._probe()
            if error is None:
                self._recover()
                pause = FIRST_PAUSE_S
            else:
                pause = min(LONGEST_PAUSE_S, pause * 2)
                if not last and kept:
                    self._rest(pause)
            if last:
                for request in kept:
                    _call(request, error)
                break
        if self._connection is not None:
            self._connection.close()

    def _rest(self, seconds: float) -> None:
        """Wait before trying again, but fail submissions that arrive meanwhile without delay."""
        with self._wake:
            if self._closing:
                return
            self._wake.wait(seconds)
            refused = [request for request in self._queue if request.droppable]
            if refused:
                self._queue = deque(request for request in self._queue if not request.droppable)
        for request in refused:
            _call(request, StoreError(f"database {self._path}: the disk is full or fails"))

    def _write_all(self, requests: list[Request]) -> tuple[list[Request], Exception | None]:
        """Write and call back; what must be tried again, and why."""
        if not requests:
            return [], None
        error = self._attempt(requests)
        if error is None:
            self._recover()  # before anybody hears that the disk takes writes again
            _call_all(requests)
            return [], None
        if not _is_of_the_disk(error):
            return self._one_by_one(requests)
        self._fail(error)
        kept = [request for request in requests if not request.droppable]
        if kept and len(kept) < len(requests) and self._attempt(kept) is None:
            _call_all(kept)
            kept = []
        for request in requests:
            if request.droppable:
                _call(request, StoreError(dialect.describe(self._path, error)))
        return kept, error

    def _one_by_one(self, requests: list[Request]) -> tuple[list[Request], Exception | None]:
        """Some request is wrong in itself: each gets a transaction of its own."""
        for at, request in enumerate(requests):
            error = self._attempt([request])
            if error is not None and _is_of_the_disk(error):
                self._fail(error)
                rest = requests[at:]
                for dropped in rest:
                    if dropped.droppable:
                        _call(dropped, StoreError(dialect.describe(self._path, error)))
                return [waiting for waiting in rest if not waiting.droppable], error
            if isinstance(error, IntegrityError):
                error = self._judge_conflict(request, error)
            if error is not None and not isinstance(error, StoreError):
                error = StoreError(dialect.describe(self._path, error))
            _call(request, error)
        return [], None

    def _judge_conflict(self, request: Request, error: Exception) -> Exception | None:
        """A submission that is already there is done; any other conflict stays an error."""
        connection = self._open()
        try:
            if any(already_stored(connection, op) for op in request.ops):
                return self._attempt([msgspec.structs.replace(request, ops=self._missing(connection, request))])
        except (StoreError, DBAPIError) as other:
            return other
        finally:
            connection.rollback()
        return error

    def _missing(self, connection: Connection, request: Request) -> tuple[Op, ...]:
        return tuple(op for op in request.ops if not already_stored(connection, op))

    def _attempt(self, requests: Sequence[Request]) -> Exception | None:
        """All requests in one transaction: None when durable, else why nothing was stored."""
        batch = Batch(self._known, self._half_life)
        try:
            for request in requests:
                for op in request.ops:
                    batch.add(op)
            connection = self._open()
            own = dialect.driver(connection)
            try:
                own.execute("BEGIN IMMEDIATE")
                batch.apply(connection, own)
                if connection.in_transaction():  # something went through SQLAlchemy
                    connection.commit()
                else:
                    own.commit()
            except BaseException:
                connection.rollback()
                if own.in_transaction:
                    own.rollback()
                raise
        except Exception as error:  # judged by the caller: of the disk, or of one request
            if isinstance(error, sqlite3.Error):
                error = dialect.wrapped(error)
            if isinstance(error, DBAPIError) and _is_of_the_disk(error):
                self._forget_connection()
            return error
        self._known = batch.known
        self.commits += 1
        self._committed()
        return None

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _forget_connection(self) -> None:
        """After an I/O error the connection's state is not relied upon."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None

    def _probe(self) -> Exception | None:
        """Whether the disk takes writes again, when nothing else waits to be written."""
        try:
            connection = self._open()
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                connection.exec_driver_sql(_PROBE)
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        except DBAPIError as error:
            self._forget_connection()
            return error
        return None

    def _fail(self, error: Exception) -> None:
        if self._healthy:
            LOG.error("event=store.failed %s", dialect.describe(self._path, error))
        self._healthy = False

    def _recover(self) -> None:
        if not self._healthy:
            LOG.warning("event=store.recovered database=%s", self._path)
        self._healthy = True


def _is_of_the_disk(error: Exception) -> bool:
    """Not the fault of what was to be written: full, I/O error, read-only, damaged, locked, out of memory."""
    return isinstance(error, DBAPIError) and dialect.error_code(error) in dialect.DISK_CODES


def _call_all(requests: Sequence[Request]) -> None:
    for request in requests:
        _call(request, None)


def _call(request: Request, error: Exception | None) -> None:
    """A callback that fails (its loop may be gone) must not end the writer."""
    try:
        request.done(error)
    except Exception:
        LOG.exception("event=store.callback_failed")
