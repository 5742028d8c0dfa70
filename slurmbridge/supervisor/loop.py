"""A small event loop: descriptors, timers on CLOCK_BOOTTIME, ended children, and framed links with bounded buffers.

One thread, level-triggered epoll. Time is CLOCK_BOOTTIME throughout, so that limits hold over a suspended machine.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import signal
import socket
from collections.abc import Callable

from slurmbridge.supervisor.kernel import boottime
from slurmbridge.wire.client import Decoder, frame
from slurmbridge.wire.supervisor import MAX_FRAME

HIGH_WATER = 1 << 20
"""A link with more than this unsent makes its sources pause."""

IN, OUT = select.EPOLLIN, select.EPOLLOUT


class Timer:
    """A call in the future; `cancel` forgets it."""

    __slots__ = ("at", "call")

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call = at, call

    def cancel(self) -> None:
        self.call = _nothing


def _nothing() -> None:
    return None


class Loop:
    """Watches descriptors and calls back. `on_child(pid, status, rusage)` gets every reaped child."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._calls: dict[int, Callable[[int], None]] = {}
        self._events: dict[int, int] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._stopped = False
        self.on_child: Callable[[int, int, object], None] = lambda pid, status, usage: None
        self._wake, wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake_in = wake_in
        signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, where: None)
        self.watch(self._wake, IN, self._reap)

    def watch(self, fd: int, events: int, call: Callable[[int], None]) -> None:
        """Call with the events that came; a descriptor already watched gets the new events and call."""
        known = self._events.get(fd)
        if known is None:
            self._epoll.register(fd, events)
        elif known != events:
            self._epoll.modify(fd, events)
        self._events[fd], self._calls[fd] = events, call

    def forget(self, fd: int) -> None:
        """Watch no more. Call before the descriptor is closed."""
        if self._calls.pop(fd, None) is not None:
            del self._events[fd]
            self._epoll.unregister(fd)

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        """One call, so many seconds from now."""
        timer = Timer(boottime() + max(0.0, seconds), call)
        heapq.heappush(self._timers, (timer.at, next(self._order), timer))
        return timer

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        """Until `stop`; may be run again."""
        while not self._stopped:
            timeout = -1.0
            while self._timers and self._timers[0][2].call is _nothing:
                heapq.heappop(self._timers)
            if self._timers:
                timeout = max(0.0, self._timers[0][0] - boottime())
            for fd, events in self._epoll.poll(timeout):
                call = self._calls.get(fd)
                if call is not None:
                    call(events)
            now = boottime()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2].call()
        self._stopped = False

    def _reap(self, events: int) -> None:
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.on_child(pid, status, usage)

    def close_in_child(self) -> None:
        """After a fork: let go of what belongs to the parent's loop."""
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._wake_in)
        self._epoll.close()


class Link:
    """A framed, non-blocking stream. `on_frame(kind, payload)`; `on_lost()` once, at the end or a broken frame."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        on_frame: Callable[[bytes, bytes], None],
        on_lost: Callable[[], None],
        limit: int = MAX_FRAME,
    ) -> None:
        self._loop, self._socket, self._on_frame, self._on_lost = loop, sock, on_frame, on_lost
        self._decoder = Decoder(limit)
        self._out = bytearray()
        self._closing = False
        self.on_drained: Callable[[], None] = _nothing
        sock.setblocking(False)
        loop.watch(sock.fileno(), IN, self._ready)

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    @property
    def pending(self) -> int:
        """Bytes not yet taken by the other side."""
        return len(self._out)

    @property
    def is_full(self) -> bool:
        return len(self._out) > HIGH_WATER

    def fileno(self) -> int:
        return self._socket.fileno()

    def allow(self, limit: int) -> None:
        """Frames of that size from here on."""
        self._decoder.limit = limit

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Queue one frame; silently dropped when the link is gone (`on_lost` has told)."""
        if not self.is_open:
            return
        self._out += frame(kind, payload)
        self._flush()

    def close(self) -> None:
        """Close after what is queued has gone out."""
        self._closing = True
        if not self._out:
            self._drop()

    def detach(self) -> socket.socket:
        """The socket for somebody else; what was queued must have gone out."""
        self._loop.forget(self._socket.fileno())
        return socket.socket(fileno=self._socket.detach())

    def abandon(self) -> None:
        """Close now, without a call of `on_lost`."""
        self._on_lost = _nothing
        self._drop()

    def _flush(self) -> None:
        was_full = self.is_full
        try:
            while self._out:
                sent = self._socket.send(memoryview(self._out)[: 1 << 18])
                del self._out[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._lost()
            return
        if not self._out and self._closing:
            self._drop()
            return
        self._loop.watch(self._socket.fileno(), IN | OUT if self._out else IN, self._ready)
        if was_full and not self.is_full:
            self.on_drained()

    def _ready(self, events: int) -> None:
        if events & OUT:
            self._flush()
            if not self.is_open:
                return
        if not events & ~OUT:
            return
        try:
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        try:
            frames = self._decoder.feed(data)
        except ValueError:
            self._lost()
            return
        for kind, payload in frames:
            if not self.is_open:
                return
            self._on_frame(kind, payload)

    def _lost(self) -> None:
        call, self._on_lost = self._on_lost, _nothing
        self._drop()
        call()

    def _drop(self) -> None:
        if self.is_open:
            self._loop.forget(self._socket.fileno())
            self._socket.close()
        self._out.clear()


class Listener:
    """A unix socket in a spool folder (bound from inside it: the whole path may be longer than 107 bytes)."""

    def __init__(
        self,
        loop: Loop,
        folder: str,
        name: str,
        on_connection: Callable[[socket.socket, int, int], None],
        *,
        owner: int | None = None,
        mode: int = 0o600,
    ) -> None:
        self._on_connection = on_connection
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        os.chdir(folder)
        try:
            self._socket.bind(name)
            if owner is not None and os.getuid() == 0:
                os.chown(name, owner, -1, follow_symlinks=False)
            os.chmod(name, mode)
        finally:
            os.chdir("/")
        self._socket.listen(128)
        self._loop = loop
        loop.watch(self._socket.fileno(), IN, self._accept)

    def _accept(self, events: int) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid = int.from_bytes(credentials[:4], "little", signed=True)
        uid = int.from_bytes(credentials[4:8], "little")
        self._on_connection(connection, uid, pid)

    def close(self) -> None:
        self._loop.forget(self._socket.fileno())
        self._socket.close()


def dial(path: str) -> socket.socket:
    """Connect to a unix socket, however long its path; OSError when nobody listens, or nobody takes calls at present (a
    supervisor must never wait). The supervisor lives in `/`."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        os.chdir(os.path.dirname(path))
        try:
            sock.connect(os.path.basename(path))
        finally:
            os.chdir("/")
    except OSError:
        sock.close()
        raise
    return sock
