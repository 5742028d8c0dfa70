"""Is promised room lent, and which runs have such room? They are to be gone when the promised job can start: see `recalls`."""

from __future__ import annotations

from slurmbridge.sched.memo import Memo
from slurmbridge.sched.pending import NEVER
from slurmbridge.sched.snapshot import Snapshot

RESTARTS = 3
"""A job that was begun again so often is lent nothing, and gives way to nobody by these rules."""


def lends(snapshot: Snapshot, memo: Memo) -> bool:
    """Only where queues take turns, and neither quotas nor preemption say who gives way to whom."""
    assert memo.rules is not None
    others_decide = memo.queued.has_quotas or memo.rules.enabled
    return snapshot.config.scheduling.promised == "lent" and bool(memo.queued.pools) and not others_decide


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
