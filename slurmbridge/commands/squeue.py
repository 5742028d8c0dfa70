"""squeue: which jobs and steps are there?

Follows squeue(1). Options are read by `squeue_options`, columns are `fields.jobs` and `fields.steps`, the order is
`squeue_order`. A listing of many thousand jobs is one compiled template, so nothing here looks at a job twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from slurmbridge.commands import listing, squeue_order
from slurmbridge.commands.effects import Call, Command, Print, Site, Sleep
from slurmbridge.commands.listing import Stop
from slurmbridge.commands.squeue_options import JobPick, StepPick, Wanted, read
from slurmbridge.fields import job_json, text
from slurmbridge.fields import jobs as job_fields
from slurmbridge.fields import steps as step_fields
from slurmbridge.fields.layout import Layout
from slurmbridge.fields.shapes import number
from slurmbridge.fields.states import job_word
from slurmbridge.fields.steps import StepRow
from slurmbridge.fields.view import View
from slurmbridge.lang import arrays
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag, JobState

_UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified"


def main(call: Call, site: Site) -> Command:
    """Exit code 0, or 1 for a wrong request."""
    wanted, notes = read(call, site)
    yield from listing.errors(*notes)
    if isinstance(wanted, Stop):
        yield from wanted.effects()
        return wanted.exit_code
    now = call.now
    while True:
        if wanted.header and (wanted.iterate or wanted.long):
            yield Print(listing.date_line(call, site, now))
        code = yield from (_steps if wanted.show_steps else _jobs)(replace(call, now=now), site, wanted)
        if not wanted.iterate:
            return code
        yield Print("\n")
        answer = yield Sleep(float(wanted.iterate))
        now = float(answer) if isinstance(answer, (int, float)) else now + wanted.iterate


def _jobs(call: Call, site: Site, wanted: Wanted) -> Command:
    view = listing.make_view(call, site, convert=wanted.convert, expand_patterns=wanted.expand_patterns)
    if wanted.names_cluster:
        yield Print(f"CLUSTER: {site.config.cluster_name}\n")
    found: Iterable[Job] = site.jobs() if wanted.jobs is None else _picked(wanted.jobs, site)
    if (
        wanted.jobs is not None
        and len(wanted.jobs) == 1
        and not wanted.only_state
        and not _exists(wanted.jobs[0].job_id, site)
    ):
        yield Print(_UNKNOWN_JOB + "\n", 2)
        return 1
    rows = list(select(squeue_order.creation_order(list(found)), wanted, view))
    if not site.is_operator(call.uid) and "jobs" in view.config.private_data:
        rows = [job for job in rows if job.spec.uid == call.uid or site.coordinates(call.uid, job.spec.account)]
    if wanted.structured:
        moment, kind = number(call.now), wanted.structured
        elements = (job_json.JOB.text(job, view, kind) for job in rows)
        yield from listing.print_document(call, site, kind, "jobs", elements, last_backfill=moment, last_update=moment)
        return 0
    layout, problems = _layout(wanted)
    yield from listing.errors(*problems)
    if wanted.header:
        yield Print(layout.header + "\n")
    keys, bad = squeue_order.parse_sort(wanted.sort or squeue_order.DEFAULT)
    if any(letter == "b" for letter, _ in keys):
        yield Print("squeue: Invalid sort specification: b\n", 2)
    if bad is not None:
        yield Print(f"squeue: error: Invalid sort specification: {bad}\n", 2)
        return 1
    if wanted.each_partition:
        rows = list(_by_partition(rows))
    if wanted.only_state and not wanted.sort:
        rows.sort(key=lambda job: (job.is_pending is False, -job.job_id))
    else:
        rows = squeue_order.order(rows, keys, view)
    if wanted.only_state:
        rows = [replace(job, array_limit=0) if job.tasks else job for job in rows]
    if wanted.each_task:
        rows = list(_by_task(rows))
    for piece in layout.pieces(rows, view):
        yield Print(piece)
    return 0


def _layout(wanted: Wanted) -> tuple[Layout[Job], list[str]]:
    registry = job_fields.REGISTRY
    if wanted.named:
        return registry.from_names(wanted.format)
    if wanted.format.lower().startswith("%all"):
        return registry.all_fields(), []
    return registry.from_letters(wanted.format)


def _exists(job_id: int, site: Site) -> bool:
    return site.job(job_id) is not None or bool(site.jobs_of_array(job_id)) or bool(site.jobs_of_het(job_id))


def _picked(picks: tuple[JobPick, ...], site: Site) -> list[Job]:
    """The jobs that --jobs names, each once."""
    found: dict[tuple[int, int | None], Job] = {}
    for pick in picks:
        for job in _of_pick(pick, site):
            found.setdefault((job.job_id, job.array_task_id), job)
    return list(_joined(found.values()))


def _joined(jobs: Iterable[Job]) -> Iterator[Job]:
    """Several tasks that wait in the same array stand in one row."""
    waiting: dict[int, list[Job]] = {}
    for job in jobs:
        if job.is_pending and job.array_task_id is not None:
            waiting.setdefault(job.job_id, []).append(job)
        else:
            yield job
    for tasks in waiting.values():
        if len(tasks) == 1:
            yield tasks[0]
        else:
            numbers = sorted(job.array_task_id or 0 for job in tasks)
            yield replace(tasks[0], array_task_id=None, tasks=arrays.to_runs(numbers), array_limit=0)


def _of_pick(pick: JobPick, site: Site) -> Iterator[Job]:
    if pick.task is not None:
        for part in site.jobs_of_array(pick.job_id):
            if part.array_task_id == pick.task:
                yield part
            elif part.tasks and arrays.contains(part.tasks, pick.task):
                yield one_task(part, pick.task)
        return
    job = site.job(pick.job_id)
    if job is not None and pick.job_id not in (job.array_job_id, job.het_job_id):
        yield job
        return
    yield from site.jobs_of_array(pick.job_id)
    yield from site.jobs_of_het(pick.job_id)


def one_task(job: Job, task: int) -> Job:
    """A waiting array seen as one of its tasks."""
    return replace(job, tasks=(), array_task_id=task)


def _by_task(rows: list[Job]) -> Iterator[Job]:
    for job in rows:
        if job.tasks:
            for task in arrays.expand_runs(job.tasks):
                yield one_task(job, task)
        else:
            yield job


def _by_partition(rows: list[Job]) -> Iterator[Job]:
    for job in rows:
        if job.is_pending and len(job.spec.partitions) > 1:
            for name in job.spec.partitions:
                yield replace(job, spec=replace(job.spec, partitions=(name,)))
        else:
            yield job


_SHOWN_BASE = frozenset({JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED})
_SHOWN_FLAGS = frozenset(
    {JobFlag.COMPLETING, JobFlag.CONFIGURING, JobFlag.STOPPED, JobFlag.SIGNALING, JobFlag.STAGE_OUT}
)


def _is_shown(job: Job, states: frozenset[str] | None) -> bool:
    """Whether its state is among those wanted; None: those of jobs that are not over."""
    if states is None:
        return job.state in _SHOWN_BASE or bool(job.flags and job.flags & _SHOWN_FLAGS)
    if job.state.name in states:
        return JobFlag.COMPLETING not in job.flags or "COMPLETING" in states or job.state not in _SHOWN_BASE
    return any(flag.name in states for flag in job.flags) or job_word(job) in states


def select(jobs: Iterable[Job], wanted: Wanted, view: View) -> Iterator[Job]:
    """Jobs that pass every filter given."""
    for job in jobs:
        if not wanted.all_states and not _is_shown(job, wanted.states):
            continue
        spec = job.spec
        if wanted.users is not None and spec.uid not in wanted.users:
            continue
        if spec.uid in wanted.not_users:
            continue
        if wanted.accounts is not None and spec.account not in wanted.accounts:
            continue
        if wanted.partitions is not None and wanted.partitions.isdisjoint(
            (job.allocation.partition,) if job.allocation is not None else spec.partitions
        ):
            continue
        if wanted.names is not None and spec.name not in wanted.names:
            continue
        if wanted.qos is not None and spec.qos not in wanted.qos:
            continue
        if wanted.reservations is not None and spec.reservation not in wanted.reservations:
            continue
        if wanted.licenses is not None and not any(term.name in wanted.licenses for term in spec.license_terms):
            continue
        if wanted.nodes is not None and wanted.nodes.isdisjoint(text.nodes_of(job)):
            continue
        if wanted.over is not None and not (not job.is_pending and text.run_seconds(job, view.now) > wanted.over):
            continue
        if wanted.under is not None and not (not job.is_pending and text.run_seconds(job, view.now) < wanted.under):
            continue
        yield job


def _steps(call: Call, site: Site, wanted: Wanted) -> Command:
    view = listing.make_view(call, site)
    registry = step_fields.REGISTRY
    layout, problems = registry.from_names(wanted.format) if wanted.named else registry.from_letters(wanted.format)
    yield from listing.errors(*problems)
    source: Iterable[Job] = site.jobs() if wanted.jobs is None else _picked(wanted.jobs, site)
    rows = [
        StepRow(job=job, step=step)
        for job in select(source, replace(wanted, states=None, all_states=True), view)
        for step in sorted(site.steps(job.job_id), key=attrgetter("step_id"))
        if step.end_time is None
        and (not wanted.steps or any(_is_pick(pick, job, step.step_id) for pick in wanted.steps))
    ]
    if wanted.header:
        yield Print(layout.header + "\n")
    for piece in layout.pieces(squeue_order.order_steps(rows, wanted.sort or squeue_order.DEFAULT_STEPS, view), view):
        yield Print(piece)
    return 0


def _is_pick(pick: StepPick, job: Job, step_id: int) -> bool:
    if pick.step != step_id:
        return False
    if pick.task is not None:
        return job.array_job_id == pick.job_id and job.array_task_id == pick.task
    return pick.job_id in (job.job_id, job.array_job_id)
