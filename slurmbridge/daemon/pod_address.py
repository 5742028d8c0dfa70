"""Where does the daemon listen for pods, and by which address do they reach it?

As said by options; else at the interface that leads to the API server, since nodes reach that one too, at a port that was
free once and is kept.
"""

from __future__ import annotations

import errno
import ipaddress
import socket

import msgspec

from slurmbridge.errors import ConfigError

WILD = ("", "0.0.0.0", "::", "*")


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    host: str  # to listen at; empty: everywhere
    port: int  # 0: any that is free
    advertised: str  # empty: as the host
    advertised_port: int = 0  # 0: the same

    def told(self, port: int) -> str:
        """HOST:PORT for pods, when we listen at `port`."""
        host = f"[{self.advertised}]" if ":" in self.advertised else self.advertised
        return f"{host}:{self.advertised_port or port}"


def choose(listen: str | None, advertise: str | None, kept_port: int, own: str) -> Addresses:
    """`own`: the address of our interface to the cluster, empty where there is none that others reach. ConfigError."""
    host, port = split(listen, "--listen") if listen else (None, 0)
    told, told_port = split(advertise, "--advertise") if advertise else ("", 0)
    if told in WILD and advertise:
        raise ConfigError(f"--advertise {advertise}: pods need an address that they can dial")
    if host is None:
        host, port = ("" if told else own), kept_port or told_port
    if not told:
        told = own if host in WILD else host
    if not told or (not advertise and _is_loopback(told)):
        raise ConfigError(
            "no address of this host is known that pods reach: name one with --advertise HOST:PORT"
            + (f" ({told} is this host's own)" if told else "")
        )
    return Addresses(host="" if host in WILD else host, port=port, advertised=told, advertised_port=told_port)


def split(text: str, option: str) -> tuple[str, int]:
    """HOST:PORT, an IPv6 host in brackets. ConfigError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"{option} {text}: HOST:PORT is needed")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(addresses: Addresses) -> socket.socket:
    """A socket that has the address, not yet listening. ConfigError: it cannot be had."""
    try:
        if not addresses.host and socket.has_dualstack_ipv6():
            sock = socket.create_server(("::", addresses.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1)
        elif not addresses.host:
            sock = socket.create_server(("0.0.0.0", addresses.port), backlog=1)
        else:
            family, _, _, _, target = socket.getaddrinfo(addresses.host, addresses.port, type=socket.SOCK_STREAM)[0]
            sock = socket.create_server(target[:2], family=family, backlog=1)
    except OSError as fault:
        where = f"{addresses.host or '*'}:{addresses.port}"
        text = f"cannot listen for pods at {where}: {fault.strerror or fault}"
        if fault.errno == errno.EADDRINUSE:
            text += "; running pods look for the daemon there, so it must be freed, or another one named with --listen"
        raise ConfigError(text) from fault
    sock.setblocking(False)
    return sock
