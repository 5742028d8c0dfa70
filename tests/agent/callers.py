"""A daemon whose host knows some users of its own, and callers whom an agent names to it."""

from __future__ import annotations

import asyncio

from slurmbridge.daemon import enrolment
from slurmbridge.daemon.learned import UserRecord
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.names import Names
from slurmbridge.wire.agent import Caller
from tests.daemon.controlled import site


class Known(Names):
    """A daemon's host that knows carol and, as another uid, dave."""

    def native_user(self, uid: int) -> UserRecord | None:
        found = {0: ("root", 0), 1003: ("carol", 1003), 1004: ("dave", 1004)}.get(uid)
        return UserRecord(uid=uid, gid=found[1], name=found[0], home="/", shell="/bin/sh") if found else None

    def native_id(self, name: str) -> int | None:
        return {"root": 0, "carol": 1003, "dave": 1004}.get(name)

    def groups(self, user: str, gid: int) -> tuple[int, ...]:
        return (1003, 7) if user == "carol" else super().groups(user, gid)


def memory() -> Memory:
    made = asyncio.run(site())
    found = made.controller.memory
    found.names, found.owner_uid = Known(), 6817
    return found


def agent(name: str = "login1", *, trusts_root: bool = False) -> enrolment.Agent:
    return enrolment.Agent(name=name, certificate="", hash="", made=0, until=1 << 40, trusts_root=trusts_root)


def somebody(uid: int, name: str, gid: int | None = None, groups: tuple[tuple[int, str], ...] = ()) -> Caller:
    gid = uid if gid is None else gid
    return Caller(uid, gid, name, name, f"/home/{name}", "/bin/sh", "login1", ((gid, name), *groups))
