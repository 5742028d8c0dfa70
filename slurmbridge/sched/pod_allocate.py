"""Can the next step of a gang be placed? All of its tasks or none.

The groups of a gang are placed one inside the other: each picks a set of nodes that its wish about topology allows, its
groups and pod sets choose inside; where one of them fails, the next set of nodes is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slurmbridge.sched import gates
from slurmbridge.sched.pod_chunks import asked, next_to_start
from slurmbridge.sched.pod_fit import LATER, best_nodes, devices_for
from slurmbridge.sched.pod_node import PodNode
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pod_topology import node_sets
from slurmbridge.sched.pods import Gang, PodGroup, PodSet, PodTask, Status, Wish

FEW_NODES = 16  # up to here each is asked by itself


def allocate_gang(
    session: PodSession,
    gang: Gang,
    nodes: Sequence[PodNode],
    *,
    promise: bool = False,
    tasks: Sequence[PodTask] | None = None,
) -> bool:
    """Place the next step of `gang`, or `tasks` of it, on `nodes`; on failure nothing is changed.

    `promise`: nothing starts now, and what the pass evicted may be placed again.
    """
    chosen = next_to_start(gang, virtual=promise) if tasks is None else tasks
    if not chosen or not admitted(session, gang, chosen):
        return False
    mark = session.mark()
    if not _group(session, gang.root, set(chosen), nodes, {}, promise):
        session.restore(mark)
        return False
    if not promise:
        start_together(session, gang)
    return True


def admitted(session: PodSession, gang: Gang, tasks: Iterable[PodTask]) -> bool:
    """Do limits, and for what cannot be preempted quotas, leave room for the tasks?"""
    ask = asked(tasks, session.device_mib)
    if not gates.within_limit(session.ledger, gang.leaf, ask):
        return False
    return gang.preemptible or gates.within_quota(session.ledger, gang.leaf, ask)


def _group(
    session: PodSession,
    group: PodGroup,
    tasks: set[PodTask],
    nodes: Sequence[PodNode],
    ranks: Mapping[int, int],
    promise: bool,
) -> bool:
    members = list(group.all_sets())
    inside = [task for pods in members for task in pods.tasks if task in tasks]
    if not inside:
        return True
    for chosen, preferred in _choices(session, group.wish, nodes, inside, members):
        mark = session.mark()
        below = _joined(ranks, preferred)
        if all(_group(session, child, tasks, chosen, below, promise) for child in group.groups) and all(
            _set(session, pods, tasks, chosen, below, promise) for pods in group.sets
        ):
            return True
        session.restore(mark)
    return False


def _set(
    session: PodSession,
    pods: PodSet,
    tasks: set[PodTask],
    nodes: Sequence[PodNode],
    ranks: Mapping[int, int],
    promise: bool,
) -> bool:
    inside = sorted((task for task in pods.tasks if task in tasks), key=lambda task: (-task.order, task.index))
    if not inside:
        return True
    for chosen, preferred in _choices(session, pods.wish, nodes, inside, [pods]):
        mark = session.mark()
        below = _joined(ranks, preferred)
        if all(_task(session, task, chosen, below, promise) for task in inside):
            return True
        session.restore(mark)
    return False


def _choices(
    session: PodSession, wish: Wish | None, nodes: Sequence[PodNode], tasks: Sequence[PodTask], sets: Iterable[PodSet]
) -> Iterable[tuple[Sequence[PodNode], Mapping[int, int]]]:
    if wish is None:
        return [(nodes, {})]
    placed = [
        where for pods in sets for task in pods.tasks if task.active and (where := task.target or task.node) is not None
    ]
    topology, by_largest = session.topologies.get(wish.topology), session.policy.domains_by_largest
    return node_sets(wish, topology, nodes, tasks, placed, by_largest=by_largest)


def _joined(one: Mapping[int, int], two: Mapping[int, int]) -> Mapping[int, int]:
    if not one or not two:
        return one or two
    return {index: one.get(index, 0) + two.get(index, 0) for index in {*one, *two}}


def _task(
    session: PodSession, task: PodTask, nodes: Sequence[PodNode], ranks: Mapping[int, int], promise: bool
) -> bool:
    ranked = best_nodes(_candidates(session, nodes, task), task, session.policy.placement, ranks)
    return any(place_on(session, task, node, verdict, promise) for node, verdict in ranked)


def _candidates(session: PodSession, nodes: Sequence[PodNode], task: PodTask) -> Sequence[PodNode]:
    if len(nodes) <= FEW_NODES:
        return nodes
    found = session.columns.candidates(task.ask)
    if len(nodes) == len(session.nodes):
        return found
    inside = {node.index for node in nodes}
    return [node for node in found if node.index in inside]


def place_on(session: PodSession, task: PodTask, node: PodNode, verdict: int, promise: bool) -> bool:
    """Place a task on a node where it fits (`verdict`: LATER or NOW). False: its devices are too few after all."""
    labels: tuple[str, ...] = ()
    waits = verdict == LATER
    if task.ask.shares_devices:
        devices = devices_for(node, task, session.policy.placement.devices, promise or waits)
        if devices is None:
            return False
        labels, must_wait = devices
        waits = waits or must_wait
    session.place(task, node, labels, promise or waits)
    return True


def start_together(session: PodSession, gang: Gang) -> None:
    """Start nothing of a gang that is not complete yet: a set that has too few tasks for now waits for what was promised, and the whole gang with it."""
    for pods in gang.sets:
        promised = sum(task.target is not None for task in pods.tasks)
        if promised and pods.active - promised < pods.minimum:
            for task in gang.tasks:
                if task.status == Status.STARTED:
                    session.postpone(task)
            return
