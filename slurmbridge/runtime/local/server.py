"""The daemon's end of the fork server: start it first, before keys, configuration or database are opened."""

from __future__ import annotations

import pathlib
import resource
import socket
import subprocess
import sys

import slurmbridge
from slurmbridge.errors import RuntimeFault

READY_S = 10.0


class ForkServer:
    """A running fork server. `fork()` gives the daemon's end of a new supervisor's socketpair."""

    def __init__(self) -> None:
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]  # before the daemon takes more: jobs begin with it
        self._start()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = pathlib.Path(str(slurmbridge.__file__)).parent / "supervisor" / "forkserver.py"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(program), str(theirs.fileno()), str(self._files)],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
            cwd="/",
        )
        theirs.close()
        self._control.settimeout(READY_S)
        try:
            if self._control.recv(16) != b"ready":
                raise RuntimeFault("the fork server did not come up")
        except TimeoutError as error:
            raise RuntimeFault("the fork server did not come up in time") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self, *, namespaces: bool) -> socket.socket:
        """One new supervisor, waiting for its launch; as root its job may get namespaces.

        A server that has died is started anew, once; then OSError.
        """
        message = b"s" if namespaces else b"f"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                socket.send_fds(self._control, [message], [theirs.fileno()])
            except OSError:
                try:
                    self.close()
                    self._start()
                    socket.send_fds(self._control, [message], [theirs.fileno()])
                except (OSError, RuntimeFault) as error:
                    ours.close()
                    raise OSError(f"the fork server is gone: {error}") from error
        ours.setblocking(False)
        return ours

    def close(self) -> None:
        """End it; supervisors live on. Idempotent."""
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
