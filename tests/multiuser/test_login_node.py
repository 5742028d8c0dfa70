"""Two users of a login node whose agent and daemon are processes of their own: what they type, who they are, what they outlive."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.multiuser.machine import Machine

pytestmark = [pytest.mark.root, pytest.mark.slow]
WITHIN = 30.0


class LoginNode:
    """The agent's socket is not beside the daemon's files, so that nothing of the daemon's host is found there."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.socket = machine.folder / "login" / "socket"
        self.keys = machine.folder / "keys"
        self.env = {"SLURMBRIDGE_ADDR": f"unix:{self.socket}"}
        self.agent: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        self.machine.up("--remote", f"127.0.0.1:{self.port}")

    def enrol(self, name: str) -> None:
        answer = self.machine.run(
            "root", "slurmbridge", "agent-credentials", name, "--state", str(self.machine.state), "--out", str(self.keys)
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr

    def begin(self) -> None:
        """The agent, answering."""
        words = ("--daemon", f"127.0.0.1:{self.port}", "--credentials", str(self.keys), "--socket", str(self.socket))
        enter = ["nsenter", "--target", str(self.machine.holder.pid), "--mount"]
        log = (self.machine.folder / "agent.log").open("ab")
        with log:
            self.agent = subprocess.Popen(
                [*enter, f"{self.machine.prefix}/bin/slurmbridge", "agent", *words], stderr=log, stdout=log
            )
        until(lambda: self.run("ann", "squeue", "-h").returncode == 0)

    def kill(self) -> None:
        assert self.agent is not None
        self.agent.kill()
        self.agent.wait()

    def run(self, user: str, *argv: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        return self.machine.run(user, *argv, env=self.env, stdin=stdin)

    def start(self, user: str, *argv: str) -> subprocess.Popen[bytes]:
        return self.machine.start(user, *argv, env=self.env)

    def jobs(self, user: str) -> list[str]:
        """Ids of all jobs of a user."""
        return self.run(user, "sacct", "-n", "-X", "-P", "-o", "JobID", "-u", user).stdout.split()


def until(true: Callable[[], bool], limit: float = WITHIN) -> None:
    end = time.monotonic() + limit
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def node(open_prefix: Path) -> Iterator[LoginNode]:
    machine = Machine(open_prefix)
    made = LoginNode(machine)
    try:
        made.up()
        made.enrol("login1")
        made.begin()
        yield made
    finally:
        if made.agent is not None:
            made.kill()
        machine.close()


@pytest.fixture
def job(node: LoginNode) -> Iterator[str]:
    """A running job of ann."""
    found = node.run("ann", "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600").stdout.strip()
    node.machine.wait_state(found, "RUNNING")
    yield found
    node.run("ann", "scancel", found)


def test_a_job_is_its_users_and_knows_the_daemon_of_its_node(node: LoginNode) -> None:
    script = "id -u; id -G; echo $SLURMBRIDGE_ADDR; srun sh -c 'echo $SLURMBRIDGE_ADDR'; squeue -h -o %i"
    answer = node.run("ann", "sbatch", "--wait", "--parsable", "-o", "job.out", "--wrap", script)
    assert (answer.returncode, answer.stderr) == (0, "")
    address = f"unix:{node.machine.state}/socket"
    said = (node.machine.home("ann") / "job.out").read_text().split("\n")
    assert said[:5] == ["61001", "61001 61100", address, address, answer.stdout.strip()]


def test_what_srun_is_fed_comes_out_whole(node: LoginNode) -> None:
    data = b"".join(b"%07d\n" % number for number in range(400_000))
    answer = node.run("ann", "srun", "-n1", "cat", stdin=data)
    assert answer.returncode == 0
    assert answer.stdout.encode() == data


def test_steps_of_other_tasks_and_exit_codes_come_back(node: LoginNode) -> None:
    answer = node.run("ben", "srun", "-n3", "-l", "sh", "-c", "id -u; exit $SLURM_PROCID")
    assert answer.returncode == 2
    assert sorted(answer.stdout.splitlines()) == ["0: 61002", "1: 61002", "2: 61002"]


def test_salloc_has_its_steps_through_the_agent(node: LoginNode) -> None:
    answer = node.run("ann", "salloc", "-n2", "srun", "sh", "-c", "echo $SLURM_PROCID")
    assert answer.returncode == 0, answer.stderr
    assert sorted(answer.stdout.split()) == ["0", "1"]


def test_files_and_output_of_a_running_job_go_through_the_agent(node: LoginNode) -> None:
    (node.machine.home("ann") / "given").write_text("given\n")
    answer = node.run("ann", "salloc", "-n1", "sh", "-c", "sbcast -f given $PWD/copied && srun cat copied")
    assert (answer.returncode, answer.stdout) == (0, "given\n"), answer.stderr
    words = "srun -n1 sh -c 'sleep 1; echo from the step' & sleep 0.5; sattach $SLURM_JOB_ID.0 >attached; wait"
    answer = node.run("ann", "salloc", "-n1", "sh", "-c", words)
    assert "from the step" in (node.machine.home("ann") / "attached").read_text(), answer.stderr


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("scancel", "{job}"), id="scancel"),
        pytest.param(("scontrol", "update", "jobid={job}", "timelimit=1"), id="update"),
        pytest.param(("scontrol", "write", "batch_script", "{job}", "-"), id="batch-script"),
        pytest.param(("srun", "--jobid={job}", "id"), id="srun"),
        pytest.param(("sattach", "{job}.batch"), id="sattach"),
    ],
)
def test_another_user_cannot_touch_a_job(node: LoginNode, job: str, words: tuple[str, ...]) -> None:
    answer = node.run("ben", *(word.format(job=job) for word in words))
    said = answer.stdout + answer.stderr
    assert answer.returncode != 0 or "denied" in said or "Invalid user id" in said
    assert node.machine.wait_state(job, "RUNNING") == "RUNNING"


@pytest.mark.parametrize("words", [("squeue",), ("scontrol", "shutdown"), ("sbatch", "--wrap", "id")], ids=" ".join)
def test_root_of_the_login_node_is_nobody(node: LoginNode, words: tuple[str, ...]) -> None:
    answer = node.run("root", *words)
    assert answer.returncode == 1
    assert "rules nothing here" in answer.stderr


def test_a_submission_outlives_its_agent_and_is_made_once(node: LoginNode) -> None:
    before = node.jobs("ann")
    begun = node.start("ann", "sbatch", "--wait", "--parsable", "-o", "/dev/null", "--wrap", "sleep 3; exit 5")
    until(lambda: len(node.jobs("ann")) == len(before) + 1)
    node.kill()
    time.sleep(0.5)
    node.begin()
    out, err = begun.communicate(timeout=WITHIN)
    assert (begun.returncode, err) == (5, b"")
    assert node.jobs("ann") == [*before, out.decode().strip()]


def test_an_srun_that_waits_for_its_turn_outlives_its_agent(node: LoginNode) -> None:
    blocker = node.run(
        "ann", "sbatch", "--parsable", "-o", "/dev/null", "-N2", "--exclusive", "--wrap", "sleep 600"
    ).stdout
    node.machine.wait_state(blocker.strip(), "RUNNING")
    before = node.jobs("ben")
    begun = node.start("ben", "srun", "-n1", "echo", "done")
    until(lambda: len(node.jobs("ben")) == len(before) + 1)
    node.kill()
    time.sleep(0.5)
    node.begin()
    node.run("ann", "scancel", blocker.strip())
    out, err = begun.communicate(timeout=WITHIN)
    assert (begun.returncode, out) == (0, b"done\n"), err
    assert len(node.jobs("ben")) == len(before) + 1


def test_a_step_ends_with_the_agent_and_srun_says_so(node: LoginNode) -> None:
    mark = node.machine.home("ann") / "begun"
    begun = node.start("ann", "srun", "-n1", "sh", "-c", f"echo $$ >{mark}; sleep 600")
    until(mark.exists)
    node.kill()
    time.sleep(0.3)
    node.begin()
    _, err = begun.communicate(timeout=WITHIN)
    assert begun.returncode == 1
    assert b"the connection to it was cut" in err
    until(lambda: not node.run("ann", "squeue", "-h", "-u", "ann").stdout)


def test_commands_wait_for_a_daemon_that_is_started_again(node: LoginNode) -> None:
    before = node.jobs("ann")
    begun = node.start("ann", "sbatch", "--wait", "--parsable", "-o", "/dev/null", "--wrap", "sleep 4; exit 6")
    until(lambda: len(node.jobs("ann")) == len(before) + 1)
    pid = int((node.machine.state / "daemon.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)
    asked = node.start("ben", "squeue", "-h", "-u", "ann", "-o", "%u")
    node.up()
    out, err = begun.communicate(timeout=WITHIN)
    assert (begun.returncode, err) == (6, b"")
    assert node.jobs("ann") == [*before, out.decode().strip()]
    out, err = asked.communicate(timeout=WITHIN)
    assert (asked.returncode, out) == (0, b"ann\n"), err


def test_two_hundred_connections_are_served(node: LoginNode) -> None:
    program = (
        "import sys, threading\n"
        "from slurmbridge.cli.connection import Connection\n"
        "held = [Connection(sys.argv[1]) for _ in range(200)]\n"
        "found = []\n"
        "def ask(one, number): found.append(one.run(['squeue', '-h', '-o', str(number)]).code)\n"
        "for _ in range(2):\n"
        "    threads = [threading.Thread(target=ask, args=pair) for pair in zip(held, range(200))]\n"
        "    [each.start() for each in threads]; [each.join() for each in threads]\n"
        "print(found.count(0))\n"
    )
    answer = node.run("ben", f"{node.machine.prefix}/bin/python3", "-c", program, str(node.socket))
    assert answer.stdout == "400\n", answer.stderr


def test_a_second_agent_does_not_take_the_socket(node: LoginNode) -> None:
    words = ("--daemon", f"127.0.0.1:{node.port}", "--credentials", str(node.keys), "--socket", str(node.socket))
    answer = node.machine.run("root", "slurmbridge", "agent", *words)
    assert answer.returncode == 1 and "another agent has this socket" in answer.stderr


def test_a_user_cannot_be_an_agent(node: LoginNode) -> None:
    words = ("--daemon", f"127.0.0.1:{node.port}", "--credentials", str(node.keys), "--socket", "mine/socket")
    answer = node.machine.run("ben", "slurmbridge", "agent", *words)
    assert answer.returncode == 1 and "Permission denied" in answer.stderr
    answer = node.machine.run(
        "ben", "slurmbridge", "agent-credentials", "x", "--state", str(node.machine.state), "--out", "k"
    )
    assert answer.returncode == 1


def test_a_daemon_of_one_user_lets_nobody_in_from_elsewhere(node: LoginNode) -> None:
    answer = node.machine.run("ben", "slurmbridge", "up", "--state", "own", "--remote", "127.0.0.1:1")
    assert answer.returncode == 1
    assert answer.stderr.splitlines() == [
        "slurmbridge: error: --remote lets users of other machines in, and this daemon serves you alone: start it as root, "
        "or in a pod"
    ]


def test_a_revoked_agent_is_refused_with_words(node: LoginNode) -> None:
    """The last of all: the login node is shut out."""
    words = ("slurmbridge", "agent-credentials", "--revoke", "login1", "--state", str(node.machine.state))
    assert node.machine.run("root", *words).returncode == 0
    until(lambda: node.run("ann", "squeue").returncode == 1)
    assert "is not let in" in node.run("ann", "squeue").stderr
