"""Frames between the agent of a login node and the daemon. Sans I/O, standard library only.

Frames are those of `wire.client`. One connection serves callers one after the other, each as if it had dialled the daemon's
own socket: the agent says who it is (A), then both sides pass on what was said (D), then each says once that it has ended
(E). When both have, the next A may come. A connection that ends without E was cut: the caller may still be there.

Who has a token of his own instead says it first (U), and after the welcome speaks as at the daemon's socket (`wire.client`).

Daemon to agent, first of all
    W  welcome: version               N  no: why
User to daemon, first of all
    U  version, id of the token, its secret
Agent to daemon
    A  a caller: version, uid, gid, name, group, home, shell, host, then "gid:name" of each of his groups
Both ways
    D  bytes                          E  nothing more comes
Version 1.
"""

from __future__ import annotations

from typing import NamedTuple

from slurmbridge.wire.client import frame, pack, unpack

VERSION = b"1"
WELCOME, NO, CALLER, DATA, END, TOKEN = b"W", b"N", b"A", b"D", b"E", b"U"
MAX_TOKEN = 1024
"""Bytes of U."""
TOKEN_FORM = "slurmbridge-1"
"""First word of a token as it is printed: FORM.PIN.ID.SECRET, PIN the hash of the daemon's certificate."""
CHUNK = 1 << 18
"""Bytes of one D at most."""
MAX_FRAME = (1 << 18) + (1 << 16)
MOST_GROUPS = 1 << 16  # NGROUPS_MAX of Linux
HIGHEST_ID = (1 << 32) - 2
LONGEST_NAME = 256


class Caller(NamedTuple):
    """Who sits at the other end of the agent's socket, by the kernel and the name service of its host."""

    uid: int
    gid: int
    user: str
    group: str
    home: str
    shell: str
    host: str
    groups: tuple[tuple[int, str], ...]  # the primary one among them


def encode_caller(caller: Caller) -> bytes:
    """The payload of A."""
    words = (str(caller.uid), str(caller.gid), caller.user, caller.group, caller.home, caller.shell, caller.host)
    groups = (f"{gid}:{name}" for gid, name in caller.groups)
    return pack(VERSION, *(word.encode("utf-8", "surrogateescape") for word in (*words, *groups)))


def decode_caller(payload: bytes) -> Caller:
    """ValueError: nonsense, or another version."""
    version, *parts = unpack(payload)
    if version != VERSION:
        raise ValueError(f"version {version!r} of the agent is not known to this daemon")
    uid, gid, user, group, home, shell, host, *rest = (part.decode("utf-8", "surrogateescape") for part in parts)
    if len(rest) > MOST_GROUPS:
        raise ValueError("too many groups")
    groups = []
    for word in rest:
        number, _, name = word.partition(":")
        groups.append((_number(number), _name(name)))
    if not user or not host:
        raise ValueError("a caller without a name")
    return Caller(
        _number(uid), _number(gid), _name(user), _name(group), _line(home), _line(shell), _name(host), tuple(groups)
    )


def read_id(word: str) -> int | None:
    """A uid or gid that is written out; None: it is none."""
    if not word.isascii() or not word.isdecimal() or len(word) > 10 or int(word) > HIGHEST_ID:
        return None
    return int(word)


def _number(word: str) -> int:
    found = read_id(word)
    if found is None:
        raise ValueError("a number that is no id")
    return found


def is_name(word: str) -> bool:
    """Of a user, a group or a host."""
    return len(word) <= LONGEST_NAME and word.isprintable() and not any(mark in word for mark in ",:/")


def _name(word: str) -> str:
    if not is_name(word):
        raise ValueError("a name that is none")
    return word


def _line(word: str) -> str:
    if len(word) > 4096 or "\0" in word or "\n" in word:
        raise ValueError("a path that is none")
    return word


def data(content: bytes) -> bytes:
    """D, in as many frames as it takes."""
    if len(content) <= CHUNK:
        return frame(DATA, content)
    return b"".join(frame(DATA, content[at : at + CHUNK]) for at in range(0, len(content), CHUNK))
