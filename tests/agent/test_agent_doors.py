"""Only agents that are enrolled are let in, and nobody else says a word there."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
from pathlib import Path

import pytest

from slurmbridge.agent import credentials
from slurmbridge.agent.far import Pool
from slurmbridge.daemon import certificate, enrolment, remote, threshold
from slurmbridge.errors import ConfigError
from slurmbridge.wire import agent as wire
from slurmbridge.wire.client import frame
from tests.agent.login_node import ALICE, LoginNode, keep, plain_context, text_of
from tests.daemon.post import hello
from tests.patience import comes

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
        await comes(lambda: there.lanes == 0)
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
        await comes(lambda: there.lanes == 0)

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
    monkeypatch.setattr(remote, "PROVED_S", 3600.0)

    async def rule(there: LoginNode) -> None:
        pairs = [await asyncio.open_connection("127.0.0.1", there.port) for _ in range(3)]
        await comes(lambda: len(there.remote.half_open) == 3)
        pairs.append(await asyncio.open_connection("127.0.0.1", there.port))
        with contextlib.suppress(ConnectionError):  # for the fourth the first gives way
            assert await pairs[0][0].read() == b""
        assert len(there.remote.half_open) == 3
        for _, writer in pairs:
            writer.transport.abort()
        await comes(lambda: not there.remote.half_open)
        monkeypatch.setattr(remote, "PROVED_S", 0.05)
        reader, last = await asyncio.open_connection("127.0.0.1", there.port)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        await comes(lambda: not there.remote.half_open)
        monkeypatch.setattr(remote, "PROVED_S", 3600.0)
        assert text_of(await there.say(hello("squeue", "-h")), b"X") == "0"
        last.close()

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
        await comes(lambda: there.lanes == 0 and there.service.crowd.connections == 0)

    keep(tmp_path, rule)


def test_a_place_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="--remote"):
            remote.bind(f"127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="HOST:PORT"):
        remote.bind("localhost")
