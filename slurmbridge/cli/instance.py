"""Where the daemon of this user is: state folder, socket, process.

The contract's rules: `--state DIR` has its socket in DIR; without it a user's state is `$XDG_STATE_HOME/slurmbridge`,
root's is `/var/lib/slurmbridge` with the socket in `/run/slurmbridge`. A process is named by pid and start time.
"""

from __future__ import annotations

import os
import pathlib
import time

import msgspec

ROOT_STATE = "/var/lib/slurmbridge"
ROOT_SOCKET = "/run/slurmbridge/socket"


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon's places, whether it runs or not."""

    state: str
    socket: str

    @property
    def address(self) -> str:
        return f"unix:{self.socket}"


def default_state() -> str:
    """The state folder when none is named."""
    if os.geteuid() == 0:
        return ROOT_STATE
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "slurmbridge")


def locate(state: str | None) -> Instance:
    """Where the daemon says that its socket is, else as the rules say."""
    place = intended(state)
    told = _told_socket(place.state)
    return Instance(state=place.state, socket=told) if told else place


def intended(state: str | None) -> Instance:
    """By the rules alone: for a daemon that is to be started."""
    folder = os.path.abspath(state or default_state())
    if os.geteuid() == 0 and folder == ROOT_STATE:
        return Instance(state=folder, socket=ROOT_SOCKET)
    return Instance(state=folder, socket=os.path.join(folder, "socket"))


def _told_socket(state: str) -> str:
    try:
        words = pathlib.Path(state, "daemon.pid").read_text().rstrip("\n").split(" ", 2)
    except OSError:
        return ""
    return words[2] if len(words) == 3 else ""


def start_time(pid: int) -> int | None:
    """Clock ticks after boot at which a process started; None when there is none."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def running_pid(instance: Instance) -> int | None:
    """The pid in STATE/daemon.pid, if that very process still runs."""
    try:
        words = pathlib.Path(instance.state, "daemon.pid").read_text().split()
    except OSError:
        return None
    if len(words) < 2 or not words[0].isdecimal() or not words[1].isdecimal():
        return None
    pid = int(words[0])
    return pid if start_time(pid) == int(words[1]) else None


def wait_gone(pid: int, started: int | None, seconds: float) -> bool:
    """Whether the process ended within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if start_time(pid) != started or started is None:
            return True
        time.sleep(0.02)
    return start_time(pid) != started
