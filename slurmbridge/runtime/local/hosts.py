"""Loopback addresses of virtual nodes, and the hosts file that jobs see (design 8.17)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping

from slurmbridge.spool import claim

HOSTS = ".hosts"
SYSTEM_HOSTS = "/etc/hosts"
LOOPBACKS = ("127.0.0.1", "127.0.1.1")
"""Addresses that all names of a machine may share: a node needs one of its own."""


def addresses(
    names: tuple[str, ...],
    given: Mapping[str, str] | None = None,
    is_local: Callable[[str], bool] | None = None,
) -> dict[str, str]:
    """Where each node's processes listen. 127.64.0.1 and up, in configuration order, but a name to which this machine's
    hosts file already gives one of its own addresses keeps it: then the login host and jobs agree on it.

    given: name -> address by the hosts file (read here when None). is_local: whether the address is this machine's.
    """
    given = _given() if given is None else given
    is_local = is_local or _is_local
    found = {}
    for index, name in enumerate(names, 1):
        own = given.get(name)
        if own is not None and own not in LOOPBACKS and is_local(own):
            found[name] = own
        else:
            found[name] = f"127.{64 + (index >> 16)}.{(index >> 8) & 255}.{index & 255}"
    return found


def extended(known: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Addresses of nodes that came and went: those that stay keep theirs, others get one that nobody has or had."""
    fresh = addresses(names)
    taken = set(known.values())
    found, index = {}, len(names)
    for name in names:
        address = known.get(name) or fresh[name]
        while name not in known and address in taken:
            index += 1
            address = addresses((*[""] * index, name), {})[name]
        taken.add(address)
        found[name] = address
    return found


def _given() -> dict[str, str]:
    """IPv4 addresses of the machine's hosts file by name; the first line that has a name counts."""
    found: dict[str, str] = {}
    try:
        with open(SYSTEM_HOSTS, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return found
    for line in lines:
        words = line.partition("#")[0].split()
        if words and ":" not in words[0]:
            for name in words[1:]:
                found.setdefault(name, words[0])
    return found


def _is_local(address: str) -> bool:
    """Whether a socket may be bound to it here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def write_hosts(spool: str, nodes: dict[str, str], control_host: str) -> str:
    """The machine's own hosts file with the nodes in front; returns its path."""
    try:
        with open(SYSTEM_HOSTS, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        lines = ["127.0.0.1 localhost"]
    kept: list[str] = []
    known: set[str] = set(nodes)
    for line in lines:
        words = line.partition("#")[0].split()
        names = [name for name in words[1:] if name not in nodes]
        known.update(names)
        if not words or len(names) == len(words) - 1:
            kept.append(line)
        elif names:
            kept.append(" ".join([words[0], *names]))
    text = [f"{address} {name}" for name, address in nodes.items()]
    if control_host and control_host not in known:
        kept.append(f"127.0.0.1 {control_host}")
    path = os.path.join(spool, HOSTS)
    data = "\n".join([*kept[:1], *text, *kept[1:], ""]) if kept else "\n".join([*text, ""])
    claim.write_file(path, data.encode("utf-8", "surrogateescape"), mode=0o644)
    os.chmod(path, 0o644)
    return path
