"""May this job be looked at now at all, and if not, why?

Held, waiting for a time or another job, or shut out by its partition: everything that does not depend on free space.
Source: squeue(1), JOB REASON CODES; slurm.conf(5), PARTITION CONFIGURATION. The order of tests is Slurm's.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.cluster import Partition
from slurmbridge.model.job import Job
from slurmbridge.model.states import PartitionState, Reason
from slurmbridge.model.units import UNLIMITED
from slurmbridge.submit.lifting import MAX_NODES, MIN_NODES, TIME_LIMIT
from slurmbridge.submit.memory_limits import is_too_much


class Blocked(msgspec.Struct, frozen=True):
    """A reason, and the time from which it no longer holds, when known."""

    reason: str
    detail: str = ""
    until: float | None = None

    @property
    def lacks_room(self) -> bool:
        """Whether nothing is in the way but what others have."""
        return self.reason == Reason.RESOURCES and not self.detail


NO_ROOM = Blocked(Reason.RESOURCES)


def dependency_state(job: Job) -> str:
    """ "" when nothing is owed, else the reason."""
    dependency = job.spec.dependency
    if dependency is None:
        return ""
    total = len(dependency.terms)
    if dependency.any_of:
        if job.dep_done:
            return ""
        return Reason.DEPENDENCY_NEVER if len(job.dep_failed) >= total else Reason.DEPENDENCY
    if job.dep_failed:
        return Reason.DEPENDENCY_NEVER
    return "" if len(job.dep_done) >= total else Reason.DEPENDENCY


def held_by(job: Job) -> Blocked | None:
    """Who holds it, in the words that its owner was told."""
    if job.priority != 0 and not job.held_by:
        return None
    held = job.reason if job.reason not in (Reason.NONE, Reason.PRIORITY, Reason.RESOURCES) else ""
    return Blocked(held or (Reason.HELD_ADMIN if job.held_by == "admin" else Reason.HELD_USER), job.reason_text)


def of_job(job: Job, now: float) -> Blocked | None:
    """What holds the job back whatever its partition is."""
    held = held_by(job)
    if held is not None:
        return held
    begin = job.spec.begin
    if begin is not None and begin > now and not job.restarts:
        return Blocked(Reason.BEGIN_TIME, until=float(begin))
    owed = dependency_state(job)
    if owed:
        return Blocked(owed)
    if job.eligible_time is not None and job.eligible_time > now:
        return Blocked(Reason.BEGIN_TIME, until=job.eligible_time)
    if job.spec.deadline is not None and job.spec.deadline <= now:
        return Blocked(Reason.DEADLINE)
    return None


def time_limit(job: Job, partition: Partition) -> int | None:
    """Minutes a run may take in this partition; None without limit."""
    limit = job.spec.time_limit
    if limit is None:
        limit = partition.default_time if partition.default_time is not None else partition.max_time
    return None if limit is None or limit == UNLIMITED else limit


def of_partition(job: Job, partition: Partition, size: int) -> Blocked | None:
    """What shuts the job out of a partition with `size` nodes."""
    spec = job.spec
    if partition.state is PartitionState.DOWN:
        return Blocked(Reason.PARTITION_DOWN)
    if partition.state is PartitionState.INACTIVE:
        return Blocked(Reason.PARTITION_INACTIVE)
    if partition.max_time is not None and partition.max_time != UNLIMITED and TIME_LIMIT not in spec.lifted:
        limit = spec.time_limit
        asked = limit if limit is not None else partition.default_time
        least = spec.time_min if spec.time_min is not None else asked
        if least is not None and (least == UNLIMITED or least > partition.max_time):
            return Blocked(Reason.PARTITION_TIME_LIMIT)
    most = size if partition.max_nodes is None or MAX_NODES in spec.lifted else min(partition.max_nodes, size)
    least_nodes = max(spec.min_nodes, 1)
    few = 0 if MIN_NODES in spec.lifted else partition.min_nodes
    if least_nodes > most or (spec.max_nodes is not None and spec.max_nodes < few):
        return Blocked(Reason.PARTITION_NODE_LIMIT)
    if is_too_much(spec.memory, spec.pn_min_cpus, partition):
        return Blocked(Reason.MAX_MEM_PER_LIMIT)
    shut = _lists(job, partition) if _has_lists(partition) else None
    if shut is not None:
        return shut
    if partition.allow_groups and spec.uid != 0 and spec.group not in partition.allow_groups:
        if not set(spec.groups) - {spec.gid}:  # names of others are known where the job was submitted
            return Blocked(Reason.PARTITION_CONFIG)
    if partition.root_only and spec.uid != 0:
        return Blocked(Reason.PARTITION_CONFIG)
    if partition.disable_root_jobs and spec.uid == 0:
        return Blocked(Reason.PARTITION_CONFIG)
    if partition.req_resv and not spec.reservation:
        return Blocked(Reason.RESERVATION)
    return None


def ends_too_late(job: Job, partition: Partition, now: float) -> bool:
    """Whether a run that started now could not end by its deadline (--time-min counts)."""
    if job.spec.deadline is None:
        return False
    limit = job.spec.time_min if job.spec.time_min is not None else time_limit(job, partition)
    return limit is not None and now + 60 * limit > job.spec.deadline


def _has_lists(partition: Partition) -> bool:
    return bool(partition.allow_accounts or partition.deny_accounts or partition.allow_qos or partition.deny_qos)


def asks_who(partition: Partition) -> bool:
    """Whether `of_partition` depends on the job's user, group, account or QOS."""
    return _has_lists(partition) or bool(partition.allow_groups or partition.root_only or partition.disable_root_jobs)


def _lists(job: Job, partition: Partition) -> Blocked | None:
    """Accounts and QOS that are let in, or are not."""
    spec = job.spec
    lists = (
        ("account", Reason.ACCOUNT_NOT_ALLOWED, spec.account, partition.allow_accounts, partition.deny_accounts),
        ("QOS", Reason.QOS_NOT_ALLOWED, spec.qos, partition.allow_qos, partition.deny_qos),
    )
    for word, reason, name, allowed, denied in lists:
        if allowed and name not in allowed:
            told = f"{partition.name} allows {','.join(allowed)} not {name}"
            return Blocked(reason, f"Job's {word} not permitted to use this partition ({told})")
        if not allowed and name in denied:
            told = f"{partition.name} denies {','.join(denied)} including {name}"
            return Blocked(reason, f"Job's {word} not permitted to use this partition ({told})")
    return None
