"""A user with a token of his own at an https:// address: the same commands, as himself alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.multiuser.login import LoginNode, ended
from tests.multiuser.machine import Machine
from tests.patience import until

pytestmark = [pytest.mark.root, pytest.mark.slow]
SAVE = "umask 077; mkdir -p .config/slurmbridge; slurmbridge token --days 3 >.config/slurmbridge/token"


@pytest.fixture(scope="module")
def node(open_prefix: Path) -> Iterator[LoginNode]:
    machine = Machine(open_prefix)
    made = LoginNode(machine)
    try:
        made.up()
        made.env = {"SLURMBRIDGE_ADDR": f"https://127.0.0.1:{made.port}"}
        assert machine.run("ann", "sh", "-c", SAVE).returncode == 0
        yield made
    finally:
        machine.close()


def test_a_job_and_its_steps_are_the_users_of_the_token(node: LoginNode) -> None:
    answer = node.run("ann", "sbatch", "--wait", "--parsable", "-o", "job.out", "--wrap", "id -u; id -G; srun id -u")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert (node.machine.home("ann") / "job.out").read_text() == "61001\n61001 61100\n61001\n"
    assert "ann" in node.run("ann", "sacct", "-n", "-o", "user", "-j", answer.stdout.strip()).stdout


def test_what_srun_is_fed_comes_out_whole(node: LoginNode) -> None:
    node.check_feeding()


def test_salloc_and_exit_codes(node: LoginNode) -> None:
    answer = node.run("ann", "salloc", "-n2", "sh", "-c", "srun sh -c 'exit $SLURM_PROCID'; echo $?")
    assert answer.stdout.split() == ["1"], answer.stderr


def test_an_interrupted_salloc_gives_its_allocation_back(node: LoginNode) -> None:
    mark = node.machine.home("ann") / "holds"
    begun = node.start("ann", "salloc", "-n1", "sh", "-c", f"echo $$ >{mark}; exec sleep 600")
    until(lambda: mark.exists() and bool(mark.read_text()))
    os.kill(int(mark.read_text()), signal.SIGTERM)
    ended(begun)
    until(lambda: not node.run("ann", "squeue", "-h").stdout)


def test_a_killed_client_leaves_no_allocation_and_no_process(node: LoginNode) -> None:
    mark = node.machine.home("ann") / "killed"
    begun = node.start("ann", "salloc", "-n1", "sh", "-c", f"echo $PPID $$ >{mark}; exec sleep 600")
    until(lambda: mark.exists() and bool(mark.read_text()))
    client, command = map(int, mark.read_text().split())
    os.kill(client, signal.SIGKILL)
    until(lambda: not node.run("ann", "squeue", "-h").stdout)
    os.kill(command, signal.SIGKILL)  # which has its own life, as beside Slurm's salloc
    ended(begun)
    until(lambda: not any("cli/thin" in line for line in node.machine.processes()), node.machine.processes)


def test_a_daemon_that_is_started_again_is_waited_for(node: LoginNode) -> None:
    before = node.jobs("ann")
    begun, go = node.submit_waiting(4)
    node.kill_daemon()
    node.up()
    go.touch()
    code, out, err = ended(begun)
    assert (code, err) == (4, b"")
    assert node.jobs("ann") == [*before, out.decode().strip()]


def test_jobs_of_others_stay_theirs(node: LoginNode) -> None:
    job = node.machine.submit("ben", "-o", "/dev/null", "--wrap", "sleep 600")
    node.machine.wait_state(job, "RUNNING")
    assert "Access/permission denied" in node.run("ann", "scancel", job).stderr
    assert node.run("ann", "srun", f"--jobid={job}", "id").returncode == 1
    assert node.machine.wait_state(job, "RUNNING") == "RUNNING"
    assert node.machine.run("ben", "scancel", job).returncode == 0


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param("rm token", "No such file", id="none"),
        pytest.param("chmod 644 token", "not yours alone", id="read-by-others"),
        pytest.param("echo x >token", "is no token", id="no-token"),
        pytest.param("sed -i 's/[.][0-9a-f]*$/.00000000/' token", "not good any more", id="another-secret"),
        pytest.param("sed -i 's/-1[.]...../-1.00000/' token", "not the one that made", id="another-daemon"),
    ],
)
def test_a_token_that_will_not_do_is_told(node: LoginNode, spoil: str, says: str) -> None:
    folder = node.machine.home("ann") / ".config/slurmbridge"
    kept = (folder / "token").read_bytes()
    try:
        assert node.run("ann", "sh", "-c", f"cd .config/slurmbridge; {spoil}").returncode == 0
        for words in (("squeue",), ("sbatch", "--wrap", "true"), ("srun", "true"), ("slurmbridge", "why", "1")):
            answer = node.run("ann", *words)
            assert answer.returncode == 1
            assert says in answer.stderr
    finally:
        (folder / "token").unlink(missing_ok=True)
        node.machine.run("ann", "sh", "-c", "umask 077; >.config/slurmbridge/token")
        (folder / "token").write_bytes(kept)


def test_another_address_is_told(node: LoginNode) -> None:
    for address, says in (("http://127.0.0.1:1", "neither unix:/PATH nor https"), ("https://127.0.0.1", "neither")):
        answer = node.machine.run("ann", "squeue", env={"SLURMBRIDGE_ADDR": address})
        assert answer.returncode == 1 and says in answer.stderr


def test_root_has_no_token_and_a_token_makes_none(node: LoginNode) -> None:
    assert "has no token" in node.machine.run("root", "slurmbridge", "token").stderr
    assert "makes no tokens" in node.run("ann", "slurmbridge", "token").stderr


def test_a_revoked_token_is_worth_nothing(node: LoginNode) -> None:
    """The last of all."""
    name = (node.machine.home("ann") / ".config/slurmbridge/token").read_text().split(".")[2]
    assert name in node.run("ann", "slurmbridge", "token", "--list").stdout
    assert node.run("ann", "slurmbridge", "token", "--revoke", name).returncode == 0
    assert "not good any more" in node.run("ann", "squeue").stderr
