"""Frames between a thin client and the daemon. Sans I/O, standard library only, and next to no imports.

A frame is 4 bytes of big-endian length (of what follows), one type byte, then the payload. `pack` joins byte strings
with 4-byte lengths, `unpack` splits them again. A frame is at most 8 MiB, checked before it is read.

Client to daemon
    H  hello: version, nonce (16 bytes), umask (octal), columns, sid, tty flags ("io": i stdin, o stdout is a terminal),
       host, cwd, rlimits ("NOFILE:1024:4096,..."), number of argv strings, argv..., environment as NAME=VALUE...
    G  before H: a file that the command may ask for, which then need not be asked for: name, path, content
    F  answer to A, I or W: errno (decimal), path, content
    S  a signal the client caught (decimal)
    D  what J asked for is done: exit code, wait status for the job (decimal)
    T  through to the first supervisor of a job that only the daemon reaches: job (decimal), the command's name; what
       follows, both ways, are frames of `wire.step`
Daemon to client
    O  bytes for stdout        E  bytes for stderr
    A  send a file: name, limit (decimal), "p" to search PATH or ""
    I  send standard input: limit (decimal), "l" for one line or ""
    W  write a file: name, permissions (octal), content
    J  you have an allocation: what to do in it ("step", "command", "attach"), facts as JSON, NAME=VALUE...
       step and attach: {"job", "address" of the supervisor's socket, ...}; command: {"job", "argv", ...}
    R  the allocation is gone: signal for what runs there (decimal, 0: none)
    L  run the command in the local interpreter
    X  exit code (decimal); the last frame

Version 1. A daemon answers an unknown version with E and X.
"""

VERSION = b"1"
MAX_FRAME = 8 * 1024 * 1024
BY_YOURSELF = b"L"
"""Also said by who passes commands on to a daemon that is not reached: the command then says that there is no controller."""


def frame(kind: bytes, payload: bytes) -> bytes:
    """One frame; kind is one byte."""
    return (len(payload) + 1).to_bytes(4, "big") + kind + payload


def pack(*parts: bytes) -> bytes:
    """Parts with their lengths."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def unpack(payload: bytes) -> list[bytes]:
    """The parts again; ValueError when the lengths do not add up."""
    parts: list[bytes] = []
    at, end = 0, len(payload)
    while at < end:
        size = int.from_bytes(payload[at : at + 4], "big")
        at += 4
        if at + size > end:
            raise ValueError("a part ends behind its frame")
        parts.append(payload[at : at + size])
        at += size
    return parts


class Decoder:
    """Collects bytes, gives whole frames. `feed` returns a list of (kind, payload); ValueError on an oversized frame."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._buffer = bytearray()
        self.limit = limit

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return len(self._buffer)

    def take(self) -> bytes:
        """Those bytes: somebody else reads on."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return taken

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        buffer = self._buffer
        buffer += data
        frames: list[tuple[bytes, bytes]] = []
        at = 0
        while len(buffer) - at >= 4:
            size = int.from_bytes(buffer[at : at + 4], "big")
            if not 1 <= size <= self.limit:
                raise ValueError(f"a frame of {size} bytes")
            if len(buffer) - at - 4 < size:
                break
            body = bytes(buffer[at + 4 : at + 4 + size])
            frames.append((body[:1], body[1:]))
            at += 4 + size
        if at:
            del buffer[:at]
        return frames
