"""What the planner is told and what it answers (design section 8.3).

    snapshot = snapshot.apply(delta)
    plan, memo = plan_cycle(snapshot, config, now, memo)

`Delta` carries whole records; the snapshot keeps columns. Everything crosses a process border as msgpack.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.cluster import ClusterConfig, Node, Partition
from slurmbridge.model.job import Allocation, Job
from slurmbridge.model.tres import Tres


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """An advance reservation (`scontrol create reservation`)."""

    name: str
    start_time: float
    end_time: float
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    partition: str = ""
    features: str = ""
    flags: tuple[str, ...] = ()
    licenses: str = ""
    comment: str = ""


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """Changes since the last one. None = unchanged."""

    version: int
    config: ClusterConfig | None = None
    accounting: Accounting | None = None
    partitions: tuple[Partition, ...] | None = None  # all of them, with scontrol's changes
    nodes: tuple[Node, ...] = ()  # changed ones: state, flags (allocated amounts are derived from jobs)
    jobs: tuple[Job, ...] = ()  # pending that may run now or wait for a known time, and running or completing ones
    gone: tuple[int, ...] = ()  # job ids that ended or are held: forget them
    usage: tuple[UsageRow, ...] | None = None
    counted: tuple[UsageRow, ...] | None = None  # what fair-share factors are made of; never told: `usage`
    reservations: tuple[Reservation, ...] | None = None


class Start(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Start this job, or the next task of this array record, now."""

    job_id: int
    array_task_id: int | None = None
    allocation: Allocation
    explanation: str = ""
    time_limit: int | None = None  # minutes, where the limit is shortened to fit (--time-min)


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Why a job waits. `start`: expected start, None when not known."""

    job_id: int
    reason: str
    detail: str = ""  # for scontrol and `slurmbridge why`
    start: float | None = None
    nodes: tuple[str, ...] = ()  # expected nodes
    cpus: int = 0  # of an estimate (--test-only)
    partition: str = ""  # of an estimate


class Eviction(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """End a run so that another may start."""

    job_id: int
    mode: str  # REQUEUE, CANCEL, SUSPEND
    for_job: int
    grace_s: int = 0
    reason: str = ""  # preempt, reclaim, consolidate, stale
    moved: bool = False  # it fits elsewhere and is to start again at once
    restarts: int | None = None  # the run that is meant; None: whichever runs


class Nomination(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What is being freed for a job, or for the next task of an array record, is held for it: nobody takes it meanwhile."""

    job_id: int
    start: float  # when it is expected to begin
    since: float = 0.0  # when the last victim should be gone: from then on it is held for so long
    nodes: tuple[str, ...] = ()
    allocation: Allocation | None = None  # what of each node is held, CPU numbers apart; None: nothing certain
    victims: tuple[int, ...] = ()  # job ids, where room is made in this cycle


class Factors(msgspec.Struct, frozen=True, kw_only=True):
    """What a pending job's priority in one of its partitions is made of: factors in [0, 1] before they are weighed."""

    job_id: int
    partition: str
    priority: int
    age: float = 0.0
    fairshare: float = 0.0
    job_size: float = 0.0
    partition_factor: float = 0.0
    qos: float = 0.0
    assoc: float = 0.0
    tres: tuple[tuple[str, float], ...] = ()  # points of each TRES, weighed


class QueueShare(msgspec.Struct, frozen=True, kw_only=True):
    """What the last cycle found an association to deserve, to get and to use in one pool, with all below it."""

    pool: str
    assoc_id: int
    account: str
    user: str = ""
    deserved: Tres = ()  # of the quota, within what is asked for and the limits
    fair_share: Tres = ()  # with its part of what others leave idle
    allocated: Tres = ()
    allocated_nonpreemptible: Tres = ()
    requested: Tres = ()  # running and waiting


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle's answer. `version`: of the snapshot it was made from."""

    version: int
    starts: tuple[Start, ...] = ()
    verdicts: tuple[Verdict, ...] = ()  # of those whose reason, detail, start or priority changed
    evictions: tuple[Eviction, ...] = ()
    nominations: tuple[Nomination, ...] = ()  # all that stand, every cycle
    priorities: tuple[tuple[int, int], ...] = ()  # (job_id, priority) where it changed
    wake_at: float | None = None  # when a cycle is due even if nothing happens
    cycle_s: float = 0.0  # filled in by the worker
    queue_length: int = 0  # jobs that wait, an array's tasks as one
    looked_at: int = 0  # of them, those that a place was sought for
    backfilled: int = 0  # starts past a job that waits for resources
    backfilled_parts: int = 0  # of them, components of heterogeneous jobs
    promises: int = 0  # starts that were promised to jobs that wait
