"""Without a daemon a command fails in Slurm's words, after waiting only where somebody may come back."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from slurmbridge.cli.thin.absent import MESSAGE_TIMEOUT
from slurmbridge.cli.unreachable import unreachable
from slurmbridge.commands import table
from tests.cli.conftest import Run
from tests.cli.fake_daemon import FakeDaemon, Peer

LOST = "Unable to contact slurm controller (connect failure)"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("sbatch job.sh", ("", f"sbatch: error: Batch job submission failed: {LOST}\n", 1), id="sbatch"),
        pytest.param("sbatch --test-only job.sh", ("", f"allocation failure: {LOST}\n", 1), id="test-only"),
        pytest.param("squeue -u alice", ("", f"slurm_load_jobs error: {LOST}\n", 1), id="squeue"),
        pytest.param("sinfo", ("", f"slurm_load_partitions: {LOST}\n", 1), id="sinfo"),
        pytest.param("scancel 5", ("", f"scancel: error: Kill job error on job id 5: {LOST}\n", 8), id="scancel"),
        pytest.param("scancel -u alice", ("", f"slurm_load_jobs error: {LOST}\n", 1), id="scancel-user"),
        pytest.param("scontrol show job 1", ("", f"slurm_load_jobs error: {LOST}\n", 1), id="show-job"),
        pytest.param("scontrol show config", ("", f"slurm_load_ctl_conf error:{LOST}\n", 1), id="show-config"),
        pytest.param("scontrol show reservations", ("", f"slurm_load_reservations error: {LOST}\n", 1), id="show-res"),
        pytest.param("sshare", ("", f"Couldn't get shares from controller: {LOST}\n", 255), id="sshare"),
    ],
)
def test_an_unreachable_controller_is_told_in_slurms_words(line: str, expected: tuple[str, str, int]) -> None:
    """As Slurm 26.05.5 answers with a controller that refuses connections."""
    assert unreachable(line.split()) == expected


def test_a_ping_says_that_the_controller_is_down() -> None:
    out, err, code = unreachable(["scontrol", "ping"])
    assert out.startswith("Slurmctld(primary) at ") and out.endswith(" is DOWN\n")
    assert (err, code) == ("", 1)


@pytest.mark.parametrize("name", [name for name, entry in table.COMMANDS.items() if entry.missing])
def test_a_command_that_is_not_built_says_what_is_missing(name: str, run: Run) -> None:
    answer = run(name)
    assert answer.returncode == 1
    assert answer.stdout == b""
    assert answer.stderr.decode().startswith(f"{name}: error: not available in this release")


def test_the_version_needs_no_daemon(run: Run) -> None:
    assert run("sreport", "-V").stdout == b"slurm-wlm 26.05.5\n"


def dead_socket(path: Path) -> None:
    """A socket that nobody listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))


def test_no_daemon_fails_at_once(run: Run) -> None:
    def taken() -> float:
        began = time.monotonic()
        answer = run("squeue")
        assert answer.returncode == 1
        assert answer.stderr.decode() == f"slurm_load_jobs error: {LOST}\n"
        return time.monotonic() - began

    assert any(
        taken() < MESSAGE_TIMEOUT for _ in range(3)
    )  # a machine may stand still for a while, but not again and again


def test_a_daemon_that_restarts_is_waited_for(run: Run, folder: Path) -> None:
    dead_socket(folder / "socket")
    started: list[FakeDaemon] = []

    def talk(peer: Peer) -> None:
        peer.send(b"O", b"JOBID\n")
        peer.send(b"X", b"0")

    def come_back() -> None:
        time.sleep(0.8)
        (folder / "socket").unlink()
        started.append(FakeDaemon(folder / "socket", talk))

    thread = threading.Thread(target=come_back)
    thread.start()
    answer = run("squeue")
    thread.join()
    started[0].__exit__()
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, b"JOBID\n", b"")


def test_a_dead_personal_socket_is_passed_over_with_a_note(run: Run, folder: Path) -> None:
    (folder / "home" / "slurmbridge").mkdir(parents=True)
    dead_socket(folder / "home" / "slurmbridge" / "socket")
    answer = run("sreport", "-V", env={"SLURMBRIDGE_ADDR": "", "XDG_STATE_HOME": str(folder / "home")})
    assert answer.returncode == 0
