"""The PostgreSQL store keeps the contract, and what it promises about schemas, queries and what the server must be like."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from slurmbridge.commands.effects import JobFilter
from slurmbridge.errors import StoreError
from slurmbridge.store import migrate, postgresql_server, queries, schema, tables
from slurmbridge.store.place import find, open_store
from slurmbridge.store.postgresql import PostgresqlStore
from slurmbridge.store.postgresql_server import PostgresqlServer
from slurmbridge.store.protocol import Limits, PutJobs
from tests.store.durable import DurableContract
from tests.store.postgresql import ROLE, Server
from tests.store.records import allocation, finished, insertion, job, put

pytestmark = pytest.mark.processes


class TestPostgresqlStore(DurableContract):
    @pytest.fixture(autouse=True)
    def place(self, url: str) -> None:
        self.url = url

    def make(self, folder: Path) -> PostgresqlStore:
        return PostgresqlStore(self.url)


def test_records_keep_their_identity(url: str) -> None:
    store = PostgresqlStore(url)
    store.close()
    again = PostgresqlStore(url)
    assert again.identity == store.identity
    again.close()


def test_a_commit_is_durable_whatever_the_server_is_set_to(server: Server, url: str) -> None:
    server.ask("postgres", f"ALTER ROLE {ROLE} SET synchronous_commit = off")
    try:
        PostgresqlStore(url).close()
        found = PostgresqlServer(url)
        found.open()
        found.claim()
        for _ in range(2):  # the first session, and one after it was lost
            session = found.connect()
            assert session.execute("SHOW synchronous_commit").fetchall() == [("on",)]
            session.close()
    finally:
        server.ask("postgres", f"ALTER ROLE {ROLE} RESET synchronous_commit")


# schemas


def of_migrations(server: Server, url: str) -> sa.Engine:
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: PostgresqlServer(url).connection("test"), poolclass=sa.NullPool
    )
    migrate.upgrade(engine, "")
    return engine


def test_migrations_make_the_tables_of_the_metadata(server: Server, url: str) -> None:
    engine = of_migrations(server, url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.HEAD == tables.version(connection)
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    store.close()


def test_new_tables_are_those_of_the_migrations(server: Server) -> None:
    def definitions(url: str) -> list[tuple[object, ...]]:
        place = "table_schema = current_schema()"
        columns = (
            f"SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE {place}"
        )
        indexes = "SELECT indexname, replace(indexdef, schemaname || '.', '') FROM pg_indexes WHERE schemaname = current_schema()"
        return sorted(server.ask(url, columns)) + sorted(server.ask(url, indexes))

    migrated, made = server.records(), server.records()
    of_migrations(server, migrated)
    PostgresqlStore(made).close()
    assert definitions(made) == definitions(migrated) != []


def test_alembic_is_not_loaded_for_a_database_of_this_version(url: str) -> None:
    PostgresqlStore(url).close()
    code = (
        "import sys; from slurmbridge.store.postgresql import PostgresqlStore\n"
        "store = PostgresqlStore(sys.argv[1]); store.load(0.0); store.close()\n"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, url], check=False).returncode == 0


def test_a_database_of_the_first_schema_learns_what_its_jobs_use(server: Server, url: str) -> None:
    store = PostgresqlStore(url)
    put(store, insertion(finished(1), blobs=(("a" * 64, b"script"), ("e" * 64, b"env"))))
    store.close()
    server.ask(url, "DROP TABLE blob_uses, mail")
    server.ask(url, "DROP INDEX runs_spec, submissions_job")
    server.ask(url, "UPDATE alembic_version SET version_num = '0001'")
    store = PostgresqlStore(url)
    put(store, store.expired(Limits(jobs=2000.0), 10))
    assert (store.blob("a" * 64), store.blob("e" * 64)) == (None, None)
    store.close()


def test_a_migration_that_fails_leaves_the_schema_as_it_was(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    PostgresqlStore(url).close()
    server.ask(url, "DROP TABLE blob_uses")  # and mail stays, which the migration makes last but one
    server.ask(url, "UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(StoreError, match='relation "mail" already exists'):
        PostgresqlStore(url)
    assert server.ask(url, "SELECT to_regclass('blob_uses') IS NULL, version_num FROM alembic_version") == [
        (True, "0001")
    ]


def test_a_newer_schema_is_refused_and_left_alone(server: Server, url: str) -> None:
    PostgresqlStore(url).close()
    server.ask(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="schema 9999, made by a newer slurmbridge"):
        PostgresqlStore(url)


def test_the_tables_of_another_program_are_left_alone(server: Server, url: str) -> None:
    server.ask(url, "CREATE TABLE things (name text)")
    with pytest.raises(StoreError, match="another program"):
        PostgresqlStore(url)
    assert server.ask(url, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == [(1,)]


# what the server must be like


def test_a_server_that_is_down_is_named_with_what_to_do(server: Server, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"PostgreSQL records at .* port 5432: .*; see that the server is up"):
        PostgresqlStore(f"postgresql://{ROLE}@/records?host={tmp_path}")


def test_a_database_that_is_missing_is_named_with_what_to_do(server: Server) -> None:
    with pytest.raises(StoreError, match='database "missing" does not exist; see that the server is up'):
        PostgresqlStore(server.url("missing"))


def test_an_old_server_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_server, "OLDEST", 99)
    with pytest.raises(StoreError, match=r"it is PostgreSQL \d+, and 99 or later is needed"):
        PostgresqlStore(url)


def test_a_database_of_another_encoding_is_refused(server: Server) -> None:
    server.ask("postgres", "CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
    with pytest.raises(
        StoreError, match=r"its encoding is LATIN1, and UTF8 is needed; make it: createdb --encoding=UTF8"
    ):
        PostgresqlStore(server.url("latin"))


def test_a_schema_that_is_missing_is_named_with_what_to_do(server: Server) -> None:
    with pytest.raises(StoreError, match=r"there is no schema of its search path \(missing\); make it: CREATE SCHEMA"):
        PostgresqlStore(server.url("postgres") + "&options=-csearch_path%3Dmissing")


def test_a_user_who_may_not_make_tables_is_told_what_to_do(server: Server, url: str) -> None:
    server.ask("postgres", "CREATE ROLE guest LOGIN")
    name = url.rpartition("%3D")[2]
    server.ask("postgres", f"GRANT USAGE ON SCHEMA {name} TO guest")
    with pytest.raises(StoreError, match=f"permission denied for schema {name}; the user must own the database"):
        PostgresqlStore(url.replace(f"//{ROLE}@", "//guest@"))


def test_a_password_is_in_no_message(server: Server, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as found:
        PostgresqlStore(f"postgresql://{ROLE}:open-sesame@/records?host={tmp_path}")
    assert "open-sesame" not in str(found.value)
    with pytest.raises(StoreError, match="cannot be read") as found:
        PostgresqlStore(f"postgresql://{ROLE}:open-sesame@/records?hosst={tmp_path}")
    assert "open-sesame" not in str(found.value)


def test_a_password_comes_from_a_file(
    server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of our own, as a Secret is mounted for a group, or of libpq's; nobody says it in a message."""
    server.ask("postgres", "CREATE ROLE guarded LOGIN PASSWORD 'open-sesame'")
    server.ask("postgres", f"ALTER SCHEMA {url.rpartition('%3D')[2]} OWNER TO guarded")
    rules = server.folder / "data/pg_hba.conf"
    rules.write_text(f"local all guarded scram-sha-256\n{rules.read_text()}")
    server.ask("postgres", "SELECT pg_reload_conf()")
    state, file = tmp_path / "state", tmp_path / "url"
    state.mkdir()
    without = url.replace(f"//{ROLE}@", "//guarded@")
    with pytest.raises(StoreError, match="no password supplied; see that the server is up"):
        open_store(find(str(state), without))
    file.write_text(without.replace("//guarded@", "//guarded:wrong-sesame@"))
    file.chmod(0o440)
    with pytest.raises(StoreError, match=r'password authentication failed for user "guarded"; see that') as found:
        open_store(find(str(state), str(file)))
    assert "sesame" not in str(found.value)
    file.chmod(0o640)
    file.write_text(without.replace("//guarded@", "//guarded:open-sesame@"))
    store = open_store(find(str(state), str(file)))
    put(store, insertion(job(1)))
    store.close()
    libpq_s = tmp_path / "pgpass"
    libpq_s.write_text("*:*:*:guarded:open-sesame\n")
    libpq_s.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(libpq_s))
    store = open_store(find(str(state), without))
    assert len(store.load(0.0).jobs) == 1
    store.close()
    assert "sesame" not in (state / "database").read_text()


# one daemon


def test_two_daemons_never_have_the_same_records(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_server, "LOCK_WAIT_S", 0.2)
    store = PostgresqlStore(url)
    with pytest.raises(StoreError, match=r"another daemon has these records \(slurmbridge daemon from .*, process \d+"):
        PostgresqlStore(url)
    put(store, insertion(job(1)))
    store.close()
    PostgresqlStore(url).close()


def test_two_places_of_one_database_may_have_a_daemon_each(server: Server) -> None:
    stores = [PostgresqlStore(server.records()) for _ in range(2)]
    for number, store in enumerate(stores):
        put(store, insertion(job(number + 1)))
        assert len(store.load(0.0).jobs) == 1
        store.close()
    assert stores[0].identity != stores[1].identity


# queries

MANY = 20_000
QUERIES: dict[str, tuple[JobFilter, set[str]]] = {
    "by id": (JobFilter(job_ids=((77, None, None),)), {"runs_pkey", "runs_array", "runs_het"}),
    "of a user": (JobFilter(users=(1003,), start=10_000.0), {"runs_user"}),
    "of all, of late": (JobFilter(start=19_900.0), {"runs_ended"}),
}


@pytest.fixture(scope="module")
def filled(server: Server) -> Iterator[PostgresqlStore]:
    """20,000 runs of 20 users, in which a scan is not the quickest way."""
    url = server.records()
    store = PostgresqlStore(url)
    for first in range(1, MANY, 1000):
        jobs = [
            finished(number, start=float(number), end=number + 60.0, spec_changes={"uid": 1000 + number % 20}, allocation=allocation(f"n{number % 100}"))
            for number in range(first, first + 1000)
        ]  # fmt: skip
        put(store, PutJobs(jobs=tuple(jobs)))
    server.ask(url, "ANALYZE")
    yield store
    store.close()


def plan_of(store: PostgresqlStore, statement: Any) -> str:
    text = statement.compile(dialect=store._engine.dialect, compile_kwargs={"literal_binds": True})
    with store._engine.connect() as connection:
        return "\n".join(connection.exec_driver_sql(f"EXPLAIN {text}".replace("%", "%%")).scalars())


@pytest.mark.parametrize("name", QUERIES)
def test_what_sacct_asks_for_is_found_by_an_index(name: str, filled: PostgresqlStore) -> None:
    wanted, indexes = QUERIES[name]
    plan = plan_of(filled, queries.wanted_runs(wanted))
    assert "Seq Scan on runs  (" not in plan and all(index in plan for index in indexes), plan


def test_what_a_daemon_loads_at_its_start_is_found_by_an_index(filled: PostgresqlStore) -> None:
    recent, of_arrays = (plan_of(filled, query) for query in queries.loaded_runs(MANY + 50.0))
    assert "Seq Scan on runs  (" not in recent and "runs_ended" in recent, recent
    assert "Seq Scan on runs  (" not in of_arrays and "runs_array" in of_arrays, of_arrays


def test_what_is_oldest_is_found_by_an_index(filled: PostgresqlStore) -> None:
    found = filled.expired(Limits(jobs=500.0), 100)
    assert [number for number, _ in found.runs] == list(range(1, 101))
