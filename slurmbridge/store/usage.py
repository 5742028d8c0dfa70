"""What a finished run adds to its association's use, and how use fades (Slurm's multifactor plugin).

Amounts are TRES-seconds in the units of `model.tres` (mem in MiB, gres/gpu in milli-devices). The association itself and
the QOS are charged; accounts are sums over the tree (`submit.associations`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from slurmbridge.model.accounts import UsageRow
from slurmbridge.model.job import Charge, Job

DEFAULT_HALF_LIFE = 7 * 86400.0
"""PriorityDecayHalfLife of Slurm."""


def run_seconds(job: Job) -> float:
    """How long a finished run held its nodes and was not suspended. Between whole seconds, as Slurm counts."""
    if job.start_time is None or job.end_time is None:
        return 0.0
    if job.suspend_time is not None:
        return max(0.0, int(job.pre_suspend_s) + int(job.end_time) - int(job.suspend_time))
    return float(max(0, int(job.end_time) - int(job.start_time)))


def decay(row: UsageRow, now: float, half_life: float) -> UsageRow:
    """The row as of `now`; half_life 0 = it never fades. A moment before `as_of` changes nothing."""
    if now <= row.as_of:
        return row
    if not half_life:
        return msgspec.structs.replace(row, as_of=now)
    factor = 0.5 ** ((now - row.as_of) / half_life)
    return msgspec.structs.replace(
        row,
        as_of=now,
        raw=tuple((name, amount * factor) for name, amount in row.raw),
        wall_s=row.wall_s * factor,
    )


def charge(row: UsageRow, job: Job, half_life: float, factor: float = 1.0) -> UsageRow:
    """The row with one finished run added, as of the later of its own moment and the run's end."""
    seconds = run_seconds(job) * factor
    if job.allocation is None or job.end_time is None or not seconds:
        return row
    now = max(row.as_of, job.end_time)
    row = decay(row, now, half_life)
    share = seconds * (0.5 ** ((now - job.end_time) / half_life) if half_life else 1.0)
    total = dict(row.raw)
    for name, count in job.allocation.tres:
        total[name] = total.get(name, 0.0) + count * share
    return msgspec.structs.replace(row, raw=tuple(total.items()), wall_s=row.wall_s + share)


def rows_after(rows: Mapping[int, UsageRow], job: Job, half_life: float) -> tuple[UsageRow, ...]:
    """The rows that a finished run changes: of its association and of its QOS, as `job.charge` has it.

    `half_life`: for runs that ended before `charge` was kept with them.
    """
    how = job.charge if job.charge is not None else Charge(half_life=half_life)
    targets = [(job.spec.assoc_id, how.half_life)] if job.spec.assoc_id else []
    targets += [(-number, 0.0 if number in how.lasting else how.half_life) for number in how.qos_ids]
    found = []
    for number, fading in targets:
        before = rows.get(number) or UsageRow(assoc_id=number, as_of=0.0)
        after = charge(before, job, fading, how.factor)
        if after is not before:
            found.append(after)
    return tuple(found)
