"""`slurmbridge backup` and `slurmbridge restore`: the store of a state folder to a file and back.

A backup needs no daemon and disturbs none. A restore takes the state folder's lock, so it refuses while a daemon runs.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from msgspec.structs import replace

from slurmbridge.cli import launch
from slurmbridge.cli.instance import Instance
from slurmbridge.daemon.locking import Lock
from slurmbridge.store import backup as store
from slurmbridge.store.backup import DATABASE, Copy


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
    finally:
        lock.release()
    text = told(replace(found, path=str(database), size=database.stat().st_size))
    return text + (f"what was there before: {kept}\n" if was_there else "")


def told(copy: Copy) -> str:
    return f"{copy.path}: {copy.runs} job records, next job id {copy.next_job_id or 1}, {copy.size} bytes\n"
