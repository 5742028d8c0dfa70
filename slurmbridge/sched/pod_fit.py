"""Does a task fit on a node, on which devices, and on which node best?

A node fits *now* when what is idle suffices and *later* when what is being released does, too; nothing promised counts as
free. Preference between nodes, the first difference decides: ranks that topology gives, a device already shared that fits,
fits now, a node that is not wasted on it (no devices for a task that needs none), bin-packing or spreading, the order given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from slurmbridge.sched.pod_node import Ask, PodNode, is_in_use, part_free
from slurmbridge.sched.pods import PodTask
from slurmbridge.sched.queues import TOLERANCE

NO, LATER, NOW = 0, 1, 2
_ONE = 1 - TOLERANCE


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool is filled."""

    gpu_nodes: str = "binpack"  # binpack, spread, none: among nodes, for tasks with devices
    cpu_nodes: str = "binpack"  # the same for others
    devices: str = "pack"  # pack, spread, none: among the shared devices of a node


def fit(node: PodNode, ask: Ask) -> int:
    """NO, LATER or NOW."""
    idle, freed = node.idle, node.freed
    gpus = ask.gpus - TOLERANCE
    if gpus > idle[2] + freed[2]:  # first what most often decides
        return NO
    cpu, memory = ask.cpu - TOLERANCE, ask.memory - TOLERANCE
    if cpu > idle[0] + freed[0] or memory > idle[1] + freed[1] or idle[3] + freed[3] < _ONE:
        return NO
    now = cpu <= idle[0] and memory <= idle[1] and idle[3] >= _ONE and gpus <= idle[2]
    if not ask.gpus and ask.shares_devices:
        usable_now, usable = sharable(node, ask)
        if usable < ask.devices:
            return NO
        return NOW if now and usable_now >= ask.devices else LATER
    return NOW if now else LATER


def sharable(node: PodNode, ask: Ask) -> tuple[int, int]:
    """On how many devices of the node the part fits: now, and in all."""
    part = ask.part(node.device_mib)
    if part > 1 + TOLERANCE:
        return 0, 0
    later_whole = max(0, math.floor(node.idle[2] + node.freed[2] + TOLERANCE))
    now_whole = max(0, min(later_whole, math.floor(node.idle[2] + TOLERANCE)))
    now, later = now_whole, later_whole
    for sharers in node.shared.values():
        if is_in_use(sharers):
            free_now, free_later = part_free(sharers)
            if part <= free_later + TOLERANCE:
                later += 1
                now += sharers[1] > 0 and part <= free_now + TOLERANCE
    return now, later


def fit_devices(node: PodNode, ask: Ask, labels: tuple[str, ...]) -> int:
    """NO, LATER or NOW for a task that takes parts, on just these devices."""
    verdict, part, fresh = fit(node, ask), ask.part(node.device_mib), 0
    if len(labels) != ask.devices:
        return NO
    for label in labels:
        sharers = node.shared.get(label)
        if sharers is None or not is_in_use(sharers):
            fresh += 1
            verdict = min(verdict, NOW if sharers is None else LATER)
            continue
        free_now, free_later = part_free(sharers)
        if part > free_later + TOLERANCE:
            return NO
        verdict = min(verdict, NOW if sharers[1] > 0 and part <= free_now + TOLERANCE else LATER)
    if fresh > node.idle[2] + node.freed[2] + TOLERANCE:
        return NO
    return verdict if fresh <= node.idle[2] + TOLERANCE else min(verdict, LATER)


def has_shared_room(node: PodNode, ask: Ask) -> bool:
    """Does the part fit on a device that is shared already?"""
    part = ask.part(node.device_mib)
    return any(is_in_use(sharers) and part <= part_free(sharers)[1] + TOLERANCE for sharers in node.shared.values())


def devices_for(node: PodNode, task: PodTask, order: str, promise: bool) -> tuple[tuple[str, ...], bool] | None:
    """The devices for a task that takes parts of some, and whether it must wait for them. None: too few.

    `promise`: what is being released is as good as what is idle.
    """
    ask = task.ask
    part = ask.part(node.device_mib)
    scored: list[tuple[float, int, str, bool]] = []
    for label, sharers in node.shared.items():
        if not is_in_use(sharers):
            continue
        free_now, free_later = part_free(sharers)
        if part <= free_later + TOLERANCE:
            used = 1 - free_now
            score = round({"pack": -used, "spread": used}.get(order, 0.0), 6)
            scored.append((score, len(label), label, not (sharers[1] > 0 and part <= free_now + TOLERANCE)))
    scored.sort()
    chosen = [(label, waits) for _, _, label, waits in scored]
    chosen += _whole_devices(node, task, promise, ask.devices - len(chosen))
    if len(chosen) < ask.devices:
        return None
    chosen = chosen[: ask.devices]
    return tuple(label for label, _ in chosen), any(waits for _, waits in chosen)


def _whole_devices(node: PodNode, task: PodTask, promise: bool, count: int) -> list[tuple[str, bool]]:
    """Up to `count` devices nobody shares, as (name, must it be waited for)."""
    found: list[tuple[str, bool]] = []
    idle = math.floor(node.idle[2] + TOLERANCE)
    later = math.floor(node.idle[2] + node.freed[2] + TOLERANCE)
    leaving = [label for label, sharers in node.shared.items() if not is_in_use(sharers)]
    mine = task.labels if task.node is node else ()  # back to where it was, if it can
    leaving.sort(key=lambda label: (label not in mine, len(label), label))
    fresh = 0
    while len(found) < min(count, later):
        own = bool(leaving) and task.node is node and leaving[0] in task.labels
        if len(found) < idle and not (own and promise):
            fresh += 1
            found.append((_fresh(node, fresh), False))
        elif leaving:
            found.append((leaving.pop(0), True))
        else:
            fresh += 1
            found.append((_fresh(node, fresh), True))
    return found


def _fresh(node: PodNode, number: int) -> str:
    """The `number`-th name that no shared device of the node has."""
    device = -1
    while number:
        device += 1
        if str(device) not in node.shared:
            number -= 1
    return str(device)


def admits(node: PodNode, task: PodTask) -> bool:
    """Has the node a label that the task insists on?"""
    return not task.affinity or not task.affinity.isdisjoint(node.labels.values())


def best_nodes(
    nodes: Iterable[PodNode], task: PodTask, placement: Placement, ranks: Mapping[int, int]
) -> list[tuple[PodNode, int]]:
    """The nodes on which the task fits, the best first, each with LATER or NOW. `ranks`: by node index."""
    ask = task.ask
    fitting: list[tuple[PodNode, int]] = []
    for node in nodes:
        verdict = fit(node, ask)
        if verdict and admits(node, task):
            fitting.append((node, verdict))
    if len(fitting) < 2:
        return fitting
    style = placement.gpu_nodes if ask.needs_gpu else placement.cpu_nodes

    def preference(entry: tuple[PodNode, int]) -> tuple[float, ...]:
        node, verdict = entry
        return (
            -ranks.get(node.index, 0),
            -float(ask.shares_devices and has_shared_room(node, ask)),
            -verdict,
            float(node.gpus > 0 and not ask.needs_gpu),
            _fullness(node, ask.needs_gpu, style),
            node.index,
        )

    return sorted(fitting, key=preference)


def _fullness(node: PodNode, gpu: bool, style: str) -> float:
    """Smaller is better: what is left of the node, or its negative part of the whole. Sums of parts, so rounded."""
    if style == "none":
        return 0.0
    if gpu:
        left = node.idle[2] + node.freed[2] + parts_free(node)
        whole = float(node.gpus)
    else:
        left, whole = node.idle[0] + node.freed[0], node.size[0]
    return round(left if style == "binpack" else -left / (whole or 1.0), 6)


def copies(node: PodNode, ask: Ask) -> int:
    """How many tasks like this the node will be able to hold."""
    later = node.future()
    count = later[3]
    if ask.cpu:
        count = min(count, later[0] / ask.cpu)
    if ask.memory:
        count = min(count, later[1] / ask.memory)
    if ask.gpus:
        count = min(count, later[2] / ask.gpus)
    elif ask.shares_devices:
        part = ask.part(node.device_mib)
        if part > 1 + TOLERANCE:
            return 0
        pieces = math.floor(max(0.0, later[2]) + TOLERANCE) * math.floor(1 / part + TOLERANCE)
        for sharers in node.shared.values():
            if is_in_use(sharers):
                pieces += math.floor(part_free(sharers)[1] / part + TOLERANCE)
        count = min(count, pieces / ask.devices)
    return max(0, math.floor(count + TOLERANCE))


def parts_free(node: PodNode) -> float:
    """What is, or will be, left of the devices that are shared, in devices."""
    return sum(part_free(sharers)[1] for sharers in node.shared.values() if is_in_use(sharers))
