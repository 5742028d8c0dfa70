"""What a cycle goes by beside free space: words of SchedulerParameters, named reservations, minutes that runs may still use."""

from __future__ import annotations

import math

import msgspec

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.states import Reason
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.limits import Counters, LimitBook
from slurmbridge.sched.places import may_use
from slurmbridge.sched.snapshot import Snapshot


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What SchedulerParameters says. Who waited longest is promised a start days ahead, too."""

    reserve: int = 1  # promised starts a partition
    window_s: float = 86400.0

    @classmethod
    def of(cls, config: ClusterConfig) -> Settings:
        text = config.scheduler_parameters
        values = dict(part.strip().partition("=")[::2] for part in text.split(",") if part.strip())
        by_claim = config.scheduling.promise != "turn" and "bf_window" not in values

        def number(name: str, default: int) -> int:
            value = values.get(name, "")
            return int(value) if value.isdecimal() else default

        return cls(
            reserve=min(max(number("bf_job_part_count_reserve", 1), 1), 32),
            window_s=math.inf if by_claim else 60.0 * max(number("bf_window", 1440), 1),
        )


def reservation_gate(snapshot: Snapshot, job: Job, now: float) -> Blocked | None:
    """Why a job that names reservations may not start in any of them now."""
    names = job.spec.reservation.split(",")
    known = [each for each in snapshot.reservations if each.name in names]
    if not known:
        return Blocked("ReservationDeleted")
    mine = [each for each in known if may_use(each, job)]
    if any(each.start_time <= now < each.end_time for each in mine):
        return None
    return Blocked(
        Reason.RESERVATION,
        until=min((each.start_time for each in mine if each.start_time > now), default=None),
    )


def count_run_minutes(snapshot: Snapshot, counters: Counters, book: LimitBook, now: float, *, safe: bool) -> None:
    """What running jobs may still use: TRES x minutes left of their limits."""
    for each in snapshot.running.values():
        allocation, end = each.job.allocation, each.job.time_limit_end
        if allocation is not None and end is not None and not each.job.state.is_finished:
            view = snapshot.partitions.get(allocation.partition)
            keys = book.keys(each.job, view.partition.qos if view else "")
            minutes = book.counted_minutes(each.job, max(end - now, 0.0) / 60, safe=safe)
            counters.add_minutes(keys, allocation.tres, minutes)
