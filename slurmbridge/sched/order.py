"""In which order are jobs looked at? Priority tier of the partition, then priority, then submission.

A job with several partitions comes once for each. Source: slurm.conf(5), PriorityTier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slurmbridge.sched.columns import Ints
from slurmbridge.sched.snapshot import PartitionView, Waiting

Entry = tuple[int, PartitionView]
"""Place in the list of jobs, and where to try."""


def queue(jobs: Sequence[Waiting], priorities: Ints, partitions: Mapping[str, PartitionView]) -> list[Entry]:
    """Entries, first to be looked at first. Ties: lower array or job id, then the user's order of partitions."""
    places: list[int] = []
    views: list[PartitionView] = []
    for place, each in enumerate(jobs):
        for name in each.job.spec.partitions:
            view = partitions.get(name)
            if view is not None:
                places.append(place)
                views.append(view)
    if not places:
        return []
    at = np.array(places, dtype=np.int64)
    tiers = np.array([view.partition.priority_tier for view in views], dtype=np.int64)
    ids = np.array([jobs[place].job.job_id for place in places], dtype=np.int64)
    ranks = np.lexsort((np.arange(len(at)), ids, -priorities[at], -tiers))
    return [(places[rank], views[rank]) for rank in ranks.tolist()]
