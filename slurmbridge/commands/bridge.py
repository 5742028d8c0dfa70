"""The parts of the `slurmbridge` command that the daemon answers: why, logs and the request to stop.

slurmbridge why JOB          which rule keeps a job waiting, and when it may start
slurmbridge logs JOB         where a job's output is
slurmbridge shutdown [jobs]  stop the daemon (and end its jobs): asked by `slurmbridge down`
"""

from __future__ import annotations

import msgspec

from slurmbridge.commands.effects import Alter, AlterOutcome, Call, Command, Print, Site
from slurmbridge.model.job import Job
from slurmbridge.model.request import JobRequest
from slurmbridge.submit.option import End
from slurmbridge.submit.options import TABLE

UNSET = {field.name: field.default for field in msgspec.structs.fields(JobRequest)}
"""What a request holds where nothing was asked."""


def main(call: Call, site: Site) -> Command:
    verb, words = (call.argv[1], call.argv[2:]) if len(call.argv) > 1 else ("", ())
    if verb == "shutdown":
        return (yield from shutdown("jobs" in words))
    if verb not in ("why", "logs") or len(words) != 1:
        yield Print("slurmbridge: error: usage: slurmbridge why JOB | logs JOB\n", 2)
        return 1
    jobs = find_jobs(site, words[0])
    if not jobs:
        yield Print(f"slurmbridge: error: no job {words[0]} that is waiting, running or ended lately\n", 2)
        return 1
    for job in jobs:
        yield Print(explain(job) if verb == "why" else output_of(call, site, job))
    return 0


def shutdown(jobs: bool) -> Command:
    outcome: AlterOutcome = yield Alter(kind="shutdown", fields=(("jobs", jobs),))
    if outcome.errno is not None:
        yield Print(f"slurmbridge: error: {outcome.errno.text}\n", 2)
        return 1
    return 0


def find_jobs(site: Site, text: str) -> tuple[Job, ...]:
    """By raw id, by array id (all its tasks) or as ARRAY_TASK."""
    number, _, task = text.partition("_")
    if not number.isdigit() or (task and not task.isdigit()):
        return ()
    tasks = tuple(site.jobs_of_array(int(number)))
    if task:
        return tuple(job for job in tasks if job.array_task_id == int(task))
    job = site.job(int(number))
    return tasks or ((job,) if job else ())


def label(job: Job) -> str:
    if job.array_job_id and job.array_task_id is not None:
        return f"{job.array_job_id}_{job.array_task_id}"
    return str(job.job_id)


def explain(job: Job) -> str:
    """State, reason and what the planner said."""
    state = job.state.name
    if not job.is_pending:
        return f"{label(job)} {state}" + (f" {job.reason}\n" if job.reason not in ("", "None") else "\n")
    lines = [f"{label(job)} {state} {job.reason}"]
    if job.reason_text:
        lines.append(f"    {job.reason_text}")
    if job.priority == 0:
        lines.append(f"    held by {job.held_by or 'its owner'}: scontrol release {label(job)}")
    if job.start_time:
        lines.append("    an expected start is known: squeue --start")
    for option, why in recorded(job):
        lines.append(f"    --{option} is recorded without effect: {why}")
    return "\n".join(lines) + "\n"


def recorded(job: Job) -> tuple[tuple[str, str], ...]:
    """Options of the job that are stored and shown, with the reason why they change nothing."""
    request = job.spec.request
    return tuple(
        (option.long, option.why)
        for option in TABLE
        if option.end is End.RECORDED
        and option.field
        and getattr(request, option.field, None) != UNSET.get(option.field)
    )


def output_of(call: Call, site: Site, job: Job) -> str:
    """Files that hold a job's output; owner and operators only."""
    if call.uid != job.spec.uid and not site.is_operator(call.uid):
        return f"{label(job)}: Access/permission denied\n"
    if job.spec.std_out is None:
        return f"{label(job)}: no batch script, so no output file\n"
    errors = "" if job.spec.std_err in (None, "", job.spec.std_out) else f"{label(job)} stderr {job.spec.std_err}\n"
    return f"{label(job)} stdout {job.spec.std_out}\n{errors}"
