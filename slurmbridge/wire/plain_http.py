"""Just enough HTTP to be asked for a page: one GET a connection, nothing read but its first line, then closed.

Follows RFC 9112 (HTTP/1.1) for a server that closes after each answer. Without I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

LONGEST_HEAD: Final = 8192
REASONS: Final[Mapping[int, str]] = {
    200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
    431: "Request Header Fields Too Large", 503: "Service Unavailable", 505: "HTTP Version Not Supported",
}  # fmt: skip


class Asked(NamedTuple):
    """A path without its query; or the status with which what was sent has to be refused."""

    path: str = ""
    refusal: int = 0


def read(head: bytes) -> Asked | None:
    """None: the head has not come whole yet."""
    whole, end, _ = head.partition(b"\r\n\r\n")
    if not end:
        return Asked(refusal=431) if len(head) > LONGEST_HEAD else None
    words = whole.partition(b"\r\n")[0].split(b" ")
    if len(words) != 3 or not words[1].startswith(b"/"):
        return Asked(refusal=400)
    method, target, version = words
    if not version.startswith(b"HTTP/1."):
        return Asked(refusal=505)
    if method != b"GET":
        return Asked(refusal=405)
    return Asked(path=target.partition(b"?")[0].decode("ascii", "replace"))


def answer(status: int, body: bytes = b"", kind: str = "text/plain; charset=utf-8") -> bytes:
    """A whole answer; without a body the status says itself what it means."""
    body = body or f"{REASONS[status]}\n".encode()
    lines = [
        f"HTTP/1.1 {status} {REASONS[status]}", f"Content-Type: {kind}", f"Content-Length: {len(body)}",
        "Connection: close", "Cache-Control: no-store", *(["Allow: GET"] if status == 405 else []),
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_place(text: str) -> tuple[str, int] | None:
    """HOST:PORT or [HOST]:PORT; None: it is not that."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) <= 65535:
        return None
    return host, int(port)
