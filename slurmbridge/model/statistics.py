"""What the controller counts about itself since a moment (sdiag's figures)."""

from __future__ import annotations

import msgspec


class Cycles(msgspec.Struct, frozen=True, kw_only=True):
    """Planning cycles. Times in microseconds."""

    count: int = 0
    last_us: int = 0
    max_us: int = 0
    total_us: int = 0
    last_when: float | None = None
    last_depth: int = 0  # jobs that a place was sought for
    total_depth: int = 0
    last_queue: int = 0  # jobs that waited
    total_queue: int = 0


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of one kind, or of one user. `number`: of the message, or the uid."""

    name: str
    number: int
    count: int
    total_us: int


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    since: float
    now: float
    threads: int = 0  # commands in hand, this one included
    queued: int = 0  # runs being launched or ended
    commits: int = 0  # records that wait for the store
    submitted: int = 0
    started: int = 0
    completed: int = 0
    canceled: int = 0
    failed: int = 0
    pending: int = 0
    running: int = 0
    main: Cycles = Cycles()
    ahead: Cycles = Cycles()  # cycles that had to look ahead, for jobs that wait for resources
    backfilled_ever: int = 0
    backfilled: int = 0
    backfilled_parts: int = 0
    last_table: int = 0  # promised starts that the last look ahead kept free
    total_table: int = 0
    clock_us: int = 0  # for 1000 readings of the clock
    messages: tuple[Requests, ...] = ()
    users: tuple[Requests, ...] = ()
