"""What does a file of scheduling cases say? Its records, read strictly; how a case becomes the objects of a pass.

A case is a small cluster with queues and gangs, and how many rounds of which actions to run. Fields that only say what is
expected are not read here. Clusters lose things: a queue, parent, node, topology or level that is named but not there is no
error; what hangs on it stays as it is.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from slurmbridge.errors import ConfigError
from slurmbridge.sched.queues import ZERO, Queue, QueueTree, Vector


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """-1: unlimited."""

    quota: float
    limit: float
    over_quota_weight: float


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue or department."""

    name: str
    parent: str | None
    priority: int
    creation_rank: int
    gpu: Resource
    cpu: Resource
    memory: Resource


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node."""

    name: str
    gpus: int
    gpu_memory_mib: int
    cpu_milli: float
    memory_bytes: float
    max_pods: int
    labels: dict[str, str] = {}


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a task asks for."""

    kind: Literal["whole", "fraction", "memory", "none", "best_effort"]
    gpus: float = 0.0
    fraction: float | None = None
    devices: int = 1
    gpu_memory_mib: int = 0
    cpu_milli: float = 0.0
    memory_bytes: float = 0.0


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod."""

    id: str
    state: str
    node: str | None = None
    gpu_groups: list[str] = []
    subgroup: str | None = None
    task_priority: int | None = None
    node_affinity: list[str] = []
    pod_affinity: object = None  # not looked at: who hands in a file is told
    request: RequestRow


class WishRow(msgspec.Struct, frozen=True, kw_only=True):
    """How close together."""

    topology: str
    required_level: str | None = None
    preferred_level: str | None = None


class SetRow(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks with a minimum."""

    name: str
    min_available: int
    topology: WishRow | None = None


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """Sets and groups."""

    name: str
    topology: WishRow | None = None
    groups: list[GroupRow] = []
    pod_sets: list[SetRow] = []


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A gang."""

    name: str
    queue: str
    priority: int
    preemptible: bool
    stale_seconds: float | None = None
    ran_seconds: float = 0.0  # what a victim would have to do again
    waited_seconds: float = 0.0
    min_available: int | None = None
    root: GroupRow | None = None
    tasks: list[TaskRow]


class PlacementRow(msgspec.Struct, frozen=True, kw_only=True):
    """Among nodes."""

    gpu: str = "binpack"
    cpu: str = "binpack"


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """What is run."""

    actions: list[Literal["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]]
    rounds_until_match: int = 1
    rounds_after_match: int = 0
    staleness_grace_s: float = 60.0
    placement: PlacementRow = PlacementRow()
    gpu_order: str = "pack"


class TopologyRow(msgspec.Struct, frozen=True, kw_only=True):
    """Levels, outermost first."""

    name: str
    levels: list[str]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduling problem."""

    id: str
    suite: Literal["integration", "action"]
    session: SessionRow
    nodes: list[NodeRow]
    topologies: list[TopologyRow] = []
    queues: list[QueueRow]
    jobs: list[JobRow]


class CaseFile(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    cases: list[Case]


STATES = {
    "Pending", "Gated", "Pipelined", "Running", "Bound", "Binding", "Allocated", "Releasing", "Failed", "Succeeded",
    "Deleted", "Unknown",
}  # fmt: skip


def read(data: bytes) -> list[Case]:
    """The cases of a file. ConfigError: where it is not one, with the place."""
    try:
        cases = msgspec.json.decode(data, type=CaseFile).cases
    except msgspec.DecodeError as fault:
        raise ConfigError(f"not a file of scheduling cases: {fault}") from fault
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise ConfigError(f"case {case.id}: the id is given twice")
        seen.add(case.id)
        problem = _problem(case)
        if problem:
            raise ConfigError(f"case {case.id}: {problem}")
    return cases


def with_pod_affinity(cases: list[Case]) -> list[str]:
    """Ids of the cases in which a task has a wish that is not looked at."""
    return [case.id for case in cases if any(task.pod_affinity for job in case.jobs for task in job.tasks)]


def tree_of(case: Case) -> QueueTree:
    """The queues, GPUs counted in devices. What names a queue that is not there gets nothing."""

    def vector(row: QueueRow, field: str) -> Vector:
        values = [getattr(resource, field) for resource in (row.cpu, row.memory, row.gpu)]
        unlimited = 0.0 if field == "over_quota_weight" else math.inf
        cpu, memory, gpu = (unlimited if value < 0 else float(value) for value in values)
        return cpu, memory, gpu

    known = {row.name for row in case.queues}
    queues = [
        Queue(
            name=row.name,
            parent=row.parent if row.parent in known else None,
            priority=row.priority,
            rank=row.creation_rank,
            quota=vector(row, "quota"),
            limit=vector(row, "limit") if row.parent is None or row.parent in known else ZERO,
            weight=vector(row, "over_quota_weight"),
        )
        for row in case.queues
    ]
    queues += [
        Queue(name=name, rank=len(queues), quota=ZERO, limit=ZERO, weight=ZERO)
        for name in sorted({job.queue for job in case.jobs} - known)
    ]
    return QueueTree.build(queues)


def _problem(case: Case) -> str | None:
    """What does not hang together."""
    for what, names in (("node", [node.name for node in case.nodes]), ("queue", [row.name for row in case.queues]),
                        ("job", [job.name for job in case.jobs])):  # fmt: skip
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            return f"{what} {twice} is given twice"
    try:
        tree_of(case)
    except ValueError as fault:
        return str(fault)
    for job in case.jobs:
        for task in job.tasks:
            if task.state not in STATES:
                return f"task {task.id}: state {task.state} is not known"
            if task.request.kind == "fraction" and not 0 < (task.request.fraction or 0) <= 1:
                return f"task {task.id}: a fraction is more than 0 and at most 1"
            if task.request.kind == "memory" and task.request.gpu_memory_mib <= 0:
                return f"task {task.id}: gpu_memory_mib is more than 0"
            if task.request.devices < 0 or task.request.gpus < 0:
                return f"task {task.id}: a negative number of devices"
    return None
