"""Which names belong to which numbers on this machine: users and groups through NSS, remembered for a minute.

Whom this machine does not know, it may have been told of by a machine that does (`learned`)."""

from __future__ import annotations

import grp
import os
import pwd
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from slurmbridge.daemon.learned import Learned, UserRecord
from slurmbridge.wire.agent import read_id

Key = TypeVar("Key")
Found = TypeVar("Found")

KEEP_S = 60.0
MOST_KEPT = 1 << 14
"""Answers of one kind: callers choose what is asked."""
LONGEST = 256
"""Of a name (LOGIN_NAME_MAX of Linux): a longer one is nobody's."""
GROUP_FILES = ("/etc/group", "/usr/lib/group")
"""The second: of systems whose own users are in what cannot be written to (nss-altfiles)."""


class Names:
    """Cached look-ups. Unknown numbers are shown as numbers, as every Slurm command does."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.learned = Learned(clock)
        self._users: dict[int, tuple[float, UserRecord | None]] = {}
        self._ids: dict[str, tuple[float, int | None]] = {}
        self._groups: dict[int, tuple[float, str]] = {}
        self._members: dict[tuple[str, int], tuple[float, tuple[int, ...]]] = {}
        self._own: tuple[float, Mapping[int, str]] = (float("-inf"), {})

    def user(self, uid: int) -> UserRecord | None:
        return self.native_user(uid) or self.learned.user(uid)

    def native_user(self, uid: int) -> UserRecord | None:
        """As this machine itself knows it."""
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
        _keep(self._users, uid, (now, record))
        return record

    def user_name(self, uid: int) -> str:
        record = self.user(uid)
        return record.name if record else str(uid)

    def user_id(self, name: str) -> int | None:
        """Of a name or of a number written out."""
        uid = self.native_id(name)
        if uid is None:
            uid = self.learned.user_id(name)
        return uid if uid is not None else read_id(name)

    def native_id(self, name: str) -> int | None:
        """As this machine itself knows it."""
        if len(name) > LONGEST:
            return None
        known = self._ids.get(name)
        now = self._clock()
        if known and now - known[0] < KEEP_S:
            return known[1]
        try:
            uid: int | None = pwd.getpwnam(name).pw_uid
        except KeyError:
            uid = None
        _keep(self._ids, name, (now, uid))
        return uid

    def group_name(self, gid: int) -> str:
        return self._native_group(gid) or self.learned.group_name(gid) or str(gid)

    def _native_group(self, gid: int) -> str:
        """Empty: this machine knows none."""
        known = self._groups.get(gid)
        now = self._clock()
        if known and now - known[0] < KEEP_S:
            return known[1]
        try:
            name = grp.getgrgid(gid).gr_name
        except (KeyError, OverflowError):  # no id at all
            name = ""
        _keep(self._groups, gid, (now, name))
        return name

    def own_groups(self) -> Mapping[int, str]:
        """Those that are this machine's alone, not a directory's: of its files, which never let one wait."""
        now = self._clock()
        if now - self._own[0] >= KEEP_S:
            self._own = now, _read_groups()
        return self._own[1]

    def group_id(self, name: str) -> int | None:
        if len(name) > LONGEST:
            return None
        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            return read_id(name)

    def groups(self, user: str, gid: int) -> tuple[int, ...]:
        """All group ids of a user, the primary one included."""
        if self.native_id(user) is None:
            return tuple(dict.fromkeys((gid, *self.learned.groups(user))))
        known = self._members.get((user, gid))  # a caller may have come by a group that the user is not in
        now = self._clock()
        if known and now - known[0] < KEEP_S:
            return known[1]
        ids = tuple(os.getgrouplist(user, gid))
        _keep(self._members, (user, gid), (now, ids))
        return ids

    def group_names(self, user: str) -> tuple[str, ...]:
        uid = self.user_id(user)
        record = None if uid is None else self.user(uid)
        if record is None:
            return ()
        if self.native_id(user) is None:
            return tuple(self.learned.groups(record.name).values())
        return tuple(self.group_name(gid) for gid in self.groups(record.name, record.gid))


def _keep(answers: dict[Key, Found], key: Key, found: Found) -> None:
    if len(answers) >= MOST_KEPT:
        answers.clear()
    answers[key] = found


def _read_groups() -> dict[int, str]:
    """group(5): name:password:gid:members."""
    found: dict[int, str] = {}
    for path in GROUP_FILES:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            name, _, gid, *_ = f"{line}:::".split(":")
            if gid.isascii() and gid.isdecimal():
                found.setdefault(int(gid), name)
    return found
