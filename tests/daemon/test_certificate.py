"""The daemon's certificate: made once, closed to others, and what OpenSSL takes for a certificate."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import ssl

import pytest

from slurmbridge.daemon import certificate
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
