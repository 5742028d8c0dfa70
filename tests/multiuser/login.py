"""A login node whose agent and daemon are processes of their own, and what everybody who comes from there must find."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

from tests.multiuser.machine import Machine
from tests.patience import PATIENCE_S, until


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

    def kill_daemon(self) -> None:
        os.kill(int((self.machine.state / "daemon.pid").read_text().split()[0]), signal.SIGKILL)

    def submit_waiting(self, code: int) -> tuple[subprocess.Popen[bytes], Path]:
        """`sbatch --wait` of ann for a job that leaves with this code once the file is there; it is in the queue."""
        before = len(self.jobs("ann"))
        go = self.machine.home("ann") / f"go-{before}"
        script = f"until [ -e {go} ]; do sleep 0.1; done; exit {code}"
        begun = self.start("ann", "sbatch", "--wait", "--parsable", "-o", "/dev/null", "--wrap", script)
        until(lambda: len(self.jobs("ann")) == before + 1)
        return begun, go

    def check_feeding(self) -> None:
        """What srun is fed comes out whole."""
        data = b"".join(b"%07d\n" % number for number in range(400_000))
        answer = self.run("ann", "srun", "-n1", "cat", stdin=data)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.encode() == data


def ended(begun: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    """Exit code, output, complaints."""
    out, err = begun.communicate(timeout=PATIENCE_S)
    return begun.returncode, out, err
