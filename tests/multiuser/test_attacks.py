"""What one user may try against another on a daemon of root, beyond what commands offer."""

from __future__ import annotations

import json
import os
import secrets
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.multiuser.machine import SHARED_GROUP, Machine
from tests.patience import until

pytestmark = [pytest.mark.root, pytest.mark.slow]
SECRET = f"secret-of-ann-{secrets.token_hex(8)}"


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
    """A gang of ann's with a running step, its secret in script, arguments and environment."""
    script = machine.home("ann") / "job.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH -N2\n# {SECRET}\nsrun sleep 600\n")
    job = machine.submit("ann", str(script), f"--{SECRET}", env={"TOKEN": SECRET})
    machine.wait_state(job, "RUNNING")
    until(lambda: f"{job}.0" in machine.run("ann", "squeue", "-s", "-h", "-o", "%i").stdout)
    return job


def output_of(machine: Machine, user: str, *words: str) -> str:
    job = machine.submit(user, "-o", "out-%j.txt", *words)
    machine.wait_state(job, "COMPLETED")
    return (machine.home(user) / f"out-{job}.txt").read_text()


def test_nothing_of_the_state_folder_opens_for_another_user(machine: Machine, job: str) -> None:
    """By its exact name: the folder cannot be listed, but names can be guessed."""
    names = machine.run("root", "find", str(machine.state), "!", "-type", "l").stdout.split()
    assert any(name.endswith("slurm_script") for name in names)
    probe = 'for f in "$@"; do [ -r "$f" ] && echo "r $f"; [ -w "$f" ] && echo "w $f"; done; true'
    opened = set(machine.run("ben", "sh", "-c", probe, "sh", *names).stdout.splitlines())
    state = machine.state
    assert opened == {f"r {state}/socket", f"w {state}/socket", f"r {state}/daemon.pid", f"r {state}/spool/.hosts"}


def test_no_process_shows_another_user_a_secret(machine: Machine, job: str) -> None:
    """Command lines are everybody's to read: srun and the script are ann's own, supervisors and the daemon say nothing."""
    read = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"
    assert f"TOKEN={SECRET}" not in machine.run("ben", "sh", "-c", read).stdout
    daemon = (machine.state / "daemon.pid").read_text().split()[0]
    pids = [daemon, *Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()]
    pids += [str(json.loads(record.read_text())["pid"]) for record in machine.state.glob("spool/*/record")]
    assert len(pids) >= 5
    for pid in pids:
        assert SECRET not in Path(f"/proc/{pid}/cmdline").read_text()
        assert machine.run("ben", "cat", f"/proc/{pid}/environ", f"/proc/{pid}/maps").stdout == ""


@pytest.mark.parametrize(
    ("words", "env"),
    [(("srun", "--jobid={job}", "--overlap", "id"), {}), (("srun", "--overlap", "id"), {"SLURM_JOB_ID": "{job}"})],
    ids=["by-option", "by-environment"],
)
def test_no_step_starts_in_anothers_job(
    machine: Machine, job: str, words: tuple[str, ...], env: dict[str, str]
) -> None:
    given = {name: value.format(job=job) for name, value in env.items()}
    answer = machine.run("ben", *(word.format(job=job) for word in words), env=given)
    assert answer.returncode != 0
    assert answer.stdout == ""


@pytest.mark.parametrize("option", ["--uid=0", "--uid=61001", "--gid=0", f"--gid={SHARED_GROUP}"])
def test_nobody_submits_as_somebody_else(machine: Machine, option: str) -> None:
    answer = machine.run("ben", "sbatch", option, "--wrap", "id")
    assert answer.returncode != 0
    assert "only permitted by root" in answer.stderr


def test_an_address_in_the_environment_does_not_lead_a_job_to_another_daemon(machine: Machine) -> None:
    seen = output_of(machine, "ben", "--export=ALL,SLURMBRIDGE_ADDR=unix:/tmp/evil", "--wrap", "echo $SLURMBRIDGE_ADDR")
    assert seen == f"unix:{machine.state}/socket\n"


def test_groups_are_those_of_the_user_and_of_nobody_else(machine: Machine) -> None:
    """The group of one call does not stick to the next."""
    machine.run("ann", "sg", "shared", "-c", "sbatch --wrap true -o /dev/null")
    assert output_of(machine, "ann", "--wrap", "id -g; id -G") == f"61001\n61001 {SHARED_GROUP}\n"
    assert output_of(machine, "ben", "--wrap", "id -g; id -G") == "61002\n61002\n"


def test_a_job_has_no_capabilities_and_no_files_but_its_own(machine: Machine) -> None:
    seen = output_of(
        machine, "ben", "--wrap", "grep Cap[IPEA] /proc/self/status; ls /proc/$$/fd; cat /proc/1/environ 2>&1; :"
    )
    assert {line.split()[1] for line in seen.splitlines() if line.startswith("Cap")} == {"0" * 16}
    assert {word for word in seen.splitlines() if word.isdigit()} <= {
        "0",
        "1",
        "2",
        "10",
        "255",
    }  # the last two are where shells read the script from
    assert "Permission denied" in seen


def test_a_job_of_a_user_without_a_shell_runs(machine: Machine) -> None:
    assert output_of(machine, "cyd", "--export=NONE", "--wrap", "id -un; echo $HOME") == f"cyd\n{machine.home('cyd')}\n"


def test_the_overflow_user_is_sent_away(machine: Machine) -> None:
    argv = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "squeue")
    answer = machine.run("root", *argv)
    assert (answer.returncode, answer.stderr) == (1, "slurm: error: Access/permission denied\n")


def test_output_files_take_the_umask_and_the_group_of_their_folder(machine: Machine) -> None:
    shared = machine.folder / "shared"
    shared.mkdir()
    os.chown(shared, 0, SHARED_GROUP)
    shared.chmod(0o2770)
    answer = machine.run("ann", "sh", "-c", f"umask 027; cd {shared}; sbatch --parsable -o deep/%j.txt --wrap true")
    machine.wait_state(answer.stdout.strip(), "COMPLETED")
    (made,) = (shared / "deep").iterdir()
    found = made.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o640, 61001, SHARED_GROUP)


def test_many_idle_connections_of_one_user_keep_nobody_else_out(machine: Machine) -> None:
    code = (
        "import contextlib, socket, sys\n"
        "ends = []\n"
        "with contextlib.suppress(OSError):\n"  # as many as this user may open
        "    for _ in range(3000):\n"
        "        ends.append(socket.socket(socket.AF_UNIX))\n"
        "        ends[-1].connect(sys.argv[1])\n"
        "        with contextlib.suppress(OSError):\n"  # the daemon has cut it
        "            ends[-1].send(bytes(3))\n"
        "print(len(ends), flush=True)\n"
        "sys.stdin.read()\n"
    )
    many = 'ulimit -n $(ulimit -H -n); exec "$@"'
    argv = ("/usr/bin/python3", "-c", code, f"{machine.state}/socket")
    holds = machine.start("ben", "sh", "-c", many, "sh", *argv, stdin=subprocess.PIPE)
    with holds:
        assert holds.stdout is not None
        assert int(holds.stdout.readline()) > 500
        assert output_of(machine, "ann", "--wrap", "echo in") == "in\n"
        holds.communicate()


def test_nothing_is_left_when_all_is_over(machine: Machine, job: str) -> None:
    """No mount on the host, no process, no folder of a run."""
    assert machine.run("ann", "scancel", job).returncode == 0
    machine.wait_state(job, "CANCELLED")
    until(lambda: not machine.spool(), machine.spool)
    assert sorted(os.listdir(machine.state / "spool")) == [".epoch", ".hosts", ".lock"]
    until(lambda: not machine.processes(), machine.processes)
    mounts = Path("/proc/mounts").read_text()
    assert str(machine.folder) not in mounts
    assert mounts.count(" /proc proc ") == machine.proc_mounts
