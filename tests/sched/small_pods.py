"""Small worlds of gangs for tests, described in a line or two."""

from __future__ import annotations

from typing import Literal

from slurmbridge.sim.case_file import (
    Case,
    GroupRow,
    JobRow,
    NodeRow,
    QueueRow,
    RequestRow,
    Resource,
    SessionRow,
    SetRow,
    TaskRow,
    TopologyRow,
    WishRow,
)

ALL = ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
FREE = Resource(quota=-1, limit=-1, over_quota_weight=1)


def queue(
    name: str, parent: str | None = "all", *, gpus: float = 0, limit: float = -1, weight: float = 1, priority: int = 100
) -> QueueRow:
    """A queue of which only the GPU figures matter."""
    rank = int("".join(letter for letter in name if letter.isdigit()) or 0)
    gpu = Resource(quota=gpus, limit=limit, over_quota_weight=weight)
    return QueueRow(name=name, parent=parent, priority=priority, creation_rank=rank, gpu=gpu, cpu=FREE, memory=FREE)


ROOT = QueueRow(name="all", parent=None, priority=100, creation_rank=0, gpu=FREE, cpu=FREE, memory=FREE)


def ask(text: str) -> RequestRow:
    """`2` devices, `0.5` of one, `0.5x2` of two, `40M` of the memory of one, `cpu`."""
    size, _, devices = text.partition("x")
    rest = {"cpu_milli": 1000.0, "memory_bytes": 1e9, "devices": int(devices or 1)}
    if text == "cpu":
        return RequestRow(kind="none", cpu_milli=1000.0, memory_bytes=1e9)
    if size.endswith("M"):
        return RequestRow(kind="memory", gpu_memory_mib=int(size[:-1]), **rest)  # type: ignore[arg-type]
    if "." in size:
        return RequestRow(kind="fraction", fraction=float(size), **rest)  # type: ignore[arg-type]
    return RequestRow(kind="whole", gpus=float(size), cpu_milli=1000.0, memory_bytes=1e9)


def job(
    name: str,
    where: str,
    *tasks: str,
    priority: int = 50,
    fixed: bool = False,
    minimum: int | None = None,
    sets: dict[str, int] | None = None,
    wish: WishRow | None = None,
    stale: float | None = None,
    ran: float = 0.0,
    waited: float = 0.0,
) -> JobRow:
    """A gang in queue `where`. A task is what it asks for, then `@node[/device]` if it runs, `:set` if there are several."""
    rows = []
    for index, text in enumerate(tasks):
        text, _, subgroup = text.partition(":")
        size, _, place = text.partition("@")
        node, _, device = place.partition("/")
        rows.append(
            TaskRow(
                id=f"{name}-{index}",
                state="Running" if node else "Pending",
                node=node or None,
                gpu_groups=[device] if device else [],
                subgroup=subgroup or None,
                request=ask(size),
            )
        )
    pods = [SetRow(name=each, min_available=least) for each, least in (sets or {}).items()]
    pods = pods or [SetRow(name="default", min_available=len(rows) if minimum is None else minimum)]
    return JobRow(
        name=name, queue=where, priority=priority, preemptible=not fixed, tasks=rows, stale_seconds=stale, ran_seconds=ran, waited_seconds=waited,
        root=GroupRow(name="", topology=wish, pod_sets=pods),
    )  # fmt: skip


def node(name: str, gpus: int, cpus: float = 1000, **labels: str) -> NodeRow:
    """A node with devices of 100 MiB."""
    return NodeRow(
        name=name, gpus=gpus, gpu_memory_mib=100, cpu_milli=cpus * 1000, memory_bytes=1e12, max_pods=110, labels=labels
    )


def case(
    nodes: list[NodeRow],
    queues: list[QueueRow],
    jobs: list[JobRow],
    *actions: str,
    rounds: int = 1,
    levels: tuple[str, ...] = (),
    grace: float = 60.0,
) -> Case:
    """One action once, or all of them for some rounds."""
    suite: Literal["action", "integration"] = "action" if rounds == 1 else "integration"
    session = SessionRow(actions=list(actions or ALL), rounds_until_match=rounds, staleness_grace_s=grace)  # type: ignore[arg-type]
    return Case(
        id="case", suite=suite, session=session, nodes=nodes, queues=[ROOT, *queues], jobs=jobs,
        topologies=[TopologyRow(name="tree", levels=list(levels))] if levels else [],
    )  # fmt: skip
