"""Why does this job wait, how far is it from fitting, whom does it wait for, and what would have to change?

The planner's own trial is made with the job as it is, then with one demand dropped at a time: what fits then names the
demand that is in the way. Running jobs count; those that wait are told as jobs ahead. Made when somebody asks
(`slurmbridge why`), so it may take longer than a look in a cycle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from msgspec.structs import replace

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.explain import Explanation, Holder, Miss, PartitionFit
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.model.request import Exclusive
from slurmbridge.sched.columns import Bools
from slurmbridge.sched.eligibility import of_job, time_limit
from slurmbridge.sched.explain_limits import exceeded
from slurmbridge.sched.fit import capacity, cpus_of_node, devices_of_node, memory_of_node, rules_of, unit_of
from slurmbridge.sched.memo import Memo, refreshed
from slurmbridge.sched.pending import switch_wait_end
from slurmbridge.sched.place import Placement
from slurmbridge.sched.preemption import Rules
from slurmbridge.sched.session import Session
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting, waiting_of

MOST = 5
"""Jobs and nodes that are named; the rest is counted."""

Change = Callable[[JobSpec], JobSpec | None]
"""The specification without one demand; None: there is no such demand."""


def _without_cpus(spec: JobSpec) -> JobSpec | None:
    least = max(spec.min_nodes, 1)
    if spec.min_cpus <= least:
        return None
    return replace(
        spec, num_tasks=least, cpus_per_task=1, min_cpus=least, pn_min_cpus=1, ntasks_per_node=0, cpus_per_gpu=0
    )


_DROPS: tuple[tuple[str, Change], ...] = (
    ("without --constraint", lambda s: replace(s, features=None, prefer=None) if s.features else None),
    ("without --nodelist", lambda s: replace(s, req_nodes=()) if s.req_nodes else None),
    ("without --exclude", lambda s: replace(s, exc_nodes=()) if s.exc_nodes else None),
    ("without --contiguous", lambda s: replace(s, contiguous=False) if s.contiguous else None),
    ("without --exclusive", lambda s: replace(s, exclusive=Exclusive.NO) if s.exclusive is not Exclusive.NO else None),
    ("without --licenses", lambda s: replace(s, license_terms=(), licenses="") if s.license_terms else None),
    ("without --tmp", lambda s: replace(s, pn_min_tmp_mib=0) if s.pn_min_tmp_mib else None),
    (
        "without the type of its GPUs",
        lambda s: replace(s, gpu=replace(s.gpu, type="", kinds=())) if s.gpu and (s.gpu.type or s.gpu.kinds) else None,
    ),
    ("without its GPUs", lambda s: replace(s, gpu=None) if s.gpu else None),
    ("without its memory", lambda s: replace(s, memory=None) if s.memory else None),
    ("with one CPU a node", _without_cpus),
    ("on one node", lambda s: replace(s, min_nodes=1, max_nodes=None) if s.min_nodes > 1 else None),
)


class _Trials:
    """The planner's own attempts, each in a session of its own."""

    def __init__(self, snapshot: Snapshot, config: ClusterConfig, now: float) -> None:
        self.snapshot, self.config, self.now = snapshot, config, now
        self.memo = refreshed(Memo.empty(), snapshot, config)

    def session(self) -> Session:
        return Session(self.snapshot, self.config, self.now, self.memo)

    def waiting(self, job: Job) -> Waiting:
        """The job as it counts now: one that waited long enough takes any number of switches."""
        if switch_wait_end(job) <= self.now:
            job = replace(job, spec=replace(job.spec, switches=0))
        return waiting_of(job, self.snapshot.shapes)

    def fits(self, job: Job, view: PartitionView) -> bool:
        waiting = self.waiting(job)
        return isinstance(self.session().attempt(waiting, view), Placement)


def explain(snapshot: Snapshot, config: ClusterConfig, job: Job, now: float) -> Explanation:
    """Of a pending job; see the module docstring."""
    known = snapshot.waiting.get(job.job_id)
    job = known.job if known is not None else job
    blocked = of_job(job, now)
    if blocked is not None:
        return Explanation(job_id=job.job_id, held=blocked.reason, until=blocked.until)
    trials = _Trials(snapshot, config, now)
    views = [view for name in job.spec.partitions if (view := snapshot.partitions.get(name)) is not None]
    fits = tuple(_fit(trials, job, view) for view in views)
    start, nodes = _start(trials, job, views)
    ahead = _ahead(snapshot, job, now)
    victims = _victims(snapshot, config, job, now)
    return Explanation(
        job_id=job.job_id,
        partitions=fits,
        limits=exceeded(snapshot, job),
        remedies=tuple(_remedies(trials, job, views)) if all(fit.reason for fit in fits) else (),
        ahead=tuple(ahead[:MOST]),
        ahead_count=len(ahead),
        holders=_holders(snapshot, nodes, start, now),
        start=start,
        nodes=nodes,
        victims=tuple(victims[:MOST]),
        victim_count=len(victims),
    )


# ---- how far from fitting ----


def _fit(trials: _Trials, job: Job, view: PartitionView) -> PartitionFit:
    columns, room = trials.snapshot.columns, trials.snapshot.room
    waiting = trials.waiting(job)
    shape, session = waiting.shape, trials.session()
    found = session.attempt(waiting, view)
    site = session.site(shape, view)
    allowed: Bools = np.zeros(columns.count, dtype=np.bool_)
    for each in site.alternatives:
        allowed |= each.nodes
    if len(site.required) >= max(shape.min_nodes, 1):
        named = np.zeros(columns.count, dtype=np.bool_)
        named[list(site.required)] = True
        allowed &= named
    rules = rules_of(trials.config)
    needed = max(shape.min_nodes, view.bounds.min_nodes, 1)
    tasks = max(-(-shape.tasks // needed), 1) if shape.tasks_given else 1
    devices = devices_of_node(shape)
    takes = capacity(shape, columns, room, allowed, rules)
    enough: Bools = allowed & (takes.tasks >= tasks) & ~room.closed
    if takes.devices is not None:
        enough &= takes.devices >= devices
    short = np.flatnonzero(allowed & ~enough)
    nearest = sorted(short.tolist(), key=lambda row: (-int(room.cpus[row]), -int(room.memory[row]), row))[:MOST]
    closed = np.flatnonzero(view.nodes & ~columns.usable).tolist()
    placed = isinstance(found, Placement)
    return PartitionFit(
        partition=view.partition.name,
        reason="" if isinstance(found, Placement) else found.reason,
        detail="" if isinstance(found, Placement) else found.detail,
        nodes=view.size,
        allowed=int(allowed.sum()),
        fitting=int(enough.sum()),
        needed=needed,
        near="" if placed or int(enough.sum()) < needed else _near(shape, view, needed),
        share=_share(shape, tasks, devices),
        misses=() if placed else tuple(_miss(trials, shape, row, tasks, devices) for row in nearest),
        closed=tuple(f"{columns.nodes[row].name} {_state(trials, row)}" for row in closed[:MOST]),
    )


def _near(shape: Shape, view: PartitionView, needed: int) -> str:
    """What is wanted of the place of several nodes."""
    if view.near is None or needed < 2 or not view.near.minds(shape):
        return ""
    if view.near.spans:
        if shape.segment and shape.segment < needed:
            return f"segments of {shape.segment} nodes, each inside one block"
        return "inside one block that is planned for so many nodes"
    if not shape.switches:
        return "below one switch"
    return "on one leaf switch" if shape.switches == 1 else f"on at most {shape.switches} leaf switches"


def _share(shape: Shape, tasks: int, devices: int) -> str:
    parts = [_count(tasks, "task"), _count(max(tasks * shape.cpus_per_task, shape.node_cpus, 1), "CPU")]
    memory = memory_of_node(shape, max(tasks * shape.cpus_per_task, shape.node_cpus, 1), devices, 0)
    if memory:
        parts.append(f"{memory} MiB")
    if devices:
        parts.append(_count(devices, "GPU"))
    return ", ".join(parts)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _state(trials: _Trials, row: int) -> str:
    node = trials.snapshot.columns.nodes[row]
    state = "+".join([node.base.value, *sorted(flag.value for flag in node.flags)])
    return f"{state} ({node.reason})" if node.reason else state


def _miss(trials: _Trials, shape: Shape, row: int, tasks: int, devices: int) -> Miss:
    columns, room, rules = trials.snapshot.columns, trials.snapshot.room, rules_of(trials.config)
    node = columns.kinds.of(row)
    unit, threads = unit_of(rules, node), node.threads
    cpus = cpus_of_node(shape, unit, threads, tasks, devices)
    memory = memory_of_node(shape, cpus, devices, int(columns.memory[row]))
    short: list[str] = []
    if room.closed[row]:
        short.append("a job has it for itself")
    if shape.exclusive is not Exclusive.NO and room.jobs[row]:
        short.append(f"{_count(int(room.jobs[row]), 'job')} on it, and the job wants it for itself")
    short += _less("CPU", int(room.cpus[row]), int(columns.cpus[row]), cpus)
    if rules.counts_memory:
        short += _less("MiB", int(room.memory[row]), int(columns.memory[row]), memory)
    if devices and shape.gpu is not None:
        in_part = bool(shape.gpu.mib) or shape.gpu.milli < 1000
        there = columns.shared[row] if in_part else columns.device_type[row] >= 0
        kinds = {kind for kind, _ in shape.gpu.kinds} or {shape.gpu.type} - {""}
        if kinds:
            wanted = [number for number, kind in enumerate(columns.device_types) if kind in kinds]
            there = there & np.isin(columns.device_type[row], wanted)
        if shape.gpu.mib:
            free = int((there & (room.mib[row] >= shape.gpu.mib)).sum())
        else:
            free = int((there & (room.milli[row] >= shape.gpu.milli)).sum())
        short += _less("GPU", free, int(there.sum()), devices)
    return Miss(node=columns.nodes[row].name, short=tuple(short) or ("what is free does not go together",))


def _less(what: str, free: int, total: int, needed: int) -> list[str]:
    if free >= needed:
        return []
    asked = f"{needed} MiB" if what == "MiB" else _count(needed, what)
    if total < needed:
        return [f"{asked} asked, it has {total}"]
    return [f"{asked} asked, {max(free, 0)} of {total} free"]


# ---- what would have to change ----


def _remedies(trials: _Trials, job: Job, views: list[PartitionView]) -> Iterator[str]:
    for name, change in _DROPS:
        spec = change(job.spec)
        if spec is not None and any(trials.fits(replace(job, spec=spec), view) for view in views):
            yield f"{name} it would fit now"
    for view in views:
        shorter = _shorter(trials, job, view)
        if shorter:
            yield f"with a time limit of {_count(shorter, 'minute')} it would fit now in partition {view.partition.name}"
    own = set(job.spec.partitions)
    for name, view in trials.snapshot.partitions.items():
        if name not in own and trials.fits(replace(job, spec=replace(job.spec, partitions=(name,))), view):
            yield f"in partition {name} it would fit now"


def _shorter(trials: _Trials, job: Job, view: PartitionView) -> int:
    """The longest limit in minutes, below the job's own, with which it would fit now; 0: none."""
    limit = time_limit(job, view.partition)
    high = limit if limit is not None else 100_000
    if high <= 1 or not trials.fits(replace(job, spec=replace(job.spec, time_limit=1)), view):
        return 0
    low = 1
    while high - low > 1:
        middle = (low + high) // 2
        if trials.fits(replace(job, spec=replace(job.spec, time_limit=middle)), view):
            low = middle
        else:
            high = middle
    return low


# ---- whom it waits for ----


def _start(trials: _Trials, job: Job, views: list[PartitionView]) -> tuple[float | None, tuple[str, ...]]:
    """The earliest start if nobody were ahead."""
    best: tuple[float, Placement] | None = None
    for view in views:
        session, waiting = trials.session(), waiting_of(job, trials.snapshot.shapes)
        found = session.attempt(waiting, view)
        if isinstance(found, Placement):
            return trials.now, tuple(node.node for node in found.allocation.nodes)
        if found.lacks_room:
            later = session.promise(waiting, view)
            if later is not None and (best is None or later[0] < best[0]):
                best = later
    if best is None:
        return None, ()
    return best[0], tuple(node.node for node in best[1].allocation.nodes)


def _holders(snapshot: Snapshot, nodes: tuple[str, ...], start: float | None, now: float) -> tuple[Holder, ...]:
    """Runs on the nodes where it is to start that end until then."""
    if start is None or start <= now:
        return ()
    rows = {snapshot.columns.rows[name] for name in nodes if name in snapshot.columns.rows}
    found: list[tuple[float, Holder]] = []
    for job_id, run in snapshot.running.items():
        names = tuple(snapshot.columns.nodes[hold.row].name for hold in run.holds if hold.row in rows)
        if names and run.end <= start:
            until = None if math.isinf(run.end) else run.end
            found.append((run.end, Holder(job_id=job_id, nodes=names, until=until)))
    found.sort(key=lambda each: (-each[0], each[1].job_id))
    return tuple(holder for _, holder in found[:MOST])


def _ahead(snapshot: Snapshot, job: Job, now: float) -> list[int]:
    """Jobs that come before it where it may run, the next one first."""
    own = set(job.spec.partitions)
    found = [
        each.job
        for each in snapshot.waiting.values()
        if (each.job.priority, -each.job.job_id) > (job.priority, -job.job_id)
        and not own.isdisjoint(each.job.spec.partitions)
        and of_job(each.job, now) is None
    ]
    found.sort(key=lambda other: (-other.priority, other.job_id))
    return [other.job_id for other in found]


def _victims(snapshot: Snapshot, config: ClusterConfig, job: Job, now: float) -> list[int]:
    partitions = {name: view.partition for name, view in snapshot.partitions.items()}
    rules = Rules(config, snapshot.accounting, partitions)
    if not rules.enabled:
        return []
    return [
        job_id
        for job_id, run in sorted(snapshot.running.items())
        if any(rules.may_preempt(job, run.job, now, partition=name) for name in job.spec.partitions)
    ]
