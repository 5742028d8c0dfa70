"""`slurmbridge up, status, down`: a daemon comes up, is found, refuses a twin, and goes; failures say why."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.cli import instance, throwaway
from slurmbridge.errors import BridgeError
from tests.patience import until

pytestmark = pytest.mark.processes


@pytest.fixture
def daemon(commands: Path) -> Iterator[throwaway.Throwaway]:
    with throwaway.opened(str(commands), start=False) as made:
        yield made


def test_a_detached_daemon_answers_at_once_and_stops_when_told(daemon: throwaway.Throwaway) -> None:
    daemon.up()
    pid = daemon.pid
    assert pid is not None
    status = daemon.run(["slurmbridge", "status", "--state", daemon.place.state])
    assert status.returncode == 0
    assert f"pid={pid} address={daemon.place.address}" in status.stdout
    assert daemon.run(["scontrol", "ping"]).returncode == 0
    assert daemon.run(["slurmbridge", "down", "--state", daemon.place.state]).returncode == 0
    assert daemon.pid is None
    assert daemon.run(["slurmbridge", "status", "--state", daemon.place.state]).returncode == 1


def test_a_second_daemon_with_the_same_state_is_refused(daemon: throwaway.Throwaway) -> None:
    daemon.up()
    with pytest.raises(BridgeError, match="runs already"):
        daemon.up()


def test_a_killed_daemon_comes_up_again(daemon: throwaway.Throwaway) -> None:
    daemon.up()
    assert daemon.kill()
    daemon.up()
    assert daemon.run(["squeue"]).returncode == 0


def test_jobs_of_a_killed_daemon_are_ended_by_the_next_when_it_is_told_at_once(daemon: throwaway.Throwaway) -> None:
    daemon.up()
    assert daemon.run(["sbatch", "-o", "/dev/null", "--wrap", "sleep 300"]).returncode == 0
    until(lambda: daemon.run(["squeue", "-h", "-o", "%T"]).stdout == "RUNNING\n")
    assert daemon.kill()
    daemon.up()
    answer = daemon.run(["slurmbridge", "down", "--state", daemon.place.state, "--jobs"])
    assert (answer.returncode, answer.stderr, daemon.pid) == (0, "", None)
    daemon.up()
    assert daemon.run(["squeue", "-h"]).stdout == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("ClusterName=x\nNoSuchKey=1\n", "slurm.conf:2", id="unknown-key"),
        pytest.param(None, "No such file", id="missing"),
    ],
)
def test_a_configuration_that_is_wrong_is_told_by_up(
    daemon: throwaway.Throwaway, text: str | None, reason: str
) -> None:
    Path(daemon.conf).unlink()
    if text is not None:
        Path(daemon.conf).write_text(text)
    with pytest.raises(BridgeError, match=reason):
        daemon.up()


def test_a_stale_pid_file_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "daemon.pid").write_text("1 1\n")
    assert instance.running_pid(instance.locate(str(tmp_path))) is None


@pytest.mark.parametrize("option", ["--kubeconfig", "--namespace", "--listen", "--advertise"])
def test_what_is_of_a_cluster_is_refused_without_one(daemon: throwaway.Throwaway, option: str) -> None:
    answer = daemon.run(["slurmbridge", "up", option, "x:1"])
    assert answer.returncode == 1 and f"{option} goes with --kube alone" in answer.stderr


def test_a_site_file_that_is_not_there_is_told(daemon: throwaway.Throwaway) -> None:
    answer = daemon.run(["slurmbridge", "up", "--site", "x"])
    assert answer.returncode == 1
    assert "/x: No such file or directory" in answer.stderr


def test_check_config_lists_what_has_no_effect(daemon: throwaway.Throwaway) -> None:
    answer = daemon.run(["slurmbridge", "check-config", daemon.conf])
    assert answer.returncode == 0, answer.stderr
    assert "2 nodes, 1 partitions" in answer.stdout


def test_why_tells_what_holds_a_job_and_logs_where_its_output_is(daemon: throwaway.Throwaway) -> None:
    daemon.up()
    job = daemon.run(["sbatch", "--parsable", "-H", "-o", "out-%j", "--wrap", "true"]).stdout.strip()
    why = daemon.run(["slurmbridge", "why", job])
    assert (why.returncode, why.stderr) == (0, "")
    assert why.stdout.startswith(f"{job} PENDING JobHeldUser: its owner holds it\n")
    assert f"scontrol release {job}" in why.stdout
    logs = daemon.run(["slurmbridge", "logs", job])
    assert (logs.returncode, logs.stdout) == (1, "")
    assert logs.stderr == f"slurmbridge: error: {job} has not begun; its output will be in {daemon.work}/out-{job}\n"
    assert daemon.run(["slurmbridge", "why", "999999"]).returncode == 1


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="must be root to give a folder away")
@pytest.mark.parametrize(
    ("uid", "mode", "reason"),
    [
        pytest.param(61006, 0o755, "it belongs to another user", id="another-user"),
        pytest.param(0, 0o1777, "everybody may write there", id="open-to-all"),
    ],
)
def test_a_state_folder_that_others_rule_is_refused(
    commands: Path, tmp_path: Path, uid: int, mode: int, reason: str
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(mode)
    os.chown(state, uid, -1)
    answer = subprocess.run(
        [commands / "slurmbridge", "up", "--detach", "--state", state], capture_output=True, text=True
    )
    assert answer.returncode == 1
    assert reason in answer.stderr
    assert list(state.iterdir()) == []


@pytest.mark.root
def test_the_overflow_user_has_no_daemon(open_prefix: Path, tmp_path: Path) -> None:
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(open_prefix / "bin/slurmbridge"), "up"]
    answer = subprocess.run([*argv, "--state", "/tmp/of-nobody"], capture_output=True, text=True, cwd="/")
    assert answer.returncode == 1
    assert "the overflow user" in answer.stderr


def test_figures_are_told_where_the_administrator_says_so(daemon: throwaway.Throwaway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ["slurmbridge", "up", "--slurm-conf", daemon.conf, "--state", daemon.place.state, "--detach"]
        answer = daemon.run([*words, f"--metrics=127.0.0.1:{port}"])
        assert answer.returncode == 1 and f"--metrics=127.0.0.1:{port}: " in answer.stderr
    assert daemon.run([*words, f"--metrics=127.0.0.1:{port}"]).returncode == 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        text = page.read().decode()
    assert 'slurmbridge_nodes{state="idle"} 2\n' in text and "slurmbridge_store_commits_total " in text


def test_a_socket_elsewhere_is_refused_on_virtual_nodes(daemon: throwaway.Throwaway) -> None:
    answer = daemon.run(["slurmbridge", "up", "--socket", "x"])
    assert answer.returncode == 1 and "--socket goes with --kube alone" in answer.stderr


def test_a_socket_elsewhere_is_found_by_the_state_folder(tmp_path: Path) -> None:
    (tmp_path / "daemon.pid").write_text("1 1 /run/a b/socket\n")
    assert instance.locate(str(tmp_path)).socket == "/run/a b/socket"
    assert instance.intended(str(tmp_path)).socket == f"{tmp_path}/socket"


def test_the_doctor_finds_a_daemon_that_answers_and_one_that_does_not(daemon: throwaway.Throwaway) -> None:
    words = ["slurmbridge", "doctor", "--json", "--state", daemon.place.state, "--slurm-conf", daemon.conf]

    def found() -> dict[str, str]:
        answer = daemon.run(words)
        findings = json.loads(answer.stdout)["findings"]
        assert answer.returncode == int(any(each["level"] == "error" for each in findings)), answer.stdout
        return {each["check"]: each["text"] for each in findings}

    assert "no daemon runs" in found()["daemon"]
    daemon.up()
    assert found()["daemon"] == f"daemon pid={daemon.pid} at {daemon.place.address}"
    assert daemon.pid is not None
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        assert "does not answer" in found()["daemon"]
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def test_the_doctor_looks_at_a_cluster_only_when_it_is_told_to(daemon: throwaway.Throwaway) -> None:
    answer = daemon.run(["slurmbridge", "doctor", "--namespace", "x"])
    assert answer.returncode == 1 and "go with --kube alone" in answer.stderr
    answer = daemon.run(["slurmbridge", "doctor", "--kube", "--kubeconfig", "nowhere", "--state", daemon.place.state])
    assert answer.returncode == 1
    assert "/nowhere: no such file" in answer.stdout or "not installed" in answer.stdout
