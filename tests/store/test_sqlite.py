"""The SQLite store keeps the contract, and what it promises about files, schemas and damage."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from slurmbridge.errors import StoreError
from slurmbridge.store import migrate, schema, sqlite_file
from slurmbridge.store.protocol import Limits
from slurmbridge.store.sqlite import SqliteStore
from tests.store.durable import DurableContract
from tests.store.records import finished, insertion, job, put


class TestSqliteStore(DurableContract):
    def make(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "store.db")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_ids_are_not_given_out_again_when_the_newest_jobs_are_purged(path: Path) -> None:
    store = SqliteStore(path)
    put(store, insertion(job(1)), insertion(job(99)))
    store.close()
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM runs WHERE job_id = 99")
    database.close()
    store = SqliteStore(path)
    assert store.load(0.0).next_job_id == 100
    store.close()


def test_a_callback_that_fails_does_not_stop_the_writer(path: Path) -> None:
    store = SqliteStore(path)

    def broken(_error: Exception | None) -> None:
        raise RuntimeError("the loop is closed")

    store.write([insertion(job(1))], broken)
    put(store, insertion(job(2)))
    assert len(store.load(0.0).jobs) == 2
    store.close()


def test_the_files_belong_to_their_owner_alone(path: Path) -> None:
    store = SqliteStore(path)
    put(store, insertion(job(1)))
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    store.close()
    assert set(modes) == {"store.db", "store.db-wal", "store.db-shm"}
    assert set(modes.values()) == {0o600}


def test_the_log_is_cut_when_it_has_grown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurmbridge.store.sqlite.CHECKPOINT_AT", 256 * 1024)
    store = SqliteStore(path)
    for number in range(1, 40):
        put(store, insertion(job(number), blobs=((f"{number:064x}", bytes(64 * 1024)),)))
    store.close()
    log = path.with_name("store.db-wal")
    assert not log.exists() or log.stat().st_size == 0


def test_migrations_make_the_tables_of_the_metadata(path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{path}")
    migrate.upgrade(engine, "")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.HEAD
    engine.dispose()


def test_a_new_database_has_the_tables_of_the_migrations(tmp_path: Path) -> None:
    def definitions(path: Path) -> set[tuple[str, str]]:
        database = sqlite3.connect(path)
        rows = database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        database.close()
        return {
            (name, " ".join(sql.split()).replace("( ", "(").replace(" )", ")").replace(" )", ")")) for name, sql in rows
        }

    engine = sa.create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    migrate.upgrade(engine, "")
    engine.dispose()
    SqliteStore(tmp_path / "new.db").close()
    assert definitions(tmp_path / "new.db") == definitions(tmp_path / "migrated.db")


def test_a_migrated_database_is_opened(path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{path}")
    migrate.upgrade(engine, "")
    engine.dispose()
    store = SqliteStore(path)
    put(store, insertion(job(1)))
    store.close()


def test_alembic_is_not_loaded_for_a_database_of_this_version(path: Path) -> None:
    SqliteStore(path).close()
    code = (
        "import sys; from slurmbridge.store.sqlite import SqliteStore\n"
        "store = SqliteStore(sys.argv[1]); store.load(0.0); store.close()\n"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    SqliteStore(path).close()
    database = sqlite3.connect(path)
    database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.commit()
    database.close()
    content = path.read_bytes()
    with pytest.raises(StoreError, match="schema 9999, made by a newer slurmbridge"):
        SqliteStore(path)
    assert path.read_bytes() == content


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"this is not a database\n" * 1000)
    with pytest.raises(StoreError, match=r"store\.db: file is not a database; nothing in it was changed"):
        SqliteStore(path)
    assert path.read_bytes() == b"this is not a database\n" * 1000


def test_a_damaged_database_is_refused_and_left_alone(path: Path) -> None:
    store = SqliteStore(path)
    put(store, *(insertion(job(number)) for number in range(1, 300)))
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:40960] = b"\xa5" * (40960 - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="restore a copy"):
        SqliteStore(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE things (name TEXT)")
    database.commit()
    database.close()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)


def test_a_folder_that_does_not_exist_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing/store\.db: No such file or directory"):
        SqliteStore(tmp_path / "missing" / "store.db")


def test_durability_is_what_was_asked_for(path: Path) -> None:
    engine = sqlite_file.open_engine(path)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    engine.dispose()


def test_a_database_of_the_first_schema_learns_what_its_jobs_use(path: Path) -> None:
    store = SqliteStore(path)
    put(store, insertion(finished(1), blobs=(("a" * 64, b"script"), ("e" * 64, b"env"))))
    store.close()
    database = sqlite3.connect(path)
    database.executescript(
        "DROP TABLE blob_uses; DROP TABLE mail; DROP INDEX runs_spec; DROP INDEX submissions_job;"
        "UPDATE alembic_version SET version_num = '0001';"
    )
    database.close()
    store = SqliteStore(path)
    put(store, store.expired(Limits(jobs=2000.0), 10))
    assert (store.blob("a" * 64), store.blob("e" * 64)) == (None, None)
    store.close()
