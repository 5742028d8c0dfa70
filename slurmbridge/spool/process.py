"""Which process is it? A process is named by boot id, pid and start time: pids come back, start times of one boot do not.

Source: proc(5).
"""

from __future__ import annotations

import os


def boot_id() -> str:
    """Of this boot; differs after each."""
    return read_bytes("/proc/sys/kernel/random/boot_id").decode().strip()


def read_bytes(path: str, limit: int = 4096) -> bytes:
    """The beginning of a small file, without the cost of a file object."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, limit)
    finally:
        os.close(fd)


def start_ticks(pid: int, proc: int | None = None) -> int | None:
    """Start time of a process in clock ticks since boot; None when it is gone (or a zombie: it runs no more)."""
    fields = stat_fields(pid, proc)
    if fields is None or fields[0] == b"Z":
        return None
    return int(fields[19])


def stat_fields(pid: int | str, proc: int | None = None) -> list[bytes] | None:
    """Fields of /proc/PID/stat from the state on (index 0 = state, 1 = parent, 3 = session); None when gone."""
    name = f"{pid}/stat" if proc is not None else f"/proc/{pid}/stat"
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return None
    try:
        data = os.read(fd, 1024)
    except OSError:
        return None
    finally:
        os.close(fd)
    return data[data.rindex(b")") + 2 :].split()


def leftovers(marks: tuple[bytes, ...]) -> list[int]:
    """Processes of this user (all, for root) whose environment holds every mark (NAME=VALUE)."""
    found = []
    for name in os.listdir("/proc"):
        if name[0] not in "123456789":
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                entries = file.read().split(b"\0")
        except OSError:
            continue
        if all(mark in entries for mark in marks):
            found.append(int(name))
    return found
