"""Who may preempt whom, as numbers: work of a higher rank may end that of lower ones. What would be taken from its owner at once
is neither started nor freed for him: who has the higher rank comes first, whatever the queues' turns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.order import Queue
from slurmbridge.sched.snapshot import Snapshot


def by_rank(snapshot: Snapshot, memo: Memo, entries: Queue, groups: Ints, among: Bools) -> Iterator[Bools]:
    """Some entries in parts, the highest rank first; all at once where the site's preemption ends nobody. `groups`: by entry."""
    if memo.rules is None or not memo.rules.enabled:
        yield among
        return
    places = np.flatnonzero(among)
    ranks = _ranks(snapshot, memo, entries.views[places], groups[places])
    for rank in np.unique(ranks)[::-1].tolist():
        some = np.zeros_like(among)
        some[places[ranks == rank]] = True
        yield some


def _ranks(snapshot: Snapshot, memo: Memo, views: Ints, groups: Ints) -> Ints:
    rules = memo.rules
    assert rules is not None
    if rules.by_tier:
        tiers: Ints = memo.places.tiers[views]
        return tiers
    queued = memo.queued
    if len(queued.sorts):
        heights = np.array([rules.height(qos) for qos, _ in queued.of_sort], dtype=np.int64)
        return heights[queued.sorts[groups]]
    known, of_group = np.unique(groups, return_inverse=True)
    samples = snapshot.shapes.samples
    heights = np.array([rules.height(samples[group][0].qos) for group in known.tolist()], dtype=np.int64)
    return heights[of_group.reshape(-1)]
