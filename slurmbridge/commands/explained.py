"""What `slurmbridge why JOB` prints: what stops a job, how far it is from fitting, whom it waits for, what would help.

The numbers are the planner's (`model.explain`); `scontrol show job` keeps to Slurm's one word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from slurmbridge.commands.effects import Site
from slurmbridge.fields import text
from slurmbridge.fields.view import View
from slurmbridge.lang import dependencies, hostlist
from slurmbridge.lifecycle.dependencies import waiting_reason
from slurmbridge.model.explain import Explanation, Holder, PartitionFit
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag, JobState, Reason

Visible = Callable[[int], bool]
"""Whether the caller may know of a job."""

MEANING: Final = {
    Reason.NONE: "the scheduler has not looked at it yet",
    Reason.RESOURCES: "what it asks for is in use",
    Reason.PRIORITY: "others come before it",
    Reason.DEPENDENCY: "it waits for other jobs",
    Reason.DEPENDENCY_NEVER: "the jobs it depends on have ended otherwise than it asks",
    Reason.BEGIN_TIME: "its time to begin has not come",
    Reason.HELD_USER: "its owner holds it",
    Reason.HELD_ADMIN: "an administrator holds it",
    Reason.LICENSES: "the licenses it asks for are in use",
    Reason.RESERVATION: "its reservation has not begun",
    Reason.REQ_NODE_NOT_AVAIL: "a node it asks for is down, drained or reserved",
    Reason.BAD_CONSTRAINTS: "no nodes are as it asks",
    Reason.PARTITION_NODE_LIMIT: "it asks for more nodes than the partition allows or has",
    Reason.PARTITION_TIME_LIMIT: "it asks for more time than the partition allows",
    Reason.PARTITION_DOWN: "the partition starts no jobs now",
    Reason.PARTITION_INACTIVE: "the partition takes no jobs now",
    Reason.PARTITION_CONFIG: "the partition does not take such jobs",
    Reason.ARRAY_TASK_LIMIT: "as many tasks of the array run as it allows",
    Reason.ACCOUNT_NOT_ALLOWED: "the partition does not take jobs of this account",
    Reason.QOS_NOT_ALLOWED: "the partition does not take jobs of this QOS",
    Reason.DEADLINE: "it can no longer end before its deadline",
    Reason.MAX_REQUEUE: "it was requeued too often",
    Reason.LAUNCH_FAILURE: "its last start failed",
}


def of_pending(job: Job, found: Explanation | None, site: Site, view: View, visible: Visible) -> str:
    """All that is known of a job that waits."""
    reason = job.reason if job.reason not in ("", Reason.NONE) or found is None else found.held or job.reason
    meaning = MEANING.get(
        reason.partition(",")[0], "a limit of its QOS or association is reached" if "Limit" in reason else ""
    )
    lines = [
        f"{text.job_label(job)} {job.state.name} {job.reason_text or reason}" + (f": {meaning}" if meaning else "")
    ]
    if job.evicted is not None:
        lines.append(f"its last run gave way ({job.evicted.reason}){_for(job.evicted.for_job, visible)}")
    if job.priority == 0 or job.held_by:
        lines.append(f"to let it go: scontrol release {text.job_label(job)}")
    if job.spec.dependency is not None and waiting_reason(job) in (Reason.DEPENDENCY, Reason.DEPENDENCY_NEVER):
        lines += _parents(job, site, visible)
    if found is not None:
        if found.until is not None:
            lines.append(f"not before {view.time(found.until)}")
        lines += _explained(job, found, view, visible)
    start = job.start_time if job.start_time is not None and job.start_time > view.now else None
    if start is not None:
        where = f" on {text.fold(job.sched_nodes)}" if job.sched_nodes else ""
        lines.append(f"expected start: {view.time(start)}{where}")
    elif found is not None and found.start is not None and found.start > view.now:
        lines.append(f"earliest start if nobody were before it: {view.time(found.start)} on {text.fold(found.nodes)}")
    return _indented(lines)


def of_started(job: Job, view: View, visible: Visible) -> str:
    """A job that runs or has ended waits for nothing."""
    line = f"{text.job_label(job)} {job.state.name}"
    if JobFlag.COMPLETING in job.flags:
        line += " COMPLETING"
    if job.reason not in ("", Reason.NONE):
        line += f" {job.reason}"
    lines = [line]
    if not job.is_finished:
        lines.append(f"it started {view.time(job.start_time)} on {text.node_list(job)}")
    if job.evicted is not None:
        winner = _for(job.evicted.for_job, visible)
        if job.state is JobState.SUSPENDED:
            lines.append(f"it was suspended{winner}, and goes on when that one has ended")
        elif job.is_finished:
            lines.append(f"it was ended{winner} ({job.evicted.reason})")
        else:
            lines.append(f"it is to end by {view.time(job.evicted.until)}{winner} ({job.evicted.reason})")
    return _indented(lines)


def _for(winner: int, visible: Visible) -> str:
    if not winner:
        return ""
    return f" for job {winner}" if visible(winner) else " for another job"


def _indented(lines: list[str]) -> str:
    return "\n".join([lines[0], *(f"    {line}" for line in lines[1:])]) + "\n"


def _parents(job: Job, site: Site, visible: Visible) -> Iterator[str]:
    dependency = job.spec.dependency
    assert dependency is not None
    for place, term in enumerate(dependency.terms):
        if place in job.dep_done:
            continue
        said = "can no longer be" if place in job.dep_failed else "is not yet so"
        parent = site.job(term.job_id) if term.job_id and visible(term.job_id) else None
        state = f" (job {term.job_id} is {parent.state.name})" if parent is not None else ""
        yield f"{dependencies.render_term(term)} {said}{state}"


def _explained(job: Job, found: Explanation, view: View, visible: Visible) -> Iterator[str]:
    for fit in found.partitions:
        yield from _partition(fit)
    for limit in found.limits:
        used = f"{limit.used} in use, " if limit.used else ""
        yield f"limit of {limit.where}: {limit.name} {limit.limit}; {used}{limit.asked} asked"
    if found.ahead_count:
        named = [str(job_id) for job_id in found.ahead if visible(job_id)]
        rest = found.ahead_count - len(named)
        more = f"{rest} more" if named else f"{rest} of others"
        jobs = "job" if found.ahead_count == 1 else "jobs"
        names = ", ".join([*named, *([more] if rest else [])])
        yield f"{found.ahead_count} {jobs} before it in its partitions: {names}"
    for holder in found.holders:
        yield _holder(holder, view, visible)
    if found.victim_count:
        named = [str(job_id) for job_id in found.victims if visible(job_id)]
        jobs = "running job" if found.victim_count == 1 else "running jobs"
        yield f"it may preempt {found.victim_count} {jobs}" + (f": {', '.join(named)}" if named else "")
    yield from found.remedies


def _partition(fit: PartitionFit) -> Iterator[str]:
    head = f"partition {fit.partition}"
    if not fit.reason:
        yield f"{head}: it would fit now, were nobody before it"
        return
    reason = fit.detail or fit.reason
    near = f" {fit.near}" if fit.near else ""
    yield f"{head}: {reason}: {fit.fitting} of {fit.allowed} usable nodes hold its share now, {fit.needed} needed{near}"
    yield f"  share: {fit.share}"
    if fit.allowed < fit.nodes:
        yield f"  usable: {fit.allowed} of {fit.nodes} nodes, by its constraints and the nodes' states"
    for miss in fit.misses:
        yield f"  {miss.node}: {'; '.join(miss.short)}"
    for closed in fit.closed:
        yield f"  {closed}"


def _holder(holder: Holder, view: View, visible: Visible) -> str:
    name = f"job {holder.job_id}" if visible(holder.job_id) else "a job"
    until = f" until {view.time(holder.until)} at most" if holder.until is not None else ""
    return f"{name} has {hostlist.compress_sorted(list(holder.nodes))}{until}"
