"""The first frame of a command: what the caller's process says of itself, and what the kernel says of the caller.

A connection that stays open says the same again and again but for its nonce; that is read once.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from slurmbridge.commands.effects import Call
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.peer import Peer
from slurmbridge.lang.rlimits import NAMES as RLIMITS
from slurmbridge.wire import client as wire
from slurmbridge.wire.agent import is_name

WIDEST = 1 << 16
INFINITE = (1 << 63) - 1
HEAD = wire.pack(wire.VERSION, bytes(16))[:9]  # up to the nonce
NONCE_ENDS = len(HEAD) + 16
KEEP_S = 5.0  # names and groups of the caller may change


class Hellos:
    """Those of one connection."""

    def __init__(self, memory: Memory, clock: Callable[[], float], peer: Peer) -> None:
        self._memory, self._clock, self._peer = memory, clock, peer
        self._last: tuple[bytes, Call] | None = None  # a hello from its nonce on, and what was read in it

    def read(self, payload: bytes) -> Call:
        """ValueError, IndexError: it says nothing of use."""
        now = self._clock()
        if not payload.startswith(HEAD):
            return self._read(payload, now)
        rest = payload[NONCE_ENDS:]
        if self._last is not None and rest == self._last[0] and 0.0 <= now - self._last[1].now < KEEP_S:
            return replace(self._last[1], nonce=payload[len(HEAD) : NONCE_ENDS].hex(), now=now)
        call = self._read(payload, now)
        self._last = (rest, call)
        return call

    def _read(self, payload: bytes, now: float) -> Call:
        parts = wire.unpack(payload)
        version, nonce, umask, columns, sid, tty, host, cwd, limits, count = parts[:10]
        if version != wire.VERSION:
            raise ValueError(f"version {version!r} of the client is not known to this daemon")
        argc = int(count)
        if argc < 1 or argc > len(parts) - 10:
            raise ValueError("the argument count is wrong")
        if b"\0" in cwd or any(b"\0" in part for part in parts[10:]):
            raise ValueError("a NULL character in the command or its environment")
        decode = os.fsdecode
        env = {}
        for item in parts[10 + argc :]:
            name, _, value = decode(item).partition("=")
            env[name] = value
        if self._peer.is_remote:  # that is how his own machine reaches us; his jobs are told theirs
            env.pop("SLURMBRIDGE_ADDR", None)
        names, uid, gid = self._memory.names, self._peer.uid, self._peer.gid
        user = names.user_name(uid)
        return Call(
            argv=tuple(map(decode, parts[10 : 10 + argc])),
            env=env,
            cwd=decode(cwd),
            umask=int(umask, 8) & 0o777,
            columns=min(int(columns or b"80"), WIDEST),
            uid=uid,
            gid=gid,
            groups=self._groups_of(user),
            user=user,
            group=names.group_name(gid),
            host=self._peer.host or self._host(decode(host)),
            sid=int(sid or b"0") & 0x7FFFFFFF,
            now=now,
            nonce=nonce.hex(),
            stdin_is_tty=b"i" in tty,
            stdout_is_tty=b"o" in tty,
            rlimits=_rlimits(limits),
            by_token=self._peer.by_token,
        )

    def _host(self, said: str) -> str:
        """What his process calls its machine is shown to others, in a line of theirs."""
        return said if said and is_name(said) else self._memory.daemon_host

    def _groups_of(self, user: str) -> tuple[int, ...]:
        peer, names = self._peer, self._memory.names
        if peer.groups is not None:
            return peer.groups
        return names.groups(user, peer.gid) if names.user(peer.uid) else (peer.gid,)


def _rlimits(text: bytes) -> tuple[tuple[str, int, int], ...]:
    found = []
    for item in text.decode().split(","):
        if item:
            name, soft, hard = item.split(":")
            if name not in RLIMITS:
                raise ValueError("a limit that is not known")
            found.append((name, max(-1, min(int(soft), INFINITE)), max(-1, min(int(hard), INFINITE))))
    return tuple(found)
