"""Records move between SQLite and PostgreSQL by `slurmbridge backup` and `restore --database`, under jobs that run."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.cli import throwaway
from slurmbridge.errors import BridgeError
from tests.store.postgresql import Server, running

pytestmark = pytest.mark.processes
SACCT = ["sacct", "-a", "-n", "-X", "-P", "-D", "-o", "JobID,JobName,Submit,UID", "-S", "1970-01-01"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def daemon(commands: Path) -> Iterator[throwaway.Throwaway]:
    with throwaway.opened(str(commands)) as made:
        yield made


def submit(daemon: throwaway.Throwaway, *words: str) -> int:
    answer = daemon.run(["sbatch", "--parsable", "-o", "/dev/null", *words])
    assert answer.returncode == 0, answer.stderr
    return int(answer.stdout)


def until(daemon: throwaway.Throwaway, job: int, state: str) -> None:
    end = time.monotonic() + 60
    while daemon.run(["sacct", "-n", "-X", "-P", "-o", "State", "-j", str(job)]).stdout != f"{state}\n":
        assert time.monotonic() < end, f"the job does not become {state}"
        time.sleep(0.05)


def listed(daemon: throwaway.Throwaway) -> list[str]:
    """The jobs of which there are records."""
    return sorted(line.partition("|")[0] for line in daemon.run(SACCT).stdout.splitlines())


def bridge(daemon: throwaway.Throwaway, *words: str) -> subprocess.CompletedProcess[str]:
    return daemon.run(["slurmbridge", *words, "--state", daemon.place.state])


def test_records_go_to_a_server_and_back_under_a_job_that_runs(
    daemon: throwaway.Throwaway, server: Server, tmp_path: Path
) -> None:
    state, url = Path(daemon.place.state), server.records()
    long = submit(daemon, "-J", "long", "-N2", "--exclusive", "--wrap", "sleep 600")
    until(daemon, long, "RUNNING")
    waits = submit(daemon, "-J", "waits", "--wrap", "true")
    daemon.run(["sacctmgr", "-i", "add", "account", "physics"])
    before = sorted(daemon.run(SACCT).stdout.splitlines())
    assert len(before) == 2

    assert bridge(daemon, "down").returncode == 0
    daemon.database = url
    daemon.up()
    daemon.database = ""  # it is remembered
    assert not (state / "state.db").exists() and list(state.glob("state.db.before-*")), "what was there is kept aside"
    assert sorted(daemon.run(SACCT).stdout.splitlines()) == before
    assert daemon.run(["squeue", "-h", "-o", "%T", "-j", str(long)]).stdout == "RUNNING\n"
    assert "physics" in daemon.run(["sacctmgr", "-n", "-P", "show", "account", "format=account"]).stdout
    more = submit(daemon, "-J", "more", "--wrap", "true")
    assert more == waits + 1 and server.ask(url, "SELECT count(*) FROM runs") == [(3,)]
    examined = bridge(daemon, "doctor").stdout
    assert f"records: PostgreSQL postgres at {server.folder} port 5432, release " in examined

    assert bridge(daemon, "backup", str(tmp_path / "back.db")).returncode == 0
    while_up = bridge(daemon, "restore", str(tmp_path / "back.db"))
    assert while_up.returncode == 1 and "another daemon uses the state folder" in while_up.stderr
    gone = submit(daemon, "-J", "after", "--wrap", "true")
    assert bridge(daemon, "down").returncode == 0
    back = bridge(daemon, "restore", str(tmp_path / "back.db"), "--database=sqlite")
    assert back.returncode == 0, back.stderr
    assert (state / "state.db").exists() and not (state / "database").exists()
    daemon.up()
    assert listed(daemon) == [str(long), str(waits), str(more)]
    assert daemon.run(["squeue", "-h", "-o", "%T", "-j", str(long)]).stdout == "RUNNING\n"
    last = submit(daemon, "--wrap", "true")
    assert last > gone, "no id is given out twice"

    assert bridge(daemon, "down").returncode == 0
    daemon.database = url
    with pytest.raises(BridgeError, match="has records already, and the state folder"):
        daemon.up()
    over = bridge(daemon, "restore", str(tmp_path / "back.db"), f"--database={url}")
    assert over.returncode == 0 and over.stdout.count("what was there before: ") == 2, over.stdout + over.stderr
    daemon.up()
    assert submit(daemon, "--wrap", "true") > last


def test_a_restored_server_is_as_at_the_backup_and_what_was_there_is_kept(
    commands: Path, server: Server, tmp_path: Path
) -> None:
    with throwaway.opened(str(commands), database=server.records()) as daemon:
        first = submit(daemon, "-J", "first", "--wrap", "true")
        until(daemon, first, "COMPLETED")
        assert bridge(daemon, "backup", str(tmp_path / "copy.db")).returncode == 0
        second = submit(daemon, "-J", "second", "--wrap", "sleep 600")
        until(daemon, second, "RUNNING")
        assert daemon.kill()
        answer = bridge(daemon, "restore", str(tmp_path / "copy.db"))
        assert answer.returncode == 0, answer.stderr
        assert "ended: 1\n" in answer.stdout and "what was there before: " in answer.stdout
        daemon.up()
        assert listed(daemon) == [str(first)]
        assert submit(daemon, "--hold", "--wrap", "true") == second + 1 > first
        kept = str(next(Path(daemon.place.state).glob("state.db.before-*")))
        assert daemon.run(["slurmbridge", "restore", kept, "--state", str(tmp_path / "other")]).stdout.count(
            "2 job records"
        )
