"""sbcast: a file of the user's, written by a process of the user's on the job's nodes.

The first node's supervisor writes it; the virtual nodes of one machine see one file system, so one copy is all there
is (`pod_cast`: where each has its own). The file comes in blocks, each asked for when the one before is written, so that
nothing piles up here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from slurmbridge.supervisor.loop import OUT
from slurmbridge.supervisor.spawn import Identity, take_fds
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import unpack
from slurmbridge.wire.supervisor import decode, encode

if TYPE_CHECKING:
    from slurmbridge.supervisor.node import NodeRun

EXTERN = -4
"""The group that such processes are counted in: no step's and not the batch script's."""
CHUNK = 1 << 16
UNKNOWN_ERROR = 255


class Sender(Protocol):
    """Who sends the file, or who stands for him."""

    def send(self, kind: bytes, payload: bytes = b"") -> None: ...
    def close(self) -> None: ...


class Cast:
    """One file under way. ValueError from `begin`: nonsense."""

    def __init__(self, node: NodeRun, link: Sender) -> None:
        self._node, self._link = node, link
        self._pipe = -1
        self._left = memoryview(b"")
        self._is_last = False

    def begin(self, payload: bytes) -> None:
        """CAST: make the file, then ask for its first block."""
        version, text = unpack(payload)
        request = decode(text)
        if version != wire.VERSION:
            raise ValueError("another version")
        dest, mode = str(request["dest"]), int(request["mode"])
        force, times = bool(request.get("force")), request.get("times")
        read_end, self._pipe = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._pipe, False)
        identity = self._node.identity
        self._node.spawn(EXTERN, 0, lambda: _write(identity, read_end, dest, mode, force, times), self._ended)
        os.close(read_end)
        self._link.send(wire.MORE)

    def frame(self, kind: bytes, payload: bytes) -> None:
        """A block, or the end of the file."""
        if self._pipe < 0:
            return
        self._left, self._is_last = memoryview(payload), kind == wire.STDIN_END
        self._flush(0)

    def lost(self) -> None:
        """The sender is gone: the writer sees the end of its pipe."""
        self._shut()

    def _flush(self, events: int) -> None:
        try:
            while self._left:
                self._left = self._left[os.write(self._pipe, self._left[:CHUNK]) :]
        except BlockingIOError:
            self._node.loop.watch(self._pipe, OUT, self._flush)
            return
        except OSError:  # the writer gave up; its end says why
            self._shut()
            return
        self._node.loop.forget(self._pipe)
        if self._is_last:
            self._shut()
        else:
            self._link.send(wire.MORE)

    def _shut(self) -> None:
        if self._pipe >= 0:
            self._node.loop.forget(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _ended(self, status: int) -> None:
        self._shut()
        code = os.waitstatus_to_exitcode(status)
        error = code if code >= 0 else UNKNOWN_ERROR
        self._link.send(wire.FINISHED, encode({"errno": error, "node": self._node.node}))
        self._link.close()


def _write(identity: Identity, source: int, dest: str, mode: int, force: bool, times: Any) -> None:
    """In the new process, as the user: its exit code is the errno of what failed."""
    try:
        identity.become()
        os.umask(0o022)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | (os.O_TRUNC if force else os.O_EXCL)
        target = os.open(dest, flags, mode & 0o777)
        take_fds(source, target, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the other end of the pipe among them
        while part := os.read(0, CHUNK):
            left = memoryview(part)
            while left:
                left = left[os.write(1, left) :]
        os.fchmod(1, mode & 0o777)
        if times:
            os.utime(1, (float(times[0]), float(times[1])))
    except OSError as fault:
        os._exit((fault.errno or UNKNOWN_ERROR) & 0xFF)
    os._exit(0)
