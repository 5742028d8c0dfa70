"""A key pair on the curve P-256 and one signature with it, for the daemon's own certificate (`daemon.certificate`).

Follows FIPS 186-5 and SEC 1; nothing else is offered. It runs once per state folder, with nobody there to time it: what
is done with the key afterwards, every handshake, is OpenSSL's business.
"""

from __future__ import annotations

import hashlib
import secrets

SIZE = 32  # bytes of a number
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)

Point = tuple[int, int]


def new_key() -> int:
    """A private key."""
    return 1 + secrets.randbelow(ORDER - 1)


def public_key(key: int) -> bytes:
    """The point of a private key, uncompressed."""
    x, y = times(key, BASE)
    return b"\x04" + x.to_bytes(SIZE, "big") + y.to_bytes(SIZE, "big")


def sign(key: int, message: bytes) -> tuple[int, int]:
    """ECDSA with SHA-256: (r, s)."""
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    while True:
        once = new_key()
        r = times(once, BASE)[0] % ORDER
        s = pow(once, -1, ORDER) * (digest + r * key) % ORDER
        if r and s:
            return r, s


def times(factor: int, point: Point) -> Point:
    """`factor` (1 to ORDER - 1) times a point, by a ladder: the same steps for every factor of a length."""
    low: Point | None = None
    high: Point | None = point
    for bit in bin(factor)[2:]:
        both = _sum(low, high)
        low, high = (both, _sum(high, high)) if bit == "1" else (_sum(low, low), both)
    assert low is not None
    return low


def _sum(one: Point | None, other: Point | None) -> Point | None:
    """None is the point at infinity."""
    if one is None or other is None:
        return other if one is None else one
    (x1, y1), (x2, y2) = one, other
    if x1 == x2:
        if (y1 + y2) % P == 0:
            return None
        slope = 3 * (x1 * x1 - 1) * pow(2 * y1, -1, P) % P
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, P) % P
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P
