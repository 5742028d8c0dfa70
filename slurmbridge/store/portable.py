"""Records of a server to a file and back. The file is a store of SQLite, so one copy fits both kinds of database.

Out of a server in one read transaction, whatever is written meanwhile; into it in one transaction, whole or not at all.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from slurmbridge.errors import StoreError
from slurmbridge.store import backup, postgresql, schema, tables
from slurmbridge.store.backup import Copy
from slurmbridge.store.dialect import Strange
from slurmbridge.store.postgresql_server import PostgresqlServer, advice, fit, holder
from slurmbridge.store.sqlite_file import open_engine
from slurmbridge.store.writes import IDENTITY, NEXT_JOB_ID, WRITER

_AT_ONCE = 500
"""Rows in memory."""
_TABLES = schema.metadata.sorted_tables


def save(url: str, target: Path) -> Copy:
    """Copy the records to the new file `target` (0600), while a daemon works. StoreError: why not; then there is none."""
    server = PostgresqlServer(url)
    engine = postgresql.reading_engine(server)
    try:
        with backup.explained(target), backup.made(target) as part:
            _fill(part, engine)
    except SQLAlchemyError as error:
        raise StoreError(f"{server.describe(error)}; {advice(getattr(error, 'orig', None))}") from error
    finally:
        engine.dispose()
    return backup.sound(target)


def restore(
    copy: Path, url: str, work: Path, kept: Path, *, at_least: int = 0, only_new: bool = False
) -> tuple[Copy, str]:
    """Put `copy` in the place of the server's records, which are kept in `kept` when there are any; with the identity that
    they have from now on. No daemon may have them: StoreError.

    `work`: a file to work with, beside which there is room. `at_least`: the next job id, if not later. `only_new`: Strange
    where a daemon has ever had records there.
    """
    found = backup.examine(copy)
    server = PostgresqlServer(url)
    server.open()
    try:
        if only_new and server.identity():
            raise Strange(f"{server.name} has records already")
        postgresql.make_tables(server)
        following = max(found.next_job_id, at_least, next_job_id(url))
        if _has_runs(server):
            save(url, kept)
        _load(copy, work, server, following)
        return msgspec.structs.replace(found, next_job_id=following), server.claim()
    except psycopg.Error as error:
        raise StoreError(
            f"{server.describe(error)}; what was there is unchanged, or the copy is there whole"
        ) from error
    finally:
        server.forget()


def next_job_id(url: str) -> int:
    """Of the records of a server, which are there; 0: none was given out. StoreError: it cannot be asked."""
    server = PostgresqlServer(url)
    try:
        with closing(server.connection("restore")) as connection:
            return int(_mark(connection, NEXT_JOB_ID) or 0)
    except psycopg.Error as error:
        raise StoreError(server.describe(error)) from error


def examine(url: str) -> tuple[str, str]:
    """(what the server is, what could lose records there), for a person. StoreError: why it will not do."""
    server = PostgresqlServer(url)
    try:
        with closing(server.connection("doctor")) as connection:
            about = fit(connection, server.name)
            held = holder(connection)
    except psycopg.Error as error:
        raise StoreError(f"{server.describe(error)}; {advice(error)}") from error
    return (
        f"{server.name}, release {about.release}, {'a daemon has them' if held else 'no daemon has them'}",
        about.doubt,
    )


def _fill(part: Path, engine: sa.Engine) -> None:
    target = open_engine(part)
    try:
        with engine.connect() as reading, tables.transaction(target) as writing:
            version = tables.version(reading)
            if version != schema.HEAD:
                raise StoreError(
                    f"the database has schema {version or 'none'}, this slurmbridge {schema.HEAD}: let `slurmbridge up` bring it"
                    " up to date, or copy it with the release that made it"
                )
            for table in _TABLES:
                rows = reading.execution_options(yield_per=_AT_ONCE).execute(sa.select(table))
                for some in rows.partitions():
                    writing.execute(sa.insert(table), [row._asdict() for row in some])
            writing.execute(sa.delete(schema.marks).where(schema.marks.c.name == WRITER))
    finally:
        target.dispose()


def _load(copy: Path, work: Path, server: PostgresqlServer, following: int) -> None:
    """By a file of our own, which is brought to this release first."""
    backup.remove(work)
    backup.duplicate(copy, work, immutable=True)
    source = open_engine(work)
    try:
        with source.connect() as reading, closing(server.connection("restore")) as writing, writing.transaction():
            own = _mark(writing, IDENTITY)
            writing.execute("TRUNCATE " + ", ".join(table.name for table in _TABLES))
            for table in _TABLES:
                _copy_table(table, reading, writing)
            writing.execute(
                "INSERT INTO marks SELECT %s, %s WHERE %s <> '' ON CONFLICT DO NOTHING", (IDENTITY, own, own)
            )
            writing.execute(
                "INSERT INTO marks VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (NEXT_JOB_ID, str(following)),
            )
    finally:
        source.dispose()
        backup.remove(work)


def _copy_table(table: sa.Table, reading: Connection, writing: psycopg.Connection[Any]) -> None:
    names = ", ".join(column.name for column in table.columns)
    with writing.cursor() as cursor, cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as stream:
        rows = reading.execution_options(yield_per=_AT_ONCE).execute(sa.select(table))
        for row in rows:
            stream.write_row(row)
    for column in table.columns:
        if column is table.autoincrement_column:  # its sequence goes on behind what is there
            writing.execute(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', '{column.name}'),"
                f" greatest(1, (SELECT max({column.name}) FROM {table.name})))"
            )


def _has_runs(server: PostgresqlServer) -> bool:
    with closing(server.connection("restore")) as connection:
        return connection.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is not None


def _mark(connection: psycopg.Connection[Any], name: str) -> str:
    found = connection.execute("SELECT value FROM marks WHERE name = %s", (name,)).fetchone()
    return str(found[0]) if found is not None else ""
