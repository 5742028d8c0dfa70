"""How is somebody reached over TCP who is known by the hash of his certificate alone? Options of the socket, and TLS that
trusts nobody's signature. Standard library only: supervisors, agents and commands dial with it.
"""

from __future__ import annotations

import socket
import ssl

KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)  # fmt: skip
"""Who is gone without a word is noticed after a minute."""


def keep_alive(sock: socket.socket) -> None:
    """On either side of a connection, before it is made or after."""
    for level, option, value in KEEPALIVE:
        sock.setsockopt(level, option, value)


def context() -> ssl.SSLContext:
    """Of who dials; he compares the certificate himself."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    return tls
