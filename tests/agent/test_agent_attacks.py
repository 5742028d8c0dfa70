"""What somebody with an agent's key, a place in the network or an account may try, beyond being refused at the door."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import resource
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurmbridge.agent import credentials, near
from slurmbridge.cli.login_nodes import agent_credentials
from slurmbridge.daemon import certificate, crowd, enrolment, learned, names, remote, threshold
from slurmbridge.daemon.asserted import judge
from slurmbridge.daemon.hello import Hellos
from slurmbridge.daemon.learned import UserRecord
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.peer import Peer, of_socket
from slurmbridge.errors import ConfigError
from slurmbridge.wire import agent as wire
from slurmbridge.wire import client
from slurmbridge.wire.agent import Caller
from slurmbridge.wire.client import frame
from tests.agent.callers import Known, agent, memory, somebody
from tests.agent.login_node import LoginNode, keep, plain_context, text_of
from tests.daemon.hearing import frames_until
from tests.daemon.post import hello
from tests.patience import comes


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
        pytest.param(somebody(1500, "1003"), "a number for a name", id="another-uid-for-a-name"),
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
    monkeypatch.setattr(remote, "PROVED_S", 3600.0)  # no place is free because its time is over

    async def rule(there: LoginNode) -> None:
        holding = [await asyncio.open_connection("127.0.0.1", there.port) for _ in range(8)]
        await comes(lambda: len(there.remote.half_open) == 3)
        answer = await there.say(hello("squeue", "-h"))
        assert text_of(answer, b"X") == "0"
        for _, writer in holding:
            writer.transport.abort()
        await comes(lambda: not there.remote.half_open)

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


@pytest.mark.slow
def test_what_waits_for_a_daemon_is_bounded_by_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "of_socket", lambda sock: Peer(uid=1001, gid=1001))
    monkeypatch.setattr(crowd, "MAX_BYTES", 300_000)

    async def rule(there: LoginNode) -> None:
        there.remote.shut()
        pairs = [await there.dial() for _ in range(2)]
        for _, writer in pairs:
            writer.write(frame(b"G", bytes(200_000)))
        found, _ = await asyncio.wait(
            [asyncio.create_task(reader.read()) for reader, _ in pairs], return_when=asyncio.FIRST_COMPLETED
        )
        assert len(found) == 1 and there.agent.crowd.connections == 1
        assert 100_000 < there.agent.crowd._bytes[1001] <= 300_000
        for _, writer in pairs:
            writer.transport.abort()
        await comes(lambda: not there.agent.crowd.connections)
        assert not there.agent.crowd._bytes

    keep(tmp_path, rule)


# ---- credentials


def credentials_in(folder: Path) -> Path:
    made = enrolment.enrol(str(folder), "a", days=1, trusts_root=False, now=datetime.datetime.now(datetime.UTC))
    enrolment.give(made, str(folder / "out"))
    return folder / "out"


def test_an_agent_does_not_take_from_others_which_daemon_it_trusts(tmp_path: Path) -> None:
    out = credentials_in(tmp_path)
    credentials.load(str(out))
    (out / enrolment.PIN_FILE).chmod(0o620)
    with pytest.raises(ConfigError, match="which daemon"):
        credentials.load(str(out))


def test_keys_are_not_put_where_others_can_exchange_them(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out").chmod(0o777)
    answer = CliRunner().invoke(agent_credentials, ["a", "--out", str(tmp_path / "out"), "--state", str(tmp_path)])
    assert isinstance(answer.exception, ConfigError) and "in the place of these" in str(answer.exception)
    assert not (tmp_path / enrolment.FOLDER).exists() and not list((tmp_path / "out").iterdir())


def test_an_agent_whose_key_nobody_got_is_not_enrolled(tmp_path: Path) -> None:
    words = ["a", "--out", "/proc/nothing/out", "--state", str(tmp_path)]  # where nobody makes a folder
    answer = CliRunner().invoke(agent_credentials, words)
    assert isinstance(answer.exception, ConfigError)
    assert (tmp_path / enrolment.FOLDER).exists() and enrolment.read(str(tmp_path))[0] == []


# ---- who says what of himself


def test_ids_of_a_socket_have_no_sign() -> None:
    class Says(socket.socket):
        def getsockopt(self, *args: object) -> bytes:  # type: ignore[override]
            return struct.pack("iII", 1, 3_000_000_000, 4_000_000_000)

    with Says() as sock:
        assert of_socket(sock) == Peer(uid=3_000_000_000, gid=4_000_000_000)


@pytest.mark.parametrize("said", [b"a\nJobId=1", b"\x1b[2J", b"x" * 300, b"a b\0", b""])
def test_a_callers_word_for_his_machine_is_a_name_or_nothing(said: bytes) -> None:
    there = memory()
    hellos = Hellos(there, lambda: 0.0, Peer(uid=1003, gid=1003))
    head = (client.VERSION, bytes(16), b"22", b"80", b"1", b"")
    assert hellos.read(client.pack(*head, said, b"/", b"", b"1", b"squeue")).host == there.daemon_host
    assert hellos.read(client.pack(*head, b"login1.site", b"/", b"", b"1", b"squeue")).host == "login1.site"


@contextlib.contextmanager
def files(most: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_who_proves_nothing_does_not_take_all_files_of_the_daemon() -> None:
    there = threshold.HalfOpen()
    with files(1024):
        came = 0
        while there.may_knock(f"10.0.{came % 9}.1") and came < 1024:
            there.came(f"10.0.{came % 9}.1", came)
            came += 1
        assert came == 128


def test_agents_do_not_take_all_files_of_the_daemon(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        with files(400):
            pairs = []
            context = plain_context()
            context.load_cert_chain(there.keys / enrolment.KEY_FILE)
            for _ in range(101):
                pairs.append(await asyncio.open_connection("127.0.0.1", there.port, ssl=context))
                with contextlib.suppress(ConnectionError):
                    answer = await frames_until(pairs[-1][0], wire.WELCOME)
                    assert len(answer) == (len(pairs) < 101), "no word, so that it comes again"
            assert there.lanes == 100
            for _, writer in pairs:
                writer.transport.abort()
            await comes(lambda: there.lanes == 0)

    keep(tmp_path, rule)


def test_no_user_takes_all_of_few_files() -> None:
    there = crowd.Crowd(0)
    with files(800):
        while there.may_come(1001):
            there.came(1001)
        assert there.connections == 100 and there.may_come(1002)
        for uid in (1002, 1003, 1004):
            for _ in range(100):
                there.came(uid)
        assert not there.may_come(1005) and there.may_come(0)


def test_what_agents_say_of_groups_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "MOST_MEMBERSHIPS", 100)
    there = host()
    for number in range(30):
        groups = tuple((9000 + each, f"g{each}") for each in range(20 + number % 3))
        assert isinstance(judge(somebody(1500 + number % 7, f"u{number % 7}", groups=groups), agent(), there), Peer)
        kept = sum(len(word.groups) for word in there.names.learned.all())
        assert 0 < kept == there.names.learned._memberships <= 100
    assert there.user_name(1500 + 29 % 7) == "u1", "the last is known"


def test_a_daemon_without_files_left_forgets_no_agent_but_who_is_revoked(tmp_path: Path) -> None:
    for name in ("a", "b"):
        enrolment.enrol(str(tmp_path), name, days=1, trusts_root=False, now=datetime.datetime.now(datetime.UTC))
    found = enrolment.Enrolled(str(tmp_path))
    known = {each.name: each for each in enrolment.read(str(tmp_path))[0]}

    def believed() -> list[str]:
        return [name for name, each in known.items() if found.is_good(each, 0.0)]

    for stamp in (1, 2):  # with the folder as it was and changed
        with files(3):
            assert not found.renew()
            assert believed() == ["a", "b"]
        os.utime(tmp_path / enrolment.FOLDER / "a.json", (stamp, stamp))
    (tmp_path / enrolment.FOLDER / "a.json").unlink()
    with files(3):
        found.renew()
        assert believed() == ["b"], "what it takes to see that is no file"
    assert found.renew() and believed() == ["b"]
    (tmp_path / certificate.FILE).rename(tmp_path / "away")
    (tmp_path / certificate.FILE).mkdir()
    (tmp_path / enrolment.FOLDER / "b.json").unlink()
    with pytest.raises(ConfigError):
        found.renew()
    assert believed() == []
    (tmp_path / certificate.FILE).rmdir()
    (tmp_path / "away").rename(tmp_path / certificate.FILE)
    assert found.renew(), "what failed half-way is done again"


def test_too_many_at_once_are_cut_before_they_are_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def rule(there: LoginNode) -> None:
        dialled = []
        for _ in range(400):  # all before the daemon looks at one
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", there.port))
            dialled.append(sock)
        with files(max(map(int, os.listdir("/proc/self/fd"))) + 250):
            assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
            assert len(there.remote.half_open) <= 100
        assert "out of system resource" not in caplog.text
        for sock in dialled:
            sock.close()

    keep(tmp_path, rule)


def test_many_at_a_socket_of_the_machine_are_not_all_files_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Sent(asyncio.Protocol):
        made = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            Sent.made += 1
            transport.close()

    async def whole() -> None:
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        sock.bind(str(tmp_path / "socket"))
        server = await threshold.listen(sock, Sent)
        dialled = [socket.socket(socket.AF_UNIX) for _ in range(400)]
        for each in dialled:
            each.connect(str(tmp_path / "socket"))
        with files(max(map(int, os.listdir("/proc/self/fd"))) + 250):
            await comes(lambda: Sent.made == 400)
            await asyncio.sleep(0.01)
        server.close()
        for each in dialled:
            each.close()
        assert "out of system resource" not in caplog.text

    asyncio.run(whole())
