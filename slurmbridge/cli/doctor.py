"""`slurmbridge doctor`: checks of the machine and the installation, each with what to do about it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import sysconfig
from collections.abc import Callable

from slurmbridge.cli import instance

Check = Callable[[instance.Instance], tuple[bool, str]]


def python(_place: instance.Instance) -> tuple[bool, str]:
    return sys.version_info >= (3, 11), f"Python {sys.version.split()[0]} (3.11 or later is needed)"


def sqlite(_place: instance.Instance) -> tuple[bool, str]:
    return sqlite3.sqlite_version_info >= (3, 35), f"SQLite {sqlite3.sqlite_version} (3.35 or later is needed)"


def bash(_place: instance.Instance) -> tuple[bool, str]:
    found = os.access("/bin/bash", os.X_OK)
    return found, "/bin/bash starts the commands" if found else "/bin/bash is missing: the commands cannot start"


def commands(_place: instance.Instance) -> tuple[bool, str]:
    folder = sysconfig.get_path("scripts")
    there, first = os.path.exists(os.path.join(folder, "sbatch")), shutil.which("sbatch")
    if not there:
        return False, f"{folder} has no sbatch: install slurmbridge again"
    if first is None:
        return False, f"{folder} is not on PATH"
    return True, f"sbatch on PATH is {first}"


def state(place: instance.Instance) -> tuple[bool, str]:
    folder = place.state
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    usage = shutil.disk_usage(folder)
    free = usage.free >> 20
    fine = os.access(folder, os.W_OK) and free > 256
    return fine, f"state folder {place.state}: {free} MiB free" + ("" if fine else ", or not writable")


def daemon(place: instance.Instance) -> tuple[bool, str]:
    pid = instance.running_pid(place)
    return True, f"daemon pid={pid} at {place.address}" if pid else "no daemon runs (slurmbridge up)"


def namespaces(_place: instance.Instance) -> tuple[bool, str]:
    if os.geteuid() == 0:
        return True, "root: each virtual node gets a host name of its own"
    return True, "not root: node names do not resolve inside jobs, all virtual nodes share this host's name"


def process_limit(_place: instance.Instance) -> tuple[bool, str]:
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft == resource.RLIM_INFINITY or soft >= 1024, f"{soft} open files allowed (1024 or more are needed)"


CHECKS: tuple[Check, ...] = (python, sqlite, bash, commands, state, process_limit, namespaces, daemon)


def main(place: instance.Instance) -> int:
    """Prints one line per check; 1 when one fails."""
    failed = False
    for check in CHECKS:
        fine, text = check(place)
        failed = failed or not fine
        sys.stdout.write(f"{'ok  ' if fine else 'FAIL'}  {text}\n")
    return 1 if failed else 0
