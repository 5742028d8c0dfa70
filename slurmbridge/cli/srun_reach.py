"""How is a job's first supervisor reached? By its socket on this machine, or through the daemon where only that reaches it.

Addresses: `unix:PATH`, or `through:JOB`, for which the daemon's socket is dialled and told the job (frame T of
`wire.client`); what follows is the talk with the supervisor either way. Standard library only.
"""

from __future__ import annotations

import os
import socket

from slurmbridge.wire.client import frame, pack

ROOT_SOCKET = "/run/slurmbridge/socket"
ROOT_STATES = ("/run/slurmbridge", "/var/lib/slurmbridge")
"""Where a daemon that answers on root's socket keeps its jobs: beside it, or in the default state folder."""
THROUGH = "through:"


def states(env: dict[str, str]) -> list[str]:
    """State folders to look in, most particular first."""
    address = env.get("SLURMBRIDGE_ADDR", "")
    if address.startswith("unix:") and address[5:] != ROOT_SOCKET:
        return [os.path.dirname(address[5:])]
    root = list(ROOT_STATES)
    if address:
        return root
    home = env.get("HOME", "")
    folder = env.get("XDG_STATE_HOME") or (os.path.join(home, ".local/state") if home else "")
    return ([os.path.join(folder, "slurmbridge")] if folder else []) + root


def find(job: str, env: dict[str, str]) -> str:
    """The address of a job's supervisor."""
    for state in states(env):
        for folder in (job, f"{job}.0.0"):  # see spool.claim.set_pointer
            path = os.path.join(state, "spool", folder, "step")
            if os.path.exists(path):
                return "unix:" + path
    return THROUGH + job


def reach(address: str, command: str, env: dict[str, str]) -> socket.socket:
    """A connection to the supervisor at an address, for `command`. OSError: there is none."""
    if not address.startswith(THROUGH):
        return dial(address.removeprefix("unix:"))
    sock = _daemon(command, env)
    sock.sendall(frame(b"T", pack(address.removeprefix(THROUGH).encode(), command.encode())))
    return sock


def _daemon(command: str, env: dict[str, str]) -> socket.socket:
    given = env.get("SLURMBRIDGE_ADDR", "")
    if "://" in given:
        from slurmbridge.cli.thin import secure

        entries = [os.fsencode(f"{name}={value}") for name, value in env.items()]
        return secure.dial(command, os.fsencode(given), entries)
    paths = [given[5:]] if given.startswith("unix:") else [os.path.join(state, "socket") for state in states(env)]
    fault = OSError("no address of a daemon")
    for path in paths:
        try:
            return dial(path)
        except OSError as error:
            fault = error
    raise fault


def dial(path: str) -> socket.socket:
    """A connection to a socket, however long its path is."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if len(os.fsencode(path)) < 104:
            sock.connect(path)
            return sock
        folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
        try:
            sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
        finally:
            os.close(folder)
    except OSError:
        sock.close()
        raise
    return sock
