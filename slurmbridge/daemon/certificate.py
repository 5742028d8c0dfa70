"""The certificate by which pods know the daemon: made once, kept in the state folder, believed by its hash alone.

Key and certificate are one PEM file that only the daemon's user can read. The certificate is as small as RFC 5280 lets it
be, signed by itself, and has no end (section 4.1.2.5): whoever holds the hash asks for nothing else in it. The key never
changes, for supervisors of running jobs hold the hash over every restart of the daemon. Why it is made here, without a
package for it: docs/decisions/0017.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import ssl
import stat
import textwrap
import time

from slurmbridge.daemon import p256
from slurmbridge.errors import ConfigError
from slurmbridge.spool.claim import write_file

FILE = "daemon.pem"
MINUTES_EARLY = 24 * 60
"""Before its making from which it holds: clocks differ."""

_ECDSA_SHA256 = bytes.fromhex("06082a8648ce3d040302")
_EC_KEY, _P256 = bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06082a8648ce3d030107")
_COMMON_NAME = bytes.fromhex("0603550403")
_INTEGER, _BITS, _OCTETS, _TEXT, _UTC_TIME, _TIME, _SEQUENCE, _SET = 0x02, 0x03, 0x04, 0x0C, 0x17, 0x18, 0x30, 0x31
_CONTEXT = 0xA0
NO_END = b"99991231235959Z"


def ensure(state: str) -> tuple[ssl.SSLContext, str]:
    """The daemon's side of TLS, and the pin: SHA-256 of the certificate in hex. Made when it is not there yet.

    ConfigError: what is there is not usable, or is not closed to others.
    """
    path = os.path.join(state, FILE)
    try:
        write_new(path)
        with open(path, "rb") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(1 << 16).decode("ascii", "replace")
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=path) from fault
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError("others can read the daemon's key: take that right away, or remove the file", file=path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # supervisors stay; a session is not taken up again
    try:
        context.load_cert_chain(path)
        return context, pin_of(text)
    except (ssl.SSLError, ValueError) as fault:
        raise ConfigError(f"not the daemon's key and certificate: {fault}", file=path) from fault


def write_new(path: str) -> None:
    """On the disk when this returns; one that is there stays."""
    if not os.path.lexists(path):
        write_file(path, make(time.time()).encode("ascii"), sync=True)


def pin_of(text: str) -> str:
    """Of the certificate in a PEM text. ValueError: there is none."""
    begin = text.find("-----BEGIN CERTIFICATE-----")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[begin:] if begin >= 0 else "")).hexdigest()


def make(now: float, name: str = "slurmbridge") -> str:
    """A new key with its certificate."""
    key = p256.new_key()
    point = _bits(p256.public_key(key))
    kind = _sequence(_ECDSA_SHA256)
    who = _sequence(_tagged(_SET, _sequence(_COMMON_NAME, _tagged(_TEXT, name.encode()))))
    body = _sequence(
        _tagged(_CONTEXT, _integer(2)),  # version 3
        _integer(secrets.randbits(126) + 1),
        kind,
        who,
        _sequence(_moment(now - MINUTES_EARLY * 60), _tagged(_TIME, NO_END)),
        who,
        _sequence(_sequence(_EC_KEY, _P256), point),
    )
    signature = _sequence(*map(_integer, p256.sign(key, body)))
    secret = _sequence(
        _integer(1),
        _tagged(_OCTETS, key.to_bytes(p256.SIZE, "big")),
        _tagged(_CONTEXT, _P256),
        _tagged(_CONTEXT + 1, point),
    )
    return _pem("EC PRIVATE KEY", secret) + _pem("CERTIFICATE", _sequence(body, kind, _bits(signature)))


def _pem(title: str, data: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(data).decode("ascii"), 64)
    return "\n".join([f"-----BEGIN {title}-----", *lines, f"-----END {title}-----", ""])


def _tagged(tag: int, content: bytes) -> bytes:
    """DER (X.690): tag, length, content."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _tagged(_SEQUENCE, b"".join(parts))


def _integer(number: int) -> bytes:
    return _tagged(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _bits(data: bytes) -> bytes:
    return _tagged(_BITS, b"\0" + data)


def _moment(time_s: float) -> bytes:
    """UTCTime up to 2049, as RFC 5280 wants it."""
    moment = time.gmtime(time_s)
    early = moment.tm_year < 2050
    return _tagged(
        _UTC_TIME if early else _TIME, time.strftime("%y%m%d%H%M%SZ" if early else "%Y%m%d%H%M%SZ", moment).encode()
    )
