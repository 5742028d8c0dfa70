"""One planning cycle, in a few visible steps: who may start, in which order, where, and why the others wait.

    snapshot -> eligibility -> priority -> order -> (limits, fit, place | backfill, reasons) -> Plan

Pure: no clock, no I/O; the same snapshot, configuration and time give the same plan whatever the memo holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Plan, Start, Verdict
from slurmbridge.model.states import Reason
from slurmbridge.sched import order, priority
from slurmbridge.sched.eligibility import Blocked, of_job
from slurmbridge.sched.memo import Memo, refreshed
from slurmbridge.sched.place import Placement
from slurmbridge.sched.session import Session
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting, waiting_of
from slurmbridge.sched.starters import start_array, start_het, start_single

__all__ = ["Memo", "estimate", "plan_cycle"]


def plan_cycle(snapshot: Snapshot, config: ClusterConfig, now: float, memo: Memo) -> tuple[Plan, Memo]:
    """What starts now, why the rest waits, and what may be kept for the next cycle."""
    memo = refreshed(memo, snapshot, config.priority_decay_half_life)
    jobs = list(snapshot.waiting.values())
    priorities = priority.compute(snapshot, jobs, config, memo.shares, now)
    verdicts: dict[int, Verdict] = {}
    wake: list[float] = []
    ready: set[int] = set()
    for place, each in enumerate(jobs):
        blocked = of_job(each.job, now)
        if blocked is None:
            ready.add(place)
        else:
            _note(verdicts, each.job, blocked, blocked.until, ())
            if blocked.until is not None:
                wake.append(blocked.until)
        if each.job.spec.deadline is not None and each.job.spec.deadline > now:
            wake.append(float(each.job.spec.deadline))
    tally = Tally()
    starts = _run(
        snapshot, config, now, memo, jobs, order.queue(jobs, priorities, snapshot.partitions), ready, verdicts, tally
    )
    wake += [edge for each in snapshot.reservations for edge in (each.start_time, each.end_time) if edge > now]
    changed = tuple(
        (each.job.job_id, value)
        for each, value in zip(jobs, priorities.tolist(), strict=True)
        if value != each.job.priority
    )
    plan = Plan(
        version=snapshot.version,
        starts=tuple(starts),
        verdicts=tuple(
            verdict for verdict in verdicts.values() if _differs(snapshot.waiting[verdict.job_id].job, verdict)
        ),
        priorities=changed,
        wake_at=min(wake) if wake else None,
        queue_length=len(jobs),
        looked_at=len(tally.looked_at),
        backfilled=tally.backfilled,
        backfilled_parts=tally.backfilled_parts,
        promises=tally.promises,
    )
    return plan, memo


class Tally(msgspec.Struct, kw_only=True):
    """What one cycle did, for sdiag."""

    looked_at: set[int] = msgspec.field(default_factory=set)
    backfilled: int = 0
    backfilled_parts: int = 0
    promises: int = 0

    def began(self, starts: int, *, parts: bool = False) -> None:
        """Jobs start; past a promise to another it is called backfill."""
        if self.promises:
            self.backfilled += starts
            self.backfilled_parts += starts if parts else 0


def _run(
    snapshot: Snapshot,
    config: ClusterConfig,
    now: float,
    memo: Memo,
    jobs: Sequence[Waiting],
    entries: Sequence[order.Entry],
    ready: set[int],
    verdicts: dict[int, Verdict],
    tally: Tally,
) -> list[Start]:
    """Go through the queue once."""
    session = Session(snapshot, config, now, memo)
    starts: list[Start] = []
    gone: set[int] = set()
    held_back: dict[int, Blocked] = {}
    groups = _het_groups(jobs)
    for place, view in entries:
        each = jobs[place]
        job = each.job
        if place not in ready or job.job_id in gone:
            continue
        tally.looked_at.add(job.job_id)
        begun = len(starts)
        if job.het_job_id:
            group = groups[job.het_job_id]
            gone.update(member.job.job_id for member in group)
            unready = [member.job for member in group if (of_job(member.job, now)) is not None]
            if len(group) < len(job.het_ids) or unready:
                reason = of_job(unready[0], now) if unready else Blocked(Reason.NONE)
                blocked: Blocked | None = reason
            else:
                blocked = start_het(session, group, starts)
                tally.began(len(starts) - begun, parts=True)
            if blocked is not None:
                for member in group:
                    if member.job.job_id not in verdicts:
                        _note(verdicts, member.job, blocked, None, ())
            continue
        key = each.group, view.number
        blocked = session.settled.get(key)
        if blocked is None:
            start_one = start_array if job.is_array_record else start_single
            blocked = start_one(session, each, view, starts, memo.array_tasks)
            tally.began(len(starts) - begun)
            if blocked is None:
                gone.add(job.job_id)
                verdicts.pop(job.job_id, None)
                continue
            if blocked.reason != Reason.ARRAY_TASK_LIMIT:
                session.settled[key] = blocked
        before = held_back.get(job.job_id)
        told, promised, nodes = session.wait(each, view, blocked)
        tally.promises += promised is not None
        if before is None or (before.reason not in _OPEN and told.reason in _OPEN):
            held_back[job.job_id] = told
            _note(verdicts, job, told, promised, nodes)
        elif promised is not None:
            _note(verdicts, job, before, promised, nodes)
    for place in sorted(ready):
        job = jobs[place].job
        if job.job_id not in gone and job.job_id not in held_back and job.job_id not in verdicts:
            _note(verdicts, job, Blocked(Reason.PARTITION_CONFIG), None, ())
    return starts


_OPEN = frozenset({Reason.RESOURCES, Reason.PRIORITY})
"""Reasons that pass when others end: of several partitions, one of these is the better news."""


def _het_groups(jobs: Sequence[Waiting]) -> dict[int, list[Waiting]]:
    groups: dict[int, list[Waiting]] = {}
    for each in jobs:
        if each.job.het_job_id:
            groups.setdefault(each.job.het_job_id, []).append(each)
    for group in groups.values():
        group.sort(key=lambda member: member.job.het_offset)
    return groups


def _note(
    verdicts: dict[int, Verdict], job: Job, blocked: Blocked, start: float | None, nodes: tuple[str, ...]
) -> None:
    verdicts[job.job_id] = Verdict(
        job_id=job.job_id, reason=blocked.reason, detail=blocked.detail, start=start, nodes=nodes
    )


def _differs(job: Job, verdict: Verdict) -> bool:
    return (job.reason, job.reason_text, job.start_time) != (verdict.reason, verdict.detail, verdict.start)


def estimate(snapshot: Snapshot, config: ClusterConfig, job: Job, now: float) -> Verdict | None:
    """When and where this job would start if it came now (--test-only); None when it never can.

    As with Slurm, running jobs count and waiting ones do not.
    """
    waiting = waiting_of(job, snapshot.shapes)
    session = Session(snapshot, config, now, refreshed(Memo.empty(), snapshot, config.priority_decay_half_life))
    best: tuple[float, Placement] | None = None
    for name in job.spec.partitions:
        view: PartitionView | None = snapshot.partitions.get(name)
        if view is None:
            continue
        found = session.attempt(waiting, view)
        if isinstance(found, Placement):
            best = (now, found)
            break
        later = session.promise(waiting, view) if found.reason == Reason.RESOURCES and not found.detail else None
        if later is not None and (best is None or later[0] < best[0]):
            best = later
    if best is None:
        return None
    start, placement = best
    nodes = placement.allocation.nodes
    return msgspec.structs.replace(
        Verdict(job_id=job.job_id, reason=Reason.NONE, start=start, nodes=tuple(node.node for node in nodes)),
        cpus=sum(node.cpus for node in nodes),
        partition=placement.allocation.partition,
    )
