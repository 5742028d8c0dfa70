"""Has a PID namespace ended whose first process is still in the table?

A first process that was killed stays until every process of its namespace is reaped. Those that its supervisor started go
to whoever takes in orphans when that is killed, too, and in a container that may be a program that never looks: the
namespace is then never removed, though nothing runs there. Source: pid_namespaces(7), ioctl_nsfs(2), proc(5).
"""

from __future__ import annotations

import fcntl
import os

from slurmbridge.spool.process import stat_fields

NS_GET_PARENT = 0xB702
VSIZE = 20  # of the fields of proc(5)'s stat, from the state on


def is_hollow(first: int) -> bool:
    """Whether the first process has let go of its memory and no other process of its namespace, or of one below it, is
    more than a zombie."""
    fields = stat_fields(first)
    if fields is None or int(fields[VSIZE]):
        return False
    try:
        namespace = os.stat(f"/proc/{first}/ns/pid").st_ino
    except OSError:
        return True  # it has gone meanwhile
    others = (int(name) for name in os.listdir("/proc") if name[0] in "123456789" and name != str(first))
    return not any(_runs(pid) and _is_inside(pid, namespace) for pid in others)


def _runs(pid: int) -> bool:
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in (b"Z", b"X")


def _is_inside(pid: int, namespace: int) -> bool:
    try:
        fd = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # it has gone meanwhile
        return False
    while True:
        try:
            if os.fstat(fd).st_ino == namespace:
                return True
            above = fcntl.ioctl(fd, NS_GET_PARENT)
        except PermissionError:  # there is none that we may see
            return False
        finally:
            os.close(fd)
        fd = above
