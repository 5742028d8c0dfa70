"""A consistent copy of the store while it is written to, and putting a copy back in its place.

SQLite's online backup gives the state of one commit; the daemon goes on writing meanwhile. A copy replaces a store only
whole: it is made complete and durable beside it, then renamed. The high-water mark of job ids never goes down by it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from slurmbridge.errors import StoreError
from slurmbridge.store import schema
from slurmbridge.store.writes import NEXT_JOB_ID

_COMPANIONS = ("-wal", "-shm", "-journal")


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy holds."""

    path: str
    size: int
    runs: int
    next_job_id: int  # 0: none was given out


def save(source: Path, target: Path) -> Copy:
    """Copy the database `source` to the new file `target` (0600). StoreError: why not; then there is no `target`."""
    if not source.exists():
        raise StoreError(f"there is no database {source}")
    with explained(source):
        duplicate(source, target)
    return sound(target)


def sound(target: Path) -> Copy:
    """What the new file holds. StoreError: it is not whole, and is gone again."""
    try:
        return examine(target)
    except StoreError:
        target.unlink(missing_ok=True)
        raise


def examine(path: Path) -> Copy:
    """Read a copy whole; StoreError when it is damaged, no store of slurmbridge, or of a newer one."""
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    with explained(path), closing(_open(path, immutable=True)) as database:
        verdict = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StoreError(f"{path} is damaged: {verdict}")
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"alembic_version", "runs", "marks"} <= tables:
            raise StoreError(f"{path} is no backup of slurmbridge")
        (version,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
        if version > schema.HEAD:
            raise StoreError(f"{path} has schema {version}, made by a newer slurmbridge; this one knows {schema.HEAD}")
        (runs,) = database.execute("SELECT count(*) FROM runs").fetchone()
        return Copy(path=str(path), size=path.stat().st_size, runs=runs, next_job_id=_next_job_id(database))


def restore(copy: Path, database: Path, kept: Path, *, at_least: int = 0) -> Copy:
    """Put `copy` in the place of `database`, which is kept as `kept` when there is one. No daemon may have it open.

    `at_least`: the next job id, if not later."""
    found = examine(copy)
    fresh = database.with_name(database.name + ".restored")
    with explained(copy):
        remove(fresh)
        duplicate(copy, fresh, immutable=True)
        following = max(found.next_job_id, last_of(database), at_least)
        if following:
            _raise_mark(fresh, following)
        if database.exists():
            set_aside(database, kept)
        os.replace(fresh, database)
        _sync_folder(database.parent)
    return msgspec.structs.replace(found, next_job_id=following)


def _open(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    uri = path.absolute().as_uri() + ("?mode=ro&immutable=1" if immutable else "?mode=ro")
    return sqlite3.connect(uri, uri=True, timeout=10.0, isolation_level=None)


def duplicate(source: Path, target: Path, *, immutable: bool = False) -> None:
    """All pages in one read transaction, then durable under its name."""
    with (
        made(target) as part,
        closing(_open(source, immutable=immutable)) as reading,
        closing(sqlite3.connect(part)) as writing,
    ):
        reading.backup(writing, pages=-1)


@contextmanager
def made(target: Path) -> Iterator[Path]:
    """An empty file to fill, which gets its name when it is whole and durable. Nothing is overwritten."""
    if os.path.lexists(target):
        raise StoreError(f"{target} exists: a backup never overwrites one")
    part = target.with_name(target.name + ".part")
    remove(part)
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    try:
        yield part
        with closing(sqlite3.connect(part)) as writing:
            writing.execute("PRAGMA journal_mode=DELETE")  # one file, whatever the source's mode
        _sync(part)
        os.rename(part, target)
        _sync_folder(target.parent)
    finally:
        remove(part)


def _raise_mark(path: Path, following: int) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (NEXT_JOB_ID, str(following)),
        )
    _sync(path)


def _next_job_id(database: sqlite3.Connection) -> int:
    row = database.execute("SELECT value FROM marks WHERE name = ?", (NEXT_JOB_ID,)).fetchone()
    return int(row[0]) if row else 0


def last_of(database: Path) -> int:
    """The mark of the store that is replaced; 0 when it is gone or cannot be read, which may be why it is replaced."""
    if not database.exists():
        return 0
    try:
        with closing(_open(database)) as reading:
            return _next_job_id(reading)
    except sqlite3.Error:
        return 0


def set_aside(database: Path, kept: Path) -> None:
    """The old store under another name, with what its log still holds; at no moment is there none in its place."""
    try:
        with closing(sqlite3.connect(database, timeout=10.0)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error:
        pass  # damaged: kept as it is
    os.link(database, kept)
    for suffix in _COMPANIONS:
        companion = database.with_name(database.name + suffix)
        if companion.exists():
            os.replace(companion, kept.with_name(kept.name + suffix))


def remove(path: Path) -> None:
    for suffix in ("", *_COMPANIONS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    _sync(folder)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"database {path}: {error}") from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}") from error
