"""One planning cycle, in a few visible steps: who may start, in which order, where, and why the others wait.

    snapshot -> eligibility -> priority -> order -> (limits, fit, place | backfill, reasons) -> Plan

Pure: no clock, no I/O; the same snapshot, configuration and time give the same plan whatever the memo holds.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping

import msgspec
import numpy as np

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Plan, Verdict
from slurmbridge.model.states import Reason
from slurmbridge.sched import order, priority
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.eligibility import Blocked, of_job
from slurmbridge.sched.memo import Memo, refreshed
from slurmbridge.sched.pending import NO_CODE
from slurmbridge.sched.place import Placement
from slurmbridge.sched.session import Session
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting, waiting_of
from slurmbridge.sched.starters import Starts, start_array, start_het, start_single
from slurmbridge.sched.verdicts import Board, Tally

__all__ = ["Memo", "estimate", "plan_cycle"]


def plan_cycle(snapshot: Snapshot, config: ClusterConfig, now: float, memo: Memo) -> tuple[Plan, Memo]:
    """What starts now, why the rest waits, and what may be kept for the next cycle."""
    memo = refreshed(memo, snapshot, config)
    pending = snapshot.pending
    priorities = priority.compute(pending, memo.points, config, now)
    states = pending.states(now)
    board = Board(pending, states, pending.begins(now))
    starts = Starts(memo.array_tasks)
    tally = Tally()
    entries = order.queue(snapshot, priorities, states == NO_CODE, memo.places)
    _Run(snapshot, config, now, memo, board, starts, tally).through(entries)
    changed = priorities != pending.rows["priority"]
    plan = Plan(
        version=snapshot.version,
        starts=tuple(starts.made),
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
    for name in ("begin", "eligible", "deadline"):
        later = rows[name][(rows[name] > now) & (rows[name] < float("inf"))]
        if len(later):
            edges.append(float(later.min()))
    return min(edges) if edges else None


class _Run:
    """One way through the queue."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: ClusterConfig,
        now: float,
        memo: Memo,
        board: Board,
        starts: Starts,
        tally: Tally,
    ) -> None:
        self.snapshot, self.now, self.memo = snapshot, now, memo
        self.board, self.starts, self.tally = board, starts, tally
        self.session = Session(snapshot, config, now, memo)
        self._seen: set[int] = set()
        self._done: set[int] = set()  # rows that need no other look
        self._ids: list[int] = snapshot.pending.rows["id"].tolist()
        self._behind = board.code(Blocked(Reason.PRIORITY))  # what those hear who wait behind others
        self._groups: Mapping[int, list[Waiting]] | None = None  # components of heterogeneous jobs

    def through(self, entries: order.Queue) -> None:
        """Every entry once. `settled`: what stopped one of a group in a partition stops the rest of it there."""
        pending, board = self.snapshot.pending, self.board
        views = self.memo.places.by_number
        width = max(len(views), 1)
        groups = pending.rows["group"][entries.rows]
        keys = (groups * width + entries.views).tolist()
        self._screen(groups, entries)
        settled: dict[int, int] = {}
        done, note, ids = self._done, board.note, self._ids
        for row, number, key in zip(entries.rows.tolist(), entries.views.tolist(), keys, strict=True):
            if row in done:
                continue
            code = settled.get(key)
            if code is None:
                each = self.snapshot.waiting[ids[row]]
                self._seen.add(row)
                code = self._het(each) if each.job.het_job_id else self._one(row, each, views[number], key, settled)
                if code is None:
                    continue
            note(row, code)
        self.tally.looked_at = len(self._seen)

    def _screen(self, groups: Ints, entries: order.Queue) -> None:
        shapes = self.memo.places.shapes[groups]
        for number, view in enumerate(self.memo.places.by_number):
            self.session.screen(np.unique(shapes[entries.views == number]), view)

    def _one(self, row: int, each: Waiting, view: PartitionView, key: int, settled: dict[int, int]) -> int | None:
        """Start a job or tasks of an array; None when nothing of it is left, else the code of what stopped it."""
        session, board = self.session, self.board
        begun = len(self.starts.made)
        blocked = session.settled.get(key)
        if blocked is None and not each.job.array_limit:
            blocked = session.certainly_blocked(each, view)
        if blocked is None:
            start = start_array if each.job.is_array_record else start_single
            blocked = start(session, each, view, self.starts)
            self.tally.began(len(self.starts.made) - begun)
            if blocked is None:
                self._begins(row)
                return None
            if blocked.reason == Reason.ARRAY_TASK_LIMIT:
                return board.code(blocked)
            session.settled[key] = blocked
        if blocked.reason == Reason.RESOURCES and not blocked.detail and view.number in session.promised_out:
            settled[key] = self._behind
            return self._behind
        told, promised, nodes = session.wait(each, view, blocked)
        if promised is not None:
            self.tally.promises += 1
            board.promise(row, promised, nodes)
        code = board.code(told)
        if blocked.reason != Reason.RESOURCES or blocked.detail:
            settled[key] = code
        return code

    def _begins(self, row: int) -> None:
        self.board.begins(row)
        self._done.add(row)

    def _het(self, each: Waiting) -> int | None:
        """All components at once."""
        group = self._components()[each.job.het_job_id]
        rows = [bisect.bisect_left(self._ids, member.job.job_id) for member in group]
        unready = [member.job for member in group if of_job(member.job, self.now) is not None]
        if len(group) < len(each.job.het_ids) or unready:
            blocked = (of_job(unready[0], self.now) if unready else None) or Blocked(Reason.NONE)
        else:
            begun = len(self.starts.made)
            found = start_het(self.session, group, self.starts)
            self.tally.began(len(self.starts.made) - begun, parts=True)
            if found is None:
                for row in rows:
                    self._begins(row)
                return None
            blocked = found
        code = self.board.code(blocked)
        for row in rows:
            if self.board.found[row] == NO_CODE:
                self.board.note(row, code)
        self._done.update(rows)
        return code

    def _components(self) -> Mapping[int, list[Waiting]]:
        if self._groups is None:
            groups: dict[int, list[Waiting]] = {}
            for each in self.snapshot.waiting.values():
                if each.job.het_job_id:
                    groups.setdefault(each.job.het_job_id, []).append(each)
            for group in groups.values():
                group.sort(key=lambda member: member.job.het_offset)
            self._groups = groups
        return self._groups


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
