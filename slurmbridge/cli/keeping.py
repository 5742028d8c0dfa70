"""`slurmbridge backup` and `slurmbridge restore`: the records of a state folder to a file and back.

A backup needs no daemon and disturbs none. A restore takes the locks of the state folder and of the database, so it refuses
while a daemon runs. Records move between SQLite and PostgreSQL by a backup and a restore with `--database`.
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
from slurmbridge.store import backup as files
from slurmbridge.store import moving
from slurmbridge.store import place as places
from slurmbridge.store.backup import Copy
from slurmbridge.store.place import DATABASE, Place
from slurmbridge.store.protocol import Store
from slurmbridge.store.schema import ALIVE

SPOOL = "spool"
END_S = 30.0
"""How long one run may take to die."""


def backup(place: Instance, database: str | None, target: str, now: datetime.datetime) -> str:
    """Write TARGET, or a file named by the time in the folder TARGET; what to tell. StoreError: why not."""
    path = Path(target)
    if path.is_dir():
        path = path / f"slurmbridge-{now:%Y%m%dT%H%M%S}.db"
    found = places.find(place.state, database)
    return told(files.save(found.path, path) if found.is_sqlite else places.portable().save(found.url(), path))


def restore(place: Instance, database: str | None, copy: str, now: datetime.datetime) -> str:
    """Put COPY in the records' place. BridgeError while a daemon runs."""
    source = Path(copy)
    files.examine(source)
    found = places.find(place.state, database)
    launch.make_state(place.state)
    lock = Lock(place.state)
    lock.take()
    try:
        kept = found.path.with_name(f"{DATABASE}.before-{now:%Y%m%dT%H%M%S}")
        restored = (_into_file if found.is_sqlite else moving.into_server)(found, source, kept)
        opened = places.open_store(places.find(place.state, found.word))
        try:
            strangers = end_strangers(place.state, opened)
        finally:
            opened.close()
    finally:
        lock.release()
    text = told(restored)
    text += "".join(f"what was there before: {path}\n" for path in (kept, moving.own(kept)) if path.exists())
    return text + (f"runs that the copy does not know were ended: {strangers}\n" if strangers else "")


def _into_file(place: Place, source: Path, kept: Path) -> Copy:
    """To SQLite; records that were on a server stay there, and are not the state folder's any more."""
    restored = files.restore(source, place.path, kept, at_least=_known_ids(place))
    places.forget(place.state)
    return replace(restored, path=str(place.path), size=place.path.stat().st_size)


def _known_ids(place: Place) -> int:
    """The next job id of the server that is left; 0 where it cannot be asked, which may be why it is left."""
    if place.note is None:
        return 0
    try:
        return places.portable().next_job_id(replace(place, word=place.note.word).url())
    except BridgeError:
        return 0


def end_strangers(state: str, store: Store) -> int:
    """End the processes of runs that began after the copy was made, before their jobs begin anew; how many there were."""
    spool = os.path.join(state, SPOOL)
    if not os.path.isdir(spool):
        return 0
    known = {RunKey(job.job_id, job.restarts) for job in store.load(ALIVE).jobs if holds_resources(job)}
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
