"""What may still be given out of licences and of what the limits of associations and QOS leave, in one cycle?"""

from __future__ import annotations

import msgspec

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.request import LicenseTerm
from slurmbridge.model.tres import Tres
from slurmbridge.sched import licences
from slurmbridge.sched.counters import Counters
from slurmbridge.sched.eligibility import time_limit
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.place import Placement
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting
from slurmbridge.sched.terms import count_run_minutes

_LIMITED = frozenset({"limits", "safe"})


class Spent(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What was given out at one moment."""

    licenses: dict[str, int]
    counters: Counters | None


class Allowances:
    """Changes with every start."""

    def __init__(self, snapshot: Snapshot, config: ClusterConfig, now: float, memo: Memo) -> None:
        self._book = memo.book
        limited = bool(config.enforce & _LIMITED) and memo.book is not None and memo.book.any
        self._counters = memo.counters.copy() if limited and memo.counters is not None else None
        self._safe = "safe" in config.enforce
        if self._counters is not None and memo.book is not None and memo.book.any_run_minutes:
            count_run_minutes(snapshot, self._counters, memo.book, now, safe=self._safe)
        self._licenses = licences.free(snapshot, config)

    @property
    def counts_limits(self) -> bool:
        """Whether limits of associations or QOS could stop somebody."""
        return self._counters is not None

    def licenses(self, shape: Shape) -> tuple[LicenseTerm, ...] | None:
        """Those that the job would get; None when they are not free."""
        return licences.granted(shape, self._licenses)

    def refusal(self, waiting: Waiting, view: PartitionView, tres: Tres) -> str:
        """The reason of the limit that the job would pass with this much; empty: none."""
        if self._counters is None or self._book is None:
            return ""
        job, minutes = waiting.job, time_limit(waiting.job, view.partition)
        return self._book.refusal(job, view.partition.qos, tres, minutes, self._counters, safe=self._safe)

    def count(
        self, waiting: Waiting, view: PartitionView, placement: Placement, length_s: float, *, sign: int = 1
    ) -> None:
        """The job has this, or is to have it; -1: it is not to have it after all."""
        for term in placement.allocation.licenses:
            self._licenses[term.name] -= sign * term.count
        if self._counters is not None and self._book is not None:
            keys, tres = self._book.keys(waiting.job, view.partition.qos), placement.allocation.tres
            self._counters.add(keys, tres, sign)
            minutes = self._book.counted_minutes(waiting.job, length_s / 60, safe=self._safe)
            self._counters.add_minutes(keys, tres, sign * minutes)

    def mark(self) -> Spent:
        """What `restore` goes back to."""
        return Spent(
            licenses=dict(self._licenses), counters=self._counters.copy() if self._counters is not None else None
        )

    def restore(self, spent: Spent) -> None:
        """As it was then."""
        self._licenses = dict(spent.licenses)
        self._counters = spent.counters.copy() if spent.counters is not None else None
