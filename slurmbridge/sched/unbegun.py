"""Which starts of this cycle may be taken back for somebody for whom room is made?

What starts has done nothing yet. Were it left, the next cycle would end it for the very job that could have had its place now,
because nothing costs less than a run that has just begun. So all that starts and might be ended is counted among the runs
while room is made, at next to no cost; what is chosen there waits on, and for whom it was chosen begins at once if nothing
else is in the way.

Not counted: components, which start together; what begins in a place that was made for it in an earlier cycle; and who shares
CPUs with others.
"""

from __future__ import annotations

import msgspec

from slurmbridge.sched.held import Held
from slurmbridge.sched.preemption import Rules
from slurmbridge.sched.runs import Runs, with_starts
from slurmbridge.sched.snapshot import Running, Snapshot, as_run
from slurmbridge.sched.walk import Walk


def key_of(at: int) -> int:
    """The number of what starts by this place in `Starts.made`: below those of all jobs."""
    return -1 - at


def place_of(key: int) -> int:
    """The place in `Starts.made` that has this key."""
    return -1 - key


def counted_in(walk: Walk, rules: Rules) -> tuple[Snapshot, Runs]:
    """The cycle's snapshot and runs, with those that start and may be taken back as runs under keys of their own."""
    snapshot, memo, now = walk.snapshot, walk.memo, walk.session.now
    found: dict[int, Running] = {}
    for at in reversed(walk.starts.placed):  # so that keys rise
        waiting, view, placement = walk.starts.placed[at]
        if waiting.job.job_id in snapshot.kept or any(hold.shares for hold in placement.holds):
            continue
        end = min(now + walk.session.runs_for(waiting, view, placement), placement.until)
        run = as_run(waiting.job, placement.allocation)
        found[key_of(at)] = Running(job=run, holds=placement.holds, end=end)
    if not found:
        return snapshot, memo.runs
    held = Held.of((key, run.end, run.holds) for key, run in found.items())
    more = msgspec.structs.replace(snapshot, running={**found, **snapshot.running}, held=held.joined(snapshot.held))
    return more, with_starts(memo.runs, found, rules, memo.queued.pools, memo.queued.has_quotas)
