"""The batch script of a run: its copy, its files, its environment, its process.

Files are opened by the new process as the user; it hands a copy of its stderr back, so that the supervisor can say in
it why the job was ended. File names follow sbatch(1), section "filename pattern".
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from slurmbridge.lang import filenames
from slurmbridge.spool import claim
from slurmbridge.supervisor import hooks, spawn
from slurmbridge.supervisor.node import BATCH, NodeRun
from slurmbridge.wire.supervisor import OF_STDERR, OF_STDOUT

NO_FILE = "/dev/null"
STATUS_MOST = 4096
"""Bytes of what its process says before it is the script."""


def store_script(folder: str, script: bytes, uid: int) -> str:
    """The job's own copy, readable and executable by its user alone."""
    path = os.path.join(folder, claim.SCRIPT)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o700)
    try:
        view = memoryview(script)
        while view:
            view = view[os.write(fd, view) :]
        os.fchmod(fd, 0o700)
        if os.getuid() == 0:
            os.fchown(fd, uid, -1)
    finally:
        os.close(fd)
    return path


class Batch:
    """Starts once; `on_exit(wait status)` when the script has ended. `stderr`: the job's own, None until it is open."""

    def __init__(
        self, node: NodeRun, header: dict[str, Any], env: dict[str, str], path: str, on_exit: Callable[[int], None]
    ) -> None:
        self._node, self._header, self._env, self._path, self._on_exit = node, header, env, path, on_exit
        self.stderr: int | None = None
        self.pid = 0
        self._status: socket.socket | None = None
        self._early: list[bytes] = []

    def start(self) -> None:
        """Fork it. OSError when that fails."""
        placed = self._placed()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._status = ours
        try:
            self.pid = self._node.spawn(BATCH, 0, lambda: self._child(theirs, placed), self._ended)
        finally:
            theirs.close()
            for fd in placed.values():
                os.close(fd)
        self._node.loop.watch(ours.fileno(), 1, self._told)

    def _placed(self) -> dict[str, int]:
        """Descriptors for those of its files that nothing keeps where it runs."""
        _, stdout, stderr = self.names()
        found: dict[str, int] = {}
        for path, what in ((stdout, OF_STDOUT), (stderr, OF_STDERR)):
            place = self._node.place(path, what) if path and path not in found else path
            if isinstance(place, int):
                found[path] = place
        return found

    def say(self, text: str) -> None:
        """A line of slurmstepd's in the job's stderr; kept until that is open."""
        line = spawn.log_line(text)
        if self.stderr is None:
            self._early.append(line)
        else:
            self._node.write(self.stderr, line)

    def names(self) -> tuple[str, str, str]:
        """(stdin, stdout, stderr) as opened; stderr empty when it goes with stdout."""
        values = dict(self._header["pattern_values"])
        values.update({"N": self._node.node, "n": "0", "t": "0", "s": "batch"})
        return tuple(  # type: ignore[return-value]
            filenames.expand(self._header[name], values) if self._header[name] else "" for name in ("in", "out", "err")
        )

    def _told(self, events: int) -> None:
        status = self._status
        if status is None:
            return
        try:
            message, descriptors, _, _ = socket.recv_fds(status, STATUS_MOST, 1)
        except BlockingIOError:
            return
        if descriptors:
            self.stderr = descriptors[0]
            os.set_inheritable(self.stderr, False)
            if self._early:
                self._node.write(self.stderr, b"".join(self._early))
        if message.startswith(b"F"):
            self.problem = message[1:].decode("utf-8", "replace")
        self._node.loop.forget(status.fileno())
        status.close()
        self._status = None

    problem = ""
    """Why its files could not be opened."""

    def _ended(self, status: int) -> None:
        self._told(0)
        final = spawn.OPEN_FAILED if self.problem else status
        epilogs = hooks.around(self._header, {}).get("epilogs", [])
        cwd = str(self._header["work_dir"])
        hooks.after(self._node, BATCH, 0, epilogs, self._env, cwd, self.say, lambda: self._on_exit(final))

    def _child(self, status: socket.socket, placed: dict[str, int]) -> None:
        header, node = self._header, self._node
        lines: list[bytes] = []
        node.identity.become()
        spawn.set_limits(header["rlimits"], lines)
        os.umask(int(header["umask"]))
        cwd = spawn.enter_directory(header["work_dir"], lines)
        stdin, stdout, stderr = self.names()
        append = bool(header["append"])
        try:
            fd_in = os.open(stdin or NO_FILE, os.O_RDONLY | os.O_CLOEXEC)
            fd_out = placed[stdout] if stdout in placed else spawn.open_output(stdout or NO_FILE, append=append)
            same = not stderr or stderr == stdout
            if same:
                fd_err = fd_out
            else:
                fd_err = placed[stderr] if stderr in placed else spawn.open_output(stderr, append=append)
        except OSError as error:
            status.send(f"F{error.filename}: {error.strerror}".encode("utf-8", "replace")[:STATUS_MOST])
            os._exit(1)
        spawn.take_fds(fd_in, fd_out, fd_err)
        socket.send_fds(status, [b"R"], [2])
        spawn.write_all(2, b"".join(lines))
        env = self._env
        env["PWD"] = cwd
        env["SLURM_TASK_PID"] = str(os.getpid())
        failed = hooks.before(prologs, env) if (prologs := hooks.around(header, {}).get("prologs")) else 0
        if failed:
            os._exit(failed)
        os._exit(spawn.execute(self._path, [self._path, *header["args"]], env) & 0xFF)
