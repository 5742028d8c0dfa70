"""A client in Python that keeps one connection open and runs many commands over it: for tests, measuring and tools.

The daemon answers one `H` after the other on a connection. Files are sent only when the caller allows it by name.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import msgspec

from slurmbridge.cli.thin import secure
from slurmbridge.errors import ProtocolError
from slurmbridge.wire import client as frames

GIVEN = 1 << 16  # bytes of a file that is sent before it is asked for
MOST_GIVEN = 4


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a command printed and its exit code."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")


class Connection:
    """A connection to the daemon behind the unix socket `path`, or at https://HOST:PORT. Raises OSError when there is none."""

    def __init__(self, path: str, *, timeout: float | None = 60.0) -> None:
        self._decoder = frames.Decoder()
        if "://" in path:
            entries = [name + b"=" + value for name, value in os.environb.items()]
            self._socket = secure.dial("slurmbridge", os.fsencode(path), entries)
            self._socket.settimeout(timeout)
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            folder = os.open(os.path.dirname(path) or ".", os.O_PATH | os.O_DIRECTORY)
            try:  # a path longer than an address may be
                self._socket.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
            finally:
                os.close(folder)
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        files: Mapping[str, bytes] | None = None,
        stdin: bytes = b"",
        nonce: bytes | None = None,
        umask: int = 0o022,
        said: Callable[[bytes, bytes], None] | None = None,
    ) -> Answer:
        """Run one command. `files`: content by the name that the command asks for. `said`: told what is printed, as it
        comes (O or E, bytes), which is then not in the answer. ProtocolError when it is cut off."""
        words = [os.fsencode(word) for word in argv]
        entries = [os.fsencode(f"{name}={value}") for name, value in (env or {}).items()]
        head = (
            frames.VERSION, nonce or secrets.token_bytes(16), b"%o" % umask, b"80", b"%d" % os.getsid(0), b"",
            os.fsencode(os.uname().nodename), os.fsencode(cwd), b"", b"%d" % len(words),
        )  # fmt: skip
        given = [
            frames.frame(b"G", frames.pack(os.fsencode(name), os.fsencode(os.path.join(cwd, name)), content))
            for name, content in (files or {}).items()
            if len(content) <= GIVEN
        ]
        hello = frames.frame(b"H", frames.pack(*head, *words, *entries))
        self._socket.sendall(b"".join([*given[:MOST_GIVEN], hello]))
        out, err = bytearray(), bytearray()
        while True:
            data = self._socket.recv(1 << 18)
            if not data:
                raise ProtocolError("the daemon closed the connection before the exit code")
            for kind, payload in self._decoder.feed(data):
                if kind in (b"O", b"E") and said is not None:
                    said(kind, payload)
                elif kind == b"O":
                    out += payload
                elif kind == b"E":
                    err += payload
                elif kind == b"X":
                    return Answer(code=int(payload), out=bytes(out), err=bytes(err))
                elif kind in (b"A", b"I"):
                    self._socket.sendall(self._file(kind, payload, files or {}, stdin, cwd))
                else:
                    raise ProtocolError(f"frame {kind!r} is not for this client")

    @staticmethod
    def _file(kind: bytes, payload: bytes, files: Mapping[str, bytes], stdin: bytes, cwd: str) -> bytes:
        if kind == b"I":
            return frames.frame(b"F", frames.pack(b"0", b"", stdin))
        name = os.fsdecode(frames.unpack(payload)[0])
        if name not in files:
            return frames.frame(b"F", frames.pack(b"2", b"", b""))
        return frames.frame(b"F", frames.pack(b"0", os.fsencode(os.path.join(cwd, name)), files[name]))
