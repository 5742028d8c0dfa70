"""srun outside of an allocation, salloc, sattach and sbcast against a daemon on virtual nodes; words are Slurm's 26.05."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.cli import throwaway
from tests.cli.begun import Begun
from tests.patience import until

pytestmark = pytest.mark.processes
Daemon = throwaway.Throwaway
NODE = ("printenv", "SLURMD_NODENAME")  # the host name is the node's only where the daemon may make namespaces


@pytest.fixture(scope="module")
def daemon(commands: Path) -> Iterator[Daemon]:
    with throwaway.opened(str(commands), cpus=4, memory=8000) as made:
        yield made


def words(text: str) -> list[str]:
    """Lines with job numbers as J."""
    return re.sub(r"\b\d+\b", "J", text).splitlines()


def waits_for(name: str) -> str:
    """A line of shell that says that it has begun, and goes on when it is let or its folder is gone."""
    return f"touch {name}.begun; while [ -e {name}.begun -a ! -e {name}.go ]; do sleep 0.05; done"


def has_begun(daemon: Daemon, name: str) -> None:
    until(Path(daemon.work, f"{name}.begun").exists)


def let_go(daemon: Daemon, name: str) -> None:
    Path(daemon.work, f"{name}.go").touch()


def state(daemon: Daemon, name: str) -> str:
    """State and exit code of the job of that name, as sacct tells."""
    return daemon.run(["sacct", "-nXP", f"--name={name}", "-o", "State,ExitCode"]).stdout.strip()


def is_cancelled(daemon: Daemon, name: str) -> bool:
    """sacct passes over jobs that were never eligible."""
    return daemon.run(["squeue", "-hn", name, "-t", "all", "-o", "%T"]).stdout.split() == ["CANCELLED"]


def queued(daemon: Daemon, name: str, wanted: str) -> bool:
    return daemon.run(["squeue", "-hn", name, "-o", "%t"]).stdout.split() == [wanted]


# ---- srun


def test_srun_runs_one_step_and_passes_its_exit_code_on(daemon: Daemon) -> None:
    answer = daemon.run(["srun", "-J", "three", "-n2", "bash", "-c", "echo $SLURM_PROCID; exit $((SLURM_PROCID * 3))"])
    assert sorted(answer.stdout.split()) == ["0", "1"]
    assert answer.returncode == 3
    assert answer.stderr == "srun: error: n1: task 1: Exited with exit code 3\n"
    assert state(daemon, "three") == "FAILED|3:0"


def test_a_signal_of_a_task_is_the_jobs_too(daemon: Daemon) -> None:
    assert daemon.run(["srun", "-J", "segv", "bash", "-c", "kill -SEGV $$"]).returncode == 139
    assert state(daemon, "segv") == "FAILED|0:11"


def test_srun_takes_its_standard_input_along(daemon: Daemon) -> None:
    answer = daemon.run(["srun", "--quiet", "-n1", "tr", "a-z", "A-Z"], stdin=None, input="filter\n")
    assert answer.stdout == "FILTER\n"


def test_the_room_is_free_again_when_srun_returns(daemon: Daemon) -> None:
    for _ in range(3):
        assert daemon.run(["srun", "--immediate", "-N2", "--exclusive", "true"]).returncode == 0


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        pytest.param(["srun"], 1, "srun: fatal: No command given to execute.", id="no-command"),
        pytest.param(["srun", "-n", "x", "true"], 1, 'srun: error: Invalid numeric value "x" for --ntasks.', id="number"),
        pytest.param(["srun", "-t", "5m", "true"], 255, "srun: error: Invalid --time specification", id="time"),
        pytest.param(["srun", "--nosuch"], 255, "srun: unrecognized option '--nosuch'", id="option"),
        pytest.param(["srun", "--mpi=bad", "true"], 1, "srun: error: MPI: Cannot create context for mpi/bad", id="mpi"),
        pytest.param(["srun", "--cpu-bind=x", "true"], 1, 'srun: error: unrecognized --cpu-bind argument "x"', id="bind"),
        pytest.param(["srun", "-p", "no", "true"], 1, "srun: error: invalid partition specified: no", id="partition"),
        pytest.param(
            ["srun", "-r", "1", "true"], 1, "srun: fatal: --relative option invalid for job allocation request", id="relative"
        ),
        pytest.param(["salloc", "-n", "x"], 1, 'salloc: error: Invalid numeric value "x" for --ntasks.', id="salloc-number"),
        pytest.param(["salloc", "-K=x", "true"], 255, "salloc: error: Invalid --kill-command specification", id="kill"),
        pytest.param(["salloc", "-D", "/no", "pwd"], 1, "salloc: error: chdir(/no): No such file or directory", id="chdir"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_without_an_allocation(daemon: Daemon, argv: list[str], code: int, said: str) -> None:
    answer = daemon.run(argv)
    assert (answer.stderr.splitlines()[0], answer.returncode) == (said, code)


def test_components_run_as_one_step(daemon: Daemon) -> None:
    script = "echo $SLURM_NTASKS $SLURM_NNODES $SLURM_NODEID $SLURM_GTIDS; exit $SLURM_PROCID"
    answer = daemon.run(
        ["srun", "-l", "-J", "parts", "-n1", *NODE, ":", "-N2", "-n2", "-J", "parts", "sh", "-c", script]
    )
    lines = sorted(answer.stdout.splitlines())
    assert lines[0].startswith("0: n")
    assert lines[1:] in (["1: 3 2 1 1", "2: 3 2 2 2"], ["1: 3 3 1 1", "2: 3 3 2 2"])
    assert answer.returncode == 2


def test_groups_of_a_job_share_a_step_and_one_alone_counts_its_own_tasks(daemon: Daemon) -> None:
    script = (
        "srun --het-group=0,1 -l true; srun --het-group=0,1 -l echo a; srun --het-group=1 -l echo b; srun -l echo c"
    )
    answer = daemon.run(["salloc", "-Q", "-n1", ":", "-n2", "sh", "-c", script])
    assert sorted(answer.stdout.splitlines()) == ["0: a", "0: b", "0: c", "1: a", "1: b", "2: a"]
    assert answer.returncode == 0


# ---- waiting


@pytest.mark.parametrize(
    ("command", "number", "said"),
    [
        (
            "srun",
            signal.SIGINT,
            ["srun: Job is in held state, pending scheduler release", "srun: job J queued and waiting for resources",
             "srun: Force Terminated JobId=J", "srun: Job allocation J has been revoked"],
        ),
        (
            "salloc",
            signal.SIGTERM,
            ["salloc: Job is in held state, pending scheduler release", "salloc: Pending job allocation J",
             "salloc: job J queued and waiting for resources", "salloc: Job aborted due to signal",
             "salloc: Job allocation J has been revoked."],
        ),
    ],
)  # fmt: skip
def test_a_signal_while_waiting_cancels_the_job(daemon: Daemon, command: str, number: int, said: list[str]) -> None:
    waiting = Begun(daemon, command, "-H", "-J", f"held-{command}", "true")
    waiting.says("queued and waiting")
    waiting.send_signal(number)
    assert waiting.ends() == 1
    assert words(waiting.err) == said
    assert is_cancelled(daemon, f"held-{command}")


def test_a_caller_that_dies_while_waiting_takes_its_job_along(daemon: Daemon) -> None:
    waiting = Begun(daemon, "srun", "-H", "-J", "orphan", "true")
    until(lambda: queued(daemon, "orphan", "PD"))
    waiting.kill()
    waiting.communicate()
    until(lambda: is_cancelled(daemon, "orphan"))


def test_a_waiting_srun_hears_that_its_job_was_cancelled(daemon: Daemon) -> None:
    waiting = Begun(daemon, "srun", "-H", "-J", "gone", "true")
    waiting.says("queued and waiting")
    daemon.run(["scancel", "-n", "gone"])
    assert waiting.ends() == 1
    assert words(waiting.err)[-2:] == [
        "srun: Job has been cancelled",
        "srun: error: Unable to allocate resources: Job/step already completing or completed",
    ]


def test_immediate_does_not_wait(daemon: Daemon) -> None:
    holder = Begun(daemon, "salloc", "-K", "-N2", "--exclusive", "-J", "holder", "sleep", "600")
    until(lambda: queued(daemon, "holder", "R"))
    answer = daemon.run(["srun", "-I", "-J", "now", "true"])
    assert answer.stderr == "srun: error: Unable to allocate resources: Requested nodes are busy\n"
    assert answer.returncode == 1
    later = daemon.run(["srun", "-I1", "true"])
    assert later.returncode == 1
    daemon.run(["scancel", "-n", "holder"])
    assert holder.ends() == 1


def test_who_has_to_wait_says_so_and_goes_on(daemon: Daemon) -> None:
    waiting = Begun(daemon, "srun", "--begin=now+1hour", "-J", "later", *NODE)
    waiting.says("queued and waiting")
    job = daemon.run(["squeue", "-hn", "later", "-o", "%A"]).stdout.strip()
    assert daemon.run(["scontrol", "update", f"jobid={job}", "starttime=now"]).returncode == 0
    assert waiting.ends() == 0
    assert words(waiting.err) == [
        "srun: job J queued and waiting for resources",
        "srun: job J has been allocated resources",
    ]
    assert waiting.out == "n1\n"


# ---- salloc


def test_salloc_runs_its_command_here_with_the_allocation_in_its_environment(daemon: Daemon) -> None:
    script = "echo $SLURM_NNODES $SLURM_NODELIST $SLURM_NTASKS $SLURM_JOB_UID; srun printenv SLURMD_NODENAME; exit 4"
    answer = daemon.run(["salloc", "-J", "four", "-N2", "-n2", "bash", "-c", script])
    assert answer.stdout.splitlines()[0] == "2 n[1-2] 2"
    assert sorted(answer.stdout.splitlines()[1:]) == ["n1", "n2"]
    assert words(answer.stderr) == [
        "salloc: Granted job allocation J",
        "salloc: Nodes n[J-J] are ready for job",
        "salloc: Relinquishing job allocation J",
    ]
    assert answer.returncode == 4
    assert state(daemon, "four") == "FAILED|4:0"


def test_salloc_says_nothing_when_told_to_be_quiet(daemon: Daemon) -> None:
    answer = daemon.run(["salloc", "-Q", "true"])
    assert (answer.stderr, answer.returncode) == ("", 0)


def test_a_command_that_is_not_there_ends_the_allocation(daemon: Daemon) -> None:
    answer = daemon.run(["salloc", "nosuchcommand"])
    assert words(answer.stderr)[2:] == [
        'salloc: error: _fork_command: Unable to find command "nosuchcommand"',
        "salloc: Relinquishing job allocation J",
    ]
    assert answer.returncode == 1


@pytest.mark.parametrize(
    ("options", "code"), [pytest.param([], 0, id="goes-on"), pytest.param(["-K"], 1, id="is-killed")]
)
def test_the_command_goes_on_when_the_allocation_is_gone_unless_it_is_to_be_killed(
    daemon: Daemon, options: list[str], code: int
) -> None:
    name = f"revoked{len(options)}"
    held = Begun(daemon, "salloc", *options, "-J", name, "sh", "-c", waits_for(name))
    has_begun(daemon, name)
    daemon.run(["scancel", "-n", name])
    held.says("has been revoked")
    if not options:
        let_go(daemon, name)
    assert held.ends() == code
    assert words(held.err)[-1] == "salloc: Job allocation J has been revoked."


def test_a_signal_to_salloc_ends_the_allocation_and_not_the_command(daemon: Daemon) -> None:
    held = Begun(daemon, "salloc", "-J", "told", "sh", "-c", waits_for("told") + "; echo done; exit 5")
    has_begun(daemon, "told")
    held.send_signal(signal.SIGTERM)
    held.says("has been revoked")
    let_go(daemon, "told")
    assert (held.ends(), held.out) == (5, "done\n"), held.err
    assert words(held.err)[-1] == "salloc: Job allocation J has been revoked."
    assert state(daemon, "told") == "FAILED|0:15"


def test_an_allocation_without_shell_stays_and_takes_steps(daemon: Daemon) -> None:
    assert daemon.run(["salloc", "--no-shell", "-J", "stays"]).returncode == 0
    job = daemon.run(["squeue", "-hn", "stays", "-o", "%A"]).stdout.strip()
    assert daemon.run(["srun", f"--jobid={job}", *NODE]).stdout == "n1\n"
    assert queued(daemon, "stays", "R")
    daemon.run(["scancel", job])


def test_salloc_keeps_its_allocation_over_a_restart_of_the_daemon(commands: Path) -> None:
    with throwaway.opened(str(commands), cpus=4, memory=8000) as own:
        held = Begun(own, "salloc", "-J", "kept", "sh", "-c", waits_for("kept") + f"; srun {' '.join(NODE)}; exit 6")
        has_begun(own, "kept")
        own.kill()
        own.up()
        assert queued(own, "kept", "R")
        let_go(own, "kept")
        assert (held.ends(), held.out) == (6, "n1\n"), held.err
        assert words(held.err)[-1] == "salloc: Relinquishing job allocation J"
        assert state(own, "kept") == "FAILED|6:0"


# ---- sattach and sbcast


def test_sattach_shows_what_a_running_step_writes(daemon: Daemon) -> None:
    script = "until [ -e watched.go ]; do echo tick; sleep 0.1; done; echo hi $SLURM_PROCID; exit 5"
    step = Begun(daemon, "srun", "-n2", "-J", "watched", "bash", "-c", script)
    until(lambda: queued(daemon, "watched", "R"))
    job = daemon.run(["squeue", "-hn", "watched", "-o", "%A"]).stdout.strip()
    until(lambda: f"{job}.0" in daemon.run(["squeue", "-hs", "-o", "%i"]).stdout)
    watch = Begun(daemon, "sattach", "-l", f"{job}.0")
    until(lambda: {"0: tick", "1: tick"} <= set(watch.out.splitlines()), lambda: watch.err)
    let_go(daemon, "watched")
    assert watch.ends() == 5
    assert sorted(line for line in watch.out.splitlines() if "tick" not in line) == ["0: hi 0", "1: hi 1"]
    step.ends()
    late = daemon.run(["sattach", f"{job}.0"])
    assert late.stderr == "sattach: error: Could not get job step info: Invalid job id specified\n"


def test_sbcast_brings_a_file_once_and_again_with_force(daemon: Daemon) -> None:
    Path(daemon.work, "source").write_bytes(os.urandom(3 << 20))
    script = "sbcast source copy; echo $?; sbcast source copy; echo $?; sbcast -f source copy; echo $?; cmp source copy"
    answer = daemon.run(["salloc", "-Q", "bash", "-c", script])
    assert answer.stdout.split() == ["0", "17", "0"]
    assert answer.stderr == "sbcast: error: REQUEST_FILE_BCAST(n1): File exists\n"
    assert answer.returncode == 0


def test_sbcast_needs_a_job(daemon: Daemon) -> None:
    answer = daemon.run(["sbcast", "/etc/passwd", "/tmp/x"])
    assert answer.stderr.startswith("sbcast: error: Need a job id to run this command.")
    assert answer.returncode == 1
