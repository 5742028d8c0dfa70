"""The certificate by which pods know the daemon: made once, kept in the state folder, believed by its hash alone.

Key and certificate are one PEM file that only the daemon's user can read. The certificate is as small as RFC 5280 lets it
be, signed by itself, and has no end (section 4.1.2.5): whoever holds the hash asks for nothing else in it. The key never
changes, for supervisors of running jobs hold the hash over every restart of the daemon (docs/decisions/0017).
"""

from __future__ import annotations

import datetime
import hashlib
import os
import ssl
import stat

from slurmbridge.errors import ConfigError
from slurmbridge.spool.claim import write_file

FILE = "daemon.pem"
EARLY = datetime.timedelta(days=1)
"""Before its making from which it holds: clocks differ."""
NO_END = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)


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


def secret(state: str) -> bytes:
    """What tokens of runs are made from (`runtime.kube.runtime`): of the key, so that it is the daemon's alone and as lasting
    as the pin. After `ensure`. ConfigError: it cannot be read."""
    path = os.path.join(state, FILE)
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(b"tokens of runs\0" + file.read(1 << 16)).digest()
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=path) from fault


def write_new(path: str) -> None:
    """On the disk when this returns; one that is there stays."""
    if not os.path.lexists(path):
        write_file(path, make(datetime.datetime.now(datetime.UTC)), sync=True)


def pin_of(text: str) -> str:
    """Of the certificate in a PEM text. ValueError: there is none."""
    begin = text.find("-----BEGIN CERTIFICATE-----")
    return hash_of(ssl.PEM_cert_to_DER_cert(text[begin:] if begin >= 0 else ""))


def hash_of(der: bytes) -> str:
    return hashlib.sha256(der).hexdigest()


def make(now: datetime.datetime, name: str = "slurmbridge", until: datetime.datetime = NO_END) -> bytes:
    """A new key with its certificate, as PEM. ConfigError: the package that makes them is not installed."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as fault:
        raise ConfigError("certificates need the extra packages: pip install 'slurmbridge[kubernetes]'") from fault
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(until)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return secret + certificate.public_bytes(serialization.Encoding.PEM)
