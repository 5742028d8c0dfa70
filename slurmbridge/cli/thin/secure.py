"""How is a daemon reached at https://HOST:PORT? Over TLS, with the caller's own token, by a process of its own beside the
command, which sees an ordinary socket.

The token is a file that nobody else can read: SLURMBRIDGE_TOKEN_FILE, else slurmbridge/token in XDG_CONFIG_HOME or ~/.config.
It names the daemon's certificate by its hash, so that it is shown to no other (`slurmbridge token`). Standard library only;
loaded for such addresses alone.
"""

import contextlib
import errno
import hashlib
import os
import re
import select
import signal
import socket
import ssl
import sys
from typing import NoReturn

from slurmbridge.supervisor import pinned
from slurmbridge.wire.agent import MAX_TOKEN, NO, TOKEN, TOKEN_FORM, VERSION, WELCOME
from slurmbridge.wire.client import frame, pack

HOW = "make one with `slurmbridge token` on a login node or at the daemon's host, and keep it there with mode 0600"
CONNECT_S = 8.0
CHUNK = 1 << 16
ENOUGH = 1 << 18
"""Bytes that wait for one side before the other is read no more."""


class Unusable(Exception):
    """Trying again does not help: the address, the token or the daemon is not the right one."""


def dial(command: str, address: bytes, entries: list[bytes]) -> socket.socket:
    """A socket that leads to the daemon. OSError: it is not reached now. What no second try mends ends the command."""
    try:
        host, port = place(address.decode(errors="replace"))
        pin, name, secret = token(entries)
        far = connect(host, port, pin, name, secret)
    except Unusable as fault:
        sys.stderr.write(f"{command}: error: {fault}\n")
        sys.stderr.flush()
        os._exit(1)
    near, ours = socket.socketpair()
    try:
        beside(far, ours, near)
    finally:
        far.close()
        ours.close()
    return near


def place(address: str) -> tuple[str, int]:
    found = re.fullmatch(r"https://(\[[0-9A-Fa-f:.]+\]|[^/:\[\]]+):([0-9]{1,5})/?", address)
    if found is None:
        raise Unusable(f"SLURMBRIDGE_ADDR={address}: neither unix:/PATH nor https://HOST:PORT")
    return found[1].strip("[]"), int(found[2])


def token(entries: list[bytes]) -> tuple[str, str, str]:
    """(hash of the daemon's certificate, id, secret) of the caller's token."""
    env = dict(entry.split(b"=", 1) for entry in reversed(entries))
    path = env.get(b"SLURMBRIDGE_TOKEN_FILE", b"")
    if not path:
        home = env.get(b"XDG_CONFIG_HOME") or env.get(b"HOME", b"") + b"/.config"
        path = home + b"/slurmbridge/token"
    shown = path.decode(errors="replace")
    try:
        with open(path, "rb") as file:
            status, text = os.fstat(file.fileno()), file.read(4096).decode("ascii", "replace").strip()
    except OSError as fault:
        raise Unusable(f"the token {shown}: {fault.strerror}; {HOW}") from fault
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise Unusable(f"the token {shown} is not yours alone: {HOW}")
    form, *parts = text.split(".")
    if form != TOKEN_FORM or len(parts) != 3 or not all(re.fullmatch("[0-9a-f]{8,128}", part) for part in parts):
        raise Unusable(f"{shown} is no token: {HOW}")
    return parts[0], parts[1], parts[2]


def connect(host: str, port: int, pin: str, name: str, secret: str) -> ssl.SSLSocket:
    """Proved on both sides. OSError, Unusable."""
    try:
        plain = socket.create_connection((host, port), CONNECT_S)
    except OSError as fault:  # for a command a daemon that is away is one that may come back
        raise ConnectionRefusedError(errno.ECONNREFUSED, fault.strerror or str(fault)) from fault
    try:
        pinned.keep_alive(plain)
        far = pinned.context().wrap_socket(plain)
    except OSError as fault:
        plain.close()
        raise ConnectionRefusedError(errno.ECONNREFUSED, str(fault)) from fault
    try:
        if hashlib.sha256(far.getpeercert(binary_form=True) or b"").hexdigest() != pin:
            raise Unusable(f"the daemon at {host}:{port} is not the one that made your token")
        far.sendall(frame(TOKEN, pack(VERSION, name.encode(), secret.encode())))
        answer = _frame(far)
        if answer[:1] == NO:
            raise Unusable(f"the daemon at {host}:{port} does not let you in: {answer[1:].decode(errors='replace')}")
        if answer != WELCOME + VERSION:
            raise Unusable(f"what answers at {host}:{port} is no daemon that this command knows")
    except OSError as fault:
        far.close()
        raise ConnectionRefusedError(errno.ECONNREFUSED, str(fault)) from fault
    except BaseException:
        far.close()
        raise
    return far


def _frame(far: ssl.SSLSocket) -> bytes:
    """The first frame, no byte more of what follows."""
    head = _exactly(far, 4)
    size = int.from_bytes(head, "big")
    if not 1 <= size <= MAX_TOKEN:
        return b""
    return _exactly(far, size)


def _exactly(far: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = far.recv(size - len(data))
        if not part:
            raise ConnectionResetError(errno.ECONNRESET, "the daemon ended the connection")
        data += part
    return data


# ---- the process beside


def beside(far: ssl.SSLSocket, near: socket.socket, theirs: socket.socket) -> None:
    """Pass on what comes, in a grandchild: nobody's child that ends in the middle of a command, out of reach of what the
    terminal sends to the command's group, with none of its files."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
                       signal.SIGALRM, signal.SIGPIPE):  # fmt: skip
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        theirs.close()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        _close_all_but(near.fileno(), far.fileno())
        relay(near, far)
    finally:
        os._exit(0)


def _close_all_but(*kept: int) -> None:
    low = 3
    for fd in sorted(kept):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX") if low < 4096 else low)


def relay(near: socket.socket, far: ssl.SSLSocket) -> NoReturn:
    """Until either side ends; what was said before reaches the other."""
    near.setblocking(False)
    far.setblocking(False)
    to_near, to_far = bytearray(), bytearray()
    near_over = far_over = False
    while True:
        if not far_over and len(to_near) < ENOUGH:
            far_over = _read(far, to_near)
        if not near_over and len(to_far) < ENOUGH:
            near_over = _read(near, to_far)
        if not _write(near, to_near):
            near_over = True
            to_near.clear()
        if not _write(far, to_far):
            far_over = True
            to_far.clear()
        if near_over and not to_far:
            far.setblocking(True)
            far.settimeout(1.0)
            with contextlib.suppress(OSError):
                far.unwrap()  # the daemon knows by this that it is the caller who has left
            os._exit(0)
        if far_over and not to_near:
            os._exit(0)
        poll = select.poll()  # of a side that is not waited for not even its end, which would be told again and again
        for sock, out, reads in ((near, to_near, not near_over and len(to_far) < ENOUGH),
                                 (far, to_far, not far_over and len(to_near) < ENOUGH)):  # fmt: skip
            events = (select.POLLOUT if out else 0) | (select.POLLIN if reads else 0)
            if events:
                poll.register(sock, events)
        poll.poll()


def _read(sock: socket.socket, data: bytearray) -> bool:
    """All that has come, up to enough. Whether it has ended."""
    try:
        while len(data) < ENOUGH:
            part = sock.recv(CHUNK)
            if not part:
                return True
            data += part
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return False
    except OSError:
        return True
    return False


def _write(sock: socket.socket, data: bytearray) -> bool:
    """As much as it takes now. False: it is gone."""
    try:
        while data:
            sent = sock.send(bytes(data[:CHUNK]))
            del data[:sent]
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return True
    except OSError:
        return False
    return True
