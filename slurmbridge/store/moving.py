"""Records change their place: a copy into a server's database, or the state folder's own taken along at a start.

The caller holds the state folder's lock. What is replaced is kept.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from msgspec.structs import replace

from slurmbridge.errors import StoreError
from slurmbridge.store import backup
from slurmbridge.store.backup import Copy
from slurmbridge.store.dialect import Strange
from slurmbridge.store.place import DATABASE, Place, find, portable, remember

LOG = logging.getLogger(__name__)


def into_server(place: Place, source: Path, kept: Path, *, only_new: bool = False) -> Copy:
    """The copy `source`. What the server had is in `kept` then, and a file that had the records until now is set aside.

    `only_new`: Strange where the server has any.
    """
    work = place.path.with_name(DATABASE + ".restored")
    at_least = backup.last_of(place.path)
    restored, identity = portable().restore(source, place.url(), work, kept, at_least=at_least, only_new=only_new)
    remember(place, identity)
    if place.path.exists():
        backup.set_aside(place.path, own(kept) if kept.exists() else kept)
        backup.remove(place.path)
    return replace(restored, path=place.word)


def own(kept: Path) -> Path:
    """For the state folder's own records, where a server's are kept, too."""
    return kept.with_name(kept.name + ".own")


def take_along(place: Place) -> Place:
    """The state folder's own records, to a server that has none yet. StoreError: it has some, or why it cannot be done."""
    kept = place.path.with_name(f"{DATABASE}.before-{time.strftime('%Y%m%dT%H%M%S')}")
    copy = place.path.with_name(DATABASE + ".moving")
    backup.remove(copy)
    try:
        backup.save(place.path, copy)
        moved = into_server(place, copy, kept, only_new=True)
    except Strange as fault:
        raise StoreError(
            f"{fault}, and the state folder {place.state} has some of its own in {DATABASE}: move that file away to go on with"
            " the server's, or put it in their place with `slurmbridge backup --database sqlite FILE` and `slurmbridge restore"
            " --database ... FILE`"
        ) from fault
    finally:
        backup.remove(copy)
    LOG.warning("event=store.moved runs=%d to=%s kept=%s", moved.runs, place.word, kept)
    return find(place.state, place.word)
