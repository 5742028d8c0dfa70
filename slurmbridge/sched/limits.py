"""Do the QOS and the associations of a job allow one more run of it now?

Limits on what runs: job counts and TRES, per group, user, account and job, and on what was used. What submission already
refused is not tested again. Order and reasons are Slurm's: first counts and times, then TRES; each of the partition's QOS,
the job's QOS (the other way round with OverPartQOS), then associations from the user up. What one QOS limits, neither the
next nor associations limit again. Source: sacctmgr(1), resource_limits; squeue(1), JOB REASON CODES.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from slurmbridge.model.accounts import Accounting, Assoc, Limits, Qos, UsageRow
from slurmbridge.model.job import Job
from slurmbridge.model.tres import Tres
from slurmbridge.sched import fairtree
from slurmbridge.sched import limit_words as words
from slurmbridge.sched.counters import Counters, Key
from slurmbridge.submit import associations
from slurmbridge.submit.factors import of_assoc, safe_minutes

__all__ = ["Counters", "LimitBook"]

_BINDING = ("grp_jobs", "grp_wall", "max_jobs", "max_wall")
_BINDING_TRES = (
    "grp_tres",
    "grp_tres_mins",
    "grp_tres_run_mins",
    "max_tres_per_job",
    "max_tres_per_node",
    "max_tres_mins_per_job",
)
_OF_QOS = ("max_jobs_per_account",)
_OF_QOS_TRES = (
    "max_tres_per_user",
    "max_tres_per_account",
    "max_tres_run_mins_per_user",
    "max_tres_run_mins_per_account",
    "min_tres_per_job",
)


class _Ask(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One more run, and what there is of others."""

    tres: Mapping[str, int]
    nodes: int
    minutes: float  # inf: no limit
    counters: Counters
    safe: bool  # the whole run has to fit in what is left and others do not still need
    bound: set[str]  # what an earlier QOS limits

    def over(self, limits: Tres, name: str, key: Key | None, said: words.Words) -> str:
        """TRES that run together (`key` None: of this job alone)."""
        for tres, most in limits:
            more = self.tres.get(tres, 0)
            if more and not self.is_bound(name, tres):
                if (self.counters.used(key, tres) if key is not None else 0) + more > most:
                    return said.of(tres)
        return ""

    def over_node(self, limits: Tres, name: str, said: words.Words) -> str:
        """What the job gets on average on each of its nodes."""
        for tres, most in limits:
            if not self.is_bound(name, tres) and self.tres.get(tres, 0) > most * self.nodes:
                return said.of(tres)
        return ""

    def over_minutes(self, limits: Tres, name: str, key: Key | None, said: words.Words) -> str:
        """TRES x minutes to run, of this job alone or with all that runs. A run without limit breaks any."""
        for tres, most in limits:
            count = self.tres.get(tres, 0)
            if count and not self.is_bound(name, tres):
                others = self.counters.left(key, tres) if key is not None else 0
                if others + count * self.minutes > most:
                    return said.of(tres)
        return ""

    def over_used(self, limits: Tres, key: Key, used: Mapping[str, float], said: words.Words) -> str:
        """TRES x minutes that were used, in whole minutes; safe: and that will be."""
        for tres, most in limits:
            if self.is_bound("grp_tres_mins", tres):
                continue
            before, count = int(used.get(tres, 0.0)), self.tres.get(tres, 0)
            if before >= most:
                return said.of(tres)
            if self.safe and count and before + self.counters.left(key, tres) + count * self.minutes > most:
                return said.of(tres)
        return ""

    def over_wall(self, wall: int | None, used: float, said: str) -> str:
        """GrpWall. A run without limit is let in while there is any left."""
        if wall is None or self.is_bound("grp_wall"):
            return ""
        is_long = self.safe and not math.isinf(self.minutes) and int(used) + self.minutes > wall
        return said if int(used) >= wall or is_long else ""

    def over_jobs(self, most: int | None, name: str, key: Key, said: str) -> str:
        is_over = most is not None and not self.is_bound(name) and self.counters.jobs.get(key, 0) >= most
        return said if is_over else ""

    def is_bound(self, name: str, tres: str = "") -> bool:
        return (f"{name}:{tres}" if tres else name) in self.bound


class LimitBook:
    """Looks limits up. One for each state of the accounting records."""

    def __init__(self, accounting: Accounting, usage: Sequence[UsageRow] = ()) -> None:
        self._accounting, self._usage = accounting, usage
        self._effective: dict[int, Limits] = {}
        self.qos = {qos.name: qos for qos in accounting.qos}
        self._by_id = {assoc.assoc_id: assoc for assoc in accounting.assocs}
        self._account = {assoc.account: assoc for assoc in accounting.assocs if not assoc.user}
        self._chains: dict[int, tuple[Assoc, ...]] = {}
        self._shares: Mapping[int, float] | None = None
        self._used, self._wall = self._used_minutes(usage)
        limits = [qos.limits for qos in accounting.qos] + [assoc.limits for assoc in accounting.assocs]
        self.any_run_minutes = any(each.grp_tres_run_mins or each.grp_tres_mins for each in limits) or any(
            qos.max_tres_run_mins_per_user or qos.max_tres_run_mins_per_account for qos in accounting.qos
        )
        self.any_minutes = any(each.grp_tres_mins or each.grp_wall is not None for each in limits)
        self.any = any(each != Limits() for each in limits) or any(_has_own(qos) for qos in accounting.qos)

    def _used_minutes(self, usage: Sequence[UsageRow]) -> tuple[dict[int, dict[str, float]], dict[int, float]]:
        """TRES-minutes, and minutes of wall time, that each limited QOS, association and those below it used.

        Numbers of QOS are negative, as in the rows.
        """
        found: dict[int, dict[str, float]] = {}
        wall: dict[int, float] = {}
        limits_of_qos = {-qos.qos_id: qos.limits for qos in self._accounting.qos}
        for row in usage:
            limited = [(assoc.assoc_id, assoc.limits) for assoc in self.chain(row.assoc_id)]
            if row.assoc_id in limits_of_qos:
                limited = [(row.assoc_id, limits_of_qos[row.assoc_id])]
            for number, limits in limited:
                if limits.grp_wall is not None:
                    wall[number] = wall.get(number, 0.0) + row.wall_s / 60
                if limits.grp_tres_mins:
                    counts = found.setdefault(number, {})
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

    def keys(self, job: Job, partition_qos: str) -> list[Key]:
        """The groups that a run of this job counts in."""
        spec = job.spec
        keys: list[Key] = [("assoc", str(assoc.assoc_id)) for assoc in self.chain(spec.assoc_id)]
        for name in {spec.qos, partition_qos} - {""}:
            keys += [("qos", name), ("qos-user", name, str(spec.uid)), ("qos-account", name, spec.account)]
        return keys

    # ---- what a QOS says beside its limits ----

    def counted_minutes(self, job: Job, minutes: float, *, safe: bool) -> float:
        """How long a run counts for limits on minutes (UsageFactorSafe)."""
        return safe_minutes(self.qos.get(job.spec.qos), minutes) if safe else minutes

    def flags(self, job: Job) -> tuple[str, ...]:
        """Of the job's QOS."""
        qos = self.qos.get(job.spec.qos)
        return qos.flags if qos is not None else ()

    def reserves(self, job: Job) -> bool:
        """Whether a start may be promised to the job (NoReserve, MinPrioThreshold)."""
        qos = self.qos.get(job.spec.qos)
        if qos is None:
            return True
        least = qos.min_prio_threshold
        return "NoReserve" not in qos.flags and (least is None or job.priority >= least)

    # ---- limits ----

    def refusal(
        self, job: Job, partition_qos: str, tres: Tres, minutes: int | None, counters: Counters, *, safe: bool = False
    ) -> str:
        """The first limit that one more run would break, as Slurm's reason; "" = none."""
        own, asked = self.qos.get(job.spec.qos), dict(tres)
        length = math.inf if minutes is None else self.counted_minutes(job, minutes, safe=safe)
        names = (job.spec.qos, partition_qos)
        if own is None or "OverPartQOS" not in own.flags:
            names = names[::-1]
        qos = [self.qos[name] for name in dict.fromkeys(names) if name in self.qos]
        chain = self.chain(job.spec.assoc_id)
        factor = own.limit_factor if own is not None else None
        for of_qos, of_assoc_place in (
            (self._counts_of_qos, self._counts_of_assoc),
            (self._tres_of_qos, self._tres_of_assoc),
        ):
            ask = _Ask(
                tres=asked,
                nodes=max(asked.get("node", 1), 1),
                minutes=length,
                counters=counters,
                safe=safe,
                bound=set(),
            )
            for each in qos:
                reason = next(filter(None, of_qos(each, job, ask)), "")
                if reason:
                    return reason
                ask.bound.update(_bounds(each))
            for place, assoc in enumerate(chain):
                limits = of_assoc(self._limits_of(assoc), factor)
                reason = next(filter(None, of_assoc_place(assoc, limits, ask, place == 0)), "")
                if reason:
                    return reason
        return ""

    def used_up(self, job: Job, partition_qos: str) -> str:
        """The limit on minutes of which nothing is left, for a run that goes on; "" = none."""
        own = self.qos.get(job.spec.qos)
        names = (job.spec.qos, partition_qos)
        if own is None or "OverPartQOS" not in own.flags:
            names = names[::-1]
        counters, bound = Counters(), set[str]()
        ask = _Ask(tres={}, nodes=1, minutes=0, counters=counters, safe=False, bound=bound)
        for name in dict.fromkeys(names):
            qos = self.qos.get(name)
            if qos is not None:
                used, limits = self._used.get(-qos.qos_id, {}), qos.limits
                word = ask.over_used(limits.grp_tres_mins, ("qos", name), used, words.QOS_USED)
                word = word or ask.over_wall(limits.grp_wall, self._wall.get(-qos.qos_id, 0.0), "QOSGrpWallLimit")
                if word:
                    return word
                bound.update(_bounds(qos))
        for assoc in self.chain(job.spec.assoc_id):
            used, limits = self._used.get(assoc.assoc_id, {}), assoc.limits
            word = ask.over_used(limits.grp_tres_mins, ("assoc", ""), used, words.ASSOC_USED)
            word = word or ask.over_wall(limits.grp_wall, self._wall.get(assoc.assoc_id, 0.0), "AssocGrpWallLimit")
            if word:
                return word
        return ""

    def _counts_of_qos(self, qos: Qos, job: Job, ask: _Ask) -> Iterator[str]:
        limits, spec = qos.limits, job.spec
        if "EnforceUsageThreshold" in qos.flags and qos.usage_threshold is not None:
            yield "QOSUsageThreshold" if self._share(spec.assoc_id) < qos.usage_threshold else ""
        yield ask.over_jobs(limits.grp_jobs, "grp_jobs", ("qos", qos.name), "QOSGrpJobsLimit")
        yield ask.over_wall(limits.grp_wall, self._wall.get(-qos.qos_id, 0.0), "QOSGrpWallLimit")
        account: Key = ("qos-account", qos.name, spec.account)
        yield ask.over_jobs(qos.max_jobs_per_account, "max_jobs_per_account", account, "MaxJobsPerAccount")
        user: Key = ("qos-user", qos.name, str(spec.uid))
        yield ask.over_jobs(limits.max_jobs, "max_jobs", user, "QOSMaxJobsPerUserLimit")
        yield _over_time(limits, ask, "QOSMaxWallDurationPerJobLimit")

    def _counts_of_assoc(self, assoc: Assoc, limits: Limits, ask: _Ask, is_own: bool) -> Iterator[str]:
        key: Key = ("assoc", str(assoc.assoc_id))
        yield ask.over_jobs(limits.grp_jobs, "grp_jobs", key, "AssocGrpJobsLimit")
        yield ask.over_wall(limits.grp_wall, self._wall.get(assoc.assoc_id, 0.0), "AssocGrpWallLimit")
        if is_own:
            yield ask.over_jobs(limits.max_jobs, "max_jobs", key, "AssocMaxJobsLimit")
            yield _over_time(limits, ask, "AssocMaxWallDurationPerJobLimit")

    def _tres_of_qos(self, qos: Qos, job: Job, ask: _Ask) -> Iterator[str]:
        limits, spec = qos.limits, job.spec
        group: Key = ("qos", qos.name)
        user: Key = ("qos-user", qos.name, str(spec.uid))
        account: Key = ("qos-account", qos.name, spec.account)
        yield ask.over_used(limits.grp_tres_mins, group, self._used.get(-qos.qos_id, {}), words.QOS_USED)
        yield ask.over(limits.grp_tres, "grp_tres", group, words.QOS_GROUP)
        yield ask.over_minutes(limits.grp_tres_run_mins, "grp_tres_run_mins", group, words.QOS_RUNNING)
        yield ask.over_minutes(limits.max_tres_mins_per_job, "max_tres_mins_per_job", None, words.QOS_MINUTES)
        yield ask.over(qos.max_tres_per_account, "max_tres_per_account", account, words.QOS_ACCOUNT)
        yield ask.over(limits.max_tres_per_job, "max_tres_per_job", None, words.QOS_JOB)
        yield ask.over_node(limits.max_tres_per_node, "max_tres_per_node", words.QOS_NODE)
        yield ask.over(qos.max_tres_per_user, "max_tres_per_user", user, words.QOS_USER)
        account_minutes = qos.max_tres_run_mins_per_account
        yield ask.over_minutes(account_minutes, "max_tres_run_mins_per_account", account, words.ACCOUNT_RUNNING)
        yield ask.over_minutes(qos.max_tres_run_mins_per_user, "max_tres_run_mins_per_user", user, words.USER_RUNNING)
        for name, least in qos.min_tres_per_job:
            if ask.tres.get(name, 0) < least and not ask.is_bound("min_tres_per_job", name):
                yield words.QOS_LEAST.of(name)

    def _tres_of_assoc(self, assoc: Assoc, limits: Limits, ask: _Ask, is_own: bool) -> Iterator[str]:
        key: Key = ("assoc", str(assoc.assoc_id))
        yield ask.over_used(limits.grp_tres_mins, key, self._used.get(assoc.assoc_id, {}), words.ASSOC_USED)
        yield ask.over(limits.grp_tres, "grp_tres", key, words.ASSOC_GROUP)
        yield ask.over_minutes(limits.grp_tres_run_mins, "grp_tres_run_mins", key, words.ASSOC_RUNNING)
        if is_own:
            yield ask.over_minutes(limits.max_tres_mins_per_job, "max_tres_mins_per_job", None, words.ASSOC_MINUTES)
            yield ask.over(limits.max_tres_per_job, "max_tres_per_job", None, words.ASSOC_JOB)
            yield ask.over_node(limits.max_tres_per_node, "max_tres_per_node", words.ASSOC_NODE)

    def _share(self, assoc_id: int) -> float:
        """The fair-share factor."""
        if self._shares is None:
            self._shares = fairtree.factors(self._accounting, fairtree.usage_of(self._usage, 0.0))
        return self._shares.get(assoc_id, 0.0)


def _over_time(limits: Limits, ask: _Ask, said: str) -> str:
    """A run without limit gets this one, so it is not too long."""
    wall = limits.max_wall
    is_long = wall is not None and not ask.is_bound("max_wall") and not math.isinf(ask.minutes) and ask.minutes > wall
    return said if is_long else ""


def _bounds(qos: Qos) -> Iterator[str]:
    """What a QOS limits."""
    for record, single, many in ((qos.limits, _BINDING, _BINDING_TRES), (qos, _OF_QOS, _OF_QOS_TRES)):
        yield from (name for name in single if getattr(record, name) is not None)
        yield from (f"{name}:{tres}" for name in many for tres, _count in getattr(record, name))


def _has_own(qos: Qos) -> bool:
    """Whether it limits anything beside `limits`."""
    return any(True for _ in _bounds(qos)) or ("EnforceUsageThreshold" in qos.flags and qos.usage_threshold is not None)
