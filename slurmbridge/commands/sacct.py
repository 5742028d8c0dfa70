"""sacct: what ran, how did it end, and what did it use?

Follows sacct(1). Rows come from the store (`History`); a run is followed by its steps. What the store does not select by
(groups, sizes, limits, reasons ...) is selected here.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from slurmbridge.commands import listing
from slurmbridge.commands.accounting_words import known_tres
from slurmbridge.commands.effects import Call, Command, History, JobRow, Print, Site
from slurmbridge.commands.listing import Stop
from slurmbridge.commands.sacct_options import Wanted, read
from slurmbridge.fields import accounting as acc
from slurmbridge.fields import sacct as columns
from slurmbridge.fields import text
from slurmbridge.fields.account_json import account_record
from slurmbridge.fields.accounting import AccountRow
from slurmbridge.fields.structured import Value, element
from slurmbridge.fields.view import View
from slurmbridge.lang import arrays, times
from slurmbridge.model.job import Job, Step, StepId
from slurmbridge.model.states import JobState
from slurmbridge.model.units import UNLIMITED


def main(call: Call, site: Site) -> Command:
    """Exit code 0, or 1 for a wrong request."""
    wanted = read(call, site)
    if isinstance(wanted, Stop):
        yield from wanted.effects()
        return wanted.exit_code
    if wanted.verbose:
        yield Print(_window(wanted, call, site), 2)
    view = listing.make_view(
        call, site, convert=wanted.convert, unit=wanted.unit, expand_patterns=wanted.expand_patterns
    )
    found: tuple[JobRow, ...] = ()
    if not wanted.elsewhere:
        found = yield History(filter=wanted.filter)
    rows = (row for row in found if passes(row.job, wanted, view) and _may_see(row.job, call, site))
    if wanted.show:
        yield from _stored(rows, wanted, call, site)
        return 0
    if wanted.document:
        kind = wanted.document
        elements = (element(kind, record) for record in _records(account_rows(rows, wanted, view), view))
        yield from listing.print_document(call, site, kind, "jobs", elements)
        return 0
    yield from _print(account_rows(rows, wanted, view), wanted, view)
    return 0


def _window(wanted: Wanted, call: Call, site: Site) -> str:
    """-v: between which moments it is looked."""
    zone, start, end = listing.time_zone(call, site), wanted.filter.start, wanted.filter.end
    until = times.render(call.now if end is None else end, zone, "%a %b %d %H:%M:%S %Y")
    since = times.render(start, zone, "%a %b %d %H:%M:%S %Y") if start else "Epoch 0"
    return f"sacct: Jobs Eligible in the time window from {since} to {until}\n"


def _records(rows: Iterable[AccountRow], view: View) -> Iterator[Value]:
    """Runs as objects; a run of which only steps were asked for comes with these."""
    ids = known_tres(view.config)
    for _, group in itertools.groupby(rows, key=lambda row: (row.job.job_id, row.job.array_task_id, row.job.restarts)):
        own = list(group)
        if own[0].step is not None:
            own.insert(0, AccountRow(job=own[0].job, steps=own[0].steps, window=own[0].window))
        yield account_record(own, view, ids)


def _may_see(job: Job, call: Call, site: Site) -> bool:
    """PrivateData=jobs hides the jobs of others, but from operators and coordinators."""
    if "jobs" not in site.config.private_data or job.spec.uid == call.uid:
        return True
    return site.is_operator(call.uid) or site.coordinates(call.uid, job.spec.account)


def passes(job: Job, wanted: Wanted, view: View) -> bool:
    """What the store's filter does not know of."""
    spec = job.spec
    row = AccountRow(job=job)
    if wanted.groups is not None and spec.gid not in wanted.groups:
        return False
    if wanted.reasons is not None and acc.reason(row) not in wanted.reasons:
        return False
    if wanted.assocs is not None and str(spec.assoc_id) not in wanted.assocs:
        return False
    if wanted.constraints is not None and not any(name in (spec.features or "") for name in wanted.constraints):
        return False
    if wanted.flags is not None and wanted.flags.isdisjoint(acc.flags(row).lower().split(",")):
        return False
    if not _within(acc.alloc_nodes(row), wanted.nodes_range) or not _within(acc.alloc_cpus(row), wanted.cpus_range):
        return False
    if not _within(UNLIMITED if spec.time_limit is None else spec.time_limit, wanted.limit_range):
        return False
    return wanted.by_job or _was_eligible(job, wanted, view)


def _within(value: int, limits: tuple[int, int] | None) -> bool:
    return limits is None or limits[0] <= value <= limits[1]


def _was_eligible(job: Job, wanted: Wanted, view: View) -> bool:
    """Jobs that could not have started yet (held, dependent, to begin later) are not listed unless asked for by id."""
    if job.allocation is not None:
        return True
    end = wanted.filter.end if wanted.filter.end is not None else view.now
    return job.eligible_time is not None and job.eligible_time <= end


def account_rows(rows: Iterable[JobRow], wanted: Wanted, view: View) -> Iterator[AccountRow]:
    """Each run, then its steps: batch, extern, then by number."""
    window: tuple[float, float] | None = None
    if wanted.truncate:
        window = (wanted.filter.start or 0.0, wanted.filter.end if wanted.filter.end is not None else view.now)
    for row in rows:
        steps = tuple(sorted(row.steps, key=text.step_order)) if wanted.steps else row.steps
        if not steps and row.job.spec.is_batch and row.job.allocation is not None:
            steps = (_batch_step(row.job),)
        wanted_steps = _steps_asked_for(row.job, wanted)
        if wanted_steps is None or None in wanted_steps:
            for job in _tasks(row.job, wanted):
                yield AccountRow(job=job, steps=steps, window=window)
        if wanted.steps:
            for step in steps:
                if wanted_steps is None or None in wanted_steps or step.step_id in wanted_steps:
                    yield AccountRow(job=row.job, step=step, steps=steps, window=window)


def _tasks(job: Job, wanted: Wanted) -> Iterator[Job]:
    if wanted.each_task and job.tasks:
        for task in arrays.expand_runs(job.tasks):
            yield replace(job, tasks=(), array_task_id=task)
    else:
        yield job


def _steps_asked_for(job: Job, wanted: Wanted) -> set[int | None] | None:
    """Step ids that -j names for this job, None among them for the job itself; None: -j was not given."""
    if not wanted.filter.job_ids:
        return None
    asked: set[int | None] = set()
    for number, part, step in wanted.filter.job_ids:
        if number not in (job.job_id, job.array_job_id, job.het_job_id):
            continue
        if part is not None and not (wanted.whole_het and job.het_job_id):
            if part not in (job.array_task_id, job.het_offset if job.het_job_id else None):
                continue
        elif part is None and wanted.whole_het is False and job.het_offset and number != job.job_id:
            continue
        asked.add(step)
    return asked


def _batch_step(job: Job) -> Step:
    """The step of a batch script whose own record is not there (yet); one that was killed shows the signal."""
    killed = job.state in (JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED, JobState.DEADLINE)
    return Step(
        job_id=job.job_id,
        restarts=job.restarts,
        step_id=StepId.BATCH.value,
        name="batch",
        state=JobState.CANCELLED if killed else job.state,
        start_time=job.start_time or job.submit_time,
        end_time=job.end_time if job.is_finished else None,
        nodes=text.nodes_of(job)[:1],
        cpus=job.allocation.nodes[0].cpus if job.allocation is not None and job.allocation.nodes else 0,
        exit_code=signal.SIGTERM if killed else job.exit_code,
        usage=job.usage,
    )


def _print(rows: Iterable[AccountRow], wanted: Wanted, view: View) -> Iterator[Print]:
    placed = wanted.placed
    getters = [each.column.get for each in placed]
    if wanted.parsable:
        between, end = wanted.delimiter, (wanted.delimiter if wanted.parsable == 1 else "") + "\n"
        if wanted.header:
            yield Print(between.join(each.column.name for each in placed) + end)
        yield from listing.in_pieces(between.join([get(row, view) for get in getters]) + end for row in rows)
    else:
        if wanted.header:
            yield Print("".join(line + "\n" for line in columns.header(placed)))
        cell = columns.cell
        yield from listing.in_pieces(
            "".join([cell(get(row, view), each) for get, each in zip(getters, placed, strict=True)]) + "\n"
            for row in rows
        )


def _stored(rows: Iterable[JobRow], wanted: Wanted, call: Call, site: Site) -> Iterator[Print]:
    """Scripts or environments, of jobs whose owner (or an operator) asks."""
    for row in rows:
        job = row.job
        if call.uid != job.spec.uid and not site.is_operator(call.uid):
            continue
        label = text.job_label(job)
        if wanted.show == "script" and row.script is not None:
            body = row.script.decode("utf-8", "surrogateescape")
            yield Print(f"Batch Script for {label}\n{'-' * 80}\n{body}" + ("" if body.endswith("\n") else "\n"))
        elif wanted.show == "env" and row.env is not None:
            body = "".join(f"{name}={value}\n" for name, value in row.env)
            yield Print(f"Environment used for {label} (must be batch to display)\n{'-' * 80}\n{body}")
