"""Loopback addresses of virtual nodes, and the hosts file that jobs see (design 8.17)."""

from __future__ import annotations

import os

from slurmbridge.spool import claim

HOSTS = ".hosts"
SYSTEM_HOSTS = "/etc/hosts"


def addresses(names: tuple[str, ...]) -> dict[str, str]:
    """127.64.0.1 and up, in configuration order."""
    return {name: f"127.{64 + (index >> 16)}.{(index >> 8) & 255}.{index & 255}" for index, name in _numbered(names)}


def _numbered(names: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(index + 1, name) for index, name in enumerate(names)]


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
