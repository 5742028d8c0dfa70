"""The login environment of a job's user, for --export=NONE, lists of names and --get-user-env.

The user's shell is run as a login shell, as the user, in a bare environment, and prints what it has. It gets
`WAIT_S`; a shell that fails or stalls leaves the bare environment, so that the job runs all the same.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from slurmbridge.supervisor.loop import IN, Timer
from slurmbridge.supervisor.node import BATCH, NodeRun
from slurmbridge.supervisor.spawn import take_fds

WAIT_S = 10.0
LIMIT = 2 * 1024 * 1024
MARK = b"\0slurmbridge-login-environment\0"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def bare(header: dict) -> dict[str, str]:  # type: ignore[type-arg]
    """What login(1) sets."""
    user = str(header["user"])
    return {
        "HOME": str(header["home"]),
        "SHELL": str(header["shell"]) or "/bin/sh",
        "USER": user,
        "LOGNAME": user,
        "MAIL": f"/var/mail/{user}",
        "PATH": ROOT_PATH if int(header["uid"]) == 0 else PATH,
    }


def fetch(node: NodeRun, header: dict, done: Callable[[dict[str, str]], None]) -> None:  # type: ignore[type-arg]
    """Ask the shell; `done` gets the environment once."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(write_end, True)
    env = bare(header)
    shell = env["SHELL"]
    state: dict[str, object] = {"data": bytearray(), "timer": None, "pid": 0}

    def child() -> None:
        os.umask(int(header["umask"]))
        node.identity.become()
        os.chdir(env["HOME"] if os.path.isdir(env["HOME"]) else "/")
        null = os.open("/dev/null", os.O_RDWR)
        take_fds(null, write_end, null)
        script = "printf '\\000slurmbridge-login-environment\\000'; exec /usr/bin/env -0"
        os.execve(shell, ["-" + os.path.basename(shell), "-c", script], env)

    def finish() -> None:
        node.loop.forget(read_end)
        os.close(read_end)
        timer = state["timer"]
        if isinstance(timer, Timer):
            timer.cancel()
        data = bytes(state["data"])  # type: ignore[arg-type]
        found = dict(env)
        if MARK in data:
            for entry in data.split(MARK, 1)[1].split(b"\0"):
                name, equals, value = os.fsdecode(entry).partition("=")
                if equals and name and name not in ("_", "OLDPWD", "PWD", "SHLVL"):
                    found[name] = value
        found["_"] = "/usr/sbin/slurmstepd"
        found["SHLVL"] = "1"
        done(found)

    def ready(events: int) -> None:
        data: bytearray = state["data"]  # type: ignore[assignment]
        try:
            chunk = os.read(read_end, 65536)
        except BlockingIOError:
            return
        data += chunk
        if not chunk or len(data) > LIMIT:
            finish()

    def stalled() -> None:
        for pid in node.roots(BATCH):
            os.kill(pid, signal.SIGKILL)

    try:
        node.spawn(BATCH, 0, child, lambda status: None)
    except OSError:
        os.close(write_end)
        os.close(read_end)
        done(env)
        return
    os.close(write_end)
    state["timer"] = node.loop.after(WAIT_S, stalled)
    node.loop.watch(read_end, IN, ready)
