"""Who is promised the next start where queues take turns and the site promises by claim?

A promise keeps nodes idle, so it should go to whom waiting hurts most, and everybody's turn must come. A job's claim is

    waited x size^1/2 / limit^3/4 / held^1/4

Every claim grows without end while that of a later job starts at nothing, so no gang waits for ever. What waits long for its
limit comes first: so slowdowns stay small. Large jobs find room by chance most seldom, while draining for one small job helps
one small job: the part of the pool that a job asks for counts, by its root, because a drain for much costs much. What the
job's queue holds for its weight counts against it. The parts are taken as at least a tenth (size) and a twentieth (held) of the
pool, so that neither the smallest job nor an empty queue outweighs everything. A limit counts as PriorityMaxAge at most: nobody
waits without end for having named no limit. (The powers were found by replaying generated workloads of three kinds.)

In a queue the QOS decide who has the queue's strongest claims. Between queues work inside quotas has the first claim, then the
queue's priority decides; on sites without quotas all work is inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched.columns import Ints
from slurmbridge.sched.market import Market
from slurmbridge.sched.queues import Vector, fits, plus

LEAST_SIZE = 0.1
LEAST_HELD = 0.05
LEAST_S = 60.0
"""Limits are whole minutes."""
Floats = NDArray[np.float64]


def claims(waited: Floats, limits: Floats, sizes: Floats, held: Floats, longest_s: float) -> Floats:
    """See the module docstring. `sizes` and `held` are parts of the pool; one row a job."""
    lengths = np.clip(limits, LEAST_S, max(longest_s, LEAST_S))
    size, holds = np.maximum(sizes, LEAST_SIZE), np.maximum(held, LEAST_HELD)
    found: Floats = np.maximum(waited, 0.0) * size**0.5 / lengths**0.75 / holds**0.25
    return found


def by_importance(found: Floats, importance: Ints, leaves: Ints) -> Floats:
    """In each queue the strongest claim goes to the most important job, and so on: Priority of its QOS, then its own claim."""
    dealt = np.empty_like(found)
    dealt[np.lexsort((-found, -importance, leaves))] = found[np.lexsort((-found, leaves))]
    return dealt


def part_of(amount: Vector, total: Vector) -> float:
    """The dominant share."""
    return max((own / whole for own, whole in zip(amount, total, strict=True) if whole > 0), default=0.0)


def held_for_weight(market: Market) -> Floats:
    """By queue: the part of the pool that it holds, as if its weight were the mean of all leaves'."""
    tree, found = market.pool.tree, np.zeros(len(market.pool.tree))
    parts = [1.0] * len(tree)
    for queue in range(len(tree)):  # parents come first
        siblings, above = tree.siblings(queue), tree.parent[queue]
        whole = sum(_weight(tree.weight[each]) for each in siblings)
        even = _weight(tree.weight[queue]) / whole if whole > 0 else 1.0 / len(siblings)
        parts[queue] = even * (parts[above] if above >= 0 else 1.0)
    leaves = [queue for queue in range(len(tree)) if not tree.children[queue]]
    for queue in leaves:
        held = part_of(market.ledger.allocated[queue], market.total)
        found[queue] = held / max(parts[queue] * len(leaves), 1e-3)
    return found


def _weight(weight: Vector) -> float:
    return max(each for each in weight if each != math.inf)


def ranks(market: Market, leaves: Ints, asks: Sequence[Vector]) -> tuple[Ints, Ints]:
    """(0 inside quotas with what it asks for, else 1; -priority of the topmost queue), one row an entry."""
    tree, known = market.pool.tree, dict[tuple[int, Vector], tuple[int, int]]()
    rows = []
    for leaf, ask in zip(leaves.tolist(), asks, strict=True):
        found = known.get((leaf, ask))
        if found is None:
            path = tree.paths[leaf]
            inside = all(fits(plus(market.ledger.allocated[queue], ask), tree.quota[queue]) for queue in path)
            found = known[leaf, ask] = (0 if inside else 1, -tree.priority[path[-1]])
        rows.append(found)
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
