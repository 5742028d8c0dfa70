"""What does each queue deserve right now? Quota first, then the surplus by priority, weight and past use.

For one resource and one set of siblings:

1. each gets its quota, but not more than it asks for or its limit allows. Quotas may exceed the pool: then nothing is over;
2. the surplus goes to queues that want more, the highest priority first. Inside a priority in rounds: the surplus of the round
   is divided by `weight + k x (weight - past use)` (both as parts of one); who needs less than its part gets what it needs and
   another round divides the rest; others get whole units only, because a third of a GPU is of no use to a queue;
3. what the rounding left goes in single units to the largest remainder, then the oldest queue, again by priority.

The same then happens inside each queue, its own share being the pool. CPUs and bytes are rounded too, where it is not felt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from slurmbridge.sched.queues import ZERO, QueueTree, Vector

_NOTHING = 1e-9  # surplus smaller than this is rounding, not a resource


def fair_shares(
    tree: QueueTree,
    total: Vector,
    request: Sequence[Vector],
    usage: Sequence[Vector] | None = None,
    k: float = 1.0,
    *,
    round_up: bool = False,
) -> list[Vector]:
    """The share of each queue, in the units of `total`.

    `request`: by queue, descendants included: allocated and waiting. `usage`: decayed use as part of the pool, 0 to 1.
    `round_up`: what the rounding left goes in whole units even to who asks for less than one more.
    """
    columns: list[list[float]] = []
    for resource in range(3):
        wanted = [row[resource] for row in request]
        used = [row[resource] for row in usage] if usage is not None else [0.0] * len(tree)
        share = [0.0] * len(tree)
        _divide(tree, tree.roots, total[resource], resource, wanted, used, k, share, round_up)
        for queue, children in enumerate(tree.children):  # parents come first
            if children:
                _divide(tree, children, share[queue], resource, wanted, used, k, share, round_up)
        columns.append(share)
    return list(zip(*columns, strict=True)) if columns[0] else []


def allocatable(tree: QueueTree, shares: Sequence[Vector], queue: int) -> Vector:
    """Up to where a queue is not asked to give anything back: the larger of quota and share, inside its limit."""
    quota, limit, share = tree.quota[queue], tree.limit[queue], shares[queue]
    return (
        min(limit[0], max(quota[0], share[0])),
        min(limit[1], max(quota[1], share[1])),
        min(limit[2], max(quota[2], share[2])),
    )


def request_of(tree: QueueTree, allocated: Sequence[Vector], pending: Sequence[Vector]) -> list[Vector]:
    """What every queue asks for: both given by queue, ancestors still zero."""
    own = [
        (held[0] + asked[0], held[1] + asked[1], held[2] + asked[2])
        for held, asked in zip(allocated, pending, strict=True)
    ]
    return tree.summed(own) if own else [ZERO] * len(tree)


def _divide(
    tree: QueueTree,
    siblings: Sequence[int],
    total: float,
    resource: int,
    wanted: Sequence[float],
    used: Sequence[float],
    k: float,
    share: list[float],
    round_up: bool,
) -> None:
    surplus = total
    hungry: dict[int, list[int]] = {}  # by priority: who would take more than its quota
    for queue in siblings:
        cap = min(tree.limit[queue][resource], wanted[queue])
        quota = tree.quota[queue][resource]
        given = min(quota if quota != math.inf else total, cap)
        share[queue] = given
        surplus -= given
        if cap > given:
            hungry.setdefault(tree.priority[queue], []).append(queue)
    if surplus <= _NOTHING or not hungry:
        return
    left: list[tuple[int, dict[int, float]]] = []
    for priority in sorted(hungry, reverse=True):
        remainders: dict[int, float] = {}
        surplus = _rounds(tree, hungry[priority], surplus, resource, wanted, used, k, share, remainders)
        left.append((priority, remainders))
    for _priority, remainders in left:
        for queue in sorted(remainders, key=lambda q: (-remainders[q], tree.rank[q], tree.names[q])):
            if surplus <= _NOTHING:
                return
            most = math.inf if round_up else min(tree.limit[queue][resource], wanted[queue]) - share[queue]
            given = min(1.0, surplus, most)
            share[queue] += given
            surplus -= given


def _rounds(
    tree: QueueTree,
    hungry: Sequence[int],
    surplus: float,
    resource: int,
    wanted: Sequence[float],
    used: Sequence[float],
    k: float,
    share: list[float],
    remainders: dict[int, float],
) -> float:
    """Give out `surplus` inside one priority; returns what nobody took as whole units."""
    needs = {queue: min(tree.limit[queue][resource], wanted[queue]) - share[queue] for queue in hungry}
    again = True
    while again and surplus > _NOTHING:
        again = False
        needs = {queue: need for queue, need in needs.items() if need > 0}
        weights = {queue: tree.weight[queue][resource] for queue in needs}
        whole = sum(weights.values())
        if whole <= 0:
            return surplus
        parts = {}
        for queue, weight in weights.items():
            even = weight / whole
            parts[queue] = max(0.0, even + k * (even - used[queue]))
        sum_of_parts = sum(parts.values())
        if sum_of_parts <= 0:
            return surplus
        at_start = surplus
        for queue, part in parts.items():
            if surplus <= _NOTHING:
                return 0.0
            if weights[queue] <= 0:
                continue
            part = at_start * part / sum_of_parts
            need = needs[queue]
            if need <= part + _NOTHING:
                given = min(need, surplus)
                remainders.pop(queue, None)
                again = again or need < part - _NOTHING
            else:
                given = min(float(math.floor(part + _NOTHING)), surplus)
                if part - given > _NOTHING:
                    remainders[queue] = part - given
            share[queue] += given
            needs[queue] = need - given
            surplus -= given
    return surplus
