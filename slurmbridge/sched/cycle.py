"""One planning cycle, in a few visible steps: who may start, in which order, where, and why the others wait.

    snapshot -> eligibility -> priority -> order -> (limits, fit, place | backfill, reasons) -> Plan

Pure: no clock, no I/O; the same snapshot, configuration and time give the same plan whatever the memo holds.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Plan, Verdict
from slurmbridge.model.states import Reason
from slurmbridge.sched import order, priority
from slurmbridge.sched.books import Books
from slurmbridge.sched.firsts import Firsts
from slurmbridge.sched.giving_way import GivingWay
from slurmbridge.sched.lending import lend
from slurmbridge.sched.market import Preemptible, markets
from slurmbridge.sched.memo import Memo, refreshed
from slurmbridge.sched.pending import NO_CODE
from slurmbridge.sched.place import Placement
from slurmbridge.sched.recalls import Recalls
from slurmbridge.sched.session import Session
from slurmbridge.sched.snapshot import PartitionView, Snapshot, waiting_of
from slurmbridge.sched.starters import Starts
from slurmbridge.sched.verdicts import Board, Tally
from slurmbridge.sched.walk import Walk

__all__ = ["Memo", "estimate", "plan_cycle"]


def plan_cycle(snapshot: Snapshot, config: ClusterConfig, now: float, memo: Memo) -> tuple[Plan, Memo]:
    """What starts now, why the rest waits, and what may be kept for the next cycle."""
    snapshot = snapshot.at(now)
    memo = refreshed(memo, snapshot, config)
    pending = snapshot.pending
    priorities = priority.compute(pending, memo.points, config, now)
    states = pending.states(now)
    board = Board(pending, states, pending.begins(now))
    tally = Tally()
    ready = states == NO_CODE
    session = Session(snapshot, config, now, memo)
    preemptible = Preemptible(snapshot, memo)
    found = markets(snapshot, memo, ready)
    books = Books(found, memo.queued.pool_of_node, memo.queued.accounts, preemptible)
    starts = Starts(memo.runs.arrays(), books)
    rules = memo.rules
    assert rules is not None
    queue = order.queue(snapshot, priorities, ready, memo.places)
    walk = Walk(snapshot, session, memo, board, starts, tally, found, preemptible, queue)
    firsts = Firsts(walk)
    firsts.look()
    recalls = Recalls(walk, rules)
    recalls.seek(firsts.rows)
    firsts.promised()
    walk.through()
    lend(walk, (*firsts.standing, *recalls.nominations))
    ways = GivingWay(walk, rules).seek()
    changed = priorities != pending.rows["priority"]
    plan = Plan(
        version=snapshot.version,
        starts=starts.standing(),
        evictions=(*recalls.evictions, *ways.evictions),
        nominations=(*firsts.standing, *recalls.nominations, *ways.nominations),
        verdicts=board.news(),
        priorities=tuple(zip(pending.rows["id"][changed].tolist(), priorities[changed].tolist(), strict=True)),
        wake_at=_wake_at(snapshot, now),
        queue_length=len(pending),
        looked_at=tally.looked_at,
        backfilled=tally.backfilled,
        backfilled_parts=tally.backfilled_parts,
        promises=tally.promises,
    )
    return plan, memo


def _wake_at(snapshot: Snapshot, now: float) -> float | None:
    """The next time at which something may start or end although nothing happened."""
    rows = snapshot.pending.rows
    edges = [edge for each in snapshot.reservations for edge in (each.start_time, each.end_time) if edge > now]
    for name in ("begin", "eligible", "deadline", "switch"):
        later = rows[name][(rows[name] > now) & (rows[name] < float("inf"))]
        if len(later):
            edges.append(float(later.min()))
    return min(edges) if edges else None


def estimate(snapshot: Snapshot, config: ClusterConfig, job: Job, now: float) -> Verdict | None:
    """When and where this job would start if it came now (--test-only); None when it never can.

    As with Slurm, running jobs count and waiting ones do not.
    """
    waiting = waiting_of(job, snapshot.shapes)
    session = Session(snapshot, config, now, refreshed(Memo.empty(), snapshot, config))
    best: tuple[float, Placement] | None = None
    for name in job.spec.partitions:
        view: PartitionView | None = snapshot.partitions.get(name)
        if view is None:
            continue
        found = session.attempt(waiting, view)
        if isinstance(found, Placement):
            best = (now, found)
            break
        later = session.promise(waiting, view) if found.lacks_room else None
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
