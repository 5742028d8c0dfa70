"""For whom is something being freed, and what of each node is held for it?

A plan nominates whom room is made for, and runs that are moved to a place of their own. That is kept from cycle to cycle until
the job starts, the plan says that it stands no longer, or too much time has passed. What is kept is the place as it was laid
out when room was made: two jobs for whom room was made in one cycle do not take each other's.

A planner that begins anew (the daemon came back) knows from the marks of those who give way for whom they do, not where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from slurmbridge.model.job import Allocation, Job
from slurmbridge.model.plan import Nomination, Plan
from slurmbridge.sched.held import OVERRUN_S
from slurmbridge.sched.pending import jobs_in

KEPT_S = 300.0
"""Room that was made is kept so long for a job that does not start."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One job's, or one task's of an array."""

    since: float  # when the last victim should be gone
    allocation: (
        Allocation | None
    )  # its CPU numbers mean nothing; None: the job is looked at first, and has no certain place
    begins: bool = False  # a task of the array began by the plan

    def stands(self, now: float) -> bool:
        return now <= self.since + KEPT_S


Book = Mapping[int, tuple[Kept, ...]]
"""By job id."""


def noted(book: Book, plan: Plan) -> Book:
    """After a plan: what it nominates. What it starts stays as it was until the daemon says that it runs."""
    fresh: dict[int, tuple[Kept, ...]] = {}
    for each in plan.nominations:
        fresh[each.job_id] = (*fresh.get(each.job_id, ()), of_nomination(each))
    if not (book or fresh):
        return book
    begun: dict[int, int] = {}
    for start in plan.starts:
        if start.job_id in book:
            begun[start.job_id] = begun.get(start.job_id, 0) + 1
    found = {**book, **fresh}
    for job_id, count in begun.items():
        going = [msgspec.structs.replace(each, begins=True) for each in book[job_id][:count]]
        found[job_id] = (*going, *fresh.get(job_id, book[job_id][count:]))
    return found


def nomination_of(job_id: int, start: float, allocation: Allocation, victims: tuple[int, ...] = ()) -> Nomination:
    """For a job that begins there when these are gone."""
    nodes = tuple(node.node for node in allocation.nodes)
    return Nomination(job_id=job_id, start=start, since=start, nodes=nodes, allocation=allocation, victims=victims)


def of_nomination(nomination: Nomination) -> Kept:
    """What is noted of it."""
    return Kept(since=nomination.since, allocation=nomination.allocation)


def at(book: Book, now: float) -> Book:
    """What is not too old."""
    if all(each.stands(now) for kept in book.values() for each in kept):
        return book
    standing = {job_id: tuple(each for each in kept if each.stands(now)) for job_id, kept in book.items()}
    return {job_id: kept for job_id, kept in standing.items() if kept}


def told(book: Book, before: Mapping[int, Job], jobs: Iterable[Job], gone: Iterable[int]) -> Book:
    """After records changed; `before`: those that waited."""
    if not book:
        return book
    changed = dict(book)
    for job_id in gone:
        changed.pop(job_id, None)
    for job in jobs:
        known = changed.pop(job.job_id, ())
        if not known or not (job.is_pending or job.evicted is not None):
            continue
        waited = before.get(job.job_id)
        begun = 0 if waited is None else jobs_in(waited) - jobs_in(job)
        left = []
        for each in known:
            if each.begins and begun > 0:
                begun -= 1
            else:
                left.append(each)
        changed[job.job_id] = tuple(left[: jobs_in(job)])
    return {job_id: kept for job_id, kept in changed.items() if kept}


def of_marks(jobs: Iterable[Job]) -> Book:
    """What the marks of those who give way, or gave way, say."""
    found: dict[int, tuple[Kept, ...]] = {}
    for job in jobs:
        mark = job.evicted
        if mark is None or mark.mode == "SUSPEND":
            continue
        if mark.moved:
            found[job.job_id] = (Kept(since=mark.until + OVERRUN_S, allocation=None),)
        if mark.for_job:
            found.setdefault(mark.for_job, (Kept(since=mark.until + OVERRUN_S, allocation=None),))
    return found
