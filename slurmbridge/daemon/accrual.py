"""Whose age counts? GrpJobsAccrue and MaxJobsAccrue let only so many waiting jobs of a group grow older.

Others wait without an AccrueTime until one of the group starts or goes. Follows sacctmgr(1); an array that has not started
counts with all its tasks, and grows older as soon as there is room for one. With PriorityFlags=ACCRUE_ALWAYS limits are
ignored, as slurm.conf(5) says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from slurmbridge.lifecycle import arrays
from slurmbridge.model.accounts import Accounting, Limits
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.submit import associations

NEVER = 32_503_680_000.0
"""For the planner, a time from which age counts that does not come."""
_Key = tuple[str, ...]


def is_limited(accounting: Accounting, config: ClusterConfig) -> bool:
    """Whether there is any such limit."""
    if "limits" not in config.enforce or "ACCRUE_ALWAYS" in config.priority_flags:
        return False
    limits = [qos.limits for qos in accounting.qos] + [assoc.limits for assoc in accounting.assocs]
    return any(each.grp_jobs_accrue is not None or each.max_jobs_accrue is not None for each in limits) or any(
        qos.max_jobs_accrue_per_account is not None for qos in accounting.qos
    )


def settled(jobs: Iterable[Job], accounting: Accounting, now: float) -> list[Job]:
    """The waiting jobs that change: those with room begin to grow older, those without no longer do.

    Jobs that grow older already keep their place, others follow in the order in which they came.
    """
    waiting = [job for job in jobs if job.is_pending and job.eligible_time is not None and job.eligible_time <= now]
    waiting.sort(key=lambda job: (job.accrue_time is None, job.accrue_time or 0.0, job.job_id))
    known = associations.index(accounting)
    counts: dict[_Key, int] = {}
    changed = []
    for job in waiting:
        limits = list(_limits(job, accounting, known))
        has_room = all(counts.get(key, 0) < most for key, most in limits)
        if has_room:
            size = arrays.count(job.tasks) if job.tasks else 1
            for key, _most in limits:
                counts[key] = counts.get(key, 0) + size
        if has_room != (job.accrue_time is not None):
            changed.append(replace(job, accrue_time=now if has_room else None))
    return changed


def _limits(job: Job, accounting: Accounting, known: associations.Index) -> Iterator[tuple[_Key, int]]:
    """The groups with a limit that the job counts in."""
    spec = job.spec
    qos = known.qos.get(spec.qos)
    bound: Limits = qos.limits if qos is not None else Limits()
    if qos is not None:
        found: list[tuple[_Key, int | None]] = [
            (("qos", qos.name), bound.grp_jobs_accrue),
            (("user", qos.name, str(spec.uid)), bound.max_jobs_accrue),
            (("account", qos.name, spec.account), qos.max_jobs_accrue_per_account),
        ]
        yield from ((key, most) for key, most in found if most is not None)
    assoc = known.by_id.get(spec.assoc_id)
    if assoc is None:
        return
    most = associations.effective_limits(accounting, assoc).max_jobs_accrue
    if most is not None and bound.max_jobs_accrue is None:
        yield ("own", str(assoc.assoc_id)), most
    for each in (assoc, *associations.ancestors(accounting, assoc)):
        if each.limits.grp_jobs_accrue is not None and bound.grp_jobs_accrue is None:
            yield ("assoc", str(each.assoc_id)), each.limits.grp_jobs_accrue


def for_planner(job: Job) -> Job:
    """As the planner has it: without an AccrueTime there is no age."""
    if job.is_pending and job.accrue_time is None and job.eligible_time is not None:
        return replace(job, accrue_time=NEVER)
    return job
