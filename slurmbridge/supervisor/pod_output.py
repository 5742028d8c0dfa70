"""Output that no file system keeps: where does it go until the daemon has it?

A process gets a pipe in the place of such a file. What comes out of it is written to a file without a name, and sent from
there, one piece at a time; the daemon says how far it is, so that neither a cut nor another daemon loses or doubles anything.
A job never waits for the daemon, which may be away as long as it likes: the file takes as much as the daemon keeps of a job.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import Any

from slurmbridge.lang.lasting import lasts
from slurmbridge.supervisor.loop import IN, Link, Loop
from slurmbridge.supervisor.pod_space import say
from slurmbridge.wire import supervisor as wire

CHUNK = 1 << 16
MOST_FILES = 1024
"""Open at the same time on a rank."""
FOLDERS = ("/tmp", "/var/tmp")
"""Where a container may write, before what is memory."""


class Stream:
    """One such file, from its first open until the daemon has its end."""

    def __init__(self, number: int, what: str, path: str, source: int, log: int) -> None:
        self.number, self.what, self.path, self.source, self.log = number, what, path, source, log
        self.size = 0  # bytes in `log`
        self.sent = 0  # the daemon has them
        self.lost = 0  # bytes behind them that are in no file
        self.is_over = False  # nobody writes to it any more

    @property
    def has_news(self) -> bool:
        return self.sent < self.size or self.is_over


class Output:
    """Of one rank. Without a word of the daemon about mounts (an older one) every file is a file."""

    def __init__(self, loop: Loop, header: dict[str, Any], base: str) -> None:
        self._loop, self._folders = loop, (*FOLDERS, base)
        self._mounts = [(str(folder), bool(stays)) for folder, stays in header.get("mounts") or ()]
        self._is_on = "mounts" in header
        self._most = int(header.get("most_output", 0))
        self._streams: dict[int, Stream] = {}
        self._next = 0
        self._link: Link | None = None
        self._asked = -1  # stream of the piece that is under way
        self._finish: Callable[[], None] | None = None
        self.is_finished = False

    # ---- the job's side

    def place(self, path: str, what: str = wire.OF_STEP) -> str | int:
        """The path itself where it is to be opened, else a descriptor that takes its place. OSError: there is none.

        A file that is open still is the same one: several tasks may write to it."""
        if not self._is_on or lasts(self._mounts, path):
            return path
        for known in self._streams.values():
            if known.path == path and known.source >= 0:
                return self._again(known)
        source, target = os.pipe2(os.O_CLOEXEC)
        try:
            self._take(path, what, source)
        except OSError:
            os.close(source)
            os.close(target)
            raise
        return target

    def take(self, path: str, source: int) -> None:
        """What comes from there goes to that file. The descriptor is ours from here on. OSError: it is not taken."""
        self._take(path, wire.OF_STEP, source)

    @staticmethod
    def _again(known: Stream) -> int:
        if not stat.S_ISFIFO(os.fstat(known.source).st_mode):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), known.path)
        return os.open(f"/proc/self/fd/{known.source}", os.O_WRONLY | os.O_CLOEXEC)

    def _take(self, path: str, what: str, source: int) -> None:
        if len(self._streams) >= MOST_FILES:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        stream = Stream(self._next, what, path, source, self._log())
        os.set_blocking(source, False)
        self._next += 1
        self._streams[stream.number] = stream
        self._loop.watch(source, IN, lambda events: self._ready(stream))

    def _log(self) -> int:
        for folder in self._folders:
            try:
                return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            except OSError as error:
                fault = error
            path = os.path.join(folder, f".slurmbridge-{os.getpid()}-{self._next}")
            try:  # its file system knows no files without names
                log = os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC, 0o600)
                os.unlink(path)
                return log
            except OSError as error:
                fault = error
        raise fault

    def _ready(self, stream: Stream) -> None:
        self._read(stream)

    def _read(self, stream: Stream) -> bool:
        """What is there now, at most a chunk. False: there is no more of it, now or ever."""
        try:
            data = os.read(stream.source, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._close(stream)
            return False
        self._write(stream, data)
        self._send()
        return True

    def _write(self, stream: Stream, data: bytes) -> None:
        """A byte more than is kept of a job tells the daemon that there was more."""
        room = 0 if stream.lost else max(self._most + 1 - stream.size, 0)
        written = 0
        try:
            while written < min(len(data), room):
                written += os.pwrite(stream.log, data[written:room], stream.size + written)
        except OSError as error:
            say(f"{stream.path}: {error.strerror}")
        stream.size += written
        stream.lost += len(data) - written

    def _close(self, stream: Stream) -> None:
        self._loop.forget(stream.source)
        os.close(stream.source)
        stream.source = -1
        stream.is_over = True
        self._send()

    def finish(self, then: Callable[[], None]) -> None:
        """Nothing of the job runs any more: what is left in the pipes is all there is. `then`: the daemon has it."""
        for stream in list(self._streams.values()):
            if stream.source < 0:
                continue
            while self._read(stream):
                pass
            if stream.source >= 0:
                self._close(stream)
        self._finish = then
        self._look()

    @property
    def is_empty(self) -> bool:
        """Whether the daemon has all that was written so far."""
        return not self._streams

    def _look(self) -> None:
        if self._finish is not None and self.is_empty:
            then, self._finish = self._finish, None
            self.is_finished = True
            then()

    # ---- the daemon's side

    def connected(self, link: Link | None) -> None:
        """The daemon is there (again), or has gone: then what was under way may have come or not."""
        self._link, self._asked = link, -1
        self._send()

    def _send(self) -> None:
        link = self._link
        if link is None or self._asked >= 0:
            return
        stream = next((each for each in self._streams.values() if each.has_news), None)
        if stream is None:
            return
        # who had a piece waits until the others have had one
        self._streams[stream.number] = self._streams.pop(stream.number)
        data = os.pread(stream.log, wire.MOST_OUTPUT, stream.sent)
        is_end = stream.is_over and stream.sent + len(data) >= stream.size
        lost = stream.lost if is_end else -1
        self._asked = stream.number
        piece = wire.Output(stream.number, stream.sent, lost, stream.what, stream.path, data)
        link.send(wire.OUTPUT, wire.encode_output(piece))

    def kept(self, payload: bytes) -> None:
        """G: how far the daemon is."""
        value = wire.decode(payload)
        stream = self._streams.get(int(value["stream"]))
        if stream is None or stream.number != self._asked:
            return
        self._asked = -1
        stream.sent = min(max(int(value["size"]), 0), stream.size)
        if value.get("over") and stream.is_over and stream.sent == stream.size:
            del self._streams[stream.number]
            os.close(stream.log)
            self._look()
        self._send()
