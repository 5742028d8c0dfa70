"""PostgreSQL: how a server is reached, what it must be like, how it is written to, and how one daemon keeps others out.

The session that writes holds an advisory lock: while it lives nobody else writes, and a new session that gets the lock
knows that whatever the old one had begun is over. The mark `writer` names the daemon and its last transaction; it tells
a commit in doubt from one that never was, and a daemon that was replaced that it was.
See "Explicit Locking" (advisory locks) and "Database Connection Control Functions" in PostgreSQL's manual.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import psycopg
from psycopg.types.numeric import Int8BinaryDumper

from slurmbridge.errors import ConfigError, StoreError
from slurmbridge.store.dialect import Fenced
from slurmbridge.store.writes import IDENTITY, WRITER

LOG = logging.getLogger(__name__)
OLDEST = 13
"""The oldest major release that is accepted: the oldest that was maintained when this was written."""
LOCK_WAIT_S = 5.0
"""How long a lock is waited for: a daemon that was killed may have left a session that the server has not noticed yet."""
LOOK_EVERY_S = 5.0
_LOCK = "1397510722, hashtext(current_schema())"  # "SLRB": one daemon in each schema of a database
_HOLDER = f"""SELECT a.pid, extract(epoch FROM a.backend_start)::float8, a.application_name,
        coalesce(host(a.client_addr), 'the server itself')
    FROM pg_locks l JOIN pg_stat_activity a USING (pid), (SELECT {_LOCK}) AS k (first, second)
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid::bigint = k.first
        AND l.objid::bigint = (k.second::bigint & 4294967295)
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
_DEFAULTS: Mapping[str, Any] = {  # whatever the URL does not say
    "connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 30_000, "target_session_attrs": "read-write",
}  # fmt: skip
_NOT_SYNCHRONOUS = ("off", "local", "remote_write")
_SERVER_SIDE = ("tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3")
_OF_ROWS = ("22", "23", "54")
"""Classes of SQLSTATE that blame what was to be written: data, keys, sizes. Statements are fixed, so all others blame the
server, the connection, or what somebody changed there: with the same rows it may work later."""
_ADVICE = {
    "3D": "make it: createdb --encoding=UTF8 --template=template0 --owner=USER NAME",
    "42": "the user must own the database: ALTER DATABASE NAME OWNER TO USER",
}
_UNREACHED = "see that the server is up and listens there, and that user, password and database are right"


class PostgresqlServer:
    """`store.dialect.Database`. `url`: postgresql://..., as libpq reads it, or what gives it anew for each connection; a
    password in it stays here."""

    look_every_s = LOOK_EVERY_S

    def __init__(self, url: str | Callable[[], str]) -> None:
        self._url = url
        try:
            given = psycopg.conninfo.conninfo_to_dict(url if isinstance(url, str) else url())
        except psycopg.Error as error:
            raise StoreError(f"the URL of the database cannot be read: {_first_line(error)}") from error
        host = given.get("host") or given.get("hostaddr") or os.environ.get("PGHOST") or "the local socket"
        port = given.get("port") or os.environ.get("PGPORT") or "5432"
        database = given.get("dbname") or os.environ.get("PGDATABASE") or given.get("user") or "the user's own"
        self.name = f"PostgreSQL {database} at {host} port {port}"
        self._token = os.urandom(12).hex()
        self._numbers = itertools.count(1)
        self._first: PostgresqlSession | None = None
        self._holder: tuple[int, float] | None = None  # of our latest session: pid of its backend, and when that began

    def open(self) -> None:
        """A first session with the lock, which `connect` gives out. StoreError: why the server will not do."""
        try:
            self._first = self._session(is_new=True)
        except psycopg.Error as error:
            raise StoreError(f"{self.describe(error)}; {advice(error)}") from error

    def claim(self) -> str:
        """The tables are there: this daemon writes from now on. The identity of the records, made when they have none."""
        assert self._first is not None
        return self._first.claim()

    def identity(self) -> str:
        """Of the records that are there; empty: there are none. Errors as `open` has them."""
        assert self._first is not None
        return self._first.identity()

    def forget(self) -> None:
        """Give back a session that nobody took."""
        if self._first is not None:
            self._first.close()
            self._first = None

    def connect(self) -> PostgresqlSession:
        if self._first is not None:
            session, self._first = self._first, None
            return session
        session = self._session(is_new=False)
        try:
            session.still_ours()
        except BaseException:
            session.close()
            raise
        return session

    def connection(self, what: str) -> psycopg.Connection[Any]:
        """A plain connection, as what `what` names."""
        given = {**_DEFAULTS, **self._given(), "application_name": f"slurmbridge {what}", "client_encoding": "UTF8"}
        connection: psycopg.Connection[Any] = psycopg.connect(**given)
        connection.adapters.register_dumper(int, Int8BinaryDumper)  # one type of all numbers: statements stay prepared
        return connection

    def reading(self) -> psycopg.Connection[Any]:
        """One whose transactions each see the records of one moment."""
        connection = self.connection("reader")
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return connection

    def describe(self, error: BaseException) -> str:
        return f"{self.name}: {_first_line(getattr(error, 'orig', None) or error)}"

    def is_of_the_place(self, error: BaseException) -> bool:
        """Of the server or of the way to it."""
        if not isinstance(error, psycopg.Error):
            return False
        if error.sqlstate is None:  # of the driver itself: a broken connection, or a value that it cannot send
            return isinstance(error, psycopg.OperationalError)
        return not error.sqlstate.startswith(_OF_ROWS)

    def is_conflict(self, error: BaseException) -> bool:
        return isinstance(error, psycopg.IntegrityError)

    def _given(self) -> dict[str, Any]:
        """What the URL says now. A file that has it and cannot be read is as bad as a server that is away."""
        try:
            return dict(psycopg.conninfo.conninfo_to_dict(self._url if isinstance(self._url, str) else self._url()))
        except ConfigError as fault:
            raise psycopg.OperationalError(str(fault)) from fault
        except psycopg.ProgrammingError as fault:
            raise psycopg.OperationalError(f"its URL cannot be read: {_first_line(fault)}") from fault

    def _session(self, *, is_new: bool) -> PostgresqlSession:
        connection = self.connection("daemon")
        try:
            connection.autocommit = True
            if is_new:
                doubt = fit(connection, self.name).doubt
                if doubt:
                    LOG.warning("event=store.not_durable %s", doubt)
            for setting in _SERVER_SIDE:
                connection.execute(f"SET {setting}")
            if _value(connection, "SHOW synchronous_commit") in _NOT_SYNCHRONOUS:
                connection.execute("SET synchronous_commit = on")
            self._lock(connection, is_new)
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return PostgresqlSession(connection, self._token, self._numbers, self.name)

    def _lock(self, connection: psycopg.Connection[Any], is_new: bool) -> None:
        """Take it. Held by another: StoreError at a start, Fenced later. A dead session of our own is ended."""
        until = time.monotonic() + LOCK_WAIT_S
        while not _value(connection, f"SELECT pg_try_advisory_lock({_LOCK})"):
            has = holder(connection)
            if has is not None and has[:2] == self._holder:
                connection.execute("SELECT pg_terminate_backend(%s::int)", (has[0],))
            elif time.monotonic() > until:
                who = f"{has[2]} from {has[3]}, process {has[0]} of the server" if has else "another session"
                kind = StoreError if is_new else Fenced
                raise kind(f"{self.name}: another daemon has these records ({who}): stop it first (slurmbridge down)")
            time.sleep(0.05)
        found = connection.execute(
            "SELECT pid, extract(epoch FROM backend_start)::float8 FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).fetchone()
        assert found is not None
        self._holder = (found[0], found[1])


class PostgresqlSession:
    """`store.dialect.Session` that holds the lock. Transactions begin with the first statement."""

    def __init__(
        self, connection: psycopg.Connection[Any], token: str, numbers: itertools.count[int], name: str
    ) -> None:
        self._connection, self._token, self._numbers, self._name = connection, token, numbers, name
        self.commit = connection.commit

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        return self._connection.execute(_in_libpq_s_way(statement), values)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_in_libpq_s_way(statement), rows)

    def begin(self) -> str:
        ticket = f"{self._token}:{next(self._numbers)}"
        done = self.execute(
            "UPDATE marks SET value = ? WHERE name = ? AND value LIKE ?", (ticket, WRITER, f"{self._token}:%")
        )
        if done.rowcount != 1:
            raise self._replaced()
        return ticket

    def undo(self) -> None:
        with contextlib.suppress(psycopg.Error):  # a connection that is gone took its transaction along
            self._connection.rollback()

    def knows(self, ticket: str) -> bool:
        """The lock is held again: the session that had begun it has come to its end."""
        return self._mark(WRITER) == ticket

    def look(self) -> None:
        self.execute("SELECT 1")
        self.commit()

    def close(self) -> None:
        self._connection.close()

    @property
    def is_broken(self) -> bool:
        return self._connection.closed

    def still_ours(self) -> None:
        """Fenced when another daemon has written since."""
        if not self._mark(WRITER).startswith(f"{self._token}:"):
            raise self._replaced()

    def claim(self) -> str:
        self.execute(
            "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (WRITER, f"{self._token}:0"),
        )
        self.execute("INSERT INTO marks VALUES (?, ?) ON CONFLICT DO NOTHING", (IDENTITY, os.urandom(12).hex()))
        self.commit()
        return self._mark(IDENTITY)

    def identity(self) -> str:
        is_there = self.execute("SELECT to_regclass('marks') IS NOT NULL").fetchall()[0][0]
        return self._mark(IDENTITY) if is_there else ""

    def _mark(self, name: str) -> str:
        found = self.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        self.commit()
        return str(found[0]) if found is not None else ""

    def _replaced(self) -> Fenced:
        return Fenced(
            f"{self._name}: another daemon wrote these records meanwhile; this one ends, so that there is one"
        )


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A server that will do."""

    release: int
    doubt: str  # what could lose records there; empty: nothing that is known


def fit(connection: psycopg.Connection[Any], name: str) -> Fit:
    """StoreError: the server, or the database, is not of the kind that is needed."""
    release = connection.info.server_version // 10000
    if release < OLDEST:
        raise StoreError(f"{name}: it is PostgreSQL {release}, and {OLDEST} or later is needed")
    encoding = _value(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"{name}: its encoding is {encoding}, and UTF8 is needed; {_ADVICE['3D']}")
    if _value(connection, "SELECT current_schema()") is None:
        path = _value(connection, "SHOW search_path")
        raise StoreError(f"{name}: there is no schema of its search path ({path}); make it: CREATE SCHEMA NAME")
    off = [setting for setting in ("fsync", "full_page_writes") if _value(connection, f"SHOW {setting}") != "on"]
    doubt = f"{name}: {' and '.join(off)} off: a crash of its machine may lose or damage records" if off else ""
    return Fit(release=release, doubt=doubt)


def holder(connection: psycopg.Connection[Any]) -> tuple[int, float, str, str] | None:
    """Whose session has the lock: process, its begin, name, and from where."""
    found: tuple[int, float, str, str] | None = connection.execute(_HOLDER).fetchone()
    return found


@functools.lru_cache(maxsize=512)
def _in_libpq_s_way(statement: str) -> str:
    """No statement has `?` or `%` but for values, and values are not part of it."""
    return statement.replace("?", "%s")


def _value(connection: psycopg.Connection[Any], statement: str) -> Any:
    found = connection.execute(statement).fetchone()
    return found[0] if found is not None else None


def _first_line(error: BaseException) -> str:
    """What libpq says comes in several lines, the first of which names the matter."""
    return " ".join(str(error).strip().splitlines()[:1]) or type(error).__name__


def advice(error: BaseException | None) -> str:
    """What to do about an error at the start."""
    return _ADVICE.get((getattr(error, "sqlstate", "") or "")[:2], _UNREACHED)
