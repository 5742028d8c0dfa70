"""How much of the daemon one user may hold at a time: connections, and bytes on their way in and out.

Root is not counted out: its own commands and its supervisors must get through whatever users do.
"""

from __future__ import annotations

import resource
from collections import Counter

MAX_CONNECTIONS = 1024  # of one user, or an eighth of the files
MAX_BYTES = 256 * 1024 * 1024  # of one user: half frames, commands ahead of their turn, answers not yet read
OVERFLOW_UID = 65534


class Crowd:
    """Counts by uid. owner_uid: whom alone (besides root) it serves; 0: everybody."""

    def __init__(self, owner_uid: int) -> None:
        self._owner = owner_uid
        self._connections: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()

    def may_come(self, uid: int) -> bool:
        """A personal daemon serves its owner (and root); nobody serves the overflow user."""
        if uid == OVERFLOW_UID or (self._owner != 0 and uid not in (self._owner, 0)):
            return False
        if uid == 0:
            return True
        most = min(MAX_CONNECTIONS, part_of_the_files(8))  # where files are few no user has all of them
        return self._connections[uid] < most and self._connections.total() < part_of_the_files(2)

    @property
    def connections(self) -> int:
        return self._connections.total()

    def came(self, uid: int) -> None:
        self._connections[uid] += 1

    def went(self, uid: int, held: int) -> None:
        """held: bytes that its connection was last said to hold."""
        self._connections[uid] -= 1
        if not self._connections[uid]:
            del self._connections[uid]
        self.holds(uid, held, 0)

    def holds(self, uid: int, before: int, now: int) -> bool:
        """A connection holds so many bytes instead of `before`; False when its user has too many."""
        if now == before:
            return True
        self._bytes[uid] += now - before
        if not self._bytes[uid]:
            del self._bytes[uid]
        return now <= before or uid == 0 or self._bytes[uid] <= MAX_BYTES


def part_of_the_files(part: int) -> int:
    """Of those that may be open: a half for who is known, an eighth of all for one of them, an eighth at a door for who is
    not, and the rest for what runs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, soft // part) if soft != resource.RLIM_INFINITY else 1 << 20
