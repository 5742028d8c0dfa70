"""Which limits of its QOS, of its partition's QOS and of its associations would a job exceed, and by how much?

The planner's `limits` says which comes first, in Slurm's word; here the numbers behind it are gathered, for people. Of
the limits on groups and users: what runs is summed anew. Source: resource_limits.html, sacctmgr(1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from slurmbridge.lang import durations, tres
from slurmbridge.model.accounts import Assoc, Limits, Qos
from slurmbridge.model.explain import LimitUse
from slurmbridge.model.job import Job
from slurmbridge.model.tres import Tres
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.submit import associations

Mine = Callable[[Job], bool]
"""Whether a run counts."""


def exceeded(snapshot: Snapshot, job: Job) -> tuple[LimitUse, ...]:
    """In the order in which Slurm looks: QOS first, then associations upwards."""
    return tuple(_all(snapshot, job))


def _all(snapshot: Snapshot, job: Job) -> Iterator[LimitUse]:
    if not snapshot.config.enforce & {"limits", "safe"}:
        return
    names = [job.spec.qos]
    for partition in job.spec.partitions:
        view = snapshot.partitions.get(partition)
        if view is not None and view.partition.qos:
            names.append(view.partition.qos)
    known = {each.name: each for each in snapshot.accounting.qos}
    for name in dict.fromkeys(names):
        if name in known:
            yield from _of_qos(snapshot, job, known[name])
    assoc = next((each for each in snapshot.accounting.assocs if each.assoc_id == job.spec.assoc_id), None)
    if assoc is not None:
        for place, each in enumerate((assoc, *associations.ancestors(snapshot.accounting, assoc))):
            yield from _of_assoc(snapshot, job, each, is_own=place == 0)


def _of_qos(snapshot: Snapshot, job: Job, qos: Qos) -> Iterator[LimitUse]:
    where, limits = f"QOS {qos.name}", qos.limits

    def of_qos(run: Job) -> bool:
        return run.spec.qos == qos.name

    def of_user(run: Job) -> bool:
        return run.spec.qos == qos.name and run.spec.uid == job.spec.uid

    def of_account(run: Job) -> bool:
        return run.spec.qos == qos.name and run.spec.account == job.spec.account

    yield from _group(snapshot, job, where, limits, of_qos)
    yield from _amounts(snapshot, job, where, "MaxTRESPerUser", qos.max_tres_per_user, of_user)
    yield from _amounts(snapshot, job, where, "MaxTRESPerAccount", qos.max_tres_per_account, of_account)
    yield from _jobs(snapshot, where, "MaxJobsPerUser", limits.max_jobs, of_user)
    yield from _jobs(snapshot, where, "MaxJobsPerAccount", qos.max_jobs_per_account, of_account)
    yield from _single(job, where, limits)


def _of_assoc(snapshot: Snapshot, job: Job, assoc: Assoc, *, is_own: bool) -> Iterator[LimitUse]:
    where = f"user {assoc.user} in account {assoc.account}" if assoc.user else f"account {assoc.account}"
    below = associations.descendants(snapshot.accounting, assoc.account) | {assoc.account}

    def of_assoc(run: Job) -> bool:
        return run.spec.assoc_id == assoc.assoc_id if assoc.user else run.spec.account in below

    yield from _group(snapshot, job, where, assoc.limits, of_assoc)
    if is_own:
        yield from _jobs(snapshot, where, "MaxJobs", assoc.limits.max_jobs, of_assoc)
    yield from _single(job, where, assoc.limits)


def _group(snapshot: Snapshot, job: Job, where: str, limits: Limits, counts: Mine) -> Iterator[LimitUse]:
    yield from _amounts(snapshot, job, where, "GrpTRES", limits.grp_tres, counts)
    yield from _jobs(snapshot, where, "GrpJobs", limits.grp_jobs, counts)


def _amounts(snapshot: Snapshot, job: Job, where: str, name: str, limit: Tres, counts: Mine) -> Iterator[LimitUse]:
    if not limit:
        return
    used: dict[str, int] = {}
    for run in snapshot.running.values():
        if run.job.allocation is not None and counts(run.job):
            for kind, amount in run.job.allocation.tres:
                used[kind] = used.get(kind, 0) + amount
    yield from _over(where, name, limit, used, dict(job.spec.req_tres))


def _over(where: str, name: str, limit: Tres, used: dict[str, int], asked: dict[str, int]) -> Iterator[LimitUse]:
    for kind, most in limit:
        if used.get(kind, 0) + asked.get(kind, 0) > most and asked.get(kind, 0):
            yield LimitUse(
                where=where,
                name=name,
                limit=tres.render(((kind, most),)),
                used=tres.render(((kind, used.get(kind, 0)),)),
                asked=tres.render(((kind, asked[kind]),)),
            )


def _jobs(snapshot: Snapshot, where: str, name: str, limit: int | None, counts: Mine) -> Iterator[LimitUse]:
    if limit is None:
        return
    running = sum(1 for run in snapshot.running.values() if counts(run.job))
    if running + 1 > limit:
        yield LimitUse(where=where, name=name, limit=str(limit), used=str(running), asked="1")


def _single(job: Job, where: str, limits: Limits) -> Iterator[LimitUse]:
    """What one job may ask for."""
    yield from _over(where, "MaxTRESPerJob", limits.max_tres_per_job, {}, dict(job.spec.req_tres))
    wall = job.spec.time_limit
    if limits.max_wall is not None and wall is not None and wall > limits.max_wall:
        yield LimitUse(
            where=where,
            name="MaxWall",
            limit=durations.render_minutes(limits.max_wall),
            used="",
            asked=durations.render_minutes(wall),
        )
