"""Removing folders that something may be mounted below.

A bind mount below a folder shows files that live elsewhere, and removing the folder's content would remove those. So a
folder is removed only when the kernel's own list (/proc/self/mountinfo) names no mount at or below it, the walk stays on
one file system, and the folder carries a mark that says who made it.

Mounts of a cluster are made in its nodes' mount namespaces alone and end with these; nothing is ever mounted in the
namespace of the machine itself. A mount that is found there is therefore an error that a person has to look at.
"""

import os
import shutil
import stat
from pathlib import Path

from .places import ClusterError

MARK = ".slurmbridge-cluster"  # a folder without this file is not ours to remove


def mounts_at_or_below(folder: Path) -> list[str]:
    """Mount points in this namespace that lie in a folder, deepest first."""
    real = os.path.realpath(folder)
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            point = line.split(" ")[4]
            for octal, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
                point = point.replace(octal, plain)
            if point == real or point.startswith(real.rstrip("/") + "/"):
                found.append(point)
    return sorted(found, key=lambda point: point.count("/"), reverse=True)


def make_marked(folder: Path) -> None:
    """Make a folder that `remove_marked` may remove."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(entry.name != MARK for entry in folder.iterdir()) and not (folder / MARK).is_file():
        raise ClusterError(f"{folder} is there already and was not made by this program")
    (folder / MARK).touch()


def remove_marked(folder: Path) -> None:
    """Remove a folder made by `make_marked`, or refuse and say what is in the way."""
    if not folder.exists():
        return
    if folder.is_symlink() or not (folder / MARK).is_file():
        raise ClusterError(f"{folder} was not made by this program: not removed")
    mounted = mounts_at_or_below(folder)
    if mounted:
        raise ClusterError(f"{folder} is not removed, mounted below it: {', '.join(mounted)}")
    device = folder.stat().st_dev
    for place, folders, _ in os.walk(folder):
        for name in folders:
            status = os.lstat(os.path.join(place, name))
            if stat.S_ISDIR(status.st_mode) and status.st_dev != device:
                raise ClusterError(f"{folder} is not removed, another file system is below it: {place}/{name}")
    # the mark goes last: a removal that is cut short can be done again
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != MARK:
            entry.unlink()
    (folder / MARK).unlink()
    folder.rmdir()
