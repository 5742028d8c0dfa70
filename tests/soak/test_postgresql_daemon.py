"""A daemon whose records are in PostgreSQL: it and the server are killed, the server is away, another daemon comes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurmbridge.cli import instance, throwaway
from slurmbridge.errors import BridgeError, SlurmErrno
from tests.store.postgresql import Server, running

pytestmark = [pytest.mark.processes, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
KILLS = "20"
GATE = "until [ -e gate ]; do sleep 0.05; done; echo done"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def daemon(commands: Path, server: Server) -> Iterator[throwaway.Throwaway]:
    with throwaway.opened(str(commands), database=server.records()) as made:
        yield made


def submit(daemon: throwaway.Throwaway, *words: str) -> subprocess.CompletedProcess[str]:
    return daemon.run(["sbatch", "--parsable", *words])


def until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.05)


def state(daemon: throwaway.Throwaway, job: str) -> str:
    return daemon.run(["sacct", "-X", "-n", "-P", "-o", "State", "-j", job]).stdout.strip()


def test_no_job_is_lost_repeated_or_stuck_however_often_the_daemon_is_killed(commands: Path, server: Server) -> None:
    soak = [sys.executable, str(ROOT / "integration/soak_kills.py"), "--bin", str(commands), "--kills", KILLS]
    answer = subprocess.run([*soak, "--database", server.records()], capture_output=True, text=True, timeout=900)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_while_the_server_is_away_jobs_run_on_and_submissions_are_refused_in_slurm_s_words(
    daemon: throwaway.Throwaway, server: Server
) -> None:
    work = Path(daemon.work)
    ends = submit(daemon, "-o", "out", "--wrap", GATE).stdout.strip()
    stays = submit(daemon, "-o", "/dev/null", "--wrap", "sleep 300").stdout.strip()
    until(lambda: set(daemon.run(["squeue", "-h", "-t", "R", "-o", "%i"]).stdout.split()) == {ends, stays})
    server.stop()
    until(lambda: submit(daemon, "-o", "/dev/null", "--wrap", "true").returncode != 0)
    refused = submit(daemon, "-o", "/dev/null", "--wrap", "true")
    assert refused.stderr == f"sbatch: error: Batch job submission failed: {SlurmErrno.IO_ERROR.text}\n"
    asked = daemon.run(["sacct", "-j", ends])
    assert asked.returncode == 1 and asked.stderr.startswith(
        "sacct: error: Problem talking to the database: PostgreSQL"
    )
    (work / "gate").touch()
    until(lambda: (work / "out").read_text() == "done\n")
    assert stays in daemon.run(["squeue", "-h", "-o", "%i"]).stdout.split(), "what memory knows is told"
    server.start()
    until(lambda: state(daemon, ends) == "COMPLETED")
    assert state(daemon, stays) == "RUNNING"
    again = submit(daemon, "-o", "again", "--wrap", "echo again")
    assert again.returncode == 0, again.stderr
    until(lambda: state(daemon, again.stdout.strip()) == "COMPLETED")


def test_a_killed_server_loses_nothing_that_sbatch_said(daemon: throwaway.Throwaway, server: Server) -> None:
    accepted: list[str] = []

    def is_taken() -> bool:
        answer = submit(daemon, "-o", "/dev/null", "--wrap", "true")
        accepted.extend(answer.stdout.split())
        return answer.returncode == 0

    for _ in range(3):
        until(is_taken)
        assert all(is_taken() for _ in range(8))
        server.kill()
        server.start()
    until(lambda: not daemon.run(["sacct", "-n"]).returncode)
    until(lambda: not daemon.run(["squeue", "-h"]).stdout)
    assert daemon.kill()
    daemon.up()
    rows = daemon.run(["sacct", "-X", "-n", "-P", "-D", "-o", "JobID,State"]).stdout.split()
    assert sorted(rows) == sorted(f"{job}|COMPLETED" for job in accepted)


def test_a_second_daemon_is_refused_with_what_to_do(daemon: throwaway.Throwaway, commands: Path) -> None:
    with throwaway.opened(str(commands), start=False, database=daemon.database) as other:
        with pytest.raises(BridgeError, match=r"another daemon has these records .*: stop it first"):
            other.up()
        assert other.pid is None
    assert submit(daemon, "-o", "/dev/null", "--wrap", "true").returncode == 0


def test_a_daemon_that_was_replaced_ends_and_says_why(
    daemon: throwaway.Throwaway, commands: Path, server: Server
) -> None:
    pid = daemon.pid
    assert pid is not None
    started = instance.start_time(pid)
    running_job = submit(daemon, "-o", "out", "--wrap", GATE).stdout.strip()
    until(lambda: state(daemon, running_job) == "RUNNING")
    with throwaway.opened(str(commands), start=False, database=daemon.database) as other:
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slurmbridge daemon'"
        server.ask(daemon.database, ending)
        other.up()  # before the first has looked after its session
        assert instance.wait_gone(pid, started, 60.0)
        log = Path(daemon.place.state, "daemon.log").read_text()
        assert "another daemon" in log.splitlines()[-1], log
        assert submit(other, "-o", "/dev/null", "--wrap", "true").returncode == 0


def test_a_state_folder_knows_its_records_again(
    daemon: throwaway.Throwaway, server: Server, commands: Path, tmp_path: Path
) -> None:
    first = submit(daemon, "-o", "/dev/null", "--wrap", "true").stdout.strip()
    until(lambda: state(daemon, first) == "COMPLETED")
    daemon.down()
    right, daemon.database = daemon.database, ""
    daemon.up()  # it is remembered
    assert state(daemon, first) == "COMPLETED"
    daemon.down()
    for wrong, why in (
        ("sqlite", "are in postgresql://"),
        (server.records(), "has other records than those that are looked for, or none"),
    ):
        daemon.database = wrong
        with pytest.raises(BridgeError, match=why):
            daemon.up()
    secret = tmp_path / "url"
    secret.write_text(right + "\n")
    secret.chmod(0o600)
    daemon.database = str(secret)
    daemon.up()
    assert state(daemon, first) == "COMPLETED"
