"""How the database is opened: pragmas, file rights, creation, version check.

SQLite: WAL, synchronous=FULL, explicit transactions (the driver's own implicit ones would start late). A database of
another version loads alembic; one that is newer, or is no database, is refused and left as it is.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from slurmbridge.errors import StoreError
from slurmbridge.store import schema

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
            version = _version(connection)
            if version is None:
                _create(connection)
        if version is not None and version != schema.HEAD:
            from slurmbridge.store.migrate import upgrade  # alembic is loaded only here

            upgrade(engine, version)
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


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection, for statements that are sent over and over."""
    own = connection.connection.driver_connection
    assert isinstance(own, sqlite3.Connection)
    return own


def wrapped(error: sqlite3.Error) -> DBAPIError:
    """An error of `driver`'s as SQLAlchemy would have raised it."""
    found = DBAPIError.instance(None, None, error, sqlite3.Error)
    assert isinstance(found, DBAPIError)
    return found


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


def _version(connection: Connection) -> str | None:
    """The schema's revision; None for an empty database."""
    tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise StoreError("the database has tables but no schema version: it belongs to another program")
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() or "")


def _create(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    schema.metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (schema.HEAD,))
    connection.exec_driver_sql("COMMIT")
