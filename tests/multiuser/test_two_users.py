"""Two users on one daemon of root: neither reaches the other's jobs, by commands, paths, processes or sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.multiuser.machine import Machine
from tests.patience import until

pytestmark = [pytest.mark.root, pytest.mark.slow]
SECRET = "the-secret-of-ann"


@pytest.fixture(scope="module")
def machine(open_prefix: Path) -> Iterator[Machine]:
    made = Machine(open_prefix)
    try:
        made.up()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def job(machine: Machine) -> str:
    """A running job of ann with a secret in its script and its environment."""
    script = machine.home("ann") / "job.sh"
    script.write_text(f"#!/bin/bash\n# {SECRET}\nid -u; id -g; id -G; pwd; umask\nsleep 600\n")
    script.chmod(0o644)
    job = machine.submit("ann", str(script), env={"TOKEN": SECRET})
    machine.wait_state(job, "RUNNING")
    output = machine.home("ann") / f"slurm-{job}.out"
    until(lambda: output.exists() and output.read_text().count("\n") == 5)
    return job


def test_a_job_runs_as_its_owner(machine: Machine, job: str) -> None:
    output = (machine.home("ann") / f"slurm-{job}.out").read_text().split("\n")
    assert output[:4] == ["61001", "61001", "61001 61100", str(machine.home("ann"))]


def test_the_output_belongs_to_the_owner(machine: Machine, job: str) -> None:
    status = (machine.home("ann") / f"slurm-{job}.out").stat()
    assert (status.st_uid, status.st_gid) == (61001, 61001)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("scancel", "{job}"), id="scancel"),
        pytest.param(("scancel", "-s", "USR1", "{job}"), id="signal"),
        pytest.param(("scontrol", "update", "jobid={job}", "timelimit=1"), id="update"),
        pytest.param(("scontrol", "hold", "{job}"), id="hold"),
        pytest.param(("scontrol", "requeue", "{job}"), id="requeue"),
        pytest.param(("scontrol", "suspend", "{job}"), id="suspend"),
        pytest.param(("scontrol", "write", "batch_script", "{job}", "-"), id="batch-script"),
        pytest.param(("srun", "--jobid={job}", "id"), id="srun"),
        pytest.param(("sattach", "{job}.batch"), id="sattach"),
        pytest.param(("slurmbridge", "logs", "--state", "{state}", "{job}"), id="logs"),
    ],
)
def test_another_user_cannot_touch_a_job(machine: Machine, job: str, words: tuple[str, ...]) -> None:
    answer = machine.run("ben", *(word.format(job=job, state=machine.state) for word in words))
    assert SECRET not in answer.stdout + answer.stderr
    said = answer.stdout + answer.stderr  # some of Slurm's commands exit 0 after a refusal
    assert answer.returncode != 0 or "denied" in said or "Invalid user id" in said
    assert machine.wait_state(job, "RUNNING") == "RUNNING"


@pytest.mark.parametrize(
    "words",
    [
        ("scontrol", "-d", "show", "job", "{job}"),
        ("squeue", "-j", "{job}", "-O", "all"),
        ("sacct", "-j", "{job}", "-o", "all", "-P"),
        ("sacct", "-j", "{job}", "--batch-script"),
        ("sacct", "-j", "{job}", "--env-vars"),
    ],
    ids=lambda words: "-".join(word.strip("-{}") for word in words),
)
def test_another_user_sees_neither_script_nor_environment(machine: Machine, job: str, words: tuple[str, ...]) -> None:
    answer = machine.run("ben", *(word.format(job=job) for word in words))
    assert SECRET not in answer.stdout + answer.stderr


def test_the_state_folder_is_closed(machine: Machine, job: str) -> None:
    find = f"find {machine.state} -readable ! -type s 2>/dev/null; grep -rls {SECRET} {machine.state}"
    answer = machine.run("ben", "sh", "-c", find)
    assert answer.stdout == ""


def test_no_socket_but_the_daemons_takes_another_user(machine: Machine, job: str) -> None:
    """Of every unix socket below the state folder, only STATE/socket may be connected to."""
    probe = (
        "import socket, sys\n"
        "for path in sys.argv[1:]:\n"
        "    with socket.socket(socket.AF_UNIX) as end:\n"
        "        try:\n"
        "            end.connect(path)\n"
        "        except OSError:\n"
        "            continue\n"
        "        print(path)\n"
    )
    sockets = machine.run("root", "find", str(machine.state), "-type", "s").stdout.split()
    answer = machine.run("ben", "/usr/bin/python3", "-c", probe, *sockets)
    assert answer.stdout.split() == [f"{machine.state}/socket"]


def test_processes_of_a_job_do_not_show_its_environment(machine: Machine, job: str) -> None:
    answer = machine.run("ben", "sh", "-c", f"cat /proc/*/environ 2>/dev/null | grep -c {SECRET}")
    assert answer.stdout.strip() == "0"


def test_a_job_cannot_write_where_its_owner_cannot(machine: Machine) -> None:
    target = machine.home("ann") / "stolen"
    job = machine.submit("ben", "-o", str(target), "--wrap", "true")
    machine.wait_state(job, "FAILED", "CANCELLED", "COMPLETED", "NODE_FAIL")
    assert not target.exists()


def test_a_user_cannot_stop_the_daemon_or_drain_its_nodes(machine: Machine) -> None:
    for words in (
        ("slurmbridge", "down", "--state", str(machine.state)),
        ("scontrol", "update", "nodename=m1", "state=down", "reason=x"),
    ):
        assert machine.run("ben", *words).returncode != 0
    assert machine.run("ben", "sinfo", "-h").returncode == 0


def test_the_owner_may_do_all_this(machine: Machine, job: str) -> None:
    script = machine.run("ann", "scontrol", "write", "batch_script", job, "-")
    assert SECRET in script.stdout
    assert machine.run("ann", "scancel", job).returncode == 0
    machine.wait_state(job, "CANCELLED")
