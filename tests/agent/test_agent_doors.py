"""Only agents that are enrolled speak for users, and only for those that are theirs to speak for."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import os
import socket
import ssl
import threading
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from slurmbridge.agent import credentials, lookup
from slurmbridge.agent.far import Pool
from slurmbridge.agent.lookup import Lookup
from slurmbridge.cli.login_nodes import agent_credentials
from slurmbridge.daemon import asserted, certificate, enrolment, remote, threshold
from slurmbridge.daemon.asserted import judge, learn_again
from slurmbridge.daemon.enrolment import Enrolled
from slurmbridge.daemon.learned import HOLDS_S, UserRecord
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.names import Names
from slurmbridge.daemon.peer import Peer
from slurmbridge.errors import ConfigError
from slurmbridge.wire import agent as wire
from slurmbridge.wire.agent import Caller
from slurmbridge.wire.client import frame
from tests.agent.login_node import ALICE, LoginNode, keep, plain_context, text_of, until
from tests.daemon.controlled import site
from tests.daemon.test_hostile_callers import hello

ASSERTION = frame(wire.CALLER, wire.encode_caller(ALICE)) + frame(wire.DATA, hello("squeue", "-h"))


async def said(there: LoginNode, context: ssl.SSLContext, data: bytes) -> bytes:
    """All that is answered to this; nothing when it is cut."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        reader, writer = await asyncio.open_connection("127.0.0.1", there.port, ssl=context)
        try:
            writer.write(data)
            return await reader.read()
        finally:
            writer.transport.abort()
    return b""


def test_nobody_is_believed_without_a_certificate(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        answer = await said(there, plain_context(), ASSERTION)
        assert answer[4:5] == wire.NO
        assert there.service.memory.tally.open == 0

    keep(tmp_path, rule)


@pytest.mark.parametrize("kind", ["made-himself", "the-daemons-name", "run-out", "signed-by-an-agent"])
def test_nobody_is_believed_with_another_certificate(tmp_path: Path, kind: str) -> None:
    async def rule(there: LoginNode) -> None:
        now = datetime.datetime.now(datetime.UTC)
        key = tmp_path / "key.pem"
        if kind == "run-out":
            there.enrol("old", tmp_path / "old", days=1, ago=2.0)
            key = tmp_path / "old" / enrolment.KEY_FILE
        elif kind == "signed-by-an-agent":
            key.write_bytes(_signed_by((there.keys / enrolment.KEY_FILE).read_bytes()))
        else:
            name = "slurmbridge" if kind == "the-daemons-name" else "slurmbridge agent login1"
            key.write_bytes(certificate.make(now, name))
        context = plain_context()
        context.load_cert_chain(key)
        assert await said(there, context, ASSERTION) == b""
        assert there.lanes == 0

    keep(tmp_path, rule)


def _signed_by(pem: bytes) -> bytes:
    """A new key whose certificate an agent has signed, and the agent's own behind it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    signer = serialization.load_pem_private_key(pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    own = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(own.subject)
        .issuer_name(own.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(signer, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return secret + b"".join(each.public_bytes(serialization.Encoding.PEM) for each in (made, own))


def test_a_revoked_agent_is_cut_and_comes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LOOK_EVERY_S", 0.05)

    async def rule(there: LoginNode) -> None:
        there.enrol("login2", tmp_path / "two")
        assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
        assert there.lanes == 1
        enrolment.revoke(there.state, "login1")
        await until(lambda: there.lanes == 0)
        answer = await there.say(hello("squeue", "-h"))
        assert "does not take this agent's certificate" in text_of(answer, b"E")
        assert text_of(answer, b"X") == "1"
        there.pool.renew(credentials.load(str(tmp_path / "two")))
        assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"

    keep(tmp_path, rule)


def test_an_agent_whose_time_runs_out_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LOOK_EVERY_S", 0.05)

    async def rule(there: LoginNode) -> None:
        await there.say(hello("squeue", "-h"))
        there.remote.clock = lambda: 4e9
        await until(lambda: there.lanes == 0)

    keep(tmp_path, rule)


def test_the_agent_tells_another_daemon_nothing(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        heard = bytearray()
        other = certificate.ensure(str(tmp_path))[0]

        async def listens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(frame(wire.WELCOME, wire.VERSION))
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                heard.extend(await reader.read())
            writer.transport.abort()

        server = await asyncio.start_server(listens, "127.0.0.1", 0, ssl=other)
        there.agent.pool = Pool(
            "127.0.0.1", server.sockets[0].getsockname()[1], credentials.load(str(there.keys))
        )  # fmt: skip
        answer = await there.say(hello("squeue", "-h"))
        assert "another certificate" in text_of(answer, b"E")
        assert not heard
        server.close()

    keep(tmp_path, rule)


def test_who_proves_nothing_is_counted_and_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threshold, "MOST_OF_ONE", 3)
    monkeypatch.setattr(remote, "PROVED_S", 0.3)

    async def rule(there: LoginNode) -> None:
        pairs = [await asyncio.open_connection("127.0.0.1", there.port) for _ in range(3)]
        await until(lambda: there.remote.half_open._count.total() == 3)
        pairs.append(await asyncio.open_connection("127.0.0.1", there.port))
        with contextlib.suppress(ConnectionError):  # for the fourth the first gives way
            assert await asyncio.wait_for(pairs[0][0].read(), 0.2) == b""
        assert there.remote.half_open._count.total() == 3
        for each, _ in pairs:
            with contextlib.suppress(ConnectionError):
                assert await each.read() == b""
        assert not there.remote.half_open._count
        assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
        for _, writer in pairs:
            writer.close()

    keep(tmp_path, rule)


def test_older_protocols_are_not_spoken(tmp_path: Path) -> None:
    async def rule(there: LoginNode) -> None:
        context = plain_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(there.keys / enrolment.KEY_FILE)
        assert await said(there, context, ASSERTION) == b""

    keep(tmp_path, rule)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(wire.DATA, b"x"), id="bytes-of-nobody"),
        pytest.param(frame(wire.END, b""), id="the-end-of-nobody"),
        pytest.param(frame(wire.CALLER, b"x"), id="a-caller-that-is-none"),
        pytest.param(
            frame(wire.CALLER, wire.encode_caller(ALICE).replace(b"alice", b"a:ice")), id="a-name-that-is-none"
        ),
        pytest.param(ASSERTION + ASSERTION, id="two-at-once"),
        pytest.param(frame(wire.CALLER, wire.encode_caller(ALICE)) + 2 * frame(wire.END, b""), id="two-ends"),
        pytest.param((1 << 30).to_bytes(4, "big") + b"D", id="too-much"),
    ],
)
def test_an_agent_that_speaks_nonsense_is_cut(tmp_path: Path, data: bytes) -> None:
    async def rule(there: LoginNode) -> None:
        context = plain_context()
        context.load_cert_chain(there.keys / enrolment.KEY_FILE)
        await said(there, context, data)
        await until(lambda: there.lanes == 0 and there.service.crowd.connections == 0)

    keep(tmp_path, rule)


# ---- whom an agent may speak for


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


@pytest.mark.parametrize(
    ("caller", "word"),
    [
        pytest.param(somebody(0, "root"), "rules nothing here", id="root"),
        pytest.param(somebody(0, "toor"), "rules nothing here", id="root-by-another-name"),
        pytest.param(somebody(1500, "root"), "rules nothing here", id="the-name-of-root"),
        pytest.param(somebody(6817, "slurm"), "rules nothing here", id="who-started-the-daemon"),
        pytest.param(somebody(1500, "eve", gid=0), "group of root", id="the-group-of-root"),
        pytest.param(somebody(1500, "eve", groups=((0, "root"),)), "group of root", id="root-among-his-groups"),
        pytest.param(somebody(1003, "eve"), "uid 1003 is carol", id="a-uid-that-is-anothers"),
        pytest.param(somebody(1500, "carol"), "carol has uid 1003", id="a-name-that-is-anothers"),
        pytest.param(somebody(1003, "carol", gid=99), "group 99", id="a-group-that-is-not-hers"),
    ],
)
def test_an_agent_does_not_speak_for(caller: Caller, word: str) -> None:
    found = judge(caller, agent(), memory())
    assert isinstance(found, str) and word in found


def test_slurmuser_is_not_an_agents_to_speak_for() -> None:
    there = memory()
    there.config = type(there.config)(**{name: getattr(there.config, name) for name in there.config.__struct_fields__} | {"slurm_user": "warden"})  # fmt: skip
    assert isinstance(judge(somebody(64030, "warden"), agent(), there), str)
    assert isinstance(judge(somebody(64030, "warden"), agent(trusts_root=True), there), Peer)


def test_an_agent_that_the_site_trusts_so_far_speaks_for_root() -> None:
    found = judge(somebody(0, "root"), agent(trusts_root=True), memory())
    assert isinstance(found, Peer) and found.uid == 0 and found.is_remote


def test_whom_the_daemons_host_knows_has_the_groups_he_has_there() -> None:
    found = judge(somebody(1003, "carol", groups=((0, "root"), (27, "sudo"))), agent(), memory())
    assert isinstance(found, Peer) and found.groups == (1003, 7)


def test_whom_only_the_agent_knows_is_as_it_says_and_known_by_name_from_then_on() -> None:
    there = memory()
    found = judge(somebody(1500, "eve", groups=((2000, "lab"),)), agent(), there)
    assert isinstance(found, Peer) and found.groups == (1500, 2000)
    assert (there.user_name(1500), there.user_id("eve")) == ("eve", 1500)
    assert there.groups_of("eve") == ("eve", "lab")
    assert there.group_name(2000) == "lab"


def test_two_agents_that_do_not_agree_are_not_both_believed() -> None:
    there = memory()
    now = [0.0]
    there.names = Known(lambda: now[0])
    assert isinstance(judge(somebody(1500, "eve"), agent(), there), Peer)
    for other in (somebody(1500, "mallory"), somebody(1501, "eve")):
        found = judge(other, agent("login2"), there)
        assert isinstance(found, str) and "do not agree" in found
    assert there.user_name(1500) == "eve"
    assert isinstance(judge(somebody(1500, "eva"), agent(), there), Peer), "it renames its own"
    now[0] = HOLDS_S + 1
    assert isinstance(judge(somebody(1500, "mallory"), agent("login2"), there), Peer)
    assert there.user_id("eva") is None


def test_whom_agents_named_is_known_after_a_restart_with_his_home(tmp_path: Path) -> None:
    there, again = memory(), memory()
    judge(somebody(1500, "eve", groups=((2000, "lab"),)), agent(), there)
    asserted.keep(there, str(tmp_path))
    assert not there.names.learned.is_new
    judge(somebody(1500, "eve", groups=((2000, "lab"),)), agent(), there)
    assert not there.names.learned.is_new, "nothing that would have to be written again"
    learn_again(again, str(tmp_path))
    found = again.names.user(1500)
    assert found is not None and (found.name, found.home) == ("eve", "/home/eve")
    assert again.groups_of("eve") == ("eve", "lab")
    assert isinstance(judge(somebody(1500, "mallory"), agent("login2"), again), Peer), "no agent has said otherwise yet"
    odd = somebody(1501, "odd")._replace(home="/home/\udcff")
    judge(odd, agent(), again)
    asserted.keep(again, str(tmp_path))  # and says so in the log
    (tmp_path / "learned.json").write_text("{")
    learn_again(memory(), str(tmp_path))  # and says so in the log


def test_owners_of_jobs_are_known_by_name_after_a_restart(tmp_path: Path) -> None:
    async def whole() -> None:
        made = await site()
        await made.submit("-n1")
        there = made.controller.memory
        there.names = Known()
        assert there.user_id("alice") is None
        learn_again(there, str(tmp_path))
        assert (there.user_id("alice"), there.user_name(1001)) == (1001, "alice")

    asyncio.run(whole())


# ---- enrolling


def enrolled(state: Path, name: str, **more: float | bool) -> enrolment.Credentials:
    now = datetime.datetime.now(datetime.UTC)
    return enrolment.enrol(str(state), name, days=3, trusts_root=bool(more.get("trusts_root")), now=now)


def test_keys_are_their_owners_alone_and_the_daemon_keeps_none(tmp_path: Path) -> None:
    enrolment.give(enrolled(tmp_path, "a"), str(tmp_path / "out"))
    for name in (enrolment.KEY_FILE, enrolment.PIN_FILE):
        assert (tmp_path / "out" / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert b"PRIVATE" not in b"".join(path.read_bytes() for path in (tmp_path / enrolment.FOLDER).iterdir())
    assert credentials.load(str(tmp_path / "out")).pin == certificate.ensure(str(tmp_path))[1]


def test_an_agent_whose_key_others_can_read_does_not_start(tmp_path: Path) -> None:
    enrolment.give(enrolled(tmp_path, "a"), str(tmp_path / "out"))
    (tmp_path / "out" / enrolment.KEY_FILE).chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        credentials.load(str(tmp_path / "out"))


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".hidden", "a b", "x" * 64])
def test_a_name_that_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no name"):
        enrolled(tmp_path, name)


def test_an_agent_is_enrolled_once_and_gone_when_revoked(tmp_path: Path) -> None:
    enrolled(tmp_path, "a")
    enrolled(tmp_path, "b", trusts_root=True)
    with pytest.raises(ConfigError, match="already"):
        enrolled(tmp_path, "a")
    agents, faults = enrolment.read(str(tmp_path))
    assert [(each.name, each.trusts_root) for each in agents] == [("a", False), ("b", True)] and not faults
    enrolment.revoke(str(tmp_path), "a")
    assert [each.name for each in enrolment.read(str(tmp_path))[0]] == ["b"]
    with pytest.raises(ConfigError, match="no agent a"):
        enrolment.revoke(str(tmp_path), "a")


def test_what_cannot_be_read_is_not_believed_and_stops_no_other(tmp_path: Path) -> None:
    enrolled(tmp_path, "a")
    enrolled(tmp_path, "b")
    found = Enrolled(str(tmp_path))
    der = {each.name: ssl.PEM_cert_to_DER_cert(each.certificate) for each in enrolment.read(str(tmp_path))[0]}
    path = tmp_path / enrolment.FOLDER / "a.json"
    path.write_bytes(path.read_bytes().replace(b'"trusts_root":false', b'"trusts_root":maybe'))
    assert found.renew()
    assert found.find(der["a"], 0.0) is None and found.find(der["b"], 0.0) is not None
    os.chmod(tmp_path / enrolment.FOLDER, 0o777)
    assert found.renew()
    assert found.find(der["b"], 0.0) is None, "anybody may have put it there"


@pytest.mark.parametrize("listed", [("a", "--out", "x"), ("--list",), ("--revoke", "a")])
def test_who_is_not_the_daemons_user_enrols_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    answer = CliRunner().invoke(agent_credentials, [*listed, "--state", str(tmp_path)])
    assert isinstance(answer.exception, ConfigError) and "the daemon's user" in str(answer.exception)
    assert not (tmp_path / enrolment.FOLDER).exists()


def test_credentials_as_a_secret_are_what_the_files_would_be(tmp_path: Path) -> None:
    words = ["a", "--manifest", "sb-agent", "--state", str(tmp_path)]
    answer = CliRunner().invoke(agent_credentials, words)
    assert answer.exit_code == 0, answer.output
    found = yaml.safe_load(answer.output)
    assert (found["kind"], found["metadata"]["name"]) == ("Secret", "sb-agent")
    (tmp_path / "out").mkdir()
    for name, content in found["data"].items():
        path = tmp_path / "out" / name
        path.write_bytes(base64.b64decode(content))
        path.chmod(0o400)
    assert credentials.load(str(tmp_path / "out")).pin == certificate.ensure(str(tmp_path))[1]
    again = CliRunner().invoke(agent_credentials, words)
    assert isinstance(again.exception, ConfigError) and "already" in str(again.exception)


# ---- who sits at a login node


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


def test_a_place_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="--remote"):
            remote.bind(f"127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="HOST:PORT"):
        remote.bind("localhost")
