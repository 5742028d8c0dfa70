"""Whom has this machine been told of, that its own name service does not know? Users by agents of login nodes and by the jobs
that are there; their groups by agents.

One uid has one name and one name one uid. An agent that says otherwise of a user whom another agent has named within a day
is not believed: the two login nodes do not share their users, and one's jobs would be the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

HOLDS_S = 86_400.0
"""After which another agent may give a uid another name."""
MOST = 1 << 17
"""Users that are remembered; agents could name any number."""
MOST_MEMBERSHIPS = 1 << 20
"""Groups of all of them together."""


class UserRecord(msgspec.Struct, frozen=True, kw_only=True):
    uid: int
    gid: int
    name: str
    home: str
    shell: str


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said of a user, when, and who that was; empty: a job's record."""

    user: UserRecord
    groups: Mapping[int, str]
    agent: str
    at: float


class Learned:
    """clock: seconds, of any beginning."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._words: dict[int, Word] = {}
        self._ids: dict[str, int] = {}
        self._group_names: dict[int, str] = {}
        self._memberships = 0
        self.is_new = False  # whether something was learned that was not known before, since this was last set to False

    def why_not(self, uid: int, name: str, agent: str) -> str:
        """Why an agent is not believed that this uid has this name; empty: it is."""
        now = self._clock()
        for known in (self._words.get(uid), self._words.get(self._ids.get(name, -1))):
            if known is None or (known.user.uid, known.user.name) == (uid, name):
                continue
            if known.agent not in ("", agent) and now - known.at < HOLDS_S:
                return (
                    f"uid {uid} is {name} there, but agent {known.agent} calls uid {known.user.uid} {known.user.name}"
                )
        return ""

    def learn(self, user: UserRecord, groups: Mapping[int, str], agent: str) -> None:
        """Believe it. What was said of this uid or this name before is forgotten."""
        known = self._words.get(user.uid)
        if known is None or (known.user, known.groups) != (user, groups):
            self.is_new = True
        for before in (self._words.get(user.uid), self._words.get(self._ids.get(user.name, -1))):
            if before is not None:
                self._forget(before)
        while self._words and (len(self._words) >= MOST or self._memberships + len(groups) > MOST_MEMBERSHIPS):
            self._forget(next(iter(self._words.values())))
        self._words[user.uid] = Word(user=user, groups=groups, agent=agent, at=self._clock())
        self._memberships += len(groups)
        self._ids[user.name] = user.uid
        if len(self._group_names) + len(groups) > MOST:
            self._group_names.clear()
        self._group_names.update(groups)

    def all(self) -> list[Word]:
        return list(self._words.values())

    def _forget(self, word: Word) -> None:
        if self._words.pop(word.user.uid, None) is not None:
            self._memberships -= len(word.groups)
        self._ids.pop(word.user.name, None)

    def user(self, uid: int) -> UserRecord | None:
        word = self._words.get(uid)
        return word.user if word is not None else None

    def user_id(self, name: str) -> int | None:
        return self._ids.get(name)

    def groups(self, name: str) -> Mapping[int, str]:
        """All that the user is in, by gid; empty: not known."""
        word = self._words.get(self._ids.get(name, -1))
        return word.groups if word is not None else {}

    def group_name(self, gid: int) -> str:
        """As it was last said; empty: never."""
        return self._group_names.get(gid, "")
