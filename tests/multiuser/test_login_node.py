"""Two users of a login node whose agent and daemon are processes of their own: what they type, who they are, what they outlive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.multiuser.login import LoginNode, ended
from tests.multiuser.machine import Machine
from tests.patience import until

pytestmark = [pytest.mark.root, pytest.mark.slow]


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
    node.check_feeding()


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
    words = (
        "srun -n1 sh -c 'until [ -e seen ]; do echo here; sleep 0.1; done; echo from the step' &\n"
        "until squeue -hs -o %i | grep -q $SLURM_JOB_ID.0; do sleep 0.1; done\n"
        "sattach $SLURM_JOB_ID.0 >attached & until grep -q here attached; do sleep 0.1; done; touch seen; wait"
    )
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
    begun, go = node.submit_waiting(5)
    node.kill()
    node.begin()
    go.touch()
    code, out, err = ended(begun)
    assert (code, err) == (5, b"")
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
    node.begin()
    node.run("ann", "scancel", blocker.strip())
    code, out, err = ended(begun)
    assert (code, out) == (0, b"done\n"), err
    assert len(node.jobs("ben")) == len(before) + 1


def test_a_step_ends_with_the_agent_and_srun_says_so(node: LoginNode) -> None:
    mark = node.machine.home("ann") / "begun"
    begun = node.start("ann", "srun", "-n1", "sh", "-c", f"echo $$ >{mark}; sleep 600")
    until(mark.exists)
    node.kill()
    node.begin()
    code, _, err = ended(begun)
    assert code == 1
    assert b"the connection to it was cut" in err
    until(lambda: not node.run("ann", "squeue", "-h", "-u", "ann").stdout)


def test_commands_wait_for_a_daemon_that_is_started_again(node: LoginNode) -> None:
    before = node.jobs("ann")
    begun, go = node.submit_waiting(6)
    node.kill_daemon()
    asked = node.start("ben", "squeue", "-h", "-u", "ann", "-o", "%u")
    node.up()
    code, out, err = ended(asked)
    assert (code, out) == (0, b"ann\n"), err
    go.touch()
    code, out, err = ended(begun)
    assert (code, err) == (6, b"")
    assert node.jobs("ann") == [*before, out.decode().strip()]


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
