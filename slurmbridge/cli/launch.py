"""`slurmbridge up`: run the daemon here, or detached with its start-up told to the caller.

Detached: the daemon is a grandchild in a session of its own, its output goes to STATE/daemon.log. It holds the write end
of a pipe and says three things on it, a line each: `pid N` at once, then `ready ...` when commands are answered, or
`failed REASON`. Its own children may hold the pipe too, so the end of the pipe is not waited for: the pid is watched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import traceback

import msgspec

from slurmbridge.cli import instance
from slurmbridge.daemon.pod_options import PodOptions
from slurmbridge.errors import BridgeError

WATCH_S = 0.2
OVERFLOW_UID = 65534


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of `up`. Paths are absolute."""

    slurm_conf: str | None = None
    site: str | None = None
    socket: str | None = None
    metrics: str | None = None
    remote: str | None = None
    database: str | None = None
    pods: PodOptions | None = None  # None: virtual nodes


def up(wish: Wish, *, state: str | None, detach: bool) -> int:
    place = instance.intended(state)
    if os.geteuid() == OVERFLOW_UID:
        return refuse("the overflow user (nobody) may not run a daemon: it stands for everybody whose uid is not known")
    pid = instance.running_pid(place)
    if pid is not None:
        return refuse(f"a daemon runs already with the state folder {place.state} (pid={pid})")
    for name in filter(None, (wish.slurm_conf, wish.site)):
        try:
            with open(name, "rb"):
                pass
        except OSError as fault:
            return refuse(f"{name}: {fault.strerror}")
    try:
        make_state(place.state)
    except OSError as fault:
        return refuse(f"state folder {place.state}: {fault.strerror}")
    if detach:
        return detached(wish, place)
    try:
        return serve(wish, place, detach=False, ready=None)
    except BridgeError as fault:
        return refuse(str(fault))


def refuse(reason: str) -> int:
    sys.stderr.write(f"slurmbridge: error: {reason}\n")
    return 1


def make_state(folder: str) -> None:
    """Root's may be walked through (its socket is for everybody), a user's own is closed. OSError: not to be used."""
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    mode = 0o711 if os.geteuid() == 0 else 0o700
    if not os.path.isdir(folder):
        os.mkdir(folder, mode)
    found = os.stat(folder)
    if found.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "it belongs to another user")
    if found.st_mode & 0o002:
        raise OSError(errno.EPERM, "everybody may write there: name a folder that is the daemon's alone")
    if not os.listdir(folder) or os.path.exists(os.path.join(folder, "daemon.lock")):
        os.chmod(folder, mode)


def serve(wish: Wish, place: instance.Instance, *, detach: bool, ready: int | None) -> int:
    from slurmbridge.daemon.main import run

    return run(
        slurm_conf=wish.slurm_conf, site=wish.site, state=place.state, socket=wish.socket, detach=detach,
        ready_fd=ready, metrics=wish.metrics, pods=wish.pods, remote_at=wish.remote, database=wish.database,
    )  # fmt: skip


def detached(wish: Wish, place: instance.Instance) -> int:
    """Fork twice, wait for the word."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setsid()
        if os.fork():
            os._exit(0)
        code = 1
        try:
            os.write(writer, b"pid %d\n" % os.getpid())
            redirect(place.state)
            code = serve(wish, place, detach=True, ready=writer)
        except BridgeError as fault:
            tell(writer, str(fault))
        except BaseException as fault:
            traceback.print_exc()
            tell(writer, f"start-up failed: {fault!r}; see {place.state}/daemon.log")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    os.waitpid(child, 0)
    try:
        word, text = read_verdict(reader)
    finally:
        os.close(reader)
    if word == "ready":
        return 0
    return refuse(text or f"the daemon ended before it was ready; see {place.state}/daemon.log")


def redirect(state: str) -> None:
    """No terminal, no input; output to the log, which only the owner reads."""
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(os.path.join(state, "daemon.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(null)
    os.close(log)


def tell(writer: int, reason: str) -> None:
    """The reason of a failure; the pipe may be closed already when the daemon had been ready."""
    sys.stderr.write(f"slurmbridge: error: {reason}\n")
    with contextlib.suppress(OSError):
        os.write(writer, b"failed " + reason.replace("\n", "\v").encode(errors="replace") + b"\n")


def read_verdict(reader: int) -> tuple[str, str]:
    """("ready" or "failed", text); ("", "") when the daemon went away without a word."""
    said, pid, gone = b"", 0, False
    while True:
        if select.select([reader], [], [], WATCH_S)[0]:
            part = os.read(reader, 4096)
            said, gone = said + part, gone or not part
        elif pid and instance.start_time(pid) is None:
            gone = True
        *lines, _ = said.decode(errors="replace").split("\n")
        for line in lines:
            word, _, text = line.partition(" ")
            if word == "pid":
                pid = int(text)
            else:
                return word, text.replace("\v", "\n")
        if gone:
            return "", ""
