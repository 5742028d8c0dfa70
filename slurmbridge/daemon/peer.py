"""Who is at the other end of a connection? What the kernel says, what is known of the job that it comes from, or what the
agent of a login node says (`asserted`)."""

from __future__ import annotations

import socket
import struct

import msgspec


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    uid: int
    gid: int
    groups: tuple[int, ...] | None = None  # None: those that the user is in by name
    host: str = ""  # where he sits; empty: as his own process says
    by_token: bool = False  # of his own, which makes no others
    is_remote: bool = False  # on another machine: no socket or file of ours can be reached from there


class LinkCut(ConnectionError):
    """A connection was lost somewhere between the caller and us: he may well be there, and come again."""


def of_socket(sock: socket.socket) -> Peer:
    """Of a unix socket: struct ucred of unix(7), whose ids have no sign."""
    _, uid, gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Peer(uid=uid, gid=gid)
