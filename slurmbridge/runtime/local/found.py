"""What the spool says of a run whose supervisor is not connected: alive, ended, dying, dead, or never there.

A run is proved gone when its supervisors are (boot id, pid and start time), when the first process of its PID namespace
is or waits only for zombies, and when no process carries its marks. What is left over is killed first.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from slurmbridge.runtime.protocol import RunKey
from slurmbridge.spool import claim, namespace, process

ALIVE, ENDED, DYING, DEAD, GONE = "alive", "ended", "dying", "dead", "gone"
REBOOTED = "node rebooted"
BOOT = "boot_id"

Value = dict[str, Any]


def claims(spool: str) -> list[tuple[int, int, int]]:
    """(job, restarts, rank) of every claimed run."""
    return sorted(key for key in map(claim.parse_folder, os.listdir(spool)) if key is not None)


def is_rebooted(state: str) -> str:
    """Words for it when the machine was started anew since `remember_boot`, else nothing."""
    try:
        with open(os.path.join(state, BOOT), encoding="ascii") as file:
            return "" if file.read() == process.boot_id() else REBOOTED
    except FileNotFoundError:
        return ""


def remember_boot(state: str) -> None:
    claim.write_file(os.path.join(state, BOOT), process.boot_id().encode("ascii"))


def folders(spool: str, key: RunKey, ranks: int = 0) -> list[str]:
    """Of all ranks of a run, rank 0 first. `ranks`: how many it has; 0 = not known, the whole spool is listed."""
    found = (
        range(ranks)
        if ranks
        else sorted(rank for job, restarts, rank in claims(spool) if (job, restarts) == (key.job_id, key.restarts))
    )
    paths = [os.path.join(spool, claim.folder_name(key.job_id, key.restarts, rank)) for rank in found]
    return [path for path in paths if not ranks or os.path.isdir(path)]


def examine(spool: str, key: RunKey, ranks: int = 0) -> tuple[str, Value]:
    """(verdict, exit record or message). Kills what a dead supervisor left. `ranks`: as for `folders`."""
    head = os.path.join(spool, claim.folder_name(key.job_id, key.restarts, 0))
    record = claim.read_json(os.path.join(head, claim.RECORD))
    if record is not None and claim.is_alive(record):
        return ALIVE, {}
    ended = claim.read_json(os.path.join(head, claim.EXIT)) if record is not None else None
    busy = False
    for folder in folders(spool, key, ranks):
        each = claim.read_json(os.path.join(folder, claim.RECORD))
        if each is not None and not _is_clean(folder, each):
            busy = True
    if busy:
        return DYING, {}
    if ended is not None:
        return ENDED, ended
    if record is None:
        return GONE, {}
    if record.get("boot_id") != process.boot_id():
        return DEAD, {"message": REBOOTED}
    return DEAD, {"message": claim.last_words(head)}


def _is_clean(folder: str, record: Value) -> bool:
    """Whether nothing of this rank runs; kills what does."""
    if record.get("boot_id") != process.boot_id():
        return True
    clean = True
    if claim.is_alive(record):
        # a rank above 0 whose head is gone ends by itself; this is for one that does not
        _kill(int(record["pid"]))
        clean = False
    init = _first_process(record)
    if init is not None and process.start_ticks(init[0]) == init[1] and not namespace.is_hollow(init[0]):
        _kill(init[0])
        clean = False
    marks = tuple(os.fsencode(str(mark)) for mark in record.get("marks", ()))
    for pid in process.leftovers(marks) if marks else []:
        clean = _kill(pid) and clean
    return clean


def _first_process(record: Value) -> tuple[int, int] | None:
    """(pid, start time) of the PID namespace's first process; None without a namespace."""
    init = record.get("init")
    return (int(init[0]), int(init[1])) if init else None


def _kill(pid: int) -> bool:
    """False when there was something to kill."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    return False


def end(spool: str, key: RunKey) -> bool:
    """Kill a run with its supervisors; False: something of it was still there, look again. For when no daemon runs."""
    for folder in folders(spool, key):
        record = claim.read_json(os.path.join(folder, claim.RECORD))
        if record is not None and claim.is_alive(record):
            _kill(int(record["pid"]))
    return examine(spool, key)[0] not in (ALIVE, DYING)


def release_run(spool: str, key: RunKey, ranks: int = 0) -> None:
    """Remove all folders of a run, and the job's pointer when it means this run."""
    claim.drop_pointer(spool, key.job_id, key.restarts)
    for folder in folders(spool, key, ranks):
        claim.release(folder)
