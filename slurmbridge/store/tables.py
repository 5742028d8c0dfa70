"""Has a database the tables of this release? Making them, or having them migrated.

A database of another version loads alembic; one that is newer, or is another program's, is refused and left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from slurmbridge.errors import StoreError
from slurmbridge.store import schema

VERSION = "alembic_version"


def make_current(engine: Engine) -> None:
    """The newest schema. StoreError: it cannot be; SQLAlchemy's errors: of the database."""
    with engine.connect() as connection:
        found = version(connection)
    if found is None:
        with transaction(engine) as connection:
            _create(connection)
    elif found != schema.HEAD:
        from slurmbridge.store.migrate import upgrade  # alembic is loaded only here

        upgrade(engine, found)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One that writes, from its beginning: it keeps other writers out of SQLite."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def version(connection: Connection) -> str | None:
    """The schema's revision; None for an empty database."""
    tables = sa.inspect(connection).get_table_names()
    if not tables:
        return None
    if VERSION not in tables:
        raise StoreError("the database has tables but no schema version: it belongs to another program")
    return str(connection.exec_driver_sql(f"SELECT version_num FROM {VERSION}").scalar() or "")


def _create(connection: Connection) -> None:
    schema.metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(
        f"CREATE TABLE {VERSION} (version_num VARCHAR(32) NOT NULL, CONSTRAINT {VERSION}_pkc PRIMARY KEY (version_num))"
    )
    connection.exec_driver_sql(f"INSERT INTO {VERSION} VALUES ('{schema.HEAD}')")
