"""In which sets of nodes may tasks that want to be close together be tried, and in which order?

A domain is what nodes share in the labels of a topology down to one level. Required: all tasks inside one domain of that
level. Preferred: as deep as that level if possible, then less deep, up to the required level or no bound at all. Among domains
that can hold the tasks the tightest is tried first; inside one that is less deep than preferred, the roomiest of the preferred
sub-domains is filled first, so that few of them are touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from slurmbridge.sched.pod_fit import copies
from slurmbridge.sched.pod_node import PodNode
from slurmbridge.sched.pods import PodTask, Topology, Wish
from slurmbridge.sched.queues import TOLERANCE

Path = tuple[str, ...]
RANK_STEPS = 10  # how finely the order of sub-domains outranks other preferences


def node_sets(
    wish: Wish | None,
    topology: Topology | None,
    nodes: Sequence[PodNode],
    tasks: Sequence[PodTask],
    placed: Sequence[PodNode],
    *,
    by_largest: bool = False,
) -> Iterator[tuple[list[PodNode], dict[int, int]]]:
    """Sets of nodes to try in turn, each with ranks of preference by node index; none where the topology is not there.

    `placed`: where other tasks of the same gang or group run: a required level keeps the rest beside them.  `by_largest`: see
    `can_hold`.
    """
    if wish is None or (wish.required is None and wish.preferred is None):
        yield list(nodes), {}
        return
    if topology is None:  # it is gone: nobody can say what is near
        return
    top = -1 if wish.required is None else wish.required
    bottom = top if wish.preferred is None else max(wish.preferred, top)
    paths = {node.index: path_of(topology, node) for node in nodes}
    bound = {path_of(topology, node)[: top + 1] for node in placed} if top >= 0 else set()
    for level in range(bottom, top - 1, -1):
        if level < 0:
            yield list(nodes), _ranks(nodes, paths, (), bottom, tasks)
            return
        for domain in _tightest_first(nodes, paths, level, tasks):
            if bound and domain[: top + 1] not in bound:
                continue
            inside = [node for node in nodes if paths[node.index][: level + 1] == domain]
            if can_hold(inside, tasks, by_largest=by_largest):
                yield inside, _ranks(inside, paths, domain, bottom, tasks)


def path_of(topology: Topology, node: PodNode) -> Path:
    """The node's labels, outermost first, as far as it has them."""
    path: list[str] = []
    for label in topology.levels:
        value = node.labels.get(label)
        if value is None:
            break
        path.append(value)
    return tuple(path)


def can_hold(nodes: Sequence[PodNode], tasks: Sequence[PodTask], *, by_largest: bool = False) -> bool:
    """Could there be room for all the tasks? False only where some would have none.

    `by_largest`: tasks that all have devices, or none, count as if each were as large as the largest, which finds too little
    room for unequal ones.
    """
    needing = sum(task.ask.needs_gpu for task in tasks)
    if needing not in (0, len(tasks)):
        return _sum_holds(nodes, tasks)
    largest = max(tasks, key=lambda task: (task.ask.gpus, task.ask.share, task.ask.mib, task.ask.cpu)).ask
    alike = all(task.ask == largest for task in tasks)
    if not alike and not by_largest:
        return _sum_holds(nodes, tasks)
    if not alike:
        largest = replace(
            largest, cpu=max(task.ask.cpu for task in tasks), memory=max(task.ask.memory for task in tasks)
        )
    found = 0
    for node in nodes:
        found += copies(node, largest)
        if found >= len(tasks):
            return True
    return False


def _sum_holds(nodes: Sequence[PodNode], tasks: Sequence[PodTask]) -> bool:
    asked, free = _sums(nodes, tasks)
    return all(want <= have + TOLERANCE for want, have in zip(asked, free, strict=True))


def _sums(nodes: Sequence[PodNode], tasks: Sequence[PodTask]) -> tuple[list[float], list[float]]:
    device = max((node.device_mib for node in nodes), default=0.0)
    asked = [0.0, 0.0, 0.0]
    for task in tasks:
        for resource, amount in enumerate(task.ask.charge(device)):
            asked[resource] += amount
    free = [0.0, 0.0, 0.0]
    for node in nodes:
        later = node.future()
        for resource in range(3):
            free[resource] += max(0.0, later[resource])
        free[2] += sum(max(0.0, 1.0 - s[0] - s[4]) for s in node.shared.values() if s[1] or s[5])
    return asked, free


def _tightness(nodes: Sequence[PodNode], tasks: Sequence[PodTask]) -> float:
    """The largest part, over the resources, that the tasks are of what is free."""
    asked, free = _sums(nodes, tasks)
    return max(
        (want / have if have > 0 else float("inf")) if want else 0.0 for want, have in zip(asked, free, strict=True)
    )


def _tightest_first(
    nodes: Sequence[PodNode], paths: dict[int, Path], level: int, tasks: Sequence[PodTask]
) -> list[Path]:
    """The domains of a level: those of the tightest parent first, the tightest among them first."""
    found: list[Path] = [()]
    for depth in range(level + 1):
        deeper: list[Path] = []
        for parent in found:
            members: dict[Path, list[PodNode]] = {}
            for node in nodes:
                path = paths[node.index]
                if len(path) > depth and path[:depth] == parent:
                    members.setdefault(path[: depth + 1], []).append(node)
            deeper += sorted(members, key=lambda path: (-_tightness(members[path], tasks), path))
        found = deeper
    return found


def _ranks(
    nodes: Sequence[PodNode], paths: dict[int, Path], domain: Path, level: int, tasks: Sequence[PodTask]
) -> dict[int, int]:
    """By node index: larger for roomier sub-domains of the preferred level."""
    if level < len(domain):
        return {}
    order = _tightest_first(nodes, paths, level, tasks)
    place = {path: number for number, path in enumerate(order)}
    return {
        node.index: RANK_STEPS * place[paths[node.index][: level + 1]] // len(order)
        for node in nodes
        if len(paths[node.index]) > level
    }
