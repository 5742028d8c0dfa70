"""Which run may be ended for which waiting job, how, and from when on? The rules of the site's preemption.

Follows slurm.conf(5) PreemptType, PreemptMode, PreemptParameters, PreemptExemptTime and GraceTime, and the QOS part of
sacctmgr(1). Who among those that may be ended is ended, and whether it helps, is the planner's business. Reclaiming by
quotas asks `is_preemptible` and `reclaim_mode`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from slurmbridge.model.accounts import Accounting, Qos
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.submit import exempt_times

REQUEUE, CANCEL, SUSPEND = "REQUEUE", "CANCEL", "SUSPEND"
_FLAGS = frozenset({"GANG", "WITHIN", "PRIORITY"})
_SAME = frozenset({"", "CLUSTER", "OFF"})
"""What a QOS says when it leaves the mode to the cluster."""


class Mode(msgspec.Struct, frozen=True):
    """A PreemptMode. base: OFF, CANCEL, REQUEUE, SUSPEND; empty: not said."""

    base: str
    flags: frozenset[str] = frozenset()


def mode_of(text: str) -> Mode:
    """`requeue,within` in any order and case."""
    words = frozenset(word.strip().upper() for word in text.split(","))
    base = next((word for word in sorted(words - _FLAGS) if word), "")
    return Mode("SUSPEND" if base == "ON" else base, words & _FLAGS)


class Rules:
    """What the site says, looked up by name. Made once a configuration."""

    def __init__(self, config: ClusterConfig, accounting: Accounting, partitions: Mapping[str, Partition]) -> None:
        self.partitions = partitions
        self.qos: dict[str, Qos] = {each.name: each for each in accounting.qos}
        self.by_qos = config.preempt_type == "preempt/qos"
        self.by_tier = config.preempt_type == "preempt/partition_prio"
        self.cluster = mode_of(config.preempt_mode)
        self.exempt_s = max(config.preempt_exempt_time, 0)
        words = dict(word.strip().partition("=")[::2] for word in config.preempt_parameters.split(","))
        least = words.get("min_exempt_priority", "")
        self.min_exempt_priority = int(least) if least.isascii() and least.isdecimal() else None
        self.youngest_first = "youngest_first" in words
        texts = [
            *(each.preempt_mode for each in self.qos.values()),
            *(each.preempt_mode for each in partitions.values()),
        ]
        flags = self.cluster.flags.union(*(mode_of(text).flags for text in texts))
        self.by_priority = bool(flags & {"WITHIN", "PRIORITY"})  # whether it matters who has the higher priority
        self._heights: dict[str, int] = {}
        for name in self.qos:
            self._height(name, ())
        self._least_tier = min((each.priority_tier for each in partitions.values()), default=1)
        self._modes = {name: mode_of(each.preempt_mode) for name, each in self.qos.items()}
        self._partition_modes = {name: mode_of(each.preempt_mode) for name, each in partitions.items()}

    @property
    def enabled(self) -> bool:
        """Whether any run is ever ended for another job by these rules."""
        return (self.by_qos or self.by_tier) and self.cluster.base not in ("", "OFF", "CLUSTER")

    def mode(self, victim: Job) -> Mode:
        """The PreemptMode that holds for this run: its QOS's or its partition's before the cluster's."""
        if self.by_qos:
            own = self._modes.get(victim.spec.qos, Mode(""))
            base = self.cluster.base if own.base in _SAME else own.base
        else:
            own = self._partition_modes.get(partition_of(victim), Mode(""))
            base = own.base or self.cluster.base
        return Mode(base, own.flags | self.cluster.flags)

    def may_preempt(self, preemptor: Job, victim: Job, now: float, *, partition: str = "") -> str | None:
        """REQUEUE, CANCEL or SUSPEND; None: it may not. partition: where the preemptor is tried, its first one else."""
        if not self.enabled or not is_evictable(victim) or victim.job_id == preemptor.job_id:
            return None
        qos = self.qos.get(victim.spec.qos)
        if qos is not None and qos.preemptible is False:
            return None
        where = partition or (preemptor.spec.partitions[0] if preemptor.spec.partitions else "")
        mode = self.mode(victim)
        above = preemptor.priority > victim.priority
        if self.by_qos:
            theirs = self.qos.get(preemptor.spec.qos)
            if qos is None or theirs is None:
                return None
            if theirs.name == qos.name:
                if "WITHIN" not in mode.flags or not above:
                    return None
            elif qos.name not in theirs.preempt:
                return None
        elif self._tier(where) <= self._tier(partition_of(victim)):
            return None
        if "PRIORITY" in mode.flags and not above:
            return None
        if self.min_exempt_priority is not None and victim.priority >= self.min_exempt_priority:
            return None
        if self.exempt_until(victim) > now:
            return None
        return self._effective(mode.base, victim, where)

    def preempts(self, qos: str, partitions: tuple[str, ...]) -> bool:
        """Whether jobs of this QOS, tried in these partitions, could preempt anybody."""
        if self.by_qos:
            found = self.qos.get(qos)
            return self.by_priority or (found is not None and bool(found.preempt))
        return self.by_tier and any(self._tier(name) > self._least_tier for name in partitions)

    def height(self, qos: str) -> int:
        """Higher for a QOS that preempts lower ones, as far as they do not go round in circles."""
        return self._heights.get(qos, 0) if self.by_qos else 0

    def _height(self, qos: str, above: tuple[str, ...]) -> int:
        """How long the longest chain of QOS is that preempt one another from here down."""
        if qos not in self._heights:
            below = [name for name in self.qos[qos].preempt if name in self.qos and name not in (*above, qos)]
            self._heights[qos] = max((self._height(name, (*above, qos)) + 1 for name in below), default=0)
        return self._heights[qos]

    def outranks(self, one: Job, other: Job, partition: str) -> bool:
        """Whether `one`, were it to wait, could take from `other` what that had in a partition."""
        theirs, own = self.qos.get(other.spec.qos), self.qos.get(one.spec.qos)
        if not self.enabled or (theirs is not None and theirs.preemptible is False):
            return False
        if self.by_tier:
            return max((self._tier(name) for name in one.spec.partitions), default=0) > self._tier(partition)
        if own is None or theirs is None:
            return False
        return theirs.name in own.preempt or (
            own.name == theirs.name and self.by_priority and one.priority > other.priority
        )

    def mode_against(self, victim: Job) -> str | None:
        """How this run would be ended if anybody may end it, once it is not exempt; None: nobody may."""
        qos = self.qos.get(victim.spec.qos)
        if not is_evictable(victim) or (qos is not None and qos.preemptible is False):
            return None
        base = self.mode(victim).base
        if base == SUSPEND:
            return SUSPEND if "GANG" in self.cluster.flags and victim.state is not JobState.SUSPENDED else None
        if base == REQUEUE:
            return REQUEUE if victim.may_requeue else CANCEL
        return CANCEL if base == CANCEL else None

    def likeness(self, victim: Job) -> tuple[object, ...]:
        """Equal for runs of which `may_preempt` says the same to one job, once they are not exempt."""
        flags = self.mode(victim).flags
        order = victim.priority if flags & {"WITHIN", "PRIORITY"} or self.min_exempt_priority is not None else 0
        kind = victim.spec.qos, partition_of(victim), victim.may_requeue, victim.state
        return (*kind, is_evictable(victim), order)

    def _effective(self, base: str, victim: Job, where: str) -> str | None:
        if base == REQUEUE:
            return REQUEUE if victim.may_requeue else CANCEL
        if base == CANCEL:
            return CANCEL
        if base == SUSPEND and "GANG" in self.cluster.flags and victim.state is not JobState.SUSPENDED:
            own = partition_of(victim)
            return SUSPEND if where == own or self._tier(where) > self._tier(own) else None
        return None

    def _tier(self, partition: str) -> int:
        found = self.partitions.get(partition)
        return found.priority_tier if found is not None else 1

    def exempt_until(self, victim: Job) -> float:
        """From when on this run may be ended for another: its start and PreemptExemptTime of its QOS, else the cluster's.

        The QOS of the partition comes before the job's own, unless the job's says OverPartQOS.
        """
        own = self.qos.get(victim.spec.qos)
        partition = self.partitions.get(partition_of(victim))
        other = self.qos.get(partition.qos) if partition is not None and partition.qos else None
        return (victim.start_time or 0.0) + exempt_times.seconds(own, other, self.exempt_s)

    def grace_s(self, victim: Job, mode: str = REQUEUE) -> int:
        """Seconds between the warning and the end: GraceTime of its QOS, or of its partition where tiers decide."""
        if mode == SUSPEND:
            return 0
        partition = self.partitions.get(partition_of(victim))
        of_partition = partition.grace_time if partition is not None else 0
        if self.by_tier:
            return of_partition
        qos = self.qos.get(victim.spec.qos)
        return qos.grace_time if qos is not None else 0

    def reclaim_mode(self, victim: Job, *, has_quotas: bool) -> str | None:
        """How this run may be ended so that another queue gets its quota, once it is not exempt; None: it may not."""
        if not is_evictable(victim) or not is_preemptible(victim, self.qos, has_quotas=has_quotas):
            return None
        base = self.mode(victim).base if self.enabled else REQUEUE
        return REQUEUE if base != CANCEL and victim.may_requeue else CANCEL


def partition_of(job: Job) -> str:
    """Where it runs; of a pending one, its first choice."""
    if job.allocation is not None:
        return job.allocation.partition
    return job.spec.partitions[0] if job.spec.partitions else ""


def is_evictable(job: Job) -> bool:
    """Running or suspended, and not on its way out."""
    if job.allocation is None or job.state not in (JobState.RUNNING, JobState.SUSPENDED):
        return False
    return JobFlag.COMPLETING not in job.flags and leaving_at(job) is None


def leaving_at(job: Job) -> float | None:
    """When the grace time of a run that was chosen to give way is over; None: it was not chosen, or is only suspended."""
    return job.evicted.until if job.evicted is not None and job.evicted.mode != SUSPEND and not job.is_pending else None


def is_preemptible(job: Job, qos: Mapping[str, Qos], *, has_quotas: bool) -> bool:
    """Whether it may be ended so that another queue gets its quota, and may use more than its own queue's."""
    return says_preemptible(job.spec, qos, has_quotas=has_quotas)


def says_preemptible(spec: JobSpec, qos: Mapping[str, Qos], *, has_quotas: bool) -> bool:
    """What the job says comes first, then its QOS. Where nobody says: yes at a site with quotas, no at one without."""
    if spec.preemptible is not None:
        return spec.preemptible
    found = qos.get(spec.qos)
    if found is not None and found.preemptible is not None:
        return found.preemptible
    return has_quotas
