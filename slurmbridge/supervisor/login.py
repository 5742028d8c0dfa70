"""The login environment of a job's user, for --export=NONE, lists of names and --get-user-env.

The user's shell is run as a login shell, as the user, in a bare environment, and prints what it has. It gets
`WAIT_S`; a shell that fails or stalls leaves the bare environment, so that the job runs all the same.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from slurmbridge.supervisor.loop import IN, Timer
from slurmbridge.supervisor.node import BATCH, NodeRun
from slurmbridge.supervisor.spawn import take_fds

WAIT_S = 10.0
LIMIT = 2 * 1024 * 1024
MARK = b"\0slurmbridge-login-environment\0"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def bare(header: dict[str, Any]) -> dict[str, str]:
    """What login(1) sets; in a container it is laid over what that has, which says its own PATH."""
    user = str(header["user"])
    container: dict[str, str] = header.get("container_env") or {}
    return {
        **container,
        "HOME": str(header["home"]),
        "SHELL": str(header["shell"]) or "/bin/sh",
        "USER": user,
        "LOGNAME": user,
        "MAIL": f"/var/mail/{user}",
        "PATH": container.get("PATH") or (ROOT_PATH if int(header["uid"]) == 0 else PATH),
    }


class _Question:
    """One shell that is being asked."""

    def __init__(self, node: NodeRun, env: dict[str, str], done: Callable[[dict[str, str]], None]) -> None:
        self.node, self.env, self.done = node, env, done
        self.read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.read_end, False)
        self.data = bytearray()
        self.timer: Timer | None = None

    def ask(self, umask: int) -> None:
        """Start it; the bare environment is the answer when that fails."""
        try:
            self.node.spawn(BATCH, 0, lambda: self._child(umask), lambda status: None)
        except OSError:
            os.close(self.write_end)
            os.close(self.read_end)
            self.done(self.env)
            return
        os.close(self.write_end)
        self.timer = self.node.loop.after(WAIT_S, self._stalled)
        self.node.loop.watch(self.read_end, IN, self._ready)

    def _child(self, umask: int) -> None:
        os.umask(umask)
        self.node.identity.become()
        os.chdir(self.env["HOME"] if os.path.isdir(self.env["HOME"]) else "/")
        null = os.open("/dev/null", os.O_RDWR)
        take_fds(null, self.write_end, null)
        shell = self.env["SHELL"]
        script = "printf '\\000slurmbridge-login-environment\\000'; exec /usr/bin/env -0"
        os.execve(shell, ["-" + os.path.basename(shell), "-c", script], self.env)

    def _ready(self, events: int) -> None:
        try:
            chunk = os.read(self.read_end, 65536)
        except BlockingIOError:
            return
        self.data += chunk
        if not chunk or len(self.data) > LIMIT:
            self._finish()

    def _stalled(self) -> None:
        for pid in self.node.roots(BATCH):
            os.kill(pid, signal.SIGKILL)
        self.data.clear()
        self._finish()

    def _finish(self) -> None:
        self.node.loop.forget(self.read_end)
        os.close(self.read_end)
        if self.timer is not None:
            self.timer.cancel()
        found = dict(self.env)
        for entry in bytes(self.data).partition(MARK)[2].split(b"\0"):
            name, equals, value = os.fsdecode(entry).partition("=")
            if equals and name and name not in ("_", "OLDPWD", "PWD", "SHLVL"):
                found[name] = value
        found["_"] = "/usr/sbin/slurmstepd"
        found["SHLVL"] = "1"
        self.done(found)


def fetch(node: NodeRun, header: dict[str, Any], done: Callable[[dict[str, str]], None]) -> None:
    """Ask the shell; `done` gets the environment once."""
    _Question(node, bare(header), done).ask(int(header["umask"]))
