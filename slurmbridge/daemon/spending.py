"""What has each association and QOS used until now, and how is the use of a run counted?

Runs that ended are in the rows already; those that run are added as far as they had come at the last count, which is when
Slurm's multifactor plugin looks at them too (PriorityCalcPeriod).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import Charge, Job
from slurmbridge.model.states import JobState
from slurmbridge.store.usage import decay
from slurmbridge.submit import associations

NO_DECAY = "NoDecay"
_QUARTER = (1, 4, 7, 10)


def charge_of(job: Job, accounting: Accounting, config: ClusterConfig, partition: Partition | None) -> Charge:
    """How this run counts: by the QOS that it has now, its own and its partition's."""
    known = associations.index(accounting).qos
    own = known.get(job.spec.qos)
    other = known.get(partition.qos) if partition is not None and partition.qos else None
    charged = {qos.qos_id: qos for qos in (own, other) if qos is not None}
    return Charge(
        half_life=config.priority_decay_half_life,
        factor=own.usage_factor if own is not None else 1.0,
        qos_ids=tuple(charged),
        lasting=tuple(number for number, qos in charged.items() if NO_DECAY in qos.flags),
    )


def lasting_rows(accounting: Accounting) -> frozenset[int]:
    """Numbers of rows that neither fade nor are reset: those of QOS with NoDecay."""
    return frozenset(-qos.qos_id for qos in accounting.qos if NO_DECAY in qos.flags)


def faded(rows: Iterable[UsageRow], accounting: Accounting, half_life: float, now: float) -> tuple[UsageRow, ...]:
    """All rows as of now."""
    lasting = lasting_rows(accounting)
    return tuple(decay(row, now, 0.0 if row.assoc_id in lasting else half_life) for row in rows)


def with_running(
    rows: Mapping[int, UsageRow],
    jobs: Iterable[Job],
    accounting: Accounting,
    partitions: Mapping[str, Partition],
    until: float,
) -> tuple[UsageRow, ...]:
    """The rows, with what running jobs used until then."""
    factors = {qos.name: qos.usage_factor for qos in accounting.qos}
    numbers = {qos.name: qos.qos_id for qos in accounting.qos}
    amounts: dict[int, dict[str, float]] = {}
    walls: dict[int, float] = {}
    for job in jobs:
        seconds = _run_until(job, until) * factors.get(job.spec.qos, 1.0)
        if seconds <= 0.0 or job.allocation is None:
            continue
        partition = partitions.get(job.allocation.partition)
        names = {job.spec.qos, partition.qos if partition is not None else ""}
        targets = [job.spec.assoc_id] if job.spec.assoc_id else []
        targets += [-numbers[name] for name in names if name in numbers]
        for target in targets:
            counts = amounts.setdefault(target, {})
            walls[target] = walls.get(target, 0.0) + seconds
            for name, count in job.allocation.tres:
                counts[name] = counts.get(name, 0.0) + count * seconds
    if not amounts:
        return tuple(rows.values())
    found = dict(rows)
    for target, counts in amounts.items():
        row = found.get(target) or UsageRow(assoc_id=target, as_of=until)
        total = dict(row.raw)
        for name, amount in counts.items():
            total[name] = total.get(name, 0.0) + amount
        found[target] = replace(row, raw=tuple(total.items()), wall_s=row.wall_s + walls[target])
    return tuple(found.values())


def _run_until(job: Job, until: float) -> float:
    if job.state is JobState.RUNNING and job.start_time is not None:
        since = job.suspend_time if job.suspend_time is not None else job.start_time
        return job.pre_suspend_s + max(0.0, until - since)
    return job.pre_suspend_s if job.state is JobState.SUSPENDED else 0.0


def reset_due(period: str, last: float, now: float, tz: datetime.tzinfo) -> bool:
    """PriorityUsageResetPeriod: whether a period began since the last reset."""
    start = _period_start(period.upper(), datetime.datetime.fromtimestamp(now, tz))
    return start is not None and last < start.timestamp()


def _period_start(period: str, now: datetime.datetime) -> datetime.datetime | None:
    """When the present period began; None where there are no periods."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "DAILY":
            return day
        case "WEEKLY":  # Sunday
            return day - datetime.timedelta(days=(day.weekday() + 1) % 7)
        case "MONTHLY":
            return day.replace(day=1)
        case "QUARTERLY":
            return day.replace(day=1, month=max(month for month in _QUARTER if month <= day.month))
        case "YEARLY":
            return day.replace(day=1, month=1)
    return None
