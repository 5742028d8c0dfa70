"""What somebody with an agent's key, a place in the network or an account may try, beyond being refused at the door."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from slurmbridge.daemon import names, remote, threshold
from slurmbridge.daemon.asserted import judge
from slurmbridge.daemon.learned import UserRecord
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.peer import Peer
from slurmbridge.wire.agent import Caller
from tests.agent.login_node import LoginNode, keep, text_of, until
from tests.agent.test_agent_doors import Known, agent, memory, somebody
from tests.daemon.test_hostile_callers import hello


class Host(Known):
    """A daemon's host with groups and users of the system."""

    def native_user(self, uid: int) -> UserRecord | None:
        if uid in (104, 998):
            name, shell = {104: ("messagebus", "/usr/sbin/nologin"), 998: ("jenkins", "/bin/bash")}[uid]
            return UserRecord(uid=uid, gid=uid, name=name, home="/", shell=shell)
        return super().native_user(uid)

    def native_id(self, name: str) -> int | None:
        return {"messagebus": 104, "jenkins": 998}.get(name) or super().native_id(name)

    def own_groups(self) -> Mapping[int, str]:
        return {0: "root", 6: "disk", 100: "users", 1003: "carol", 2500: "wheel2"}

    def groups(self, user: str, gid: int) -> tuple[int, ...]:
        return (gid,) if user in ("messagebus", "jenkins") else super().groups(user, gid)


def host() -> Memory:
    there = memory()
    there.names = Host()
    return there


def test_groups_of_the_daemons_host_are_not_an_agents_to_give() -> None:
    there = host()
    found = judge(somebody(1500, "eve", groups=((6, "disk"), (2000, "lab"), (2500, "wheel2"))), agent(), there)
    assert isinstance(found, Peer) and found.groups == (1500, 2000)
    assert there.groups_of("eve") == ("eve", "lab"), "nor by name"


@pytest.mark.parametrize(
    ("caller", "word"),
    [
        pytest.param(somebody(1500, "eve", gid=6), "group 6 (disk)", id="a-group-of-the-host-first"),
        pytest.param(somebody(1500, "eve", gid=1003), "group 1003 (carol)", id="a-group-of-a-user-there"),
        pytest.param(somebody(104, "messagebus"), "of the system", id="a-user-of-the-system"),
    ],
)
def test_an_agent_makes_nobody_a_part_of_the_daemons_host(caller: Caller, word: str) -> None:
    found = judge(caller, agent(), host())
    assert isinstance(found, str) and word in found


@pytest.mark.parametrize(
    "caller",
    [
        pytest.param(somebody(1500, "eve", gid=100), id="everybodys-first-group"),
        pytest.param(somebody(998, "jenkins"), id="a-service-that-types-commands"),
        pytest.param(somebody(1003, "carol"), id="a-user"),
    ],
)
def test_an_agent_speaks_for_who_has_no_rights_there(caller: Caller) -> None:
    assert isinstance(judge(caller, agent(), host()), Peer)


def test_an_agent_that_speaks_for_root_speaks_for_all() -> None:
    assert isinstance(judge(somebody(104, "messagebus"), agent(trusts_root=True), host()), Peer)
    found = judge(somebody(1500, "eve", gid=6), agent(trusts_root=True), host())
    assert isinstance(found, Peer) and found.groups == (6,)


def test_groups_of_the_machine_are_read_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "group").write_text("root:x:0:\n# a note\n\ndisk:x:6:ann,ben\nodd\nbad:x:six:\n")
    monkeypatch.setattr(names, "GROUP_FILES", (str(tmp_path / "group"), str(tmp_path / "none")))
    found = names.Names()
    assert found.own_groups() == {0: "root", 6: "disk"}
    (tmp_path / "group").write_text("")
    assert found.own_groups() == {0: "root", 6: "disk"}, "for a minute"


def test_who_only_holds_places_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threshold, "MOST_OF_ONE", 3)

    async def rule(there: LoginNode) -> None:
        holding = [await asyncio.open_connection("127.0.0.1", there.port) for _ in range(8)]
        await until(lambda: there.remote.half_open._count.total() == 3)
        answer = await asyncio.wait_for(there.say(hello("squeue", "-h")), remote.PROVED_S / 2)
        assert text_of(answer, b"X") == "0"
        for _, writer in holding:
            writer.transport.abort()
        await until(lambda: not there.remote.half_open._there)

    keep(tmp_path, rule)


def test_a_place_is_taken_from_the_address_that_has_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threshold, "MOST_OF_ONE", 3)
    monkeypatch.setattr(threshold, "MOST", 4)
    there = threshold.HalfOpen()
    for number, address in enumerate(("a", "b", "b", "b")):
        assert there.in_the_way(address) is None
        there.came(address, number)
    assert there.in_the_way("b") == 1 and there.in_the_way("a") == 1 and there.in_the_way("c") == 1
    there.went("b", 1)
    assert there.in_the_way("a") is None


def test_who_asks_for_many_names_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST_KEPT", 8)
    found = names.Names()
    assert found.user_id("root") == 0
    for number in range(50):
        assert found.user_id(f"nobody-{number}") is None
        assert found.user_id("x" * 1_000_000 + str(number)) is None
        assert found.group_id("x" * 1_000_000) is None
        assert found.user_name(1 << 40 | number) == found.group_name(1 << 40 | number) == str(1 << 40 | number)
        assert found.groups("root", number + 1_000_000)
    assert found.user_id("root") == 0
    for kept in (found._users, found._ids, found._groups, found._members):
        assert 0 < len(kept) <= 8
        assert all(len(str(key)) < 100 for key in kept)
