"""Do the QOS and the associations of a job allow one more run of it now?

Limits on what runs: job counts and TRES, per group, user, account and job. What submission already refused is not
tested again. Order and reasons are Slurm's: the partition's QOS, the job's QOS, then associations from the user up.
Source: sacctmgr(1), resource_limits; squeue(1), JOB REASON CODES.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from slurmbridge.model.accounts import Accounting, Assoc, Limits, Qos, UsageRow
from slurmbridge.model.job import Job
from slurmbridge.model.tres import Tres
from slurmbridge.submit import associations

_GRP_ASSOC = {"cpu": "AssocGrpCpuLimit", "mem": "AssocGrpMemLimit", "node": "AssocGrpNodeLimit"}
_GRP_QOS = {"cpu": "QOSGrpCpuLimit", "mem": "QOSGrpMemLimit", "node": "QOSGrpNodeLimit"}
_JOB_ASSOC = {"cpu": "AssocMaxCpuPerJobLimit", "mem": "AssocMaxMemPerJob", "node": "AssocMaxNodePerJobLimit"}
_JOB_QOS = {"cpu": "QOSMaxCpuPerJobLimit", "mem": "QOSMaxMemoryPerJob", "node": "QOSMaxNodePerJobLimit"}
_USER_QOS = {"cpu": "QOSMaxCpuPerUserLimit", "mem": "QOSMaxMemoryPerUser", "node": "QOSMaxNodePerUserLimit"}
_ACCOUNT_QOS = {"cpu": "MaxCpuPerAccount", "mem": "MaxMemoryPerAccount", "node": "MaxNodePerAccount"}
_MIN_QOS = {"cpu": "QOSMinCpuNotSatisfied", "mem": "QOSMinMemory", "node": "QOSMinNode"}
_MINUTES_ASSOC = {
    "cpu": "AssocMaxCpuMinutesPerJobLimit",
    "mem": "AssocMaxMemMinutesPerJob",
    "node": "AssocMaxNodeMinutesPerJob",
}
_MINUTES_QOS = {
    "cpu": "QOSMaxCpuMinutesPerJobLimit",
    "mem": "QOSMaxMemoryMinutesPerJob",
    "node": "QOSMaxNodeMinutesPerJob",
}
_NODE_QOS = {"cpu": "QOSMaxCpuPerNode", "mem": "QOSMaxMemoryPerNode"}
_NODE_ASSOC = {"cpu": "AssocMaxCpuPerNode", "mem": "AssocMaxMemPerNode"}
_RUN_USER = {"cpu": "MaxCpuRunMinsPerUser", "mem": "MaxMemoryRunMinsPerUser", "node": "MaxNodeRunMinsPerUser"}
_RUN_ACCOUNT = {
    "cpu": "MaxCpuRunMinsPerAccount",
    "mem": "MaxMemoryRunMinsPerAccount",
    "node": "MaxNodeRunMinsPerAccount",
}
_USED_ASSOC = {"cpu": "AssocGrpCPUMinutesLimit", "mem": "AssocGrpMemMinutes", "node": "AssocGrpNodeMinutes"}
_RUN_ASSOC = {"cpu": "AssocGrpCPURunMinutesLimit", "mem": "AssocGrpMemRunMinutes", "node": "AssocGrpNodeRunMinutes"}
_RUN_QOS = {"cpu": "QOSGrpCPURunMinutesLimit", "mem": "QOSGrpMemoryRunMinutes", "node": "QOSGrpNodeRunMinutes"}
_KINDS = (("gres/", "GRES"), ("license/", "License"), ("billing", "Billing"), ("energy", "Energy"), ("bb/", "BB"))

_Key = tuple[str, ...]


def _reason(table: Mapping[str, str], pattern: str, name: str) -> str:
    """Slurm's word: from the table, else the pattern filled with the kind of TRES."""
    if name in table:
        return table[name]
    kind = next((word for start, word in _KINDS if name.startswith(start)), "Unknown")
    return pattern.format(kind)


class Counters:
    """What runs now, by group. `copy` before adding in a cycle."""

    __slots__ = ("jobs", "minutes", "tres")

    def __init__(self) -> None:
        self.jobs: dict[_Key, int] = {}
        self.tres: dict[_Key, dict[str, int]] = {}
        self.minutes: dict[_Key, dict[str, float]] = {}  # TRES x minutes still to run

    def copy(self) -> Counters:
        other = Counters()
        other.jobs = dict(self.jobs)
        other.tres = {key: dict(counts) for key, counts in self.tres.items()}
        other.minutes = {key: dict(counts) for key, counts in self.minutes.items()}
        return other

    def add(self, keys: Iterable[_Key], tres: Tres) -> None:
        for key in keys:
            self.jobs[key] = self.jobs.get(key, 0) + 1
            counts = self.tres.setdefault(key, {})
            for name, count in tres:
                counts[name] = counts.get(name, 0) + count

    def add_minutes(self, keys: Iterable[_Key], tres: Tres, minutes: float) -> None:
        """Minutes without end count as none."""
        if math.isinf(minutes):
            return
        for key in keys:
            counts = self.minutes.setdefault(key, {})
            for name, count in tres:
                counts[name] = counts.get(name, 0.0) + count * minutes

    def used(self, key: _Key, name: str) -> int:
        return self.tres.get(key, {}).get(name, 0)


class LimitBook:
    """Looks limits up. One for each state of the accounting records."""

    def __init__(self, accounting: Accounting, usage: Sequence[UsageRow] = ()) -> None:
        self._accounting = accounting
        self._effective: dict[int, Limits] = {}
        self.qos = {qos.name: qos for qos in accounting.qos}
        self._by_id = {assoc.assoc_id: assoc for assoc in accounting.assocs}
        self._account = {assoc.account: assoc for assoc in accounting.assocs if not assoc.user}
        self._chains: dict[int, tuple[Assoc, ...]] = {}
        self._used, self._wall = self._used_minutes(usage)
        self.any_run_minutes = any(
            qos.limits.grp_tres_run_mins or qos.max_tres_run_mins_per_user or qos.max_tres_run_mins_per_account
            for qos in accounting.qos
        ) or any(assoc.limits.grp_tres_run_mins or assoc.limits.grp_tres_mins for assoc in accounting.assocs)
        self.any = any(_has(qos.limits) or _has_qos(qos) for qos in accounting.qos) or any(
            _has(assoc.limits) for assoc in accounting.assocs
        )

    def _used_minutes(self, usage: Sequence[UsageRow]) -> tuple[dict[int, dict[str, float]], dict[int, float]]:
        """TRES-minutes, and minutes of wall time, that each limited association and those below it used."""
        found: dict[int, dict[str, float]] = {}
        wall: dict[int, float] = {}
        for row in usage:
            for assoc in self.chain(row.assoc_id):
                if assoc.limits.grp_wall is not None:
                    wall[assoc.assoc_id] = wall.get(assoc.assoc_id, 0.0) + row.wall_s / 60
                if assoc.limits.grp_tres_mins:
                    counts = found.setdefault(assoc.assoc_id, {})
                    for name, seconds in row.raw:
                        counts[name] = counts.get(name, 0.0) + seconds / 60
        return found, wall

    def _limits_of(self, assoc: Assoc) -> Limits:
        """Its own and those of a user or job that it takes from above."""
        found = self._effective.get(assoc.assoc_id)
        if found is None:
            found = self._effective[assoc.assoc_id] = associations.effective_limits(self._accounting, assoc)
        return found

    def chain(self, assoc_id: int) -> tuple[Assoc, ...]:
        """The association and its ancestors."""
        found = self._chains.get(assoc_id)
        if found is None:
            links: list[Assoc] = []
            assoc = self._by_id.get(assoc_id)
            while assoc is not None and assoc not in links:
                links.append(assoc)
                above = assoc.account if assoc.user else assoc.parent
                assoc = self._account.get(above) if above else None
            found = self._chains[assoc_id] = tuple(links)
        return found

    def keys(self, job: Job, partition_qos: str) -> list[_Key]:
        """The groups that a run of this job counts in."""
        spec = job.spec
        keys: list[_Key] = [("assoc", str(assoc.assoc_id)) for assoc in self.chain(spec.assoc_id)]
        for name in {spec.qos, partition_qos} - {""}:
            keys += [("qos", name), ("qos-user", name, str(spec.uid)), ("qos-account", name, spec.account)]
        return keys

    def refusal(
        self, job: Job, partition_qos: str, tres: Tres, minutes: int | None, counters: Counters, *, safe: bool = False
    ) -> str:
        """The first limit that one more run would break, as Slurm's reason; "" = none."""
        spec, seen = job.spec, set[str]()
        override = self.qos.get(spec.qos)
        names = (spec.qos, partition_qos) if override and "OverPartQOS" in override.flags else (partition_qos, spec.qos)
        bound: set[str] = set()
        for name in names:
            qos = self.qos.get(name)
            if qos is None or name in seen:
                continue
            seen.add(name)
            reason = self._qos_refusal(qos, job, tres, minutes, counters)
            if reason:
                return reason
            bound |= _bounds(qos.limits)
        for place, assoc in enumerate(self.chain(spec.assoc_id)):
            reason = _group_refusal(assoc, tres, minutes, counters, bound)
            if not reason and place == 0:
                reason = _own_refusal(assoc, self._limits_of(assoc), tres, minutes, counters, bound)
            if not reason:
                reason = self._minutes_refusal(assoc, tres, minutes, counters, safe)
            if reason:
                return reason
        return ""

    def _minutes_refusal(self, assoc: Assoc, tres: Tres, minutes: int | None, counters: Counters, safe: bool) -> str:
        """GrpTRESMins and GrpWall. `safe`: the whole run has to fit in what is left and others do not still need."""
        used = self._used.get(assoc.assoc_id, {})
        running = counters.minutes.get(("assoc", str(assoc.assoc_id)), {})
        asked = dict(tres)
        length = math.inf if minutes is None else minutes
        for name, most in assoc.limits.grp_tres_mins:
            before = used.get(name, 0.0)
            wanted = asked.get(name, 0) * length if asked.get(name) else 0.0
            if before >= most or (safe and wanted and before + running.get(name, 0.0) + wanted > most):
                return _reason(_USED_ASSOC, "AssocGrp{}Minutes", name)
        wall = assoc.limits.grp_wall
        if wall is not None:
            before = self._wall.get(assoc.assoc_id, 0.0)
            if before >= wall or (safe and minutes is not None and before + minutes > wall):
                return "AssocGrpWallLimit"
        return ""

    @staticmethod
    def _qos_refusal(qos: Qos, job: Job, tres: Tres, minutes: int | None, counters: Counters) -> str:
        limits, spec = qos.limits, job.spec
        group: _Key = ("qos", qos.name)
        user: _Key = ("qos-user", qos.name, str(spec.uid))
        account: _Key = ("qos-account", qos.name, spec.account)
        for word in (
            _over(limits.grp_tres, tres, counters, group, _GRP_QOS, "QOSGrp{}"),
            _over(limits.max_tres_per_job, tres, None, group, _JOB_QOS, "QOSMax{}PerJob"),
            _over(qos.max_tres_per_account, tres, counters, account, _ACCOUNT_QOS, "Max{}PerAccount"),
            _over(qos.max_tres_per_user, tres, counters, user, _USER_QOS, "QOSMax{}PerUser"),
            _over_node(limits, tres, _NODE_QOS, "QOSMax{}PerNode"),
            _over_running(qos.max_tres_run_mins_per_account, tres, minutes, counters, account, _RUN_ACCOUNT, "Account"),
            _over_running(qos.max_tres_run_mins_per_user, tres, minutes, counters, user, _RUN_USER, "User"),
        ):
            if word:
                return word
        word = _over_minutes(
            limits,
            tres,
            minutes,
            counters,
            group,
            _MINUTES_QOS,
            "QOSMax{}MinutesPerJob",
            _RUN_QOS,
            "QOSGrp{}RunMinutes",
        )
        if word:
            return word
        asked = dict(tres)
        for name, least in qos.min_tres_per_job:
            if asked.get(name, 0) < least:
                return _reason(_MIN_QOS, "QOSMin{}", name)
        for most, key, word in (
            (limits.grp_jobs, group, "QOSGrpJobsLimit"),
            (qos.max_jobs_per_account, account, "MaxJobsPerAccount"),
            (limits.max_jobs, user, "QOSMaxJobsPerUserLimit"),
        ):
            if most is not None and counters.jobs.get(key, 0) >= most:
                return word
        if limits.max_wall is not None and (minutes is None or minutes > limits.max_wall):
            return "QOSMaxWallDurationPerJobLimit" if minutes is not None else ""
        return ""


def _group_refusal(assoc: Assoc, tres: Tres, minutes: int | None, counters: Counters, bound: set[str]) -> str:
    """What an association and all below it may run together."""
    limits = assoc.limits
    key: _Key = ("assoc", str(assoc.assoc_id))
    group = tuple(pair for pair in limits.grp_tres if f"grp:{pair[0]}" not in bound)
    word = _over(group, tres, counters, key, _GRP_ASSOC, "AssocGrp{}")
    if word:
        return word
    running = counters.jobs.get(key, 0)
    if limits.grp_jobs is not None and "grp_jobs" not in bound and running >= limits.grp_jobs:
        return "AssocGrpJobsLimit"
    only_group = Limits(grp_tres_run_mins=limits.grp_tres_run_mins)
    return _over_minutes(
        only_group, tres, minutes, counters, key, _MINUTES_ASSOC, "", _RUN_ASSOC, "AssocGrp{}RunMinutes"
    )


def _own_refusal(
    assoc: Assoc, limits: Limits, tres: Tres, minutes: int | None, counters: Counters, bound: set[str]
) -> str:
    """What one job of the association, and the association itself, may run."""
    key: _Key = ("assoc", str(assoc.assoc_id))
    each = tuple(pair for pair in limits.max_tres_per_job if f"job:{pair[0]}" not in bound)
    word = _over(each, tres, None, key, _JOB_ASSOC, "AssocMax{}PerJob")
    if word:
        return word
    word = "" if "per_node" in bound else _over_node(limits, tres, _NODE_ASSOC, "AssocMax{}PerNode")
    if word:
        return word
    only_job = Limits(max_tres_mins_per_job=limits.max_tres_mins_per_job)
    word = _over_minutes(
        only_job, tres, minutes, counters, key, _MINUTES_ASSOC, "AssocMax{}MinutesPerJob", _RUN_ASSOC, ""
    )
    if word:
        return word
    running = counters.jobs.get(key, 0)
    if limits.max_jobs is not None and "max_jobs" not in bound and running >= limits.max_jobs:
        return "AssocMaxJobsLimit"
    if limits.max_wall is not None and "max_wall" not in bound and minutes is not None and minutes > limits.max_wall:
        return "AssocMaxWallDurationPerJobLimit"
    return ""


def _over(
    limits: Tres, tres: Tres, counters: Counters | None, key: _Key, table: Mapping[str, str], pattern: str
) -> str:
    if not limits:
        return ""
    asked = dict(tres)
    for name, most in limits:
        more = asked.get(name, 0)
        if more and (counters.used(key, name) if counters else 0) + more > most:
            return _reason(table, pattern, name)
    return ""


def _over_node(limits: Limits, tres: Tres, table: Mapping[str, str], pattern: str) -> str:
    """MaxTRESPerNode: what the job gets on average on each of its nodes."""
    if not limits.max_tres_per_node:
        return ""
    asked = dict(tres)
    nodes = max(asked.get("node", 1), 1)
    for name, most in limits.max_tres_per_node:
        if asked.get(name, 0) > most * nodes:
            return _reason(table, pattern, name)
    return ""


def _over_running(
    limits: Tres,
    tres: Tres,
    minutes: int | None,
    counters: Counters,
    key: _Key,
    table: Mapping[str, str],
    whose: str,
) -> str:
    """MaxTRESRunMins: TRES x minutes that a user's or account's jobs may still have to run."""
    if not limits:
        return ""
    asked, running = dict(tres), counters.minutes.get(key, {})
    length = math.inf if minutes is None else minutes
    for name, most in limits:
        count = asked.get(name, 0)
        if count and running.get(name, 0.0) + count * length > most:
            return _reason(table, f"Max{{}}RunMinsPer{whose}", name)
    return ""


def _over_minutes(
    limits: Limits,
    tres: Tres,
    minutes: int | None,
    counters: Counters,
    key: _Key,
    each: Mapping[str, str],
    each_pattern: str,
    group: Mapping[str, str],
    group_pattern: str,
) -> str:
    """MaxTRESMins of one job, and GrpTRESRunMins of all that run. A run without limit breaks both."""
    if not (limits.max_tres_mins_per_job or limits.grp_tres_run_mins):
        return ""
    asked = dict(tres)
    length = math.inf if minutes is None else minutes
    for name, most in limits.max_tres_mins_per_job:
        if asked.get(name) and asked[name] * length > most:
            return _reason(each, each_pattern, name)
    running = counters.minutes.get(key, {})
    for name, most in limits.grp_tres_run_mins:
        more = asked[name] * length if asked.get(name) else 0.0
        if more and running.get(name, 0.0) + more > most:
            return _reason(group, group_pattern, name)
    return ""


def _bounds(limits: Limits) -> set[str]:
    """What a QOS limits: associations' limits of the same kind no longer count."""
    found = {f"grp:{name}" for name, _ in limits.grp_tres} | {f"job:{name}" for name, _ in limits.max_tres_per_job}
    found |= {name for name in ("grp_jobs", "max_jobs", "max_wall") if getattr(limits, name) is not None}
    found |= {"per_node"} if limits.max_tres_per_node else set()
    return found


def _has(limits: Limits) -> bool:
    return limits != Limits()


def _has_qos(qos: Qos) -> bool:
    return bool(
        qos.max_tres_per_user
        or qos.max_tres_per_account
        or qos.min_tres_per_job
        or qos.max_tres_run_mins_per_user
        or qos.max_tres_run_mins_per_account
        or qos.max_jobs_per_account is not None
    )
