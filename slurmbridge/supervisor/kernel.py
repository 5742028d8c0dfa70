"""Calls of the Linux kernel that the standard library of Python 3.11 does not wrap.

Sources: unshare(2), mount(2), prctl(2), clock_gettime(2).
"""

from __future__ import annotations

import ctypes
import os
import time

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_REC, MS_BIND, MS_PRIVATE = 0x4000, 0x1000, 1 << 18
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NAME, PR_SET_DUMPABLE = 1, 36, 15, 4

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """New namespaces for this process (children, for CLONE_NEWPID)."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int) -> None:
    """mount(2) without data."""
    _check(
        _libc.mount(
            os.fsencode(source), os.fsencode(target), kind.encode() if kind else None, ctypes.c_ulong(flags), None
        ),
        f"mount {target}",
    )


def prctl(option: int, value: int) -> None:
    """prctl(2) with one number."""
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero), "prctl")


def set_name(name: str) -> None:
    """What ps shows in its short form (15 bytes)."""
    _libc.prctl(ctypes.c_int(PR_SET_NAME), ctypes.c_char_p(name.encode()[:15]), 0, 0, 0)


def boottime() -> float:
    """Seconds since boot, sleep of the machine included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
