"""SQLite: how the database is opened (pragmas, file rights, soundness) and written to.

SQLite: WAL, synchronous=FULL, explicit transactions (the driver's own implicit ones would start late). A file
that is no database is refused and left as it is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from slurmbridge.errors import StoreError
from slurmbridge.store import tables

_CHECKED_WHOLE = 64 * 1024 * 1024
"""Databases up to this size are checked page by page when opened."""


DISK_CODES = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM,
    }
)
"""Result codes that blame the disk or the file, not what was to be written."""


def open_engine(path: Path) -> Engine:
    """An engine whose database exists, is sound and has the newest schema; StoreError otherwise."""
    try:
        _make_private(path)
    except OSError as error:
        raise StoreError(f"cannot open database {path}: {error.strerror}") from error
    engine = sa.create_engine(f"sqlite:///{path}", pool_size=8, max_overflow=8, pool_reset_on_return=None)
    sa.event.listen(engine, "connect", _set_pragmas)
    try:
        with engine.connect() as connection:
            _check(connection, path)
        tables.make_current(engine)
    except StoreError:
        engine.dispose()
        raise
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError(describe(path, error)) from error
    return engine


def describe(path: Path, error: BaseException) -> str:
    """One sentence for a person: which database, what is wrong, and that it was left alone."""
    reason = str(getattr(error, "orig", None) or error)
    text = f"database {path}: {reason}"
    if is_damaged(error):
        text += "; nothing in it was changed: restore a copy, or move it away to start with an empty one"
    return text


def error_code(error: BaseException) -> int:
    """SQLite's primary result code of a driver error, 0 when there is none."""
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    return int(code or 0) & 0xFF


class SqliteFile:
    """`store.dialect.Database` in one file, which `open_engine` made."""

    look_every_s = None

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"database {self._path}"

    def connect(self) -> SqliteSession:
        return SqliteSession(self._path)

    def describe(self, error: BaseException) -> str:
        return describe(self._path, error)

    def is_of_the_place(self, error: BaseException) -> bool:
        """Full, I/O error, read-only, damaged, locked, out of memory."""
        return isinstance(error, sqlite3.Error) and error_code(error) in DISK_CODES

    def is_conflict(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError)


class SqliteSession:
    """`store.dialect.Session`. A commit that fails has not happened: there are no tickets."""

    is_broken = False

    def __init__(self, path: Path) -> None:
        self._own = sqlite3.connect(path, check_same_thread=False)
        try:
            _set_pragmas(self._own, None)
        except BaseException:
            self._own.close()
            raise
        self.executemany = self._own.executemany
        self.commit = self._own.commit
        self.close = self._own.close

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> sqlite3.Cursor:
        return self._own.execute(statement, values)

    def begin(self) -> str:
        self._own.execute("BEGIN IMMEDIATE")
        return ""

    def undo(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # after an I/O error the connection is given up anyhow
            self._own.rollback()

    def knows(self, ticket: str) -> bool:
        raise AssertionError("no transaction of SQLite has a ticket")

    def look(self) -> None:
        """A file goes nowhere."""


def is_damaged(error: BaseException) -> bool:
    return error_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _make_private(path: Path) -> None:
    """Only the owner may read it; SQLite gives its companions the same rights."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.chmod(0o600)


def _set_pragmas(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where the code says so
    for pragma in (
        "busy_timeout=10000",
        "journal_mode=WAL",
        "synchronous=FULL",
        "wal_autocheckpoint=0",
        "foreign_keys=OFF",
        "temp_store=MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _check(connection: Connection, path: Path) -> None:
    if path.stat().st_size > _CHECKED_WHOLE:
        return
    verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if verdict != "ok":
        raise StoreError(f"database {path} is damaged ({verdict}); nothing in it was changed: restore a copy, "
                         "or move it away to start with an empty one")  # fmt: skip
