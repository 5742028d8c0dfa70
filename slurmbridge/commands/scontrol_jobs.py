"""What do scontrol's verbs on jobs do: hold, release, requeue, suspend, resume, top, notify, wait_job, write batch_script?

Follows scontrol(1). Rights are checked by the controller; here its refusals get the words in which scontrol says them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import msgspec

from slurmbridge.commands.effects import (
    Change,
    Command,
    Effect,
    Fetch,
    FileData,
    Outcome,
    Print,
    Refused,
    Sleep,
    WriteFile,
)
from slurmbridge.commands.job_targets import Target, read_target, split_targets
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.errors import SlurmErrno, system_text
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag

Answered = Generator[Effect, Any, int]
_BY_UPDATE = ("hold", "uhold", "release")
_POLL_S = 0.5


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """One keyword. `trailer`: prints `slurm_suspend error:...` after a failure."""

    name: str
    trailer: bool = False
    one_job: bool = False


VERBS = {
    "hold": Verb(name="hold", trailer=True),
    "uhold": Verb(name="uhold", trailer=True),
    "holdu": Verb(name="uhold", trailer=True),
    "release": Verb(name="release", trailer=True),
    "requeue": Verb(name="requeue"),
    "requeuehold": Verb(name="requeuehold"),
    "suspend": Verb(name="suspend"),
    "resume": Verb(name="resume"),
}


def change_jobs(eyes: Eyes, keyword: str, words: Sequence[str]) -> Command:
    """`scontrol hold 12,13 14_3`: every word in turn."""
    verb = VERBS[keyword]
    failed: str | None = None
    for word in words:
        text = yield from _change_word(eyes, verb, word)
        if text is not None:
            failed = text
    if failed is None:
        return 0
    if verb.trailer and not failed.startswith("["):
        yield from complain(eyes, f"slurm_suspend error:{failed}")
    return 1


def _change_word(eyes: Eyes, verb: Verb, word: str) -> Generator[Effect, Any, str | None]:
    """One word: a list of jobs, or `jobname=NAME`. Returns the last failure's text; "[" marks one already complete."""
    key, equals, name = word.partition("=")
    if equals and key.lower() in ("job", "jobid"):
        word, equals = name, ""
    if not word:
        return None
    if equals and (("jobname".startswith(key.lower()) and len(key) >= 4) or key.lower() == "name"):
        jobs = [job for job in eyes.site.jobs() if job.spec.name == name and job.spec.uid == eyes.call.uid]
        targets = [Target(text=label(job), job_id=job.job_id) for job in jobs if not job.array_task_id]
    else:
        read = [read_target(text, eyes.site.config.max_array_size) for text in split_targets(word)]
        if any(target is None or target.step is not None for target in read) or not read:
            text = SlurmErrno.INVALID_JOB_ID.text
            yield from complain(eyes, f"{text} for job {word}")
            return text
        targets = [target for target in read if target is not None]
    failed: str | None = None
    for target in targets:
        outcome: Outcome = yield Change(
            verb=verb.name, job_id=target.job_id, array_tasks=target.tasks, het_offset=target.offset
        )
        refusal = yield from report(eyes, target, outcome, lambda errno, job: _word_for(eyes, verb, errno, job))
        failed = refusal or failed
    return failed


def _word_for(eyes: Eyes, verb: Verb, errno: SlurmErrno, job: Job | None) -> str:
    """The controller's refusal in the words of this verb's request."""
    if verb.name in _BY_UPDATE:
        if errno is SlurmErrno.ALREADY_DONE:
            return SlurmErrno.JOB_FINISHED.text
        if errno is SlurmErrno.ACCESS_DENIED and job is not None and job.spec.uid != eyes.call.uid:
            return SlurmErrno.USER_ID_MISSING.text
    if verb.name in ("suspend", "resume"):
        is_denied = errno is SlurmErrno.INVALID_JOB_ID and not eyes.site.is_operator(eyes.call.uid)
        if is_denied:
            return "Unexpected message received"
        if errno is SlurmErrno.DISABLED and verb.name == "resume":
            return SlurmErrno.JOB_NOT_SUSPENDED.text
    return errno.text


def report(
    eyes: Eyes, target: Target, outcome: Outcome, words: Callable[[SlurmErrno, Job | None], str]
) -> Generator[Effect, Any, str | None]:
    """Print the refusals of one request: `TEXT for job 12`, or `12_[1-3]: TEXT` for the tasks of an array."""
    refused = [(name, errno) for name, errno in outcome.results if errno is not None]
    if not refused and outcome.results:
        return None
    job = eyes.site.job(target.job_id)
    is_array = target.tasks is not None or (job is not None and job.array_job_id != 0 and len(outcome.results) > 1)
    if not is_array:
        text = words(refused[0][1] if refused else SlurmErrno.INVALID_JOB_ID, job)
        yield from complain(eyes, f"{text} for job {target.text}")
        return text
    groups: dict[str, list[str]] = {}
    for name, errno in refused or [(target.text, SlurmErrno.INVALID_JOB_ID)]:
        groups.setdefault(words(errno, job), []).append(name.partition("_")[2])
    for text, tasks in groups.items():
        yield from complain(eyes, f"{target.job_id}_[{_ranges(tasks, target)}]: {text}")
    return "[" + next(iter(groups))


def _ranges(tasks: list[str], target: Target) -> str:
    numbers = sorted({int(task) for task in tasks if task.isdecimal()})
    parts: list[str] = []
    for number in numbers:
        if parts and int(parts[-1].rpartition("-")[2]) == number - 1:
            parts[-1] = f"{parts[-1].partition('-')[0]}-{number}"
        else:
            parts.append(str(number))
    return ",".join(parts) or target.text.partition("_")[2].strip("[]")


def label(job: Job) -> str:
    """As people name it: `12`, `12_3`, `12+1`."""
    if job.array_job_id and job.array_task_id is not None:
        return f"{job.array_job_id}_{job.array_task_id}"
    return f"{job.het_job_id}+{job.het_offset}" if job.het_job_id else str(job.job_id)


def complain(eyes: Eyes, *lines: str) -> Generator[Effect, Any, None]:
    """Lines for stderr; with -Q those alone that are logged as errors."""
    for line in lines:
        if not eyes.flags.quiet or line.startswith("scontrol: error: "):
            yield Print(line + "\n", 2)


def top(eyes: Eyes, word: str) -> Command:
    """Users may only where SchedulerParameters has enable_user_top."""
    allowed = eyes.site.is_operator(eyes.call.uid) or "enable_user_top" in eyes.site.config.scheduler_parameters.split(
        ","
    )
    failed = False
    for text in reversed(split_targets(word)):
        target = read_target(text)
        if target is None or not allowed:
            errno = SlurmErrno.INVALID_JOB_ID if allowed else SlurmErrno.ACCESS_DENIED
            yield from complain(eyes, f"{errno.text} for job {word}")
            return 1
        outcome: Outcome = yield Change(verb="top", job_id=target.job_id, array_tasks=target.tasks)
        failed = (yield from report(eyes, target, outcome, lambda errno, _: errno.text)) is not None or failed
    return int(failed)


def notify(eyes: Eyes, word: str, message: str) -> Command:
    """A message to a running job's output."""
    target = read_target(word)
    if target is None:
        yield Print(f"Invalid job_id {word}job notify failure: No error\n", 2)
        return 1
    outcome: Outcome = yield Change(
        verb="notify", job_id=target.job_id, array_tasks=target.tasks, het_offset=target.offset, message=message
    )
    refused = [each for _, each in outcome.results if each is not None]
    errno = refused[0] if refused else (None if outcome.results else SlurmErrno.INVALID_JOB_ID)
    if errno is None:
        return 0
    if errno in (SlurmErrno.JOB_PENDING, SlurmErrno.ALREADY_DONE):
        errno = SlurmErrno.DISABLED
    elif errno is SlurmErrno.ACCESS_DENIED:
        errno = SlurmErrno.USER_ID_MISSING
    yield from complain(eyes, f"job notify failure: {errno.text}")
    return 1


def wait_job(eyes: Eyes, word: str) -> Command:
    """Until the job's nodes are in use; an error for a job that will not start any more."""
    target = read_target(word)
    while target is not None:
        job = eyes.site.job(target.job_id)
        if job is None:
            break
        if job.is_finished:
            yield Print(f"scontrol: Job {target.job_id} no longer running\n", 2)
            return 1
        if not job.is_pending and JobFlag.CONFIGURING not in job.flags:
            yield Print(f"scontrol: Nodes are ready for job {target.job_id}\n", 2)
            return 0
        yield Sleep(_POLL_S)
    if target is None:
        yield Print(f"Invalid job_id {word}", 2)
    else:
        yield Print(f"scontrol: Problem running job {target.job_id}\n", 2)
    return 1


def write_script(eyes: Eyes, words: Sequence[str]) -> Command:
    """`write batch_script JOB [FILE]`: `-` is stdout. Failures do not change the exit code, as in Slurm."""
    target = read_target(words[0])
    if target is None:
        yield Print(f"scontrol: fatal: Bad job/step specified: {words[0]}: JobID can not be zero\n", 2)
        return 1
    job_id = target.job_id
    if target.tasks is not None or target.offset is not None:
        found = find_jobs(eyes, target)
        job_id = found[0].job_id if found else job_id
    answer: bytes | Refused = yield Fetch(what="script", job_id=job_id)
    if isinstance(answer, Refused):
        denied = answer.errno is SlurmErrno.ACCESS_DENIED
        text = SlurmErrno.USER_ID_MISSING.text if denied else answer.errno.text
        yield from complain(eyes, f"job script retrieval failed: {text}")
        return 0
    if len(words) < 2 or words[1] != "-":
        name = words[1] if len(words) > 1 else f"slurm-{words[0]}.sh"
        written: FileData = yield WriteFile(name=name, data=answer)
        if written.errno:
            yield Print(f"failed to open file `{name}`: {system_text(written.errno)}\n", 2)
        elif not eyes.flags.quiet:
            yield Print(f"batch script for job {words[0]} written to {name}\n")
        return 0
    script = answer.decode("utf-8", "surrogateescape")
    yield Print(script if script.endswith("\n") else script + "\n")
    return 0


def find_jobs(eyes: Eyes, target: Target) -> list[Job]:
    """The records that a target names, array tasks still in the array as if they stood alone (no start foreseen)."""
    site = eyes.site
    if target.offset is not None:
        return [job for job in site.jobs_of_het(target.job_id) if job.het_offset == target.offset]
    family = list(site.jobs_of_array(target.job_id))
    if target.tasks is not None:
        wanted = set(target.tasks)
        found = [job for job in family if job.array_task_id in wanted]
        record = next((job for job in family if job.tasks), None)
        if record is not None:
            held = [task for task in target.tasks if _holds(record, task)]
            found += [msgspec.structs.replace(record, array_task_id=task, tasks=(), start_time=None) for task in held]
        return found
    if family:
        records = [job for job in family if job.tasks]
        return records + sorted((job for job in family if not job.tasks), key=lambda job: -job.job_id)
    components = list(site.jobs_of_het(target.job_id))
    job = site.job(target.job_id)
    return components or ([job] if job is not None else [])


def _holds(record: Job, task: int) -> bool:
    return any(first <= task <= last and (task - first) % step == 0 for first, last, step in record.tasks)
