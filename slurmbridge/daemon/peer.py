"""Who is at the other end of a connection? What the kernel says, or what is known of the job that it comes from."""

from __future__ import annotations

import socket
import struct

import msgspec


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    uid: int
    gid: int
    groups: tuple[int, ...] | None = None  # None: those that the user is in by name


def of_socket(sock: socket.socket) -> Peer:
    """Of a unix socket."""
    _, uid, gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Peer(uid=uid, gid=gid)
