"""Ways to tell the same world differently. Whoever decides by the rules gives the same answer to all of them.

Each takes a world and returns one in which nothing that a rule speaks of is different: other names, other units, an empty
queue more, a level of queues more. `same` compares the answers task by task, names of devices aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from slurmbridge.sim.case_file import Case, GroupRow, JobRow, NodeRow, QueueRow, RequestRow, Resource, TopologyRow
from slurmbridge.sim.cases import JobAnswer

Symmetry = Callable[[Case], Case]
FREE = Resource(quota=-1, limit=-1, over_quota_weight=1)
NOTHING = Resource(quota=0, limit=0, over_quota_weight=1)


def renamed(world: Case) -> Case:
    """Nodes, queues and jobs have other names, in the same alphabetical order."""
    return replace(
        world,
        nodes=[replace(node, name=f"x-{node.name}") for node in world.nodes],
        queues=[
            replace(row, name=f"y-{row.name}", parent=None if row.parent is None else f"y-{row.parent}")
            for row in world.queues
        ],
        jobs=[
            replace(
                job, name=f"z-{job.name}", queue=f"y-{job.queue}",
                tasks=[
                    replace(task, id=f"w-{task.id}", node=None if task.node is None else f"x-{task.node}")
                    for task in job.tasks
                ],
            )
            for job in world.jobs
        ],
    )  # fmt: skip


def queues_shuffled(world: Case) -> Case:
    """The list of queues is the other way round."""
    return replace(world, queues=world.queues[::-1])


def jobs_by_priority(world: Case) -> Case:
    """Age counts only inside a priority."""
    return replace(world, jobs=sorted(world.jobs, key=lambda job: -job.priority))


def jobs_by_rising_priority(world: Case) -> Case:
    return replace(world, jobs=sorted(world.jobs, key=lambda job: job.priority))


def priorities_spread(world: Case) -> Case:
    """Only the order of priorities counts."""
    return replace(
        world,
        jobs=[replace(job, priority=job.priority * 7 - 3) for job in world.jobs],
        queues=[
            replace(row, priority=row.priority * 5 + 1, creation_rank=row.creation_rank * 3 - 2) for row in world.queues
        ],
    )


def finer_units(world: Case) -> Case:
    """CPUs, bytes and MiB of devices count twice."""

    def twice(row: Resource) -> Resource:
        return replace(
            row,
            quota=row.quota * 2 if row.quota >= 0 else row.quota,
            limit=row.limit * 2 if row.limit >= 0 else row.limit,
        )

    def ask(row: RequestRow) -> RequestRow:
        return replace(
            row, cpu_milli=row.cpu_milli * 2, memory_bytes=row.memory_bytes * 2, gpu_memory_mib=row.gpu_memory_mib * 2
        )

    return replace(
        world,
        nodes=[
            replace(
                node, cpu_milli=node.cpu_milli * 2, memory_bytes=node.memory_bytes * 2,
                gpu_memory_mib=node.gpu_memory_mib * 2,
            )
            for node in world.nodes
        ],
        queues=[replace(row, cpu=twice(row.cpu), memory=twice(row.memory)) for row in world.queues],
        jobs=[
            replace(job, tasks=[replace(task, request=ask(task.request)) for task in job.tasks]) for job in world.jobs
        ],
    )  # fmt: skip


def parts_as_memory(world: Case) -> Case:
    """A part of a device is as much of its memory, where all devices are alike."""
    sizes = {node.gpu_memory_mib for node in world.nodes if node.gpus}
    if len(sizes) != 1:
        return world
    (size,) = sizes

    def ask(row: RequestRow) -> RequestRow:
        mib = (row.fraction or 0) * size
        if row.kind != "fraction" or mib != int(mib):
            return row
        return replace(row, kind="memory", gpu_memory_mib=int(mib), fraction=None)

    return replace(
        world,
        jobs=[
            replace(job, tasks=[replace(task, request=ask(task.request)) for task in job.tasks]) for job in world.jobs
        ],
    )


def useless_node(world: Case) -> Case:
    """A node more, with nothing on it."""
    node = NodeRow(name="zzz", gpus=0, gpu_memory_mib=100, cpu_milli=0, memory_bytes=0, max_pods=0)
    return replace(world, nodes=[*world.nodes, node])


def useless_node_first(world: Case) -> Case:
    node = NodeRow(name="000", gpus=0, gpu_memory_mib=100, cpu_milli=0, memory_bytes=0, max_pods=0)
    return replace(world, nodes=[node, *world.nodes])


def _queue(name: str, parent: str | None, *, rank: int, row: Resource = FREE, rest: Resource = FREE) -> QueueRow:
    return QueueRow(name=name, parent=parent, priority=100, creation_rank=rank, gpu=row, cpu=rest, memory=rest)


def empty_queues(world: Case) -> Case:
    """Beside every queue is one that asks for nothing, older or younger, whatever it deserves."""
    more = []
    for number, parent in enumerate(dict.fromkeys(row.parent for row in world.queues)):
        more.append(_queue(f"0-empty-{number}", parent, rank=-1, row=Resource(quota=3, limit=-1, over_quota_weight=9)))
        more.append(
            _queue(f"z-empty-{number}", parent, rank=10**6, row=Resource(quota=-1, limit=-1, over_quota_weight=1))
        )
    return replace(world, queues=[*more, *world.queues])


def level_below(world: Case) -> Case:
    """Every queue with jobs has one queue below it that bounds nothing and has the jobs."""
    known = {row.name: row for row in world.queues}
    used = dict.fromkeys(job.queue for job in world.jobs if job.queue in known)
    below = [_queue(f"{name}/all", name, rank=known[name].creation_rank) for name in used]
    jobs = [replace(job, queue=f"{job.queue}/all" if job.queue in known else job.queue) for job in world.jobs]
    return replace(world, queues=[*world.queues, *below], jobs=jobs)


def level_above(world: Case) -> Case:
    """All roots are below one queue that bounds nothing."""
    queues = [replace(row, parent="the-root") if row.parent is None else row for row in world.queues]
    return replace(world, queues=[*queues, _queue("the-root", None, rank=0)])


def wide_limits(world: Case) -> Case:
    """A limit nobody can reach is none. (Without a quota it would be what the queue may hold, and its share of that small.)"""

    def wide(row: Resource) -> Resource:
        return row if row.limit >= 0 or row.quota < 0 else replace(row, limit=1e18)

    return replace(
        world,
        queues=[
            replace(row, gpu=wide(row.gpu), cpu=wide(row.cpu), memory=wide(row.memory)) for row in world.queues
        ],
    )  # fmt: skip


def hopeless_job(world: Case) -> Case:
    """A root more, whose job may never have anything."""
    ask = RequestRow(kind="whole", gpus=10**6, cpu_milli=1, memory_bytes=1)
    if not world.jobs:
        return world
    model = world.jobs[0]
    task = replace(model.tasks[0], id="never-0", state="Pending", node=None, gpu_groups=[], subgroup=None, request=ask)
    queue = _queue("never", None, rank=10**6, row=NOTHING, rest=NOTHING)
    job = JobRow(name="never", queue="never", priority=1, preemptible=True, min_available=1, tasks=[task])
    return replace(world, queues=[*world.queues, queue], jobs=[*world.jobs, job])


def wrapped_gangs(world: Case) -> Case:
    """The sets of a gang are in a group inside a group."""

    def job(row: JobRow) -> JobRow:
        if row.root is None:
            return row
        inner = replace(row.root, name=f"inner-{row.root.name}")
        return replace(row, root=GroupRow(name="outer", groups=[inner]))

    return replace(world, jobs=[job(row) for row in world.jobs])


def topology_levels(world: Case) -> Case:
    """Every topology has a level above all others and one below, neither of which tells more than is known."""
    topologies = [TopologyRow(name=row.name, levels=["top", *row.levels, "bottom"]) for row in world.topologies]
    nodes = [replace(node, labels={**node.labels, "top": "1", "bottom": "1"}) for node in world.nodes]
    more = [TopologyRow(name="unused", levels=["bottom", "top"])]
    return replace(world, nodes=nodes, topologies=[*topologies, *more])


ALL_SYMMETRIES: Mapping[str, Symmetry] = {
    symmetry.__name__: symmetry
    for symmetry in (
        renamed, queues_shuffled, jobs_by_priority, jobs_by_rising_priority, priorities_spread,
        finer_units, parts_as_memory, useless_node, useless_node_first, empty_queues, level_below, level_above,
        wide_limits, hopeless_job, wrapped_gangs, topology_levels,
    )
}  # fmt: skip


def fates(answer: Mapping[str, JobAnswer]) -> dict[str, list[tuple[str, str | None]]]:
    """Job -> decision and node of each task, whatever things are called."""

    def plain(name: str | None) -> str | None:
        return None if name is None else name.removeprefix("x-")

    return {
        name.removeprefix("z-"): [(task.decision, plain(task.node)) for task in job.tasks]
        for name, job in answer.items()
        if name != "never"
    }
