"""The sums of sreport: who used how much of what within a period?

Values in, values out. A run counts for the part of the period in which it held its nodes. Amounts are TRES-seconds in
whole units (CPUs, MiB, devices). Source: sreport(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from slurmbridge.model.accounts import Accounting, Assoc
from slurmbridge.model.cluster import Node, NodeEvent
from slurmbridge.model.job import Job
from slurmbridge.model.tres import count, is_gpu
from slurmbridge.submit import associations


class Period(msgspec.Struct, frozen=True):
    start: float
    end: float
    now: float

    def overlap(self, first: float | None, last: float | None) -> float:
        """Seconds of [first, last] within the period; what goes on ends now."""
        if first is None:
            return 0.0
        upto = self.now if last is None else last
        return max(0.0, min(upto, self.end, self.now) - max(first, self.start))


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """What one run adds."""

    job: Job
    seconds: float

    def of(self, tres: str) -> float:
        assert self.job.allocation is not None
        held = count(self.job.allocation.tres, tres)
        return self.seconds * (held / 1000 if is_gpu(tres) else held)

    @property
    def cpus(self) -> int:
        assert self.job.allocation is not None
        return count(self.job.allocation.tres, "cpu")


def uses(jobs: Iterable[Job], period: Period) -> list[Use]:
    """Runs that held something in the period."""
    found = []
    for job in jobs:
        if job.allocation is None:
            continue
        seconds = period.overlap(job.start_time, job.end_time)
        if seconds > 0:
            found.append(Use(job=job, seconds=seconds))
    return found


Totals = dict[tuple[str, str], dict[str, float]]
"""(account, user or QOS) -> TRES -> seconds."""


def by_pair(found: Iterable[Use], tres: Sequence[str], names: Mapping[int, str], *, qos: bool = False) -> Totals:
    sums: Totals = {}
    for use in found:
        spec = use.job.spec
        key = spec.account, spec.qos if qos else names.get(spec.uid, str(spec.uid))
        own = sums.setdefault(key, {})
        for name in tres:
            own[name] = own.get(name, 0.0) + use.of(name)
    return sums


def added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def of_subtree(accounting: Accounting, account: str, sums: Totals) -> dict[str, float]:
    """What was used in this account and all below it."""
    below = associations.descendants(accounting, account)
    return added(part for (name, _), part in sums.items() if name in below)


class Utilization(msgspec.Struct, frozen=True, kw_only=True):
    """One TRES of the whole cluster."""

    tres: str
    size: int
    reported: float
    allocated: float
    down: float
    planned_down: float
    planned: float

    @property
    def idle(self) -> float:
        return max(0.0, self.reported - self.allocated - self.down - self.planned_down - self.planned)


def utilization(
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    events: Sequence[NodeEvent],
    tres: Sequence[str],
    period: Period,
    known_since: float,
) -> list[Utilization]:
    """Since when the cluster is known. Nodes are down as the recorded events say, those in maintenance as planned."""
    length = period.overlap(known_since, None)
    if length <= 0:
        return []
    found = uses(jobs, period)
    rows = []
    for name in tres:
        size = sum(size_of(node, name) for node in nodes)
        down = _down(nodes, events, name, period, planned=False)
        planned_down = _down(nodes, events, name, period, planned=True)
        allocated = sum(use.of(name) for use in found)
        reported = size * length
        waited = 0.0
        if name == "cpu":
            waited = sum(job.spec.min_cpus * period.overlap(job.eligible_time, job.start_time) for job in jobs)
        rows.append(
            Utilization(
                tres=name,
                size=size,
                reported=reported,
                allocated=min(allocated, reported),
                down=down,
                planned_down=planned_down,
                planned=min(waited, max(0.0, reported - allocated - down - planned_down)),
            )
        )
    return rows


def size_of(node: Node, tres: str) -> int:
    conf = node.conf
    if tres in ("cpu", "billing"):
        return conf.cpus
    if tres == "mem":
        return conf.real_memory
    if tres == "node":
        return 1
    if is_gpu(tres):
        kind = tres.removeprefix("gres/gpu").removeprefix(":")
        return sum(1 for device in conf.devices if not kind or device.type == kind)
    return 0


def _down(nodes: Sequence[Node], events: Sequence[NodeEvent], tres: str, period: Period, *, planned: bool) -> float:
    size = {node.name: size_of(node, tres) for node in nodes}
    return sum(
        size.get(event.node, 0) * period.overlap(event.start, event.end)
        for event in events
        if "DOWN" in event.state.split("+") and ("MAINT" in event.state) is planned
    )


def in_tree(accounting: Accounting) -> list[tuple[int, Assoc]]:
    """(depth, association): accounts before their users, as sacctmgr's tree."""
    return list(associations.tree(accounting))
