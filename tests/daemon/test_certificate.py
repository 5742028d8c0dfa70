"""The daemon's certificate: made once, closed to others, and what OpenSSL takes for a certificate."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import ssl
import time

import pytest

from slurmbridge.daemon import certificate, p256
from slurmbridge.errors import ConfigError

CHECKS_ITS_OWN_SIGNATURE = 0x4000  # X509_V_FLAG_CHECK_SS_SIGNATURE


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """The client's side of a finished handshake."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    for side in (*sides, *sides):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return sides[0]


def test_it_is_made_once_and_its_hash_stays(tmp_path: pathlib.Path) -> None:
    first, pin = certificate.ensure(str(tmp_path))
    assert certificate.ensure(str(tmp_path))[1] == pin
    assert (tmp_path / certificate.FILE).stat().st_mode & 0o777 == 0o600
    assert first.minimum_version is ssl.TLSVersion.TLSv1_3


def test_another_state_folder_has_another_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / "other").mkdir()
    assert certificate.ensure(str(tmp_path))[1] != certificate.ensure(str(tmp_path / "other"))[1]


def test_a_handshake_shows_the_certificate_of_the_pin_and_its_signature_is_its_own(tmp_path: pathlib.Path) -> None:
    server, pin = certificate.ensure(str(tmp_path))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    text = (tmp_path / certificate.FILE).read_text()
    client.load_verify_locations(cadata=text[text.index("-----BEGIN CERTIFICATE") :])
    client.verify_flags |= CHECKS_ITS_OWN_SIGNATURE
    side = shaken(server, client)
    assert side.version() == "TLSv1.3"
    shown = side.getpeercert(binary_form=True)
    assert shown is not None and hashlib.sha256(shown).hexdigest() == pin


def test_an_older_tls_is_refused(tmp_path: pathlib.Path) -> None:
    server, _ = certificate.ensure(str(tmp_path))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match=r"(?i)unsupported.protocol|version"):
        shaken(server, client)


def test_what_others_can_read_is_not_used(tmp_path: pathlib.Path) -> None:
    certificate.ensure(str(tmp_path))
    os.chmod(tmp_path / certificate.FILE, 0o640)
    with pytest.raises(ConfigError, match="others can read"):
        certificate.ensure(str(tmp_path))


@pytest.mark.parametrize("content", ["", "nonsense", "-----BEGIN CERTIFICATE-----\n"])
def test_a_broken_file_is_an_error_and_stays(tmp_path: pathlib.Path, content: str) -> None:
    path = tmp_path / certificate.FILE
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="not the daemon's key and certificate"):
        certificate.ensure(str(tmp_path))
    assert path.read_text() == content


def test_times_beyond_2049_are_written_in_the_longer_form() -> None:
    assert b"20500101000000Z" in certificate._moment(2524608000.0)
    assert b"260102030405Z" in certificate._moment(1767323045.0)


def test_the_curve_gives_the_known_multiples_of_its_base_point() -> None:
    # NIST's point multiplication test vectors of P-256
    x = 0x7CF27B188D034F7E8A52380304B51AC3C08969E277F21B35A60B48FC47669978
    assert p256.times(2, p256.BASE)[0] == x
    assert p256.times(p256.ORDER - 1, p256.BASE) == (p256.BASE[0], p256.P - p256.BASE[1])


def test_a_signature_holds_for_its_message_alone() -> None:
    key = p256.new_key()
    r, s = p256.sign(key, b"message")
    assert verifies(key, b"message", r, s) and not verifies(key, b"massage", r, s)


def verifies(key: int, message: bytes, r: int, s: int) -> bool:
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    w = pow(s, -1, p256.ORDER)
    one = p256.times(digest * w % p256.ORDER, p256.BASE)
    other = p256.times(r * w % p256.ORDER * key % p256.ORDER, p256.BASE)
    both = p256._sum(one, other)
    return both is not None and both[0] % p256.ORDER == r


def test_it_is_made_in_a_moment() -> None:
    before = time.process_time()
    certificate.make(0.0)
    assert time.process_time() - before < 2
