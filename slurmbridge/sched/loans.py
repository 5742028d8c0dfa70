"""Which runs have room that is promised to another job, and are to be gone when that can start? See `lending`."""

from __future__ import annotations

from slurmbridge.sched.pending import NEVER
from slurmbridge.sched.snapshot import Snapshot


def lent(snapshot: Snapshot) -> set[int]:
    """Job ids. Room is lent as long as the job waits to whom it is promised; after that the run is one like all others."""
    if snapshot.config.scheduling.promised != "lent":
        return set()
    rows = snapshot.pending.rows
    promised = set(rows["id"][rows["start"] != NEVER].tolist())
    return {
        job_id
        for job_id, each in snapshot.running.items()
        if each.job.allocation is not None and each.job.allocation.lent_to in promised
    }
