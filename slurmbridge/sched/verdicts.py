"""What do owners of waiting jobs hear, and what of it is news?

One code and one expected start a row; a job that is tried in several partitions keeps the better news.
"""

from __future__ import annotations

import msgspec
import numpy as np

from slurmbridge.model.plan import Verdict
from slurmbridge.model.states import Reason
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.pending import NEVER, NO_CODE, Floats, Pending
from slurmbridge.sched.rows import is_among

OPEN = frozenset({Reason.RESOURCES, Reason.PRIORITY})
"""Reasons that pass when others end: of several partitions, one of these is the better news."""


class Board:
    """Collects verdicts while a cycle runs."""

    __slots__ = ("_codes", "_nodes", "_open", "_pending", "_starts", "found", "gone")

    def __init__(self, pending: Pending, states: Ints, begins: Floats) -> None:
        self._pending = pending
        self._codes = pending.codes
        self.found: Ints = states.copy()  # code by row; NO_CODE: not looked at
        waits = (states == self._codes.begin_time) & (begins > 0)
        self._starts: dict[int, float] = dict(zip(np.flatnonzero(waits).tolist(), begins[waits].tolist(), strict=True))
        self._nodes: dict[int, tuple[str, ...]] = {}
        self._open = {self._codes.of(reason) for reason in OPEN}
        self.gone: set[int] = set()  # rows that start now

    def code(self, blocked: Blocked) -> int:
        return self._codes.blocked(blocked)

    def note(self, row: int, code: int) -> None:
        """One more partition said no."""
        before = int(self.found[row])
        if before == NO_CODE or (before not in self._open and code in self._open):
            self.found[row] = code

    def note_all(self, rows: Ints, code: int) -> None:
        """The same for many rows, of a code that passes when others end."""
        before = self.found[rows]
        self.found[rows[~is_among(before, np.fromiter(self._open, dtype=np.int64))]] = code

    def promise(self, row: int, start: float, nodes: tuple[str, ...]) -> None:
        """The start that the job can count on."""
        self._starts[row], self._nodes[row] = start, nodes

    def promised(self, row: int) -> tuple[float, tuple[str, ...]] | None:
        """The start and nodes that the job can count on."""
        nodes = self._nodes.get(row)
        return None if nodes is None else (self._starts[row], nodes)

    def serve(self, row: int, code: int, start: float, nodes: tuple[str, ...]) -> None:
        """Room is being made for the job."""
        self.found[row] = code
        self._starts[row], self._nodes[row] = start, nodes

    def begins(self, row: int) -> None:
        """The job starts: nothing is told any more."""
        self.gone.add(row)

    def waits(self, row: int, code: int) -> None:
        """The job does not start after all."""
        self.gone.discard(row)
        self.found[row] = code

    def news(self) -> tuple[Verdict, ...]:
        """Verdicts that differ from what was told, by job id."""
        rows = self._pending.rows
        nowhere = self._codes.of(Reason.PARTITION_CONFIG)
        codes = self.found.copy()
        codes[codes == NO_CODE] = nowhere
        starts = np.full(len(rows), NEVER)
        for row, start in self._starts.items():
            starts[row] = start
        differs = (codes != rows["code"]) | (starts != rows["start"])
        if self.gone:
            differs[np.fromiter(self.gone, dtype=np.int64)] = False
        made = []
        for row in np.flatnonzero(differs).tolist():
            reason, detail = self._codes.text(int(codes[row]))
            start = float(starts[row])
            made.append(
                Verdict(
                    job_id=int(rows["id"][row]),
                    reason=reason,
                    detail=detail,
                    start=None if start == NEVER else start,
                    nodes=self._nodes.get(row, ()),
                )
            )
        return tuple(made)


class Tally(msgspec.Struct, kw_only=True):
    """What one cycle did, for sdiag."""

    looked_at: int = 0
    backfilled: int = 0
    backfilled_parts: int = 0
    promises: int = 0

    def began(self, starts: int, *, parts: bool = False) -> None:
        """Jobs start; past a promise to another it is called backfill."""
        if self.promises:
            self.backfilled += starts
            self.backfilled_parts += starts if parts else 0
