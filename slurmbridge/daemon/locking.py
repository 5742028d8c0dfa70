"""One daemon per state folder: a lock that ends with the process, and the file that names it."""

from __future__ import annotations

import fcntl
import os
import pathlib

from slurmbridge.errors import BridgeError


class Lock:
    """Held from `take` until the process is gone. STATE/daemon.pid holds pid, start time, and the socket's path where it
    is not the usual one."""

    def __init__(self, state: str, socket: str = "") -> None:
        self._socket = socket
        self._path = os.path.join(state, "daemon.lock")
        self._pid_file = os.path.join(state, "daemon.pid")
        self._fd = -1

    def take(self) -> None:
        """BridgeError when another daemon has it."""
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            raise BridgeError(f"another daemon uses the state folder {os.path.dirname(self._path)}") from fault
        text = pathlib.Path("/proc/self/stat").read_text()
        started = text[text.rindex(")") + 2 :].split()[19]
        temporary = self._pid_file + ".new"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644), "w") as stream:
            stream.write(f"{os.getpid()} {started} {self._socket}".rstrip() + "\n")
        os.replace(temporary, self._pid_file)

    def release(self) -> None:
        """At a clean end: nobody looks for this process any more."""
        if self._fd >= 0:
            pathlib.Path(self._pid_file).unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1
