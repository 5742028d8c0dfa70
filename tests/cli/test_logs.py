"""`slurmbridge logs` where jobs write files: they are read by whom they are shown to, and followed to their end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.cli import throwaway
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def daemon(commands: Path) -> Iterator[throwaway.Throwaway]:
    with throwaway.opened(str(commands)) as made:
        yield made


def submit(daemon: throwaway.Throwaway, script: str, *options: str) -> str:
    answer = daemon.run(["sbatch", "--parsable", *options, f"--wrap={script}"])
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def logs(daemon: throwaway.Throwaway, *words: str) -> subprocess.CompletedProcess[str]:
    return daemon.run(["slurmbridge", "logs", *words])


def test_a_files_content_is_shown(daemon: throwaway.Throwaway) -> None:
    job = submit(daemon, "echo out; echo err >&2", "--wait", "-e", "err-%j")
    assert (logs(daemon, job).stdout, logs(daemon, "--stderr", job).stdout) == ("out\n", "err\n")
    answer = logs(daemon, "--file", "/nowhere", job)
    assert answer.returncode == 1 and "nothing is kept of /nowhere" in answer.stderr


def test_a_file_that_is_not_here_is_named(daemon: throwaway.Throwaway) -> None:
    job = submit(daemon, "rm out-$SLURM_JOB_ID", "--wait", "-o", "out-%j")
    answer = logs(daemon, job)
    assert answer.returncode == 1 and not answer.stdout
    assert f"{daemon.work}/out-{job}: No such file or directory; it may be of a file system" in answer.stderr


def test_what_is_there_and_cannot_be_read_is_told_at_once(daemon: throwaway.Throwaway) -> None:
    made = Path(daemon.work) / "made"
    job = submit(daemon, "rm not-$SLURM_JOB_ID; mkdir not-$SLURM_JOB_ID; touch made; sleep 600", "-o", "not-%j")
    until(made.exists)
    answer = logs(daemon, "--follow", job)
    assert answer.returncode == 1 and f"{daemon.work}/not-{job}: Is a directory" in answer.stderr
    daemon.run(["scancel", job])


@pytest.mark.parametrize("more", [(), ("--follow",)])
def test_who_reads_no_more_ends_it_without_a_word(daemon: throwaway.Throwaway, more: tuple[str, ...]) -> None:
    job = submit(daemon, "seq 1000000", "--wait")
    words = [f"{daemon.bin}/slurmbridge", "logs", *more, job]
    with subprocess.Popen(words, env=daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shows:
        assert shows.stdout is not None and shows.stderr is not None
        assert shows.stdout.readline() == "1\n"
        shows.stdout.close()
        assert shows.stderr.read() == ""
    assert shows.returncode == -signal.SIGPIPE


def test_tasks_of_an_array_are_shown_one_after_the_other(daemon: throwaway.Throwaway) -> None:
    job = submit(daemon, "echo of $SLURM_ARRAY_TASK_ID", "--wait", "--array=1-2")
    assert logs(daemon, job).stdout == f"==> {job}_1 <==\nof 1\n\n==> {job}_2 <==\nof 2\n"
    assert logs(daemon, f"{job}_2").stdout == "of 2\n"


def test_following_goes_on_until_the_job_is_over(daemon: throwaway.Throwaway) -> None:
    go = Path(daemon.work) / "go"
    job = submit(daemon, "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 3")
    follows = subprocess.Popen(
        [f"{daemon.bin}/slurmbridge", "logs", "--follow", job], env=daemon.env, stdout=subprocess.PIPE, text=True
    )
    assert follows.stdout is not None
    assert follows.stdout.readline() == "one\n"
    daemon.kill()
    daemon.up()
    go.touch()
    assert follows.communicate(timeout=PATIENCE_S)[0] == "two\n"
    assert follows.returncode == 0


def test_a_job_without_a_script_has_no_output(daemon: throwaway.Throwaway) -> None:
    job = daemon.run(["salloc", "--no-shell", "-n1"]).stderr.split("job allocation ")[1].split()[0]
    answer = logs(daemon, job)
    assert (answer.returncode, answer.stdout) == (1, "") and "no batch script" in answer.stderr
    daemon.run(["scancel", job])
