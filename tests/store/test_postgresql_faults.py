"""Whatever is cut, killed or away: nothing that was acknowledged is lost, nothing is stored twice, and there is one daemon."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Accounting, Transaction
from slurmbridge.store import postgresql_server
from slurmbridge.store.postgresql import PostgresqlStore
from slurmbridge.store.protocol import Op, PutAccounting, PutJobs
from tests.store.cutting_proxy import CuttingProxy
from tests.store.killed import check, killed, writing
from tests.store.postgresql import Server
from tests.store.records import finished, insertion, job, outcome, put

pytestmark = pytest.mark.processes
NOTED = Accounting(), (Transaction(time=1.0, action="Add Users", actor="root"),)
"""An op that would be seen if it happened twice: transactions have no key of their own."""


@pytest.fixture
def proxy(server: Server) -> Iterator[CuttingProxy]:
    with tempfile.TemporaryDirectory(prefix="sbpg-") as folder:
        made = CuttingProxy(Path(folder), server.folder)
        yield made
        made.close()


def through(proxy: CuttingProxy, url: str) -> str:
    """The same place, by way of the proxy."""
    return url.replace(f"host={proxy.server.parent}", f"host={proxy.folder}")


def until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.01)


@pytest.mark.parametrize("droppable", [True, False], ids=["submission", "change"])
@pytest.mark.parametrize("lets_pass", [True, False], ids=["it happened", "it did not"])
def test_a_commit_of_which_no_answer_comes_is_settled_by_looking(
    lets_pass: bool, droppable: bool, server: Server, url: str, proxy: CuttingProxy
) -> None:
    store = PostgresqlStore(through(proxy, url))
    put(store, insertion(job(1)))
    proxy.cut(b"COMMIT", lets_pass=lets_pass)
    accounting, transactions = NOTED
    ops: list[Op] = [
        insertion(job(2)),
        PutAccounting(accounting=accounting, transactions=transactions),
        PutJobs(jobs=(finished(1),)),
    ]
    assert outcome(store, ops, droppable=droppable) is None
    assert proxy.cuts == 1
    loaded = store.load(0.0)
    assert [one.job_id for one in loaded.jobs] == [1, 2] and loaded.usage[0].wall_s == 60.0
    assert len(store.transactions(None, None)) == 1 and store.healthy
    put(store, PutJobs(jobs=(finished(2),)))
    assert store.load(0.0).usage[0].wall_s == 120.0, "what it knows of the use goes on from what happened"
    store.close()


def test_what_comes_after_a_commit_in_doubt_stays_after_it(url: str, proxy: CuttingProxy) -> None:
    store = PostgresqlStore(through(proxy, url))
    put(store, insertion(job(1)))
    answers: list[Exception | None] = []
    proxy.cut(b"COMMIT", lets_pass=False)
    store.write([PutJobs(jobs=(finished(1, end=1030.0),))], answers.append)
    until(lambda: proxy.cuts == 1)
    store.write([PutJobs(jobs=(finished(1),))], answers.append)
    until(lambda: len(answers) == 2)
    assert answers == [None, None] and [one.end_time for one in store.load(0.0).jobs] == [1060.0]
    store.close()


def test_a_connection_that_is_cut_before_the_commit_is_made_anew(url: str, proxy: CuttingProxy) -> None:
    store = PostgresqlStore(through(proxy, url))
    put(store, insertion(job(1)))
    proxy.cut(b"INSERT INTO runs", lets_pass=True)
    assert outcome(store, [insertion(job(2))], droppable=True) is None
    assert proxy.cuts == 1 and [one.job_id for one in store.load(0.0).jobs] == [1, 2]
    store.close()


def test_while_the_server_is_away_submissions_fail_and_the_rest_waits_in_order(server: Server, url: str) -> None:
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    server.stop()
    answers: list[Exception | None] = []
    store.write([PutJobs(jobs=(finished(1, end=1030.0),))], answers.append)
    store.write([PutJobs(jobs=(finished(1),))], answers.append)
    until(lambda: not store.healthy)
    began = time.monotonic()
    refused = outcome(store, [insertion(job(2))], droppable=True)
    assert isinstance(refused, StoreError) and "PostgreSQL" in str(refused) and time.monotonic() - began < 10
    with pytest.raises(StoreError, match="PostgreSQL"):
        store.load(0.0)
    assert answers == []
    server.start()
    until(lambda: len(answers) == 2 and store.healthy)
    assert answers == [None, None]
    put(store, insertion(job(3)))
    loaded = store.load(0.0)
    assert [(one.job_id, one.end_time) for one in loaded.jobs] == [(1, 1060.0), (3, None)]
    store.close()


def test_it_recovers_with_nothing_to_write_and_notices_when_idle(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_server.PostgresqlServer, "look_every_s", 0.05)
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    server.stop()
    until(lambda: not store.healthy)
    server.start()
    until(lambda: store.healthy)
    store.close()


def test_a_store_that_closes_while_the_server_is_away_says_what_was_not_stored(server: Server, url: str) -> None:
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    server.stop()
    answers: list[Exception | None] = []
    store.write([PutJobs(jobs=(finished(1),))], answers.append)
    store.close()
    server.start()
    assert len(answers) == 1 and isinstance(answers[0], Exception)


def test_what_somebody_changed_at_the_server_loses_nothing(server: Server, url: str) -> None:
    """No row is to blame for a table that is not there, or may not be written."""
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    server.ask(url, "ALTER TABLE runs RENAME TO gone")
    answers: list[Exception | None] = []
    assert isinstance(outcome(store, [insertion(job(2))], droppable=True), StoreError)
    store.write([PutJobs(jobs=(finished(1),))], answers.append)
    time.sleep(0.3)
    assert answers == [] and not store.healthy
    server.ask(url, "ALTER TABLE gone RENAME TO runs")
    until(lambda: answers == [None])
    assert store.load(0.0).jobs[0].is_finished
    store.close()


def test_a_submission_that_the_server_cannot_take_fails_alone(url: str) -> None:
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    too_long = outcome(store, [insertion(job(2), nonce=os.urandom(40_000).hex())], droppable=True)
    assert isinstance(too_long, StoreError) and store.healthy
    put(store, insertion(job(3)))
    assert [one.job_id for one in store.load(0.0).jobs] == [1, 3]
    store.close()


def test_while_the_server_hangs_everything_waits_and_nothing_is_told(server: Server, url: str) -> None:
    store = PostgresqlStore(url)
    put(store, insertion(job(1)))
    answers: list[Exception | None] = []
    with server.hanging():
        store.write([insertion(job(2))], answers.append, droppable=True)
        store.write([PutJobs(jobs=(finished(1),))], answers.append)
        time.sleep(0.5)
        assert answers == []
    until(lambda: len(answers) == 2)
    assert answers == [None, None] and len(store.load(0.0).jobs) == 2
    store.close()


def test_a_changed_password_needs_no_restart(server: Server, url: str, tmp_path: Path) -> None:
    """Which file has it is read at each connection; until it is right, everything waits as for a server that is away."""
    file, name = tmp_path / "url", url.partition("//")[2].partition("@")[0]
    file.write_text(url)
    store = PostgresqlStore(file.read_text)
    put(store, insertion(job(1)))
    file.write_text(url.replace(f"//{name}@", "//nobody-here@"))
    end_sessions(server, url)
    answers: list[Exception | None] = []
    store.write([PutJobs(jobs=(finished(1),))], answers.append)
    until(lambda: not store.healthy)
    file.write_text(url)
    until(lambda: answers == [None])
    assert store.healthy
    store.close()


# one daemon


def end_sessions(server: Server, url: str, name: str = "slurmbridge daemon") -> None:
    server.ask(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'")


def test_a_daemon_whose_session_was_ended_goes_on_when_nobody_else_wrote(server: Server, url: str) -> None:
    lost: list[str] = []
    store = PostgresqlStore(url, lost=lost.append)
    put(store, insertion(job(1)))
    end_sessions(server, url)
    put(store, insertion(job(2)))
    assert lost == [] and len(store.load(0.0).jobs) == 2
    store.close()


@pytest.mark.parametrize("is_there", [True, False], ids=["and has them", "and ended again"])
def test_a_daemon_that_another_replaced_ends_and_writes_nothing_more(
    is_there: bool, server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_server, "LOCK_WAIT_S", 0.2)
    lost: list[str] = []
    old = PostgresqlStore(url, lost=lost.append)
    put(old, insertion(job(1)))
    end_sessions(server, url)
    new = PostgresqlStore(url)
    if not is_there:
        new.close()
    answers: list[Exception | None] = []
    assert isinstance(outcome(old, [insertion(job(2))], droppable=True), StoreError)
    old.write([PutJobs(jobs=(finished(1),))], answers.append)
    until(lambda: len(lost) == 1)
    assert "another daemon" in lost[0] and not old.healthy
    time.sleep(0.5)
    assert answers == [], "nobody is told that it was stored"
    old.close()
    assert len(answers) == 1 and isinstance(answers[0], Exception) and len(lost) == 1
    seen = new if is_there else PostgresqlStore(url)
    assert [(one.job_id, one.is_finished) for one in seen.load(0.0).jobs] == [(1, False)]
    seen.close()


def test_a_session_without_the_lock_cannot_write(server: Server, url: str) -> None:
    """Should somebody take the lock away by hand, and another daemon come."""
    old = postgresql_server.PostgresqlServer(url)
    PostgresqlStore(url).close()
    old.open()
    old.claim()
    session = old.connect()
    session.execute("SELECT pg_advisory_unlock_all()")
    session.commit()
    PostgresqlStore(url).close()
    with pytest.raises(StoreError, match="another daemon wrote these records meanwhile"):
        session.begin()
    session.close()


def test_a_session_of_its_own_that_the_server_still_has_does_not_keep_a_daemon_out(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the network is cut, and the server goes on waiting for a client that is gone."""
    monkeypatch.setattr(postgresql_server, "LOCK_WAIT_S", 5.0)
    found = postgresql_server.PostgresqlServer(url)
    PostgresqlStore(url).close()
    found.open()
    found.claim()
    stale = found.connect()
    fresh = found.connect()
    with pytest.raises(psycopg.OperationalError):
        stale.look()
    assert stale.is_broken
    fresh.begin()
    fresh.commit()
    fresh.close()
    stale.close()


# kill -9


@pytest.mark.parametrize("seed", range(3))
def test_all_that_was_acknowledged_is_there_after_a_kill_of_the_daemon(url: str, seed: int) -> None:
    acknowledged = killed(writing(url), seed)
    check(PostgresqlStore(url), acknowledged)


def test_all_that_was_acknowledged_is_there_after_kills_of_the_server(server: Server, url: str) -> None:
    """The daemon lives on through all of them, and every submission that it took ends up stored once."""
    chance, acknowledged = random.Random(7), []
    child = writing(url)
    assert child.stdout is not None
    stream = child.stdout

    def read() -> None:
        for line in stream:
            acknowledged.append(int(line))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(4):
        before = len(acknowledged)
        until(lambda before=before: len(acknowledged) > before or child.poll() is not None)  # type: ignore[misc]
        time.sleep(chance.uniform(0.0, 0.2))
        server.kill()
        assert child.poll() is None
        time.sleep(chance.uniform(0.0, 0.3))
        server.start()
    before = len(acknowledged)
    until(lambda: len(acknowledged) > before)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    reader.join()
    stream.close()
    assert len(acknowledged) == len(set(acknowledged))
    check(PostgresqlStore(url), set(acknowledged))
