"""Who sits at a login node, where its name service may hang?"""

from __future__ import annotations

import asyncio
import threading

import pytest

from slurmbridge.agent import lookup
from slurmbridge.agent.lookup import Lookup
from slurmbridge.daemon.learned import UserRecord
from slurmbridge.daemon.peer import Peer
from tests.agent.callers import Known


class Slow(Known):
    """A name service that has stopped to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def native_user(self, uid: int) -> UserRecord | None:
        self.answers.wait()
        return super().native_user(uid)


def test_a_name_service_that_hangs_is_waited_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "WITHIN_S", 0.1)
    names = Slow()

    async def whole() -> None:
        asked = Lookup("login1", names)
        with pytest.raises(LookupError, match="does not answer"):
            await asked.find(Peer(uid=1003, gid=7))
        names.answers.set()
        caller = await asked.find(Peer(uid=1003, gid=7))
        assert (caller.user, caller.gid, [gid for gid, _ in caller.groups]) == ("carol", 7, [1003, 7])
        with pytest.raises(LookupError, match="uid 4711 has no name on login1"):
            await asked.find(Peer(uid=4711, gid=4711))
        asked.close()

    asyncio.run(whole())
