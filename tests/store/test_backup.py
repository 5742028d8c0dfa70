"""A backup is the state of one commit, made while others write; a restore is whole or not at all."""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from slurmbridge.errors import StoreError
from slurmbridge.store import backup
from slurmbridge.store.protocol import PutMark
from slurmbridge.store.sqlite import SqliteStore
from tests.store.copied import while_written
from tests.store.records import finished, insertion, job, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def test_a_backup_holds_what_was_committed_before_it_and_nothing_half(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    copies = [tmp_path / f"copy{number}.db" for number in range(5)]
    found = while_written(store, partial(backup.save, path), copies)
    assert {copy.stat().st_mode & 0o777 for copy in copies} == {0o600}
    again = SqliteStore(tmp_path / "copy4.db")
    assert [one.job_id for one in again.load(0.0).jobs] == list(range(1, found.runs + 1))
    again.close()


def test_a_backup_never_overwrites_and_leaves_nothing_when_it_fails(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no database"):
        backup.save(path, tmp_path / "copy.db")
    SqliteStore(path).close()
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(StoreError, match="exists"):
        backup.save(path, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="No such file or directory"):
        backup.save(path, tmp_path / "nowhere" / "copy.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "state.db"]


def test_a_restored_store_is_as_it_was_but_gives_out_no_id_again(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    put(
        store,
        insertion(finished(1), blobs=(("a" * 64, b"script"),)),
        insertion(job(2)),
        PutMark(name="boot", value="x"),
    )
    before = store.load(0.0)
    backup.save(path, tmp_path / "copy.db")
    put(store, insertion(job(70)))
    store.close()
    found = backup.restore(tmp_path / "copy.db", path, tmp_path / "kept.db")
    assert (found.runs, found.next_job_id) == (2, 71)
    store = SqliteStore(path)
    after = store.load(0.0)
    assert (after.jobs, after.marks, after.usage) == (before.jobs, before.marks, before.usage)
    assert after.next_job_id == 71 and store.blob("a" * 64) == b"script"
    store.close()
    kept = SqliteStore(tmp_path / "kept.db")
    assert [one.job_id for one in kept.load(0.0).jobs] == [1, 2, 70]
    kept.close()


def test_a_store_that_was_killed_is_kept_with_what_its_log_held(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    put(store, insertion(job(1)))
    backup.save(path, tmp_path / "copy.db")
    put(store, insertion(job(2)))
    for suffix in ("", "-wal"):  # as a kill -9 leaves them
        (tmp_path / f"dead.db{suffix}").write_bytes((tmp_path / f"state.db{suffix}").read_bytes())
    store.close()
    found = backup.restore(tmp_path / "copy.db", tmp_path / "dead.db", tmp_path / "kept.db")
    assert found.next_job_id == 3
    kept = SqliteStore(tmp_path / "kept.db")
    assert len(kept.load(0.0).jobs) == 2
    kept.close()


def test_a_damaged_store_is_replaced_and_kept_as_it_is(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    put(store, insertion(job(1)))
    backup.save(path, tmp_path / "copy.db")
    store.close()
    path.write_bytes(b"not a database" * 500)
    assert backup.restore(tmp_path / "copy.db", path, tmp_path / "kept.db").next_job_id == 2
    assert (tmp_path / "kept.db").read_bytes() == b"not a database" * 500
    SqliteStore(path).close()


@pytest.mark.parametrize("kind", ["garbage", "cut", "foreign", "newer", "absent"])
def test_what_is_no_sound_backup_changes_nothing(kind: str, path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    put(store, *(insertion(job(number)) for number in range(1, 100)))
    copy = tmp_path / "copy.db"
    backup.save(path, copy)
    store.close()
    content = path.read_bytes()
    if kind == "garbage":
        copy.write_bytes(b"hello" * 1000)
    elif kind == "cut":
        os.truncate(copy, copy.stat().st_size // 2)
    elif kind == "absent":
        copy.unlink()
    else:
        database = sqlite3.connect(copy)
        database.execute("DROP TABLE runs" if kind == "foreign" else "UPDATE alembic_version SET version_num = '9999'")
        database.commit()
        database.close()
    with pytest.raises(StoreError):
        backup.restore(copy, path, tmp_path / "kept.db")
    assert path.read_bytes() == content and not (tmp_path / "kept.db").exists()
    assert not list(tmp_path.glob("*.restored*")) and not list(tmp_path.glob("*.part*"))
