"""The output of a job: where it is, or what the controller keeps of it (`slurmbridge logs`, `slurmbridge where`).

    logs JOB[_TASK] [--follow] [--stderr] [--file PATH]     what is kept; of a file that is somewhere: where
    where JOB[_TASK] [--stderr]                             for the command itself: a line of JSON per job

What lies on a file system is read by whom it is there for, with his own rights; the command does that (`cli.logs`). What is
kept, its job's owner and operators are shown.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from slurmbridge.commands.bridge_jobs import find_jobs, label, may_see
from slurmbridge.commands.effects import Call, Command, Effect, History, JobFilter, JobRow, KeptOutput, Print, Site
from slurmbridge.commands.listing import is_id
from slurmbridge.errors import SlurmErrno
from slurmbridge.fields.text import filename_values, stdio_path
from slurmbridge.manifest.pod_output import unshared
from slurmbridge.model.job import Job
from slurmbridge.model.kept import KeptFile, KeptPart
from slurmbridge.wire.supervisor import OF_STDERR as STDERR
from slurmbridge.wire.supervisor import OF_STDOUT as STDOUT
from slurmbridge.wire.supervisor import OF_STEP as STEP

USAGE = "slurmbridge: error: usage: slurmbridge logs [--follow] [--stderr] [--file PATH] JOB[_TASK]\n"
PART = 1 << 18
"""Bytes that are shown at once."""
WAIT_S = 2.0
"""Between two looks at a job from which nothing comes."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed."""

    job: str
    follows: bool = False
    stream: str = STDOUT
    path: str = ""  # of one of its steps' files


def read_wish(words: Sequence[str]) -> Wish | None:
    """None: it makes no sense."""
    found: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if word == "--follow":
            found["follows"] = True
        elif word == "--stderr":
            found["stream"] = STDERR
        elif word == "--file":
            found["path"] = next(left, "")
            if not found["path"]:
                return None
        elif word.startswith("-") or "job" in found:
            return None
        else:
            found["job"] = word
    return Wish(**found) if "job" in found else None


def main(call: Call, site: Site, verb: str, words: Sequence[str]) -> Command:
    wish = read_wish(words)
    if wish is None:
        yield Print(USAGE, 2)
        return 1
    jobs: tuple[Job, ...] = yield from _jobs(call, site, wish.job)
    if not jobs:
        return (yield from _complain(f"{wish.job}: {SlurmErrno.INVALID_JOB_ID.text}"))
    if any(not _may_read(call, site, job) for job in jobs):
        return (yield from _complain(f"{wish.job}: {SlurmErrno.ACCESS_DENIED.text}"))
    if verb == "where":
        for job in jobs:
            yield Print(json.dumps((yield from _where(site, job, wish))) + "\n")
        return 0
    if len(jobs) > 1 and wish.follows:
        return (yield from _complain(f"{wish.job} is several jobs: name one of them to follow it"))
    shown: list[str] = []
    for job in jobs:
        if len(jobs) > 1:
            shown.append(label(job))
            yield Print(("\n" if len(shown) > 1 else "") + f"==> {shown[-1]} <==\n")
        code: int = yield from _show(site, job, wish)
        if code and len(jobs) == 1:
            return code
    return 0


def _complain(text: str) -> Generator[Effect, Any, int]:
    yield Print(f"slurmbridge: error: {text}\n", 2)
    return 1


def _jobs(call: Call, site: Site, text: str) -> Generator[Effect, Any, tuple[Job, ...]]:
    """Those that memory has, else the last runs that the store has."""
    found = tuple(job for job in find_jobs(site, text) if may_see(call, site, job))
    number, _, task = text.partition("_")
    if found or not is_id(number) or (task and not is_id(task)):
        return found
    wanted = JobFilter(job_ids=((int(number), int(task) if task else None, None),), with_steps=False)
    rows: tuple[JobRow, ...] = yield History(filter=wanted)
    last = {row.job.job_id: row.job for row in rows if may_see(call, site, row.job)}
    return tuple(last[job_id] for job_id in sorted(last))


def _may_read(call: Call, site: Site, job: Job) -> bool:
    return call.uid == job.spec.uid or site.is_operator(call.uid)


def _where(site: Site, job: Job, wish: Wish) -> Generator[Effect, Any, dict[str, object]]:
    part: KeptPart = yield from _kept(job)
    stream = STDERR if wish.stream == STDERR and stdio_path(job, STDERR, expand=True) else STDOUT
    return {
        "job": label(job),
        "path": stdio_path(job, stream, expand=True),
        "kept": bool(wish.path) or _is_kept(site, job, part),
        "begun": not job.is_pending,
        "over": is_over(site, job),
    }


def _kept(job: Job, name: str = "", offset: int = 0, wait_s: float = 0.0) -> Generator[Effect, Any, KeptPart]:
    """What is kept of the job, not of another user's that had its number once."""
    part: KeptPart = yield KeptOutput(
        job_id=job.job_id, name=name, offset=offset, size=PART if name else 0, wait_s=wait_s
    )  # fmt: skip
    return KeptPart(files=tuple(each for each in part.files if each.uid == job.spec.uid), data=part.data)


def is_over(site: Site, job: Job) -> bool:
    """Nothing more of it will run."""
    current = site.job(job.job_id)
    return current is None or current.state.is_finished


def _is_kept(site: Site, job: Job, part: KeptPart) -> bool:
    """Whether it is, or would be once there is any: a job that has not begun may still be of this kind."""
    if any(each.what != STEP for each in part.files) or (part.files and not job.spec.is_batch):
        return True
    home = ""  # mounting it or not changes nothing of where a file is
    return not is_over(site, job) and bool(unshared(job, filename_values(job), home, site.capabilities))


def _show(site: Site, job: Job, wish: Wish) -> Generator[Effect, Any, int]:
    part: KeptPart = yield from _kept(job)
    if not wish.path and not _is_kept(site, job, part):
        return (yield from _tell_where(job, wish))
    file, offset = chosen(part.files, job, wish), 0
    if file is None and wish.path:
        return (yield from _complain(f"{label(job)}: nothing is kept of {wish.path}"))
    while True:
        was_over = is_over(site, job)  # before the look: what comes later is another job's
        name = file.name if file is not None else ""
        part = yield from _kept(job, name, offset, WAIT_S if wish.follows and not was_over else 0.0)
        offset += len(part.data)
        if part.data:
            yield Print(part.data.decode("utf-8", "surrogateescape"))
            continue
        following = next_of(part.files, site.job(job.job_id) or job, wish, file)
        if following is not None:
            file, offset = following, 0
        elif not wish.follows or was_over:
            break
    yield from _others(job, part.files, wish)
    return 0


def chosen(files: Sequence[KeptFile], job: Job, wish: Wish) -> KeptFile | None:
    """Where to begin: with the last run, or the first where each adds to what the others wrote."""
    found = _wanted(files, job, wish)
    if not found:
        return None
    return found[0] if job.spec.open_mode == "append" else _of_last_run(found)


def next_of(files: Sequence[KeptFile], job: Job, wish: Wish, before: KeptFile | None) -> KeptFile | None:
    """What comes when a file is at its end."""
    if before is None:
        return chosen(files, job, wish)
    later = [each for each in _wanted(files, job, wish) if each.restarts > before.restarts]
    return later[0] if later else None


def _wanted(files: Sequence[KeptFile], job: Job, wish: Wish) -> list[KeptFile]:
    """By run; of the files of one name that a run wrote, the last, as each opening cuts it."""
    if wish.path:
        found = [each for each in files if each.path == wish.path]
    else:
        stream = wish.stream if wish.stream != STDERR or any(each.what == STDERR for each in files) else STDOUT
        found = [each for each in files if each.what == stream]
    if job.spec.open_mode == "append":
        return found
    last = {(each.restarts, each.path): each for each in found}
    return list(last.values())


def _of_last_run(found: Sequence[KeptFile]) -> KeptFile:
    return next(each for each in found if each.restarts == found[-1].restarts)


def _others(job: Job, files: Sequence[KeptFile], wish: Wish) -> Generator[Effect, Any, None]:
    """Files of its steps are not shown unless they are asked for."""
    names = dict.fromkeys(each.path for each in files if each.what == STEP)
    if names and not wish.path:
        lines = "".join(f"slurmbridge:   {name}\n" for name in names)
        yield Print(f"slurmbridge: files of its steps, shown by logs --file PATH {label(job)}:\n{lines}", 2)


def _tell_where(job: Job, wish: Wish) -> Generator[Effect, Any, int]:
    paths = {stream: stdio_path(job, stream, expand=True) for stream in (STDOUT, STDERR)}
    if paths[STDOUT] is None:
        yield Print(f"{label(job)}: no batch script, so no output file\n", 2)
        return 1
    for stream, path in paths.items():
        if path is not None and (wish.stream == STDOUT or stream == STDERR or paths[STDERR] is None):
            yield Print(f"{label(job)} {stream} {path}\n")
    return 0
