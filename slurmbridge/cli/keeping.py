"""`slurmbridge backup` and `slurmbridge restore`: the store of a state folder to a file and back.

A backup needs no daemon and disturbs none. A restore takes the state folder's lock, so it refuses while a daemon runs.
"""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

from msgspec.structs import replace

from slurmbridge.cli import launch
from slurmbridge.cli.instance import Instance
from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.daemon.locking import Lock
from slurmbridge.errors import BridgeError
from slurmbridge.runtime.local import found as local
from slurmbridge.runtime.protocol import RunKey
from slurmbridge.store import backup as store
from slurmbridge.store.backup import DATABASE, Copy
from slurmbridge.store.schema import ALIVE
from slurmbridge.store.sqlite import SqliteStore

SPOOL = "spool"
END_S = 30.0
"""How long one run may take to die."""


def backup(place: Instance, target: str, now: datetime.datetime) -> str:
    """Write TARGET, or a file named by the time in the folder TARGET; what to tell. StoreError: why not."""
    path = Path(target)
    if path.is_dir():
        path = path / f"slurmbridge-{now:%Y%m%dT%H%M%S}.db"
    return told(store.save(Path(place.state, DATABASE), path))


def restore(place: Instance, copy: str, now: datetime.datetime) -> str:
    """Put COPY in the state folder's place. BridgeError while a daemon runs."""
    source = Path(copy)
    store.examine(source)
    launch.make_state(place.state)
    lock = Lock(place.state)
    lock.take()
    try:
        database = Path(place.state, DATABASE)
        kept = database.with_name(f"{DATABASE}.before-{now:%Y%m%dT%H%M%S}")
        was_there = database.exists()
        found = store.restore(source, database, kept)
        strangers = end_strangers(place.state, database)
    finally:
        lock.release()
    text = told(replace(found, path=str(database), size=database.stat().st_size))
    text += f"what was there before: {kept}\n" if was_there else ""
    return text + (f"runs that the copy does not know were ended: {strangers}\n" if strangers else "")


def end_strangers(state: str, database: Path) -> int:
    """End the processes of runs that began after the copy was made, before their jobs begin anew; how many there were."""
    spool = os.path.join(state, SPOOL)
    if not os.path.isdir(spool):
        return 0
    copy = SqliteStore(database)
    try:
        known = {RunKey(job.job_id, job.restarts) for job in copy.load(ALIVE).jobs if holds_resources(job)}
    finally:
        copy.close()
    strangers = {RunKey(job_id, restarts) for job_id, restarts, _ in local.claims(spool)} - known
    for key in strangers:
        until = time.monotonic() + END_S
        while not local.end(spool, key):
            if time.monotonic() > until:
                raise BridgeError(f"processes of job {key.job_id}, which the copy does not know, cannot be ended")
            time.sleep(0.02)
        local.release_run(spool, key)
    return len(strangers)


def told(copy: Copy) -> str:
    return f"{copy.path}: {copy.runs} job records, next job id {copy.next_job_id or 1}, {copy.size} bytes\n"
