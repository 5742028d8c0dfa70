"""What the daemon asks of the store. Writes are values queued to one writer; reads return records.

Group commit: the writer takes all that is queued, commits once, then resolves the futures. It never waits on a timer.
Ops marked `droppable` (submissions) fail alone when the disk is full or the server away; the others stay queued and are
tried again until they are durable, while `healthy` is False and nothing new is accepted. Of a commit whose outcome is not
known nobody is told before it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from slurmbridge.commands.effects import JobFilter, JobRow
from slurmbridge.model.accounts import Accounting, Transaction, UsageRow
from slurmbridge.model.cluster import Node, NodeEvent, Partition
from slurmbridge.model.job import Job, Step
from slurmbridge.model.mail import Mail
from slurmbridge.model.plan import Reservation


class InsertJobs(msgspec.Struct, frozen=True, kw_only=True):
    """New jobs of one submission in one transaction. Blobs are stored once by SHA-256 hex."""

    jobs: tuple[Job, ...]
    nonce: str
    uid: int
    blobs: tuple[tuple[str, bytes], ...] = ()  # (sha, content)


class PutJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Changed (or split-off) jobs, keyed (job_id, restarts). A finished run gets its usage rolled up exactly once."""

    jobs: tuple[Job, ...]


class PutSteps(msgspec.Struct, frozen=True, kw_only=True):
    steps: tuple[Step, ...]


class PutNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Administrative state of nodes that must survive a restart (drain, reasons); events for sacctmgr."""

    nodes: tuple[Node, ...]
    shown: tuple[Node, ...] | None = None  # what events are made of; None: the same nodes


class PutPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions as scontrol made them; an empty `partitions` forgets all changes."""

    partitions: tuple[Partition, ...]


class PutReservations(msgspec.Struct, frozen=True, kw_only=True):
    reservations: tuple[Reservation, ...]


class PutAccounting(msgspec.Struct, frozen=True, kw_only=True):
    accounting: Accounting
    transactions: tuple[Transaction, ...] = ()


class PutUsage(msgspec.Struct, frozen=True, kw_only=True):
    rows: tuple[UsageRow, ...]


class PutMark(msgspec.Struct, frozen=True, kw_only=True):
    """A named number that must survive: "next_job_id" (never goes down), "boot" ..."""

    name: str
    value: str


class PutMail(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that wait for the mail program."""

    mails: tuple[Mail, ...]


class DropMail(msgspec.Struct, frozen=True, kw_only=True):
    """The mail program took them, or never will."""

    mail_ids: tuple[int, ...]


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A script or environment that may go unless a run that ended at `since` or later (or lives) uses it."""

    sha: str
    since: float


class Purge(msgspec.Struct, frozen=True, kw_only=True):
    """Forget what nobody will ask for. Keys are checked again in the transaction: a run that lives stays.

    With its last run goes a specification, and the submission's nonce. Ids of purged jobs are not given out again.
    """

    runs: tuple[tuple[int, int], ...] = ()  # (job_id, restarts), with their steps
    steps: tuple[tuple[int, int, int], ...] = ()  # (job_id, restarts, step_id)
    blobs: tuple[Use, ...] = ()
    usage: tuple[int, ...] = ()  # association ids
    events_before: float | None = None  # those that were over then
    transactions_before: float | None = None

    def __bool__(self) -> bool:
        return self != Purge()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is old enough to go: moments before which it ended, None: keep all of it."""

    jobs: float | None = None
    steps: float | None = None
    scripts: float | None = None
    environments: float | None = None
    events: float | None = None
    transactions: float | None = None


Op = (
    InsertJobs
    | PutJobs
    | PutSteps
    | PutNodes
    | PutPartitions
    | PutReservations
    | PutAccounting
    | PutUsage
    | PutMark
    | Purge
    | PutMail
    | DropMail
)


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """All that the daemon keeps in memory, as last committed."""

    jobs: tuple[Job, ...] = ()  # not finished, or ended after `recent_since`; last run of each
    steps: tuple[Step, ...] = ()  # running steps of those
    nodes: tuple[Node, ...] = ()
    partitions: tuple[Partition, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    accounting: Accounting | None = None  # None: a new store
    usage: tuple[UsageRow, ...] = ()
    next_job_id: int = 0  # 0: a new store
    marks: tuple[tuple[str, str], ...] = ()
    mails: tuple[Mail, ...] = ()  # not yet taken by the mail program


class Store(Protocol):
    """Thread rules: `write` from any thread, `done(error)` is called from the writer's thread; reads block their thread."""

    def load(self, recent_since: float) -> Loaded: ...
    def write(
        self, ops: Sequence[Op], done: Callable[[Exception | None], None], *, droppable: bool = False
    ) -> None: ...
    def nonces(self, most: int) -> dict[tuple[int, str], int]:
        """Of the latest submissions, at most so many: uid and nonce, and the first job id."""

    def blob(self, sha: str) -> bytes | None: ...
    def history(self, wanted: JobFilter) -> tuple[JobRow, ...]: ...
    def expired(self, limits: Limits, most: int) -> Purge:
        """The oldest things that may go, at most `most` of each; an empty Purge when nothing is left."""

    def transactions(self, start: float | None, end: float | None) -> tuple[Transaction, ...]: ...
    def events(self, start: float | None, end: float | None) -> tuple[NodeEvent, ...]:
        """Times in which nodes were down or drained, overlapping [start, end], by start."""

    @property
    def healthy(self) -> bool: ...
    def close(self) -> None:
        """Commit what is queued and close; idempotent."""
