"""One connection to the daemon: TLS on its far side, plain bytes on its near side, with bounded buffers between.

TLS is run in memory (`ssl.MemoryBIO`), so that the event loop sees ordinary sockets on both sides.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slurmbridge.supervisor.kernel import boottime
from slurmbridge.supervisor.loop import IN, OUT, Timer
from slurmbridge.supervisor.pinned import keep_alive
from slurmbridge.supervisor.pod_names import Address
from slurmbridge.wire.supervisor import SUPERVISOR

if TYPE_CHECKING:
    from slurmbridge.supervisor.pod_gate import Gate

FIRST_S, LAST_S = 0.25, 10.0
"""Pauses between tries."""
CONNECT_S = 10.0
"""For one address: until the connection is secure."""
CHUNK = 1 << 16
ENOUGH = 1 << 18
"""Bytes that wait for one side before the other is read no more."""


class Relay:
    """`until`: the time up to which it is tried again, as long as nothing was said on either side; the near end then gets
    `parting` and is closed."""

    def __init__(
        self, gate: Gate, near: socket.socket, said: dict[str, Any], *, until: float, parting: bytes = b""
    ) -> None:
        self._gate, self._loop, self._near, self._said = gate, gate.loop, near, said
        self._until, self._parting = until, parting
        self._far: socket.socket | None = None
        self._timer: Timer | None = None
        self._heard = False
        self._near_ended = False
        self._pause_s = FIRST_S
        near.setblocking(False)

    # ---- until it is secure

    def dial(self) -> None:
        """Once more, or for the first time."""
        self._addresses: list[Address] = []
        self._gate.names.find(self._found)

    def _found(self, addresses: list[Address]) -> None:
        self._addresses = addresses
        self._connect("no such name" if not addresses else "")

    def _connect(self, why: str) -> None:
        """To the next address; `why` the one before it failed."""
        if not self._addresses:
            self._gate.names.forget()
            self._fail(why)
            return
        family, address = self._addresses.pop(0)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self._gate.tls.wrap_bio(self._incoming, self._outgoing)
        self._is_secure = self._far_ended = False
        self._to_far, self._to_near = bytearray(), bytearray()
        try:
            self._far = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            keep_alive(self._far)
            number = self._far.connect_ex(address)
        except OSError as error:
            number = error.errno or errno.EIO
        if number not in (0, errno.EINPROGRESS):
            self._next(os.strerror(number))
            return
        assert self._far is not None
        self._timer = self._loop.after(CONNECT_S, lambda: self._next("no answer in time"))
        self._loop.watch(self._far.fileno(), OUT, self._connected)

    def _next(self, why: str) -> None:
        self._drop_far()
        self._connect(why)

    def _connected(self, events: int) -> None:
        assert self._far is not None
        number = self._far.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._next(os.strerror(number))
            return
        self._advance()

    def _secure(self) -> str:
        """Go on with the handshake. Why it failed, empty while it has not."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return "it ended the connection" if self._far_ended else ""
        except ssl.SSLError as error:
            return f"no TLS: {error.reason or error}"
        certificate = self._tls.getpeercert(binary_form=True) or b""
        if hashlib.sha256(certificate).hexdigest() != self._gate.who.pin:
            return "its certificate is another one than the one named by --pin"
        try:
            self._tls.write(self._gate.opening(self._said))
        except OSError as error:
            return f"the pod's token: {error}"
        self._is_secure = True
        self._wait_no_longer()
        return ""

    # ---- from then on

    def _far_ready(self, events: int) -> None:
        assert self._far is not None
        if events & ~OUT:
            try:
                data = self._far.recv(CHUNK)
                self._incoming.write(data) if data else self._far_is_over()
            except BlockingIOError:
                pass
            except OSError:
                self._far_is_over()
        self._advance()

    def _far_is_over(self) -> None:
        self._far_ended = True
        self._incoming.write_eof()

    def _near_ready(self, events: int) -> None:
        if events & ~OUT:
            try:
                data = self._near.recv(CHUNK)
            except BlockingIOError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                self._near_ended = True
            elif data:
                self._until = 0.0  # it cannot be said again
                self._parting = b""
                self._say(data)
        self._advance()

    def _say(self, data: bytes) -> None:
        try:
            self._tls.write(data)
        except ssl.SSLError:  # the far side has broken it
            self._far_ended = True

    def _advance(self) -> None:
        """Move what can be moved, then wait for what comes next."""
        why = "" if self._is_secure else self._secure()
        if why:
            self._send_far()  # the alert that says why
            self._fail(why)
            return
        if not self._bring_near() or not self._send_far():
            self._fail("the connection was cut")
            return
        if self._near_ended and not self._to_far:
            self._close()
        elif self._far_ended and not self._to_near:
            self._fail("it ended the connection")
        else:
            self._watch()

    def _bring_near(self) -> bool:
        """All that has come, as far as the near side takes it: no event of the far side tells of it again."""
        while True:
            if self._is_secure:
                self._read_tls()
            was_full = len(self._to_near) >= ENOUGH
            if not self._send_near():
                return False
            if not was_full or len(self._to_near) >= ENOUGH:
                return True

    def _read_tls(self) -> None:
        try:
            while len(self._to_near) < ENOUGH:
                data = self._tls.read(CHUNK)
                if not data:
                    self._far_ended = True
                    return
                self._to_near += data
                if not self._heard:
                    self._heard = True
                    if self._said["what"] == SUPERVISOR:
                        self._gate.reached()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError:
            self._far_ended = True

    def _send_near(self) -> bool:
        if self._near_ended:
            self._to_near.clear()
        return _send(self._near, self._to_near)

    def _send_far(self) -> bool:
        self._to_far += self._outgoing.read()
        return self._far is not None and _send(self._far, self._to_far)

    def _watch(self) -> None:
        far, near = self._far, self._near
        assert far is not None
        events = (OUT if self._to_far else 0) | (IN if len(self._to_near) < ENOUGH and not self._far_ended else 0)
        self._await(far, events, self._far_ready)
        reads = self._is_secure and len(self._to_far) < ENOUGH and not self._near_ended
        self._await(near, (OUT if self._to_near else 0) | (IN if reads else 0), self._near_ready)

    def _await(self, sock: socket.socket, events: int, call: Callable[[int], None]) -> None:
        if events:
            self._loop.watch(sock.fileno(), events, call)
        else:
            self._loop.forget(sock.fileno())

    # ---- ends

    def _fail(self, why: str) -> None:
        self._drop_far()
        pause = self._pause()
        if self._heard or boottime() + pause > self._until:
            if not self._heard and self._parting:
                _send(self._near, bytearray(self._parting))
            self._close()
            return
        self._loop.forget(self._near.fileno())
        self._gate.failed(why)
        self._loop.after(pause, self.dial)

    def _pause(self) -> float:
        """Seconds before the next try: half as much again or half as little as any other pod's."""
        pause = self._pause_s * (0.5 + os.urandom(1)[0] / 255)
        self._pause_s = min(self._pause_s * 2, LAST_S)
        return pause

    def _wait_no_longer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _drop_far(self) -> None:
        self._wait_no_longer()
        if self._far is not None:
            self._loop.forget(self._far.fileno())
            self._far.close()
            self._far = None

    def _close(self) -> None:
        self._drop_far()
        if self._near.fileno() >= 0:
            self._loop.forget(self._near.fileno())
            self._near.close()
        self._gate.ended(self)


def _send(sock: socket.socket, data: bytearray) -> bool:
    """As much as it takes now. False: it is gone."""
    try:
        while data:
            sent = sock.send(memoryview(data)[:CHUNK])
            del data[:sent]
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True
