"""In which order does squeue list jobs? The base order and the keys of --sort.

Follows squeue(1) --sort as a real Slurm behaves: each field is a stable sort, the last one given first; before all of
them jobs are put in order of their start times, latest first, those without one last and newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from slurmbridge.fields import jobs as job_fields
from slurmbridge.fields import text
from slurmbridge.fields.states import STATE_ORDER
from slurmbridge.fields.steps import StepRow, used_seconds
from slurmbridge.fields.view import View
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag
from slurmbridge.model.units import UNLIMITED

DEFAULT = "P,t,-p"
DEFAULT_STEPS = "P,i"
START = "S"

_FLAG_ORDER = {flag: index + 1 for index, flag in enumerate(JobFlag)}

Key = Callable[[Job, View], object]


def _state(job: Job, view: View) -> int:
    base = STATE_ORDER[job.state]
    return base + (max(_FLAG_ORDER[flag] for flag in job.flags) << 8) if job.flags else base


def _label(job: Job, view: View) -> tuple[int, int]:
    if job.array_job_id:
        return job.array_job_id, -1 if job.array_task_id is None else job.array_task_id
    return (job.het_job_id, job.het_offset) if job.het_job_id else (job.job_id, 0)


def _limit(job: Job, view: View) -> int:
    return UNLIMITED if job.spec.time_limit is None else job.spec.time_limit


def _sizes(*values: int | None) -> tuple[int, ...]:
    return tuple(UNLIMITED if value is None else value for value in values)


def _end(job: Job, view: View) -> float:
    return job_fields.end_time(job) or 0.0


KEYS: dict[str, Key | None] = {
    "B": lambda j, v: j.batch_host,
    "c": None,
    "C": lambda j, v: text.total_cpus(j),
    "d": lambda j, v: j.spec.pn_min_tmp_mib,
    "D": job_fields.node_count,
    "e": _end,
    "f": None,
    "g": lambda j, v: v.group(j.spec.gid),
    "G": lambda j, v: j.spec.gid,
    "h": None,
    "H": lambda j, v: _sizes(j.spec.sockets_per_node),
    "i": _label,
    "I": lambda j, v: _sizes(j.spec.cores_per_socket),
    "j": lambda j, v: j.spec.name,
    "J": lambda j, v: _sizes(j.spec.threads_per_core),
    "l": _limit,
    "L": lambda j, v: _limit(j, v) * 60 - text.run_seconds(j, v.now),
    "m": lambda j, v: j.spec.memory.mib if j.spec.memory else 0,
    "M": lambda j, v: text.run_seconds(j, v.now),
    "n": None,
    "N": lambda j, v: (not j.allocation, text.nodes_of(j)),
    "O": None,
    "p": lambda j, v: j.priority,
    "P": lambda j, v: job_fields.partition_text(j),
    "Q": lambda j, v: j.priority,
    "S": lambda j, v: j.start_time or 0.0,
    "t": _state,
    "T": _state,
    "u": lambda j, v: v.user(j.spec.uid),
    "U": lambda j, v: j.spec.uid,
    "v": lambda j, v: j.spec.reservation,
    "V": lambda j, v: j.submit_time,
    "z": lambda j, v: _sizes(j.spec.sockets_per_node, j.spec.cores_per_socket, j.spec.threads_per_core),
}
"""Letters that --sort takes. None: taken, and without effect, as in Slurm."""


def parse_sort(spec: str) -> tuple[list[tuple[str, bool]], str | None]:
    """(letter, descending) in the order given, and the first letter that is none.

    Letters may be joined or separated by commas; `+` and `-` count for the next letter, `#` for nothing here.
    """
    keys: list[tuple[str, bool]] = []
    bad: str | None = None
    for at in range(len(spec) - 1, -1, -1):
        letter = spec[at]
        if letter in ",+-#":
            continue
        if letter not in KEYS and letter != "b":
            bad = letter
            break
        keys.insert(0, (letter, at > 0 and spec[at - 1] == "-"))
    return keys, bad


def base_order(jobs: Iterable[Job]) -> list[Job]:
    """Of jobs in `creation_order`: started or expected ones, latest start first; then those without one, newest first."""
    listed = list(jobs)
    dated = [job for job in listed if job.start_time]
    dated.sort(key=_start, reverse=True)
    rest = [job for job in listed if not job.start_time]
    rest.reverse()
    return dated + rest


def _start(job: Job) -> int:
    return int(job.start_time or 0)


def creation_order(jobs: list[Job]) -> list[Job]:
    """Slurm's list of jobs: by id, but what is left of a split array stands where it was copied last."""
    jobs.sort(key=attrgetter("job_id"))
    if not any(job.array_job_id and job.array_task_id is not None for job in jobs):
        return jobs
    places: dict[int, int] = {}
    last: dict[int, int] = {}
    for job in jobs:
        if job.array_task_id is not None and job.job_id != job.array_job_id:
            places[job.job_id] = last.get(job.array_job_id, job.array_job_id)
            last[job.array_job_id] = job.job_id
    jobs.sort(key=lambda job: places.get(job.job_id) or last.get(job.job_id, job.job_id))
    return jobs


def order(jobs: Iterable[Job], keys: list[tuple[str, bool]], view: View) -> list[Job]:
    listed = base_order(jobs)
    for letter, descending in reversed(keys):
        if letter == "S":
            listed = _by_start(listed, descending)
            continue
        key = KEYS.get(letter)
        if key is not None:
            listed.sort(key=lambda job: key(job, view), reverse=descending)  # type: ignore[arg-type,return-value]
    return listed


def _by_start(jobs: list[Job], descending: bool) -> list[Job]:
    """Those without a start come last either way, and in the opposite of the order they were in."""
    dated = [job for job in jobs if job.start_time]
    dated.sort(key=_start, reverse=descending)
    return dated + [job for job in reversed(jobs) if not job.start_time]


STEP_KEYS: dict[str, Callable[[StepRow, View], object]] = {
    "i": lambda r, v: (r.job.job_id, r.step.step_id & 0xFFFFFFFF),
    "M": used_seconds,
    "N": lambda r, v: r.step.nodes,
    "P": lambda r, v: r.job.allocation.partition if r.job.allocation else "",
    "S": lambda r, v: r.step.start_time,
    "u": lambda r, v: v.user(r.job.spec.uid),
    "U": lambda r, v: r.job.spec.uid,
}


def order_steps(rows: list[StepRow], spec: str, view: View) -> list[StepRow]:
    for at in range(len(spec) - 1, -1, -1):
        key = STEP_KEYS.get(spec[at])
        if key is not None:
            descending = at > 0 and spec[at - 1] == "-"
            rows.sort(key=lambda row: key(row, view), reverse=descending)  # type: ignore[arg-type,return-value]
    return rows
