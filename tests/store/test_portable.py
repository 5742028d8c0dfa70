"""Records go from a server to a file and back, whole, and between the two kinds of database."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from slurmbridge.commands.effects import JobFilter
from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Account, Accounting, Transaction
from slurmbridge.model.cluster import Node, NodeConf
from slurmbridge.model.states import NodeFlag
from slurmbridge.store import backup, portable, postgresql_server
from slurmbridge.store.place import find, open_store
from slurmbridge.store.postgresql import PostgresqlStore
from slurmbridge.store.protocol import PutAccounting, PutMark, PutNodes, PutSteps, Store
from slurmbridge.store.sqlite import SqliteStore
from tests.store.copied import while_written
from tests.store.postgresql import Server
from tests.store.records import finished, insertion, job, put, replace, step

pytestmark = pytest.mark.processes


def fill(store: Store) -> None:
    """Something of every table."""
    put(
        store, insertion(finished(1), blobs=(("a" * 64, b"#!/bin/sh\n\0\xff"), ("e" * 64, b"A=1\0"))), insertion(job(2))
    )
    put(store, PutSteps(steps=(step(1), step(2))), PutMark(name="boot", value="x"))
    drained = Node(conf=NodeConf(name="n1"), flags=frozenset({NodeFlag.DRAIN}), reason='d"i\\s\tk', reason_time=5.0)
    put(store, PutNodes(nodes=(drained,)))
    added = Transaction(time=1.0, action="Add Accounts", actor="root", where="x", info="line\nline")
    put(
        store, PutAccounting(accounting=Accounting(accounts=(Account(name="root"),), revision=3), transactions=(added,))
    )


def everything(store: Store) -> list[object]:
    history = store.history(JobFilter(duplicates=True, with_script=True, with_env=True))
    return [store.load(0.0), history, store.transactions(None, None), store.events(None, None), store.nonces(99)]


def go_on(store: Store) -> None:
    """What is written next has new keys."""
    put(store, PutNodes(nodes=(Node(conf=NodeConf(name="n2"), flags=frozenset({NodeFlag.DRAIN}), reason="r"),)))
    put(store, PutAccounting(accounting=Accounting(), transactions=(Transaction(time=2.0, action="a", actor="b"),)))
    assert [len(store.events(None, None)), len(store.transactions(None, None))] == [2, 2]


def test_records_go_from_sqlite_to_a_server_and_back(url: str, tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "first.db")
    fill(first)
    expected = everything(first)
    backup.save(tmp_path / "first.db", tmp_path / "out.db")
    first.close()
    work, kept = tmp_path / "work.db", tmp_path / "kept.db"
    found, identity = portable.restore(tmp_path / "out.db", url, work, kept)
    assert (found.runs, found.next_job_id) == (2, 3) and not work.exists() and not kept.exists()
    store = PostgresqlStore(url, identity=identity)
    assert everything(store) == expected
    saved = portable.save(url, tmp_path / "back.db")
    assert (saved.runs, saved.next_job_id) == (2, 3)
    assert (tmp_path / "back.db").stat().st_mode & 0o777 == 0o600
    go_on(store)
    store.close()
    backup.restore(tmp_path / "back.db", tmp_path / "second.db", kept)
    second = SqliteStore(tmp_path / "second.db")
    assert everything(second) == expected
    go_on(second)
    second.close()


def test_a_daemon_that_is_told_of_an_empty_server_takes_its_records_along(url: str, tmp_path: Path) -> None:
    store: Store = open_store(find(str(tmp_path), None))
    fill(store)
    expected = everything(store)
    store.close()
    moved = open_store(find(str(tmp_path), url))
    assert everything(moved) == expected
    moved.close()
    (kept,) = tmp_path.glob("state.db*")
    assert ".before-" in kept.name and backup.examine(kept).runs == 2
    again = open_store(find(str(tmp_path), None))
    assert everything(again) == expected
    again.close()


def test_two_sets_of_records_are_never_mixed(url: str, tmp_path: Path) -> None:
    PostgresqlStore(url).close()  # another daemon's, though it has no job
    store: Store = open_store(find(str(tmp_path), None))
    fill(store)
    expected = everything(store)
    store.close()
    with pytest.raises(StoreError, match=r"has records already, and the state folder .* has some of its own"):
        open_store(find(str(tmp_path), url))
    assert not (tmp_path / "database").exists() and not list(tmp_path.glob("*before*"))
    store = open_store(find(str(tmp_path), None))
    assert everything(store) == expected
    store.close()


def test_a_backup_of_a_server_holds_what_was_committed_before_it_and_nothing_half(url: str, tmp_path: Path) -> None:
    store = PostgresqlStore(url)
    while_written(store, partial(portable.save, url), [tmp_path / f"copy{number}.db" for number in range(3)])
    with pytest.raises(StoreError, match="exists: a backup never overwrites one"):
        portable.save(url, tmp_path / "copy0.db")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_restored_server_is_as_it_was_but_gives_out_no_id_again(url: str, tmp_path: Path) -> None:
    store = PostgresqlStore(url)
    fill(store)
    before = everything(store)
    portable.save(url, tmp_path / "copy.db")
    put(store, insertion(job(70)))
    identity = store.identity
    store.close()
    found, again = portable.restore(tmp_path / "copy.db", url, tmp_path / "work.db", tmp_path / "kept.db")
    assert (found.runs, found.next_job_id, again) == (2, 71, identity)
    store = PostgresqlStore(url)
    loaded = store.load(0.0)
    assert loaded.next_job_id == 71
    assert [replace(loaded, next_job_id=3), *everything(store)[1:]] == before
    store.close()
    assert backup.examine(tmp_path / "kept.db").runs == 3


def test_a_restore_refuses_while_a_daemon_has_the_records(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_server, "LOCK_WAIT_S", 0.2)
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    portable.save(url, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="another daemon has these records"):
        portable.restore(tmp_path / "copy.db", url, tmp_path / "work.db", tmp_path / "kept.db")
    put(store, insertion(job(2)))
    assert len(store.load(0.0).jobs) == 2
    store.close()


def test_a_restore_that_fails_in_the_middle_changes_nothing(server: Server, url: str, tmp_path: Path) -> None:
    store = PostgresqlStore(url)
    fill(store)
    before = everything(store)
    portable.save(url, tmp_path / "copy.db")
    store.close()
    server.ask(url, "ALTER TABLE transactions ADD CHECK (action <> 'Add Accounts') NOT VALID")
    with pytest.raises(StoreError, match="what was there is unchanged"):
        portable.restore(tmp_path / "copy.db", url, tmp_path / "work.db", tmp_path / "kept.db")
    store = PostgresqlStore(url)
    assert everything(store) == before
    store.close()
    assert not (tmp_path / "work.db").exists()


def test_a_server_without_records_cannot_be_copied(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the database has schema none"):
        portable.save(url, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
