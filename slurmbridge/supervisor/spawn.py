"""How a process of a job comes into being: what happens between fork and exec.

Order (design 8.8): session, signals, then groups, gid and uid, and only then limits (a user raises none above what the
daemon was given), umask, the working directory and every file that the user named. Errors are written in Slurm's words to the job's stderr; the exit status then is the
errno, as slurmstepd's. Nothing here returns: a child ends in exec or _exit.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from typing import Any

OPEN_FAILED = 53
"""Wait status of a batch step whose files cannot be opened (Slurm shows it as 0:53)."""


class Identity:
    """Whose process it is. `change` is false when the supervisor already runs as that user."""

    __slots__ = ("change", "gid", "groups", "uid")

    def __init__(self, uid: int, gid: int, groups: list[int], *, change: bool) -> None:
        self.uid, self.gid, self.groups, self.change = uid, gid, groups, change

    def become(self) -> None:
        """Groups, gid, uid, for good."""
        if not self.change:
            return
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


def stamp(now: float | None = None) -> str:
    """Slurm's log time: YYYY-MM-DDTHH:MM:SS.mmm, local."""
    now = time.time() if now is None else now
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d}"


def log_line(text: str, now: float | None = None) -> bytes:
    """A line as slurmstepd logs it to a job's stderr."""
    return f"[{stamp(now)}] error: {text}\n".encode("utf-8", "surrogateescape")


def write_all(fd: int, data: bytes) -> None:
    """All of it, or nothing more after an error: messages to a job's files must not stop it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        return


def reset_signals() -> None:
    """Undo what Python and the supervisor set."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    resource.setrlimit(resource.RLIMIT_NOFILE, FILES)


FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
"""Of the fork server: jobs begin with it, whatever a supervisor needs for its many pipes."""


def allow_many_files() -> None:
    """For a supervisor: every task takes some."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES[1], FILES[1]))


def set_limits(limits: list[list[Any]], out: list[bytes]) -> None:
    """Soft limits as at submission, by the user: a hard one is raised only where that user may (root)."""
    for name, soft, _hard in limits:
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is None:
            continue
        old_soft, old_hard = resource.getrlimit(number)
        if soft == old_soft:
            continue
        hard = old_hard
        if old_hard != resource.RLIM_INFINITY and (soft == resource.RLIM_INFINITY or soft > old_hard):
            hard = soft
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError, OverflowError) as error:
            reason = (
                os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "Operation not permitted"
            )
            out.append(log_line(f"Can't propagate RLIMIT_{name} of {soft} from submit host: {reason}"))


def enter_directory(path: str, out: list[bytes], *, first: bool = True) -> str:
    """Working directory as the user; /tmp when it cannot be had. Returns where we are."""
    try:
        os.chdir(path)
        return path
    except OSError as error:
        line = f"couldn't chdir to `{path}': {os.strerror(error.errno or errno.EIO)}: going to /tmp instead"
    # slurmstepd tries once for a node's files and once for each task, and says so each time
    out.extend([log_line(line)] * (2 if first else 1))
    os.chdir("/tmp")
    return "/tmp"


def open_output(path: str, *, append: bool) -> int:
    """A file for output; missing folders are made. OSError tells why not."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC)
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path) or ".", 0o777, exist_ok=True)
        return os.open(path, flags, 0o666)


def take_fds(stdin: int, stdout: int, stderr: int) -> None:
    """Make them 0, 1 and 2 whatever numbers they have now."""
    copies = [os.dup(fd) if fd < 3 else fd for fd in (stdin, stdout, stderr)]
    for target, fd in enumerate(copies):
        os.dup2(fd, target, inheritable=True)


def execute(path: str, argv: list[str], env: dict[str, str]) -> int:
    """exec; returns the errno after writing Slurm's line to stderr."""
    try:
        os.execve(path, argv, env)
    except OSError as error:
        number = error.errno or errno.EIO
        reason = os.strerror(number)
        interpreter = _interpreter(path) if number == errno.ENOENT else ""
        if interpreter:
            write_all(2, log_line(f"execve(): bad interpreter({interpreter}): {reason}"))
        else:
            write_all(2, log_line(f"execve(): {path}: {reason}"))
        return number
    except ValueError:
        write_all(2, log_line(f"execve(): {path!r}: {os.strerror(errno.EINVAL)}"))
        return errno.EINVAL


def _interpreter(path: str) -> str:
    """What a script's first line names, when that does not exist."""
    try:
        with open(path, "rb") as file:
            head = file.read(512)
    except OSError:
        return ""
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].split(b"\n", 1)[0].split()
    return os.fsdecode(words[0]) if words else ""


def find_program(name: str, env: dict[str, str], cwd: str) -> str:
    """Where a task's program is: as named when it has a slash (from the working directory on when it begins with a dot),
    else the first executable along the task's PATH."""
    if name.startswith("."):
        return f"{cwd}/{name}"
    if "/" in name:
        return name
    for folder in env.get("PATH", "").split(":"):
        if not folder and "PATH" not in env:
            continue
        candidate = os.path.join(cwd, folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return name
