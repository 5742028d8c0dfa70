"""`slurmbridge backup` beside a daemon that works and is killed, and `slurmbridge restore` when it is down."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.cli import throwaway
from tests.patience import until

pytestmark = pytest.mark.processes
SACCT = ["sacct", "-a", "-n", "-X", "-P", "-o", "JobID,JobName,Submit,UID", "-S", "1970-01-01"]


@pytest.fixture
def daemon(commands: Path) -> Iterator[throwaway.Throwaway]:
    with throwaway.opened(str(commands), start=False) as made:
        made.up()
        yield made


def submit(daemon: throwaway.Throwaway, *words: str) -> int:
    answer = daemon.run(["sbatch", "--parsable", "-o", "/dev/null", *words])
    assert answer.returncode == 0, answer.stderr
    return int(answer.stdout)


def listed(daemon: throwaway.Throwaway) -> dict[str, str]:
    """Job id -> its line."""
    return {line.split("|")[0]: line for line in daemon.run(SACCT).stdout.splitlines()}


def test_a_restore_refuses_while_a_daemon_runs(daemon: throwaway.Throwaway, tmp_path: Path) -> None:
    state = daemon.place.state
    copy = str(tmp_path / "copy.db")
    assert daemon.run(["slurmbridge", "backup", copy, "--state", state]).returncode == 0
    answer = daemon.run(["slurmbridge", "restore", copy, "--state", state])
    assert answer.returncode == 1 and "another daemon uses the state folder" in answer.stderr
    assert daemon.run(["scontrol", "ping"]).returncode == 0


def test_what_was_acknowledged_before_a_backup_is_there_after_a_kill_and_a_restore(
    daemon: throwaway.Throwaway, tmp_path: Path
) -> None:
    state, stop = daemon.place.state, threading.Event()
    accepted: list[int] = []

    def work() -> None:
        while not stop.is_set():
            accepted.append(submit(daemon, "-J", f"j{len(accepted)}", "--wrap", "true"))

    held = submit(daemon, "--hold", "-J", "held", "--wrap", "true")
    running = submit(daemon, "-J", "long", "--wrap", "sleep 300")
    until(lambda: daemon.run(["squeue", "-h", "-o", "%T", "-j", str(running)]).stdout == "RUNNING\n")
    worker = threading.Thread(target=work)
    worker.start()
    until(lambda: len(accepted) >= 10 or not worker.is_alive())
    before = list(accepted)
    answer = daemon.run(["slurmbridge", "backup", str(tmp_path), "--state", state])
    stop.set()
    worker.join()
    assert answer.returncode == 0, answer.stderr
    copy = next(tmp_path.glob("slurmbridge-*.db"))
    everything = listed(daemon)
    assert daemon.kill()

    answer = daemon.run(["slurmbridge", "restore", str(copy), "--state", state])
    assert answer.returncode == 0, answer.stderr
    assert "what was there before: " in answer.stdout
    daemon.up()
    after = listed(daemon)
    assert {str(number) for number in (*before, running)} <= after.keys() <= everything.keys()
    assert all(everything[number] == line for number, line in after.items())
    assert daemon.run(["squeue", "-h", "-o", "%T", "-j", str(held)]).stdout == "PENDING\n"
    assert daemon.run(["squeue", "-h", "-o", "%T", "-j", str(running)]).stdout == "RUNNING\n"
    assert submit(daemon, "--wrap", "true") > max(accepted), "no id is given out twice"


def test_a_run_that_began_after_the_backup_is_ended_before_its_job_begins_anew(
    daemon: throwaway.Throwaway, tmp_path: Path
) -> None:
    state, copy, trace = daemon.place.state, str(tmp_path / "copy.db"), tmp_path / "trace"
    job = submit(daemon, "--hold", "--wrap", f"echo $$ >>{trace}; exec sleep 300")
    assert daemon.run(["slurmbridge", "backup", copy, "--state", state]).returncode == 0
    daemon.run(["scontrol", "release", str(job)])
    began(trace, 1)
    assert daemon.kill()
    answer = daemon.run(["slurmbridge", "restore", copy, "--state", state])
    assert answer.returncode == 0 and "ended: 1\n" in answer.stdout, answer.stdout + answer.stderr
    assert [name for name in os.listdir(os.path.join(state, "spool")) if name[0] != "."] == []
    daemon.up()
    assert daemon.run(["squeue", "-h", "-o", "%T %r"]).stdout == "PENDING JobHeldUser\n"
    daemon.run(["scontrol", "release", str(job)])
    began(trace, 2)


def began(trace: Path, times: int) -> None:
    until(lambda: trace.exists() and len(trace.read_text().split()) >= times, "the job does not begin")


def test_a_backup_that_is_killed_leaves_no_file_that_looks_like_one(
    daemon: throwaway.Throwaway, tmp_path: Path
) -> None:
    submit(daemon, "--wrap", "true")
    copy = tmp_path / "copy.db"
    process = subprocess.Popen(
        ["slurmbridge", "backup", str(copy), "--state", daemon.place.state], env=throwaway.environment(daemon)
    )
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (
        not copy.exists()
        or daemon.run(["slurmbridge", "restore", str(copy), "--state", str(tmp_path / "s")]).returncode == 0
    )
