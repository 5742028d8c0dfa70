"""What does `scontrol show step` print of a running step?

Follows the layout of Slurm 26.05. Steps of finished jobs are not shown, as there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from slurmbridge.commands.effects import Command, Effect, Print
from slurmbridge.commands.job_targets import Target, read_target
from slurmbridge.commands.scontrol_jobs import complain, find_jobs, label
from slurmbridge.commands.scontrol_view import Eyes, lay_out
from slurmbridge.fields import text
from slurmbridge.lang import hostlist, tres
from slurmbridge.model.job import Job, Step

_NULL = "(null)"


def step_lines(step: Step, job: Job, eyes: Eyes) -> Iterator[str]:
    """All lines of one step."""
    name = text.step_label(step.step_id)
    yield f"StepId={label(job)}.{name} UserId={job.spec.uid} StartTime={eyes.view.time(step.start_time)} TimeLimit=UNLIMITED"
    partition = job.allocation.partition if job.allocation else ",".join(job.spec.partitions)
    yield f"State={step.state.name} Partition={partition} NodeList={hostlist.compress_sorted(step.nodes)}"
    is_numbered = step.step_id >= 0
    cpus = step.cpus if is_numbered else 0
    yield f"Nodes={len(step.nodes)} CPUs={cpus} Tasks={step.num_tasks} Name={step.name or name} Network={_NULL}"
    yield f"TRES={tres.render(step.tres) if step.tres and is_numbered else _NULL}"
    yield "ResvPorts=(null)"
    yield "CPUFreqReq=Default" + (f" Dist={step.layout or 'Block'}" if is_numbered else "")
    yield f"SrunHost:Pid={job.batch_host or _NULL}:0" if is_numbered else f"SrunHost:Pid={_NULL}:0"
    for key, path in (("StdErr", step.std_err), ("StdIn", step.std_in), ("StdOut", step.std_out)):
        if path and is_numbered:
            yield f"{key}={path}"


def show_steps(eyes: Eyes, word: str | None) -> Command:
    """Of all jobs, of one job, or one step."""
    target = read_target(word) if word else None
    if word and target is None:
        yield from _failed(word, "JobID can not be zero")
        return 1
    jobs = (
        find_jobs(eyes, target)
        if target
        else [job for job in eyes.site.jobs() if job.allocation and not job.is_finished]
    )
    if target and not jobs:
        yield from _failed(target.text, "Invalid job id specified")
        return 1
    shown = 0
    for job in jobs:
        for step in sorted(eyes.site.steps(job.job_id), key=text.step_order):
            if target and target.step is not None and step.step_id != target.step:
                continue
            yield Print(lay_out(step_lines(step, job, eyes), eyes.flags.one_line))
            shown += 1
    if shown:
        return 0
    if target is None:
        if not eyes.flags.quiet:
            yield Print("No job steps in the system\n")
        return 0
    yield from complain(eyes, _missing(target))
    return 1


def _missing(target: Target) -> str:
    return f"Job step {target.text} not found"


def _failed(word: str, why: str) -> Generator[Effect, Any, None]:
    yield Print(f"scontrol: error: scontrol_print_step: slurm_get_job_steps({word}) failed: {why}\n", 2)
