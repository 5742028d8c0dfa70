"""Which jobs were promised a start, and who takes their turn from them? They are looked at before the queues' turns."""

from __future__ import annotations

import numpy as np

from slurmbridge.sched.pending import NEVER
from slurmbridge.sched.walk import Walk


def by_start(walk: Walk, but: set[int]) -> dict[int, list[int]]:
    """Row -> its entries; whose promised start is first comes first. `but`: rows that were looked at."""
    rows = walk.snapshot.pending.rows
    chosen = (rows["start"] != NEVER) & (rows["code"] != walk.snapshot.pending.codes.begin_time)
    places = np.flatnonzero(chosen[walk.entries.rows])
    found: dict[int, list[int]] = {}
    for place in places[np.argsort(rows["start"][walk.entries.rows[places]], kind="stable")].tolist():
        if walk.rows[place] not in but and walk.has_part(place):
            found.setdefault(walk.rows[place], []).append(place)
    return found


def gives_precedence(walk: Walk, place: int) -> bool:
    """Whether a job of its own queue with a more important QOS takes the place of one that was promised a start."""
    market, leaf, _ = walk.queue_of(place)
    if market is None:
        return False
    importance, groups = walk.memo.queued.importance, walk.groups
    own = (walk.entries.views == walk.numbers[place]) & (walk.memo.queued.leaves[market.pool.number][groups] == leaf)
    return bool((importance[groups[own]] > importance[groups[place]]).any())
