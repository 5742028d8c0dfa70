"""Why a job waits, as the planner found it: answered to `slurmbridge why`."""

from __future__ import annotations

import msgspec


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """A node on which the job's share does not fit: what it is short of."""

    node: str
    short: tuple[str, ...]


class PartitionFit(msgspec.Struct, frozen=True, kw_only=True):
    """How far the job is from fitting in one of its partitions."""

    partition: str
    reason: str = ""  # empty: it would fit now if nobody were ahead of it
    detail: str = ""
    nodes: int = 0  # of the partition
    allowed: int = 0  # up, and allowed by constraints and node lists
    fitting: int = 0  # that hold the job's share now
    needed: int = 1
    near: str = ""  # what it wants of their place, where that stops it
    share: str = ""  # what is asked of each
    misses: tuple[Miss, ...] = ()  # the nearest first
    closed: tuple[str, ...] = ()  # nodes that take no jobs, with their state


class LimitUse(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that the job would exceed."""

    where: str  # "QOS high", "account physics", "user alice"
    name: str
    limit: str
    used: str
    asked: str


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A run on nodes that the job waits for."""

    job_id: int
    nodes: tuple[str, ...]
    until: float | None = None  # by its time limit


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`start`: with only running jobs counted; None: not within the planner's window."""

    job_id: int
    held: str = ""  # what holds it whatever is free: a reason
    until: float | None = None  # of `held`, when it is known
    partitions: tuple[PartitionFit, ...] = ()
    limits: tuple[LimitUse, ...] = ()
    remedies: tuple[str, ...] = ()  # changes with each of which alone it would fit now
    ahead: tuple[int, ...] = ()  # jobs before it in its partitions, the first ones
    ahead_count: int = 0
    holders: tuple[Holder, ...] = ()
    start: float | None = None
    nodes: tuple[str, ...] = ()
    victims: tuple[int, ...] = ()  # runs that it might preempt, the first ones
    victim_count: int = 0
