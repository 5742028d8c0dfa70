"""Which names belong to which numbers on this machine: users and groups through NSS, remembered for a minute."""

from __future__ import annotations

import grp
import os
import pwd
import time
from collections.abc import Callable

import msgspec

KEEP_S = 60.0


class UserRecord(msgspec.Struct, frozen=True, kw_only=True):
    uid: int
    gid: int
    name: str
    home: str
    shell: str


class Names:
    """Cached look-ups. Unknown numbers are shown as numbers, as every Slurm command does."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._users: dict[int, tuple[float, UserRecord | None]] = {}
        self._ids: dict[str, tuple[float, int | None]] = {}
        self._groups: dict[int, tuple[float, str]] = {}
        self._members: dict[tuple[str, int], tuple[float, tuple[int, ...]]] = {}

    def user(self, uid: int) -> UserRecord | None:
        known = self._users.get(uid)
        now = self._clock()
        if known and now - known[0] < KEEP_S:
            return known[1]
        try:
            entry = pwd.getpwuid(uid)
            record: UserRecord | None = UserRecord(
                uid=uid, gid=entry.pw_gid, name=entry.pw_name, home=entry.pw_dir, shell=entry.pw_shell or "/bin/sh"
            )
        except KeyError:
            record = None
        self._users[uid] = (now, record)
        return record

    def user_name(self, uid: int) -> str:
        record = self.user(uid)
        return record.name if record else str(uid)

    def user_id(self, name: str) -> int | None:
        """Of a name or of a number written out."""
        known = self._ids.get(name)
        now = self._clock()
        if known and now - known[0] < KEEP_S:
            return known[1]
        try:
            uid: int | None = pwd.getpwnam(name).pw_uid
        except KeyError:
            uid = int(name) if name.isascii() and name.isdecimal() else None
        self._ids[name] = (now, uid)
        return uid

    def group_name(self, gid: int) -> str:
        known = self._groups.get(gid)
        now = self._clock()
        if known and now - known[0] < KEEP_S:
            return known[1]
        try:
            name = grp.getgrgid(gid).gr_name
        except KeyError:
            name = str(gid)
        self._groups[gid] = (now, name)
        return name

    def group_id(self, name: str) -> int | None:
        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            return int(name) if name.isascii() and name.isdecimal() else None

    def groups(self, user: str, gid: int) -> tuple[int, ...]:
        """All group ids of a user, the primary one included."""
        known = self._members.get((user, gid))  # a caller may have come by a group that the user is not in
        now = self._clock()
        if known and now - known[0] < KEEP_S:
            return known[1]
        ids = tuple(os.getgrouplist(user, gid))
        self._members[(user, gid)] = (now, ids)
        return ids

    def group_names(self, user: str) -> tuple[str, ...]:
        uid = self.user_id(user)
        record = None if uid is None else self.user(uid)
        if record is None:
            return ()
        return tuple(self.group_name(gid) for gid in self.groups(record.name, record.gid))
