"""Who is promised the next start where queues take turns and the site promises by age or by claim?

A promise keeps nodes idle, and everybody's turn must come. By age it goes to who has waited longest: large jobs find no room
by chance, and whatever is kept free for them is kept for the work that is there, not for what is short. But while its queue holds
what it deserves, a tenth of a job's waiting counts: others come first, or age would be in the place of turns, and yet nobody
waits for ever. By claim it goes to whom waiting hurts most. A job's claim is

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

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.market import Market
from slurmbridge.sched.queues import TOLERANCE, Vector, fits, plus
from slurmbridge.sched.snapshot import Snapshot

LEAST_SIZE = 0.1
LEAST_HELD = 0.05
SERVED = 0.1
"""By age: so much of its waiting counts while a job's queue holds what it deserves."""
LEAST_S = 60.0
"""Limits are whole minutes."""
PATIENCE_S = 3600.0
"""Waits much shorter than this hardly count."""
Floats = NDArray[np.float64]


class Candidates(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Who may be promised a start in a partition: one row an entry."""

    waited: Floats
    lengths: Floats
    asks: Floats  # [entry, 3]
    importance: Ints
    leaves: Ints


def order(them: Candidates, market: Market, snapshot: Snapshot) -> Ints:
    """Their places, the strongest first."""
    total, config = np.array(market.total), snapshot.config
    sizes = (them.asks / np.where(total > 0, total, np.inf)).max(axis=1)
    if config.scheduling.promise == "claim":
        held = held_for_weight(market)[them.leaves]
        found = claims(them.waited, them.lengths, sizes, held, float(config.priority_max_age))
    else:
        found = np.where(served(market)[them.leaves], SERVED * them.waited, them.waited)
    found = by_importance(found, them.importance, them.leaves)
    outside, unimportant = ranks(market, them.leaves, list(map(tuple, them.asks.tolist())))
    return np.lexsort((np.arange(len(found)), -found, unimportant, outside)).astype(np.int64)


def served(market: Market) -> Bools:
    """By queue: whether it, or one above it, holds its share of something of which it wants more."""
    tree, found = market.pool.tree, np.zeros(len(market.pool.tree), dtype=np.bool_)
    for queue in range(len(tree)):  # parents come first
        wanted, share, held = market.requested[queue], market.shares[queue], market.ledger.allocated[queue]
        own = any(wanted[r] > share[r] + TOLERANCE and held[r] >= share[r] - TOLERANCE for r in range(3))
        found[queue] = own or (tree.parent[queue] >= 0 and bool(found[tree.parent[queue]]))
    return found


def claims(waited: Floats, limits: Floats, sizes: Floats, held: Floats, longest_s: float) -> Floats:
    """See the module docstring. `sizes` and `held` are parts of the pool; one row a job."""
    lengths = np.clip(limits, LEAST_S, max(longest_s, LEAST_S))
    size, holds = np.maximum(sizes, LEAST_SIZE), np.maximum(held, LEAST_HELD)
    found: Floats = np.maximum(waited, 0.0) * size**0.5 / lengths**0.75 / holds**0.25
    return found


def impatience(waited: Floats, limits: Floats) -> Floats:
    """The order of `backfill: aged`, the least first: who waited longer, a little in favour of short limits."""
    found: Floats = np.maximum(limits, LEAST_S) ** 0.25 / (np.maximum(np.nan_to_num(waited), 0.0) + PATIENCE_S)
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
