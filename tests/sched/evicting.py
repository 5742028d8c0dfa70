"""What plans end, carried out: as the daemon marks runs that give way, and as they wait again or are gone."""

from __future__ import annotations

import msgspec

from slurmbridge.lifecycle import evictions
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.states import JobState
from slurmbridge.sched.snapshot import Snapshot


def marked(snapshot: Snapshot, plan: Plan, now: float) -> Snapshot:
    """Victims are warned, or suspended."""
    changed = []
    for each in plan.evictions:
        begun = evictions.begin(snapshot.running[each.job_id].job, each, now)
        assert begun is not None
        changed.append(begun.job)
    return snapshot.apply(Delta(version=snapshot.version + 1, jobs=tuple(changed)))


def ended(snapshot: Snapshot, now: float) -> Snapshot:
    """Those whose grace time is over are gone; those that are begun again wait."""
    again: list[Job] = []
    gone: list[int] = []
    for job_id, running in snapshot.running.items():
        job, mark = running.job, running.job.evicted
        if mark is None or mark.mode == "SUSPEND" or mark.until > now:
            continue
        if mark.mode == "CANCEL":
            gone.append(job_id)
            continue
        again.append(
            msgspec.structs.replace(
                job,
                state=JobState.PENDING,
                flags=frozenset(),
                allocation=None,
                start_time=None,
                time_limit_end=None,
                eligible_time=now,
                restarts=job.restarts + 1,
            )
        )
    return snapshot.apply(Delta(version=snapshot.version + 1, jobs=tuple(again), gone=tuple(gone)))


def put_back(snapshot: Snapshot, plan: Plan, now: float) -> Snapshot:
    """Victims end at once; those that are begun again wait."""
    return ended(marked(snapshot, plan, now), now)


def begun_anew(snapshot: Snapshot) -> Snapshot:
    """What a planner knows that the daemon tells everything."""
    jobs = [running.job for running in snapshot.running.values()]
    jobs += [snapshot.record(job_id) for job_id in snapshot.waiting]
    return Snapshot.empty().apply(
        Delta(
            version=snapshot.version + 1,
            config=snapshot.config,
            accounting=snapshot.accounting,
            partitions=tuple(view.partition for view in snapshot.partitions.values()),
            nodes=snapshot.columns.nodes,
            jobs=tuple(jobs),
        )
    )
