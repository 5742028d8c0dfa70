"""srun --pty before a terminal: keys, size, job control, and the terminal put back as it was (srun(1))."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.cli import throwaway
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def daemon(commands: Path) -> Iterator[throwaway.Throwaway]:
    with throwaway.opened(str(commands), cpus=4, memory=8000) as made:
        yield made


class Screen:
    """A user before a terminal in which a command runs."""

    def __init__(self, daemon: throwaway.Throwaway, *argv: str) -> None:
        self.text = ""
        self._seen = 0
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(daemon.work)
                os.execve(os.path.join(daemon.bin, argv[0]), list(argv), {**daemon.env, "TERM": "dumb"})
            finally:
                os._exit(127)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, pattern: str) -> re.Match[str]:
        """Wait for this after what was waited for last."""
        end = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.text[self._seen :], re.S)):
            assert time.monotonic() < end, (pattern, self.text)
            if not self._read(0.2):
                pytest.fail(f"ended before {pattern!r}: {self.text!r}")
        self._seen += found.end()
        return found

    def _read(self, seconds: float) -> bool:
        if not select.select([self._fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            data = b""
        self.text += data.decode(errors="replace")
        return bool(data)

    def modes(self) -> list[object]:
        return termios.tcgetattr(self._fd)[:4]

    def end(self) -> int:
        """Exit code, once all was read."""
        end = time.monotonic() + PATIENCE_S
        while self._read(0.2):
            assert time.monotonic() < end, self.text
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def shell(daemon: throwaway.Throwaway, *options: str) -> Screen:
    screen = Screen(daemon, "srun", *options, "--pty", "bash", "--norc", "--noediting", "-i")
    screen.type("PS1='>''> '; stty -echo\r")
    screen.until(">> ")
    return screen


def test_a_shell_has_a_terminal_of_its_own_that_it_controls(daemon: throwaway.Throwaway) -> None:
    screen = shell(daemon)
    screen.type("tty; test -t 0 -a -t 1 -a -t 2 && echo all-$((1+1)); ps -o tty= -p $$; exit 7\r")
    name = screen.until(r"/dev/pts/(\d+)\r\nall-2\r\n").group(1)
    screen.until(rf"pts/{name}\b")
    assert screen.end() == 7
    assert "task 0: Exited with exit code 7" in screen.text


def test_the_terminal_is_as_large_as_the_users_also_after_a_change(daemon: throwaway.Throwaway) -> None:
    screen = shell(daemon)

    def told() -> str:
        screen.type("echo is $(stty size)\r")
        return screen.until(r"is (\d+ \d+)\r\n>> ").group(1)

    for rows, columns in ((33, 111), (40, 90)):
        screen.resize(rows, columns)
        wanted = f"{rows} {columns}"
        until(lambda wanted=wanted: told() == wanted, lambda: screen.text)  # type: ignore[misc]
    screen.type("exit\r")
    assert screen.end() == 0


def test_control_c_and_z_reach_the_program_not_srun(daemon: throwaway.Throwaway) -> None:
    screen = shell(daemon)
    screen.type("sh -c 'echo at-$((1+1)); exec sleep 1000'\r")
    screen.until("at-2")
    screen.type("\x03")
    screen.until(">> ")
    screen.type("echo code-$?\r")
    screen.until("code-130")
    screen.type("sh -c 'echo at-$((1+1)); exec sleep 1000'\r")
    screen.until("at-2")
    screen.type("\x1a")
    screen.until("Stopped")
    screen.type("kill -9 %1\r")
    screen.until(">> ")
    screen.type("exec true\r")
    assert screen.end() == 0


def test_end_of_input_ends_a_shell_and_the_users_terminal_is_as_before(daemon: throwaway.Throwaway) -> None:
    holder = Screen(daemon, "srun", "--quiet", "--pty", "cat")
    before = holder.modes()
    until(lambda: holder.modes() != before)
    holder.type("abc\r")
    holder.until("abc\r\nabc\r\n")
    holder.type("\x04")
    while holder._read(0.1) and holder.modes() != before:
        pass
    assert holder.modes() == before
    assert holder.end() == 0


def test_other_tasks_have_neither_terminal_nor_output(daemon: throwaway.Throwaway) -> None:
    screen = Screen(
        daemon, "srun", "-n2", "--pty", "sh", "-c", "echo task $SLURM_PROCID of $SLURM_NTASKS; test -t 0 || exit 3"
    )
    assert screen.end() == 3
    assert "task 0 of 2" in screen.text
    assert "task 1 of 2" not in screen.text
    assert "task 1: Exited with exit code 3" in screen.text


def test_inside_an_allocation_it_is_the_same(daemon: throwaway.Throwaway) -> None:
    screen = Screen(daemon, "salloc", "-n1", "srun", "--pty", "sh", "-c", "tty; echo $SLURM_JOB_ID.$SLURM_STEP_ID")
    screen.until(r"/dev/pts/\d+\r\n\d+\.0\r\n")
    assert screen.end() == 0


def test_a_terminal_that_goes_away_ends_the_shell(daemon: throwaway.Throwaway) -> None:
    screen = shell(daemon, "-J", "gone")
    os.close(screen._fd)
    os.kill(screen.pid, signal.SIGHUP)
    os.waitpid(screen.pid, 0)
    until(lambda: not daemon.run(["squeue", "-hn", "gone"]).stdout)


def test_without_a_terminal_the_option_is_disregarded_with_a_word(daemon: throwaway.Throwaway) -> None:
    answer = daemon.run(["srun", "--pty", "sh", "-c", "tty; exit 4"])
    assert (answer.returncode, answer.stdout) == (4, "not a tty\n")
    assert answer.stderr == (
        "srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device\n"
        "srun: error: Not using a pseudo-terminal, disregarding --pty option\n"
        "srun: error: n1: task 0: Exited with exit code 4\n"
    )


def test_files_and_a_terminal_exclude_each_other(daemon: throwaway.Throwaway) -> None:
    answer = daemon.run(["srun", "--pty", "-o", "x", "hostname"])
    assert answer.returncode == 1
    assert answer.stderr == "srun: error: --error/--input/--output are incompatible with --pty\n"


def test_the_descriptor_of_a_terminal_is_a_number(daemon: throwaway.Throwaway) -> None:
    answer = daemon.run(["srun", "--pty=x", "tty"])
    assert (answer.returncode, answer.stderr) == (1, "srun: fatal: --pty=x must be numeric file descriptor\n")
