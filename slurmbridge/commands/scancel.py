"""The scancel command: which jobs are meant, and what is asked for each?

Follows scancel(1): ids name jobs, array tasks, het components and steps; filters choose among the jobs of the queue; both
together must hold. A foreign job is an error, a job that is gone is only mentioned with -v. The exit code is the low byte
of Slurm's last error number.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.effects import (
    Call,
    Change,
    ChangeAll,
    Command,
    Effect,
    FileData,
    Outcome,
    Print,
    ReadStdin,
    Site,
    Sleep,
)
from slurmbridge.commands.job_targets import Target
from slurmbridge.commands.listing import cluster_problem
from slurmbridge.commands.scancel_options import HELP, USAGE, Request, read
from slurmbridge.commands.scontrol_jobs import label
from slurmbridge.errors import SlurmErrno
from slurmbridge.fields import text
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag

EXIT_CODES = {
    SlurmErrno.ACCESS_DENIED: 210,
    SlurmErrno.USER_ID_MISSING: 218,
    SlurmErrno.NOT_HETJOB_COMPONENT: 60,
    SlurmErrno.INVALID_JOB_ID: 225,
    SlurmErrno.DISABLED: 246,
    SlurmErrno.NOT_SUPPORTED: 246,
}
"""Low byte of Slurm's error numbers."""
_GONE = (SlurmErrno.INVALID_JOB_ID, SlurmErrno.ALREADY_DONE, SlurmErrno.JOB_FINISHED)
MAX_RETRIES = 10
FIRST_DELAY_S = 5
"""A signal to a job that has not started is tried again, waiting 5, 6, 7 ... seconds, as Slurm's own scancel does."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One request: what the user calls it, its address, the job as far as it is known."""

    shown: str
    target: Target
    job: Job | None = None
    is_covered: bool = False  # by the request made for an earlier item: only announced


def main(call: Call, site: Site) -> Command:
    asked = read(call, site)
    if isinstance(asked, str):
        yield Print({"help": HELP, "usage": USAGE}.get(asked, f"slurm-wlm {SLURM_VERSION}\n"))
        return 0
    if not isinstance(asked, Request):
        yield Print("".join(line + "\n" for line in asked.lines), 2)
        return asked.exit_code
    if asked.remarks:
        yield Print("".join(line + "\n" for line in asked.remarks), 2)
    problem = cluster_problem("scancel", asked.clusters, site) if asked.clusters else ()
    if problem:
        yield Print("".join(line + "\n" for line in problem), 2)
        return 1
    items = _chosen(asked, call, site)
    if not items and asked.verbose > 0 and not _is_any_meant(asked, site):
        names = "".join(f"{name}={value} " for name, value in asked.filters)
        yield Print(f"scancel: error: No active jobs match ALL job filters, including: {names}\n", 2)
    if not asked.interactive:
        return (yield from _cancel_all(items, asked))
    code = 0
    for item in items:
        if item.job is None:
            yield Print(f"scancel: error: Kill job error on job id {item.shown}: {SlurmErrno.INVALID_JOB_ID.text}\n", 2)
            code = 1
        elif (yield from _confirmed(item, asked)):
            code = (yield from _cancel(item, asked, None)) or code
    return code


# ---- which ----


def _chosen(asked: Request, call: Call, site: Site) -> list[Item]:
    matches = _matcher(asked)
    if asked.targets:
        if not asked.filters:
            return [_named(target, site) for target in asked.targets]
        found = [item for target in asked.targets for item in _among(target, site)]
        meant = [item for item in found if item.job is None or matches(item.job)]
        return sorted(meant, key=lambda item: item.job is not None)  # slurmctld's scancel looks for ids first
    matching = [job for job in site.jobs() if matches(job) and _is_whole(job)]
    per_array = Counter(job.array_job_id for job in matching if job.array_job_id)
    whole = {
        array for array, count in per_array.items()
        if count == sum(not job.is_finished for job in site.jobs_of_array(array))
    }  # fmt: skip
    items: list[Item] = []
    asked_for: set[int] = set()
    for job in matching:
        items.append(_of_queue(job, job.array_job_id in whole and not asked.interactive, job.array_job_id in asked_for))
        asked_for.add(job.array_job_id)
    return items


def _is_any_meant(asked: Request, site: Site) -> bool:
    """Whether the filters choose anything of the queue, whatever ids are given with them."""
    matches = _matcher(asked)
    return bool(asked.targets and not asked.filters) or any(map(matches, site.jobs()))


def _among(target: Target, site: Site) -> list[Item]:
    """What filters choose from: of an array each job by itself, tasks that wait together as one; each task that is named."""
    if target.tasks is not None:
        each = [replace(target, text=f"{target.job_id}_{task}", tasks=(task,)) for task in target.tasks]
        return [_named(one, site) for one in each]
    family = site.jobs_of_array(target.job_id)
    if not family or target.step is not None:
        return [_named(target, site)]
    return [_of_queue(job, False, False) for job in sorted(family, key=lambda job: job.array_task_id is None)]


def _of_queue(job: Job, is_whole: bool, is_covered: bool) -> Item:
    """A job that the filters chose. An array that is meant as a whole is one request, made for the first of its jobs."""
    if is_whole:
        target = Target(text=str(job.array_job_id), job_id=job.array_job_id)
        return Item(shown=text.job_label(job), target=target, job=job, is_covered=is_covered)
    target = Target(text=label(job), job_id=_address(job), tasks=_tasks(job))
    return Item(shown=text.job_label(job), target=target, job=job)


def _address(job: Job) -> int:
    return job.array_job_id or job.het_job_id or job.job_id


def _is_whole(job: Job) -> bool:
    """A het job is cancelled by its first component."""
    return not job.het_job_id or job.het_offset == 0


def _tasks(job: Job) -> tuple[int, ...] | None:
    if job.array_task_id is not None:
        return (job.array_task_id,)
    if not job.tasks:
        return None
    return tuple(task for first, last, step in job.tasks for task in range(first, last + 1, step))


def _named(target: Target, site: Site) -> Item:
    job: Job | None = None
    if target.tasks is not None:
        family = site.jobs_of_array(target.job_id)
        task = target.tasks[0]
        job = next((each for each in family if each.array_task_id == task), None)
        job = job or next(
            (each for each in family if each.tasks and any(a <= task <= b for a, b, _ in each.tasks)), None
        )
    elif target.offset is not None:
        job = next((each for each in site.jobs_of_het(target.job_id) if each.het_offset == target.offset), None)
    else:
        job = site.job(target.job_id) or next(iter(site.jobs_of_array(target.job_id)), None)
    return Item(shown=target.text, target=target, job=job)


def _matcher(asked: Request) -> Callable[[Job], bool]:
    """Whether a job of the queue passes every filter given; what was not asked for costs nothing."""
    tests: list[Callable[[Job], bool]] = [lambda job: not job.is_finished]
    if asked.uid is not None:
        tests.append(lambda job: job.spec.uid == asked.uid)
    for names, get in (
        (asked.account, lambda job: (job.spec.account,)),
        (asked.name, lambda job: (job.spec.name,)),
        (asked.partition, lambda job: (job.allocation.partition,) if job.allocation else job.spec.partitions),
        (asked.qos, lambda job: (job.spec.qos,)),
        (asked.reservation, lambda job: (job.spec.reservation,)),
        (asked.wckey, lambda job: (job.spec.wckey,)),
    ):
        if names is not None:
            tests.append(_one_of(frozenset(names.split(",")), get))
    if asked.nodes:
        tests.append(_one_of(frozenset(asked.nodes), text.nodes_of))
    if asked.states:
        tests.append(lambda job: _state(job) in asked.states)
    return lambda job: all(test(job) for test in tests)


def _one_of(wanted: frozenset[str], get: Callable[[Job], tuple[str, ...]]) -> Callable[[Job], bool]:
    return lambda job: not wanted.isdisjoint(get(job))


def _state(job: Job) -> str:
    return job.state.name if JobFlag.COMPLETING not in job.flags else "COMPLETING"


# ---- asking ----


def _confirmed(item: Item, asked: Request) -> Generator[Effect, Any, bool]:
    assert item.job is not None
    job = item.job
    partition = job.allocation.partition if job.allocation else ",".join(job.spec.partitions)
    step = item.target.step
    what = f"step_id={item.shown}" if step is not None else f"job_id={item.shown}"
    verb = "Cancel" if asked.signal is None else "Signal"
    while True:
        yield Print(f"{verb} {what} name={job.spec.name} partition={partition} [y/n]? ")
        line: FileData = yield ReadStdin(line=True)
        answer = line.data[:1].lower()
        if answer in (b"y", b"n"):
            return answer == b"y"
        if not line.data:
            return False


# ---- doing ----


def _cancel_all(items: list[Item], asked: Request) -> Command:
    """All that is asked for is one effect, however many jobs there are."""
    changes = tuple([_change(item, asked) for item in items if not item.is_covered])
    outcomes: Iterator[Outcome | None] = itertools.repeat(None)
    if len(changes) > 1 or any(change.array_tasks for change in changes):
        outcomes = iter((yield ChangeAll(changes=changes)))
    code = 0
    for item in items:
        outcome = None if item.is_covered else next(outcomes)
        if outcome is None or asked.verbose > 0 or not outcome.results or _refused(outcome):
            code = (yield from _cancel(item, asked, outcome)) or code
    return code


def _change(item: Item, asked: Request) -> Change:
    target = item.target
    is_signal = asked.signal is not None or asked.scope == "batch"
    number = 9 if asked.signal is None else asked.signal
    return Change(
        verb="signal" if is_signal or target.step is not None else "cancel", job_id=target.job_id,
        array_tasks=target.tasks, het_offset=target.offset, step_id=target.step, signal=number, scope=asked.scope,
    )  # fmt: skip


def _cancel(item: Item, asked: Request, outcome: Outcome | None) -> Command:
    """`outcome`: of the first try, where that was made with others."""
    if item.is_covered:
        if asked.verbose > 0:
            yield Print(f"scancel: {_announcement(item, asked)}\n", 2)
        return 0
    change = _change(item, asked)
    code = 0
    for attempt in range(MAX_RETRIES + 1):
        if asked.verbose > 0 and attempt == 0 and (item.job is not None or not asked.filters):
            yield Print(f"scancel: {_announcement(item, asked)}\n", 2)
        if outcome is None or attempt:
            outcome = yield change
        assert outcome is not None
        refused = _refused(outcome)
        if not outcome.results:
            refused = [SlurmErrno.INVALID_JOB_ID]
        if SlurmErrno.JOB_PENDING in refused and attempt < MAX_RETRIES:
            if asked.verbose > 0:
                yield Print("scancel: Job is in transitional state, retrying\n", 2)
            yield Sleep(FIRST_DELAY_S + attempt)
            continue
        code = yield from _complain(item, asked, refused)
        break
    return code


def _refused(outcome: Outcome) -> list[SlurmErrno]:
    return [errno for _, errno in outcome.results if errno is not None]


def _announcement(item: Item, asked: Request) -> str:
    what = "step" if item.target.step is not None else "job"
    if asked.signal is not None and asked.signal != 9:
        scope = {"full": "full ", "batch": "batch "}.get(asked.scope, "")
        return f"Signal {asked.signal} to {scope}{what} {item.shown}"
    scope = {"full": "full ", "batch": "batch "}.get(asked.scope, "")
    return f"Terminating {scope}{what} {item.shown}"


def _runs(item: Item) -> bool:
    return item.job is not None and not item.job.is_finished


def _complain(item: Item, asked: Request, refused: list[SlurmErrno]) -> Command:
    """One line for the first refusal. A job that is gone is no error, unless a signal was asked for."""
    if not refused:
        return 0
    serious = next((errno for errno in refused if errno not in _GONE), None)
    errno = serious or refused[0]
    is_step = item.target.step is not None
    insists = asked.signal is not None or asked.scope == "batch" or (bool(asked.filters) and bool(asked.targets))
    is_silent = serious is None and asked.verbose == 0 and not insists and not is_step
    if errno in (SlurmErrno.ALREADY_DONE, SlurmErrno.JOB_FINISHED) and serious is None:
        errno = SlurmErrno.INVALID_JOB_ID if insists or is_step else SlurmErrno.ALREADY_DONE
    if not is_silent and not (asked.quiet and serious is None):
        kind = "job step id" if is_step else "job id"
        shown = str(item.target.job_id) if is_step and _runs(item) else item.shown
        yield Print(f"scancel: error: Kill job error on {kind} {shown}: {errno.text}\n", 2)
    if serious is not None:
        return EXIT_CODES.get(serious, 1)
    if is_step:
        return EXIT_CODES[SlurmErrno.INVALID_JOB_ID] if _runs(item) else 1
    return 1 if insists else 0
