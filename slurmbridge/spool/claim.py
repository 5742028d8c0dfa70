"""Who owns a run on this machine: the spool folder of (job, restarts, rank), its record and its exit record.

The claim is one rename: a folder that already holds the record moves to `SPOOL/JOB.RESTARTS.RANK`, which fails when
that exists. So a run is claimed exactly once, and a claimed run always says by whom. A launch carries the epoch of the
daemon that sent it; claims are made under a shared lock of `SPOOL/.lock` while the epoch still holds, so that after a
new daemon has changed it (under the exclusive lock) no launch of an old one can come into being.

An exit record is written before it is sent and lives until the daemon has acknowledged it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from slurmbridge.spool import process
from slurmbridge.spool.process import read_bytes

RECORD, EXIT, CRASH, SCRIPT, STEP_SOCKET, PEER_SOCKET = "record", "exit", "crash", "slurm_script", "step", "peer"
LOCK, EPOCH = ".lock", ".epoch"
CLAIMING, POINTING, GOING = ".claim-", ".pointer-", ".gone-"
"""Prefixes of what lives for a moment; what a killed process left of it is removed by `sweep`."""


def folder_name(job: int, restarts: int, rank: int) -> str:
    """Name of a run's folder below the spool."""
    return f"{job}.{restarts}.{rank}"


def parse_folder(name: str) -> tuple[int, int, int] | None:
    """(job, restarts, rank) of a folder name, None for other names."""
    parts = name.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


def write_file(path: str, data: bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Replace a small file whole; with `sync` it is on the disk when this returns."""
    temporary = f"{path}.{_nonce()}"
    try:
        _write_new(temporary, data, mode, sync)
        os.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if sync:
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _write_new(path: str, data: bytes, mode: int, sync: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def _nonce() -> str:
    """Part of a name that nobody else takes. Not by `secrets`, whose imports every supervisor would carry along."""
    return os.urandom(8).hex()


def read_json(path: str) -> dict[str, Any] | None:
    """A record, None when there is none."""
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None


@contextlib.contextmanager
def _locked(spool: str, how: int) -> Iterator[None]:
    fd = os.open(os.path.join(spool, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def new_epoch(spool: str) -> str:
    """Begin a daemon's reign: from here on launches of earlier daemons can claim nothing."""
    epoch = _nonce()
    with _locked(spool, fcntl.LOCK_EX):
        write_file(os.path.join(spool, EPOCH), epoch.encode("ascii"))
    return epoch


def claim(spool: str, key: tuple[int, int, int], epoch: str, record: dict[str, Any]) -> str | None:
    """Take this run: its folder, or None when it is taken already or the epoch is over."""
    path = os.path.join(spool, folder_name(*key))
    temporary = os.path.join(spool, CLAIMING + _nonce())
    os.mkdir(temporary, 0o711)
    os.chmod(temporary, 0o711)
    try:
        _write_new(os.path.join(temporary, RECORD), json.dumps(record).encode(), 0o600, False)
        with _locked(spool, fcntl.LOCK_SH):
            if read_bytes(os.path.join(spool, EPOCH)) != epoch.encode():
                return None
            try:
                os.rename(temporary, path)
            except OSError:
                return None
            temporary = ""
        return path
    finally:
        if temporary:
            _remove(temporary)


def set_pointer(spool: str, job: int, restarts: int) -> None:
    """`SPOOL/JOB` leads to the folder of the job's present run, where that is not its first: the step socket is found
    by the job id alone, as `SPOOL/JOB/step` or else `SPOOL/JOB.0.0/step`."""
    pointer, folder = os.path.join(spool, str(job)), folder_name(job, restarts, 0)
    try:
        os.symlink(folder, pointer)
    except FileExistsError:
        temporary = os.path.join(spool, POINTING + _nonce())
        os.symlink(folder, temporary)
        os.rename(temporary, pointer)


def drop_pointer(spool: str, job: int, restarts: int) -> None:
    """Remove the pointer unless it leads to another run."""
    pointer = os.path.join(spool, str(job))
    try:
        if os.readlink(pointer) == folder_name(job, restarts, 0):
            os.unlink(pointer)
    except OSError:
        return


def release(path: str) -> None:
    """Remove a run's folder. Only what was put there is removed, and nothing below it is followed."""
    gone = os.path.join(os.path.dirname(path), GOING + _nonce())
    try:
        os.rename(path, gone)
    except FileNotFoundError:
        return
    _remove(gone)


def _remove(folder: str) -> None:
    """Runs have no folders in theirs: one that somebody made there stays, and its parent with it."""
    with contextlib.suppress(FileNotFoundError):  # somebody else removes it too
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                os.unlink(os.path.join(folder, name))
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise


def sweep(spool: str) -> None:
    """After `new_epoch`: remove what processes left that were killed in the middle of a claim or a release.

    A claim that is under way belongs to an earlier daemon and fails anyhow."""
    for name in os.listdir(spool):
        path = os.path.join(spool, name)
        if name.startswith(POINTING):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        elif name.startswith((CLAIMING, GOING)):
            _remove(path)


def is_alive(record: dict[str, Any]) -> bool:
    """Whether the supervisor that wrote this record still runs."""
    if record.get("boot_id") != process.boot_id():
        return False
    return process.start_ticks(int(record["pid"])) == record.get("start")


def last_words(folder: str) -> str:
    """What is known of a supervisor's death."""
    try:
        with open(os.path.join(folder, CRASH), encoding="utf-8", errors="replace") as file:
            return "the supervisor failed: " + file.read().strip()
    except FileNotFoundError:
        return "the supervisor was killed"
