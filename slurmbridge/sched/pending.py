"""Which jobs wait, as one table of numbers?

One row a pending job, in the order of their ids: what decides whether it may be looked at, its part of the priority that
is its own, and what its owner was last told. Everything that jobs of one group share is kept by group
(`shape.ShapeTable`). A cycle answers most questions for all rows at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.job import Job
from slurmbridge.model.states import Reason
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked, dependency_state, held_by
from slurmbridge.sched.rows import is_among

Floats = NDArray[np.float64]
NEVER = -1.0
"""No start is known."""
NO_CODE = -1

ROW = np.dtype(
    [
        ("id", np.int64),
        ("group", np.int64),
        ("array", np.bool_),  # an array's record, or a task of one
        ("count", np.int64),  # jobs that it stands for: tasks of an array that have not started, else 1
        ("accrued", np.float64),  # since when it grows older; nan: from now on
        ("nice", np.float64),
        ("fixed", np.int64),  # a priority that somebody set; 0 = none
        ("held", np.int64),  # code of the reason, or NO_CODE
        ("owed", np.int64),  # the same of what it depends on
        ("begin", np.float64),  # --begin; -inf = none
        ("eligible", np.float64),
        ("deadline", np.float64),  # inf = none
        ("switch", np.float64),  # until when it waits for few switches; inf = it does not
        ("priority", np.int64),  # as told
        ("code", np.int64),  # reason as told
        ("start", np.float64),  # expected start as told
    ]
)
Rows = NDArray[np.void]


class Codes:
    """Numbers for (reason, detail). Growing it never changes an answer; numbers are only names."""

    __slots__ = ("_known", "_texts", "begin_time", "deadline")

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}
        self._texts: list[tuple[str, str]] = []
        self.begin_time, self.deadline = self.of(Reason.BEGIN_TIME), self.of(Reason.DEADLINE)

    def of(self, reason: str, detail: str = "") -> int:
        key = reason, detail
        code = self._known.get(key)
        if code is None:
            code = self._known[key] = len(self._texts)
            self._texts.append(key)
        return code

    def text(self, code: int) -> tuple[str, str]:
        """(reason, detail)."""
        return self._texts[code]

    def blocked(self, blocked: Blocked) -> int:
        return self.of(blocked.reason, blocked.detail)


class Pending(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The table. Arrays are never changed once they are in a snapshot."""

    rows: Rows
    codes: Codes

    @classmethod
    def empty(cls) -> Pending:
        return cls(rows=np.zeros(0, dtype=ROW), codes=Codes())

    def __len__(self) -> int:
        return len(self.rows)

    def changed(self, gone: Iterable[int], fresh: Sequence[tuple[Job, int]]) -> Pending:
        """Without the jobs `gone`, and with these (job, group) instead of what was known of them."""
        leaving = np.array([*gone, *(job.job_id for job, _ in fresh)], dtype=np.int64)
        kept = self.rows[~is_among(self.rows["id"], leaving)] if len(leaving) else self.rows
        if fresh:
            added = np.array([_row(job, group, self.codes) for job, group in fresh], dtype=ROW)
            kept = np.concatenate([kept, added])
            ids = kept["id"]
            if len(ids) > 1 and not (ids[1:] > ids[:-1]).all():
                kept = kept[np.argsort(ids, kind="stable")]
        return msgspec.structs.replace(self, rows=kept)

    def row(self, job_id: int) -> np.void:
        """The row of a job that is there."""
        found: np.void = self.rows[int(np.searchsorted(self.rows["id"], job_id))]
        return found

    def regrouped(self, groups: Sequence[int], switch: Sequence[float] | None = None) -> Pending:
        """With other numbers of the groups, one a row, and other ends of their waits for switches."""
        rows = self.rows.copy()
        rows["group"] = groups
        if switch is not None:
            rows["switch"] = switch
        return msgspec.structs.replace(self, rows=rows)

    def told(self, verdicts: Sequence[tuple[int, str, str, float]], priorities: Sequence[tuple[int, int]]) -> Pending:
        """With what owners were told: (id, reason, detail, start) and (id, priority). Ids that are gone are passed over."""
        rows = self.rows.copy()
        ids = rows["id"]
        if verdicts:
            at, here = _places(ids, [each[0] for each in verdicts])
            rows["code"][at] = np.array([self.codes.of(each[1], each[2]) for each in verdicts], dtype=np.int64)[here]
            rows["start"][at] = np.array([each[3] for each in verdicts], dtype=np.float64)[here]
        if priorities:
            at, here = _places(ids, [each[0] for each in priorities])
            rows["priority"][at] = np.array([each[1] for each in priorities], dtype=np.int64)[here]
        return msgspec.structs.replace(self, rows=rows)

    def states(self, now: float) -> Ints:
        """Code of what holds each job back whatever its partition is; NO_CODE = nothing. Order of tests as Slurm's."""
        rows, codes = self.rows, self.codes
        found = np.full(len(rows), NO_CODE, dtype=np.int64)
        found[rows["deadline"] <= now] = codes.deadline
        found[rows["eligible"] > now] = codes.begin_time
        found = np.where(rows["owed"] >= 0, rows["owed"], found)
        found[rows["begin"] > now] = codes.begin_time
        return np.where(rows["held"] >= 0, rows["held"], found)

    def begins(self, now: float) -> Floats:
        """When a job that waits for a time may begin; NEVER where no time is known."""
        rows = self.rows
        waits = np.where(rows["begin"] > now, rows["begin"], rows["eligible"])
        return np.where(waits > now, waits, NEVER)


def _places(ids: Ints, wanted: Sequence[int]) -> tuple[Ints, Bools]:
    """Rows of those ids that are there, and which they are."""
    asked = np.array(wanted, dtype=np.int64)
    at = np.minimum(np.searchsorted(ids, asked), max(len(ids) - 1, 0))
    here: Bools = (ids[at] == asked) if len(ids) else np.zeros(len(asked), dtype=np.bool_)
    return at[here], here


def switch_wait_end(job: Job) -> float:
    """When a job that wants few switches takes any number: --switches=N@TIME, counted from when it might start."""
    if not job.spec.switches or job.eligible_time is None:
        return math.inf
    return job.eligible_time + job.spec.switches_wait


def jobs_in(job: Job) -> int:
    """How many jobs a record stands for: tasks of an array that have not started, else 1."""
    return sum((last - first) // step + 1 for first, last, step in job.tasks) or 1


def _row(job: Job, group: int, codes: Codes) -> tuple[float, ...]:
    spec = job.spec
    since = job.accrue_time if job.accrue_time is not None else job.eligible_time
    held = held_by(job)
    owed = dependency_state(job)
    return (
        job.job_id,
        group,
        bool(job.array_job_id or job.tasks),
        jobs_in(job),
        float("nan") if since is None else since,
        spec.nice,
        spec.request.priority or 0,
        NO_CODE if held is None else codes.blocked(held),
        codes.of(owed) if owed else NO_CODE,
        float("-inf") if spec.begin is None or job.restarts else spec.begin,
        float("-inf") if job.eligible_time is None else job.eligible_time,
        float("inf") if spec.deadline is None else spec.deadline,
        switch_wait_end(job),
        job.priority,
        codes.of(job.reason, job.reason_text),
        NEVER if job.start_time is None else job.start_time,
    )
