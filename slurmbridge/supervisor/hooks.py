"""The programs around each task: TaskProlog and TaskEpilog of the site, --task-prolog and --task-epilog of srun.

A prolog runs as the user, in the task's process before its program, with the task's environment. Lines that it prints
change that: `export NAME=value`, `unset NAME`; `print TEXT` writes to the task's output; others mean nothing. When it
fails the task ends with its status. An epilog runs after the task; its failure is only told. Source: slurm.conf(5), srun(1).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from slurmbridge.supervisor import spawn
from slurmbridge.supervisor.node import NodeRun

NOT_RUN = 127
"""How the process of a program that cannot be executed ends."""
CHUNK = 1 << 16
MOST = 1 << 24
"""Bytes of a prolog's output that count."""


def around(header: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """What a step's part says of them; nothing where there are none. The site's prolog is the first one."""
    site, own = header.get("task_prolog"), request.get("task_prolog")
    found: dict[str, Any] = {}
    prologs = [["slurm task_prolog", "TaskProlog", site]] if site else []
    prologs += [["user task_prolog", "--task-prolog", own]] if own else []
    epilogs = [each for each in (request.get("task_epilog"), header.get("task_epilog")) if each]
    if prologs:
        found["prologs"] = prologs
    if epilogs:
        found["epilogs"] = epilogs
    return found


def before(prologs: list[list[str]], env: dict[str, str]) -> int:
    """In the task's process: run them, change `env`. Anything but 0: the task must end with it."""
    for name, option, path in prologs:
        env["SLURM_SCRIPT_CONTEXT"] = "prolog_task"
        status = _prolog(name, path, env)
        if status:
            spawn.write_all(2, spawn.log_line(f"{option} failed status={status}"))
            return status & 0xFF or 1
    return 0


def _prolog(name: str, path: str, env: dict[str, str]) -> int:
    problem = _cannot_run(path)
    if problem:
        spawn.write_all(2, spawn.log_line(f"run_command: {name} {problem}"))
        why = "reason: Run command failed - configuration error"
        spawn.write_all(2, spawn.log_line(f"{name} did not exit normally. {why}"))
        return 1
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _execute(path, env, write_end)
    os.close(write_end)
    output = bytearray()
    while data := os.read(read_end, CHUNK):
        output += data[: MOST - len(output)]
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    if not status:
        _apply(bytes(output).decode("utf-8", "surrogateescape"), env)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else status


def _cannot_run(path: str) -> str:
    if not path.startswith("/"):
        return f"is not a fully qualified pathname ({path})"
    try:
        os.stat(path)
    except OSError as error:
        return f"can not be executed ({path}) {os.strerror(error.errno or 2)}"
    return "" if os.access(path, os.X_OK) else f"can not be executed ({path}) Permission denied"


def _execute(path: str, env: dict[str, str], stdout: int) -> None:
    """In a process of its own; never returns."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        spawn.take_fds(null, null if stdout < 0 else stdout, null)
        os.execve(path, [path], env)
    except (OSError, ValueError):
        os._exit(NOT_RUN)
    finally:
        os._exit(NOT_RUN)


def _apply(output: str, env: dict[str, str]) -> None:
    """What a prolog printed."""
    for line in output.split("\n"):
        word, space, rest = line.partition(" ")
        if not space:
            continue
        if word == "print":
            spawn.write_all(1, (rest + "\n").encode("utf-8", "surrogateescape"))
        elif word == "unset":
            env.pop(rest.strip(), None)
        elif word == "export":
            name, equals, value = rest.strip().partition("=")
            if equals and name and not name.isspace() and "\0" not in rest:
                env[name] = value


def after(
    node: NodeRun,
    group: int,
    task: int,
    epilogs: list[str],
    env: dict[str, str],
    cwd: str,
    say: Callable[[str], None],
    done: Callable[[], None],
) -> None:
    """Run them one after the other, then call `done`. `say`: a line of slurmstepd's in the task's error output."""
    if not epilogs:
        done()
        return
    path, rest = epilogs[0], epilogs[1:]

    def child() -> None:
        node.identity.become()
        try:
            os.chdir(cwd)
        except OSError:
            os.chdir("/tmp")
        _execute(path, {**env, "SLURM_SCRIPT_CONTEXT": "epilog_task", "SLURM_TASK_PID": str(os.getpid())}, -1)

    def ended(status: int) -> None:
        code = os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else status
        if code == NOT_RUN:
            problem = _cannot_run(path).rpartition(") ")[2]
            say(f"execve({path}): {problem or 'Permission denied'}")
        if code:
            say(f"TaskEpilog failed status={code}")
        after(node, group, task, rest, env, cwd, say, done)

    try:
        node.spawn(group, task, child, ended)
    except OSError as error:
        say(f"TaskEpilog failed: {os.strerror(error.errno or 11)}")
        done()
