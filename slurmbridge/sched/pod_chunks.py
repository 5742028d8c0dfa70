"""Which tasks of a gang come next, and which go first?

To start: every task that the sets below their minimum lack, together; then one task at a time, from the set that is served
least. To give back: one task at a time as long as a set is above its minimum, then the gang as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from slurmbridge.sched.pods import Gang, PodTask
from slurmbridge.sched.queues import ZERO, Vector, plus


def next_to_start(gang: Gang, virtual: bool = False) -> list[PodTask]:
    """The tasks of the next step; none where the gang cannot be completed or has nothing to place."""
    below = [pods for pods in gang.sets if pods.active < pods.minimum]
    if below:
        found: list[PodTask] = []
        for pods in below:
            missing = pods.minimum - pods.active
            waiting = _in_order(task for task in pods.tasks if task.waits(virtual))
            if len(waiting) < missing:
                return []
            found += waiting[:missing]
        return found
    elastic = [pods for pods in gang.sets if any(task.waits(virtual) for task in pods.tasks)]
    if not elastic:
        return []
    pods = min(elastic, key=lambda each: each.active / max(each.minimum, 1))
    return _in_order(task for task in pods.tasks if task.waits(virtual))[:1]


def next_to_go(tasks: Iterable[PodTask]) -> list[PodTask]:
    """Of the tasks of one gang that are still here, those that would be taken in one step."""
    left = list(tasks)
    counts: dict[int, int] = {}
    for task in left:
        counts[id(task.pods)] = counts.get(id(task.pods), 0) + 1
    spare = [task for task in left if counts[id(task.pods)] > task.pods.minimum]
    if not spare:
        return left
    fullest = max(spare, key=lambda task: counts[id(task.pods)] / max(task.pods.minimum, 1)).pods
    return _in_order(task for task in spare if task.pods is fullest)[-1:]


def asked(tasks: Iterable[PodTask], device_mib: float) -> Vector:
    """What tasks that have no node yet would be charged."""
    total = ZERO
    for task in tasks:
        total = plus(total, task.ask.charge(device_mib))
    return total


def held(tasks: Iterable[PodTask]) -> Vector:
    """What tasks are charged."""
    total = ZERO
    for task in tasks:
        total = plus(total, task.charged)
    return total


def _in_order(tasks: Iterable[PodTask]) -> list[PodTask]:
    return sorted(tasks, key=lambda task: (-task.order, task.index))
