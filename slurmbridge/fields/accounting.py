"""What does a row of sacct say? A run of a job, or one of its steps; values shared by the columns.

Follows sacct(1). Elapsed times and ends are those inside the window when `--truncate` is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from slurmbridge.fields import text
from slurmbridge.fields.view import View
from slurmbridge.lang import durations, tres
from slurmbridge.model.job import Job, Step, StepId, Usage
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.model.tres import Tres, count
from slurmbridge.model.units import UNLIMITED

_UNITS = "KMGTP"
_BATCH = StepId.BATCH.value


class AccountRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of sacct. `step` None: the allocation itself."""

    job: Job
    step: Step | None = None
    steps: tuple[Step, ...] = ()  # all of the run
    window: tuple[float, float] | None = None  # --truncate


Getter = Callable[[AccountRow, View], str]


def label(row: AccountRow, view: View) -> str:
    """`12`, `12_3.batch`, `12+0`; a heterogeneous job that has not started has plain ids."""
    job = row.job
    name = str(job.job_id) if job.het_job_id and job.is_pending else text.job_label(job, view.bitstr)
    return f"{name}.{text.step_label(row.step.step_id)}" if row.step is not None else name


def raw_label(row: AccountRow) -> str:
    number = str(row.job.job_id)
    return f"{number}.{text.step_label(row.step.step_id)}" if row.step is not None else number


def state_text(row: AccountRow) -> str:
    """`COMPLETED`, `CANCELLED by 1001`, `REQUEUED` ..."""
    if row.step is not None:
        return row.step.state.name
    job = row.job
    if job.state is JobState.CANCELLED and job.cancelled_by is not None:
        return f"CANCELLED by {job.cancelled_by}"
    if JobFlag.REQUEUED in job.flags and not job.is_pending:
        return "REQUEUED"
    return job.state.name


def exit_code(row: AccountRow) -> int:
    """Wait status. Accounting learns of a run that is cancelled or preempted before its processes are gone: 0."""
    if row.step is not None:
        return row.step.exit_code
    return 0 if row.job.state in (JobState.CANCELLED, JobState.PREEMPTED) else row.job.exit_code


def start_of(row: AccountRow) -> float | None:
    if row.step is not None:
        start: float | None = row.step.start_time
    else:
        start = row.job.start_time if row.job.allocation is not None else None
    if start and row.window is not None:
        return max(start, row.window[0])
    return start


def end_of(row: AccountRow) -> float | None:
    if row.step is not None:
        end = row.step.end_time
    else:
        end = row.job.end_time if row.job.is_finished else None
    if row.window is not None and start_of(row):
        return min(end, row.window[1]) if end else row.window[1]
    return end


def elapsed(row: AccountRow, now: float) -> int:
    """Seconds run, without suspension."""
    start = start_of(row)
    if not start:
        return 0
    if row.step is None and row.window is None and (row.job.pre_suspend_s or row.job.suspend_time):
        return text.run_seconds(row.job, now)
    return max(int(end_of(row) or now) - int(start), 0)


def suspended(row: AccountRow, now: float) -> int:
    """Seconds between start and end in which it did not run."""
    start = start_of(row)
    if row.step is not None or not start or row.window is not None:
        return 0
    return max(int(end_of(row) or now) - int(start) - elapsed(row, now), 0)


def alloc_cpus(row: AccountRow) -> int:
    if row.step is not None:
        return row.step.cpus
    return text.total_cpus(row.job) if row.job.allocation is not None else 0


def req_cpus(row: AccountRow) -> int:
    if row.step is not None:
        return row.step.cpus
    return count(row.job.spec.req_tres, "cpu") or row.job.spec.min_cpus


def alloc_nodes(row: AccountRow) -> int:
    if row.step is not None:
        return len(row.step.nodes)
    return len(text.nodes_of(row.job))


def req_nodes(row: AccountRow) -> int:
    if row.step is not None:
        return len(row.step.nodes)
    return count(row.job.spec.req_tres, "node") or row.job.spec.min_nodes


def node_names(row: AccountRow) -> str:
    names = row.step.nodes if row.step is not None else text.nodes_of(row.job)
    return text.fold(names) if names else "None assigned"


def planned(row: AccountRow, now: float) -> int | None:
    """Seconds it was eligible without running; None where its turn has not come."""
    job = row.job
    if not job.eligible_time:
        return 0
    until = start_of(row) or (end_of(row) if job.is_finished else now) or now
    waited = int(until) - int(job.eligible_time)
    return waited if waited >= 0 else None


def time_limit(row: AccountRow) -> str:
    """`01:00:00`, `UNLIMITED`, `Partition_Limit` while nothing is decided."""
    limit = row.job.spec.time_limit
    if row.job.allocation is None and row.job.spec.request.time_limit is None and limit is None:
        return "Partition_Limit"
    return durations.render_minutes(limit)


def time_limit_raw(row: AccountRow) -> str:
    limit = row.job.spec.time_limit
    return time_limit(row) if limit is None or limit >= UNLIMITED else str(limit)


def reason(row: AccountRow) -> str:
    """What kept it waiting beyond its place in the queue."""
    job = row.job
    if not job.is_pending or job.reason in ("None", "Priority", "Resources", "JobHeldUser", "JobHeldAdmin"):
        return "None"
    return job.reason


def usage_of(row: AccountRow) -> Usage | None:
    """CPU time of the step, or of the whole run."""
    if row.step is not None:
        return row.step.usage
    if row.job.usage is not None:
        return row.job.usage
    used = [step.usage for step in row.steps if step.usage is not None]
    if not used:
        return None
    return Usage(user_us=sum(each.user_us for each in used), system_us=sum(each.system_us for each in used))


def sampled(row: AccountRow, view: View) -> Usage | None:
    """Memory, disk and peak values of a step, once it lasted long enough for Slurm to have sampled it."""
    step = row.step
    if step is None or step.usage is None:
        return None
    ran = (step.end_time or view.now) - step.start_time  # not between whole seconds: `true` may end in the next one
    if ran < (sample_seconds(view) if step.step_id == _BATCH else min(sample_seconds(view), 1)):
        return None
    return step.usage


def sample_seconds(view: View) -> int:
    """JobAcctGatherFrequency's task interval; 0 when the configuration does not set it."""
    for key, value in view.config.values:
        if key == "JobAcctGatherFrequency":
            digits = value.partition("task=")[2].partition(",")[0] or value
            return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else 0
    return 0


def cpu_time(microseconds: int) -> str:
    """`00:00.022`, `01:02:03`, `1-00:00:00`; `00:00:00` for nothing."""
    if microseconds <= 0:
        return "00:00:00"
    seconds, rest = divmod(microseconds, 1_000_000)
    if seconds >= 3600:
        return durations.render_elapsed(seconds)
    return f"{seconds // 60:02d}:{seconds % 60:02d}.{rest // 1000:03d}"


def amount(mib: float, view: View) -> str:
    """Memory in the unit asked for (`--units`), as it is (`--noconvert`), or as TRES are shown."""
    if view.unit:
        value = mib * 1024.0 ** (1 - _UNITS.index(view.unit))
        return f"{int(value)}{view.unit}" if value == int(value) else f"{value:.2f}{view.unit}"
    return text.mib_text(int(mib), view.convert)


def kib_amount(kib: int, view: View) -> str:
    """Measured memory: `988K`, `1.50M` with --units."""
    if not view.unit:
        return f"{kib}K" if kib else "0"
    value = kib * 1024.0 ** -_UNITS.index(view.unit)
    return f"{int(value)}{view.unit}" if value == int(value) else f"{value:.2f}{view.unit}"


def tres_text(value: Tres, view: View) -> str:
    """Sorted by the text itself, as the accounting database has it."""
    parts = []
    for name, number in value:
        if name == "mem":
            parts.append(f"mem={amount(number, view)}")
        else:
            parts.append(tres.render(((name, number),)))
    return ",".join(sorted(parts))


def alloc_tres(row: AccountRow, view: View) -> str:
    if row.step is not None:
        held = row.step.tres or tuple(
            pair for pair in (row.job.allocation.tres if row.job.allocation else ()) if pair[0] != "billing"
        )
        return tres_text(held, view)
    if row.job.allocation is None:
        return ""
    held = row.job.allocation.tres
    if row.job.het_job_id:  # components are not billed one by one
        held = tuple(pair for pair in held if pair[0] != "billing")
    return tres_text(held, view)


def req_memory(row: AccountRow, view: View) -> str:
    return amount(count(row.job.spec.req_tres, "mem"), view)


def flags(row: AccountRow) -> str:
    if row.job.allocation is None:
        return "StartReceived"
    return f"{'SchedBackfill' if row.job.het_job_id else 'SchedMain'},StartReceived"


def energy(row: AccountRow) -> str:
    """Nobody measures it: 0, and nothing for a run whose numbered steps have not ended."""
    if row.step is None and row.steps:
        ended = any(step.step_id >= 0 and step.end_time is not None for step in row.steps)
        return "0" if ended else ""
    return "0"
