"""The store on PostgreSQL: the common one, in the schema that the user's search path names first."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from slurmbridge.errors import StoreError
from slurmbridge.store import tables
from slurmbridge.store.dialect import Strange
from slurmbridge.store.postgresql_server import PostgresqlServer, advice
from slurmbridge.store.relational import RelationalStore
from slurmbridge.store.usage import DEFAULT_HALF_LIFE


class PostgresqlStore(RelationalStore):
    """`store.protocol.Store` in a database of a server. Raises StoreError when it cannot be used, or another daemon has it.

    `url`: as `PostgresqlServer` has it. `lost`: called on the writer's thread, with the reason, when another daemon took the
    records over. `identity`: that the records must have, else Strange.
    """

    def __init__(
        self,
        url: str | Callable[[], str],
        *,
        decay_half_life: float = DEFAULT_HALF_LIFE,
        lost: Callable[[str], None] = lambda reason: None,
        identity: str = "",
    ) -> None:
        self._server = server = PostgresqlServer(url)
        server.open()
        engine = reading_engine(server)
        try:
            if identity and server.identity() != identity:
                raise Strange(f"{server.name} has other records than those that are looked for, or none")
            make_tables(server)
            self.identity = server.claim()
            super().__init__(engine, server, decay_half_life, lost=lost)
        except BaseException:
            engine.dispose()
            server.forget()
            raise

    def close(self) -> None:
        super().close()
        self._server.forget()  # where nothing was ever written


def reading_engine(server: PostgresqlServer) -> Engine:
    """For transactions that read; connections that a restart of the server cut are made anew."""
    return sa.create_engine(
        "postgresql+psycopg://", creator=server.reading, pool_size=8, max_overflow=8, pool_pre_ping=True
    )


def make_tables(server: PostgresqlServer) -> None:
    """The newest schema, made or migrated. The caller's session keeps others from doing so at the same time."""
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: server.connection("migration"), poolclass=sa.NullPool
    )
    try:
        tables.make_current(engine)
    except DBAPIError as error:
        raise StoreError(f"{server.describe(error)}; {advice(error.orig)}") from error
