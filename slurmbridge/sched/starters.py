"""Start a job, an array's tasks, or all components of a heterogeneous job: all or nothing each.

Each function returns None when nothing is left to start, else why it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from slurmbridge.model.plan import Start
from slurmbridge.model.states import Reason
from slurmbridge.sched.books import Books
from slurmbridge.sched.columns import Bools
from slurmbridge.sched.eligibility import NO_ROOM, Blocked
from slurmbridge.sched.pending import jobs_in
from slurmbridge.sched.place import Placement
from slurmbridge.sched.session import Session
from slurmbridge.sched.snapshot import PartitionView, Waiting


class Starts:
    """What starts in a cycle. `running`: array id -> tasks that run already; `books`: who is charged for it."""

    __slots__ = ("_begun", "_running", "books", "made", "placed", "taken_back")

    def __init__(self, running: Mapping[int, int], books: Books) -> None:
        self.made: list[Start] = []
        self.placed: dict[int, tuple[Waiting, PartitionView, Placement]] = {}  # by place in `made`; not of components
        self.taken_back: set[int] = set()  # places in `made` of what does not start after all
        self.books = books
        self._running = running
        self._begun: dict[int, set[int]] = {}  # array record -> tasks that start now

    def room(self, waiting: Waiting) -> int | None:
        """How many more tasks the array's limit lets go; None without limit."""
        job = waiting.job
        if not job.array_limit:
            return None
        array = job.array_job_id or job.job_id
        return job.array_limit - self._running.get(array, 0) - len(self._begun.get(array, ()))

    def left(self, waiting: Waiting) -> int:
        """How many jobs of a record may still start after those that start now: of an array not more than its limit lets go."""
        left, room = jobs_in(waiting.job), self.room(waiting)
        if waiting.job.is_array_record:
            left -= len(self.begun(waiting))
        return left if room is None else max(min(left, room), 0)

    def add(self, waiting: Waiting, view: PartitionView, placement: Placement, task: int | None = None) -> None:
        """A job, or this task of an array, starts."""
        self.placed[len(self.made)] = waiting, view, placement
        allocation, minutes = placement.allocation, placement.minutes
        start = Start(job_id=waiting.job.job_id, array_task_id=task, allocation=allocation, time_limit=minutes)
        self.made.append(start)

    def take_back(self, at: int) -> None:
        """What is at this place in `made` does not start after all."""
        self.taken_back.add(at)
        waiting, _, placement = self.placed[at]
        task = waiting.job.array_task_id if self.made[at].array_task_id is None else self.made[at].array_task_id
        if task is not None:
            self.begun(waiting).discard(task)
        self.books.charge(waiting.job, placement.holds, -1)

    def standing(self) -> tuple[Start, ...]:
        """What starts."""
        return tuple(start for at, start in enumerate(self.made) if at not in self.taken_back)

    def begun(self, waiting: Waiting) -> set[int]:
        """Tasks of an array that start now."""
        return self._begun.setdefault(waiting.job.array_job_id or waiting.job.job_id, set())


MORE = -2
"""An array has tasks left that may start."""
Find = Callable[[Waiting, PartitionView], Placement | Blocked]
"""Where a job could start now in a partition, or why not: `Session.attempt`, or something narrower."""


def start_single(session: Session, waiting: Waiting, view: PartitionView, starts: Starts, find: Find) -> Blocked | None:
    """A plain job, or a task that split off an array (its array's limit counts)."""
    job = waiting.job
    if job.array_job_id:
        room = starts.room(waiting)
        if room is not None and room <= 0:
            return Blocked(Reason.ARRAY_TASK_LIMIT)
    found = find(waiting, view)
    if not isinstance(found, Blocked):
        found = starts.books.refusal(job, found.holds) or found
    if isinstance(found, Blocked):
        return found
    session.start(waiting, view, found)
    starts.books.charge(job, found.holds)
    if job.array_job_id and job.array_task_id is not None:
        starts.begun(waiting).add(job.array_task_id)
    starts.add(waiting, view, found)
    return None


def start_array(
    session: Session, waiting: Waiting, view: PartitionView, starts: Starts, find: Find, most: int | None = None
) -> Blocked | int | None:
    """As many tasks of an array record as fit, lowest index first, up to %limit. MORE: `most` of them began."""
    job, made = waiting.job, 0
    room, begun = starts.room(waiting), starts.begun(waiting)
    for first, last, step in job.tasks:
        for task in range(first, last + 1, step):
            if task in begun:
                continue
            if made == most:
                return MORE
            if room is not None and room <= 0:
                return Blocked(Reason.ARRAY_TASK_LIMIT)
            found = find(waiting, view)
            if not isinstance(found, Blocked):
                found = starts.books.refusal(job, found.holds) or found
            if isinstance(found, Blocked):
                return found
            session.start(waiting, view, found)
            starts.books.charge(job, found.holds)
            begun.add(task)
            made += 1
            starts.add(waiting, view, found, task)
            if room is not None:
                room -= 1
    return None


def start_het(session: Session, group: Sequence[Waiting], starts: Starts) -> Blocked | None:
    """All components, the largest first, on nodes of their own (as Slurm's backfill places them) where there are enough
    nodes, else side by side.
    """
    mark, books = session.mark(), starts.books.mark()
    reason = NO_ROOM
    for apart in (True, False):
        used = np.zeros(session.snapshot.columns.count, dtype=np.bool_)
        placed: list[tuple[int, Start]] = []
        for waiting in sorted(group, key=lambda each: (-each.job.spec.min_cpus, each.job.het_offset)):
            found = _try_partitions(session, waiting, used if apart else None)
            if not isinstance(found, Blocked):
                found = starts.books.refusal(waiting.job, found[1].holds) or found
            if isinstance(found, Blocked):
                reason = found
                break
            view, placement = found
            session.start(waiting, view, placement)
            starts.books.charge(waiting.job, placement.holds)
            for hold in placement.holds:
                used[hold.row] = True
            start = Start(job_id=waiting.job.job_id, allocation=placement.allocation, time_limit=placement.minutes)
            placed.append((waiting.job.het_offset, start))
        else:
            starts.made.extend(start for _, start in sorted(placed, key=lambda each: each[0]))
            return None
        session.restore(mark)
        starts.books.restore(books)
    return reason


def _try_partitions(
    session: Session, waiting: Waiting, without: Bools | None
) -> tuple[PartitionView, Placement] | Blocked:
    reason = Blocked(Reason.PARTITION_CONFIG)
    for name in waiting.job.spec.partitions:
        view = session.snapshot.partitions.get(name)
        if view is None:
            continue
        found = session.attempt(waiting, view, without)
        if isinstance(found, Placement):
            return view, found
        reason = found
    return reason
