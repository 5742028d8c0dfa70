"""Which queues could give anything to a queue that reclaims? The rules of `gates` for a first, small piece.

Asked for all queues at once, and kept up to date where something is taken, because most searches end here. A set of victims
is still judged as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.job import Job
from slurmbridge.sched import gates
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.market import Market, charges
from slurmbridge.sched.queues import TOLERANCE, Vector, plus
from slurmbridge.sched.room import Hold
from slurmbridge.sched.walk import Walk

Floats = NDArray[np.float64]
_BITS = np.array([1, 2, 4])
FEW = 16
"""So many pieces of work are quicker to judge one by one than all at once."""
_NONE: Ints = np.zeros(0, dtype=np.int64)


class Takeable(Protocol):
    """Pieces of work that may be taken: by place their leaves, what they count for, and which have only just been given."""

    leaf: Ints
    charge: Floats
    starts: Bools

    def of_leaf(self, queue: int) -> Ints:
        """Places of those of one leaf."""

    def together(self, some: Sequence[Ints]) -> Ints:
        """Places of those of several leaves, in their order."""


class Payers:
    """Of one pool in one cycle. What a queue holds is told anew by `changed`."""

    def __init__(self, market: Market) -> None:
        self._market, self._partings = market, market.pool.partings
        tree = self._tree = market.pool.tree
        self._held = _table(market.ledger.allocated)  # a row a resource, a column a queue
        quota, shares = _table(tree.quota), _table(market.shares)
        self._bound = np.minimum(_table(tree.limit), np.maximum(quota, shares)) + TOLERANCE  # see `allocatable`
        self._quota = quota + TOLERANCE
        self._bounds: list[list[float]] = self._bound.T.tolist()  # the same by queue
        self._quotas: list[list[float]] = self._quota.T.tolist()
        self._spare, self._spare_of_quota = _beyond(self._held, self._bound), _beyond(self._held, self._quota)
        self._above: list[int] = (_BITS @ (self._held > self._bound)).tolist()  # by queue: bits of resources
        self._over: list[int] = (_BITS @ (self._held > self._quota)).tolist()
        self._known: dict[int, dict[tuple[int, int], bool]] = {}  # by the parent of a queue: see `_gives`
        self.runs_are(np.zeros((3, len(tree))))

    def runs_are(self, least: Floats) -> None:
        """By resource and queue, the least that a run which may be taken counts for; inf: there is none."""
        self._least, self._has_runs = least, np.isfinite(least[0])
        self._known.clear()
        self._below: dict[int, list[int]] = {}
        self._places: dict[int, Ints] = {}
        for leaf in np.flatnonzero(self._has_runs).tolist():
            for queue in self._tree.paths[leaf]:
                self._below.setdefault(queue, []).append(leaf)

    @property
    def any_above(self) -> bool:
        """Whether any queue holds more than is its due."""
        return any(self._above)

    def changed(self, leaf: int) -> None:
        """What a leaf and the queues above it hold is not what it was."""
        tree, rows = self._tree, self._market.ledger.allocated
        for queue in tree.paths[leaf]:
            self._held[:, queue] = held = rows[queue]
            for table, due in ((self._spare, self._bounds[queue]), (self._spare_of_quota, self._quotas[queue])):
                table[:, queue] = [
                    math.inf if most == math.inf else has - (most - TOLERANCE)
                    for has, most in zip(held, due, strict=True)
                ]
            self._above[queue], self._over[queue] = (
                _bits_above(held, self._bounds[queue]),
                _bits_above(held, self._quotas[queue]),
            )
            self._known.pop(tree.parent[queue], None)

    def among(self, leaf: int, ask: Vector, runs: Takeable) -> Ints:
        """Places of pieces of work that may be taken first for a chunk of this size, in the order of `together`."""
        found: list[Ints] = []
        wanted = _wanted(ask)
        for queue in self._tree.paths[leaf]:
            inside = self._inside(queue, ask)
            giving = self._giving(queue, wanted, inside)
            for sibling in self._not_barred(queue, ask, giving) if giving else ():
                bounded, places = self._bounded(sibling, wanted & ~inside), self._places_below(sibling, runs)
                found.append(self._leaving_quota(places, sibling, bounded, runs) if bounded else places)
        return runs.together(found) if found else _NONE

    def _places_below(self, queue: int, runs: Takeable) -> Ints:
        found = self._places.get(queue)
        if found is None:
            found = self._places[queue] = runs.together([runs.of_leaf(leaf) for leaf in self._below[queue]])
        return found

    def _bounded(self, queue: int, resources: int) -> list[int]:
        """Of these resources (bits), those of which a queue has a quota."""
        quota = self._quotas[queue]
        return [resource for resource in range(3) if resources >> resource & 1 and quota[resource] < math.inf]

    def _leaving_quota(self, places: Ints, queue: int, resources: list[int], runs: Takeable) -> Ints:
        """Those that leave a queue its quota: nobody is left below it for one who is above it."""
        charges, starts = runs.charge[places], runs.starts[places]
        held, quota = self._market.ledger.allocated[queue], self._quotas[queue]
        for resource in resources:
            lost = charges[:, resource]
            left = held[resource] - lost + 2 * TOLERANCE
            kept = (lost <= 0) | (left >= quota[resource]) | starts
            if np.count_nonzero(kept) < len(kept):
                places, charges, starts = places[kept], charges[kept], starts[kept]
        return places

    def leave_enough(self, leaf: int, ask: Vector, leaves: Ints, charges: Floats) -> Bools:
        """By piece of work, given by its leaf and what it holds: `gates.leaves_enough` of it alone."""
        if len(leaves) <= FEW:
            pieces = zip(leaves.tolist(), charges.tolist(), strict=True)
            return np.array([self._leaves_enough(leaf, ask, *each) for each in pieces], dtype=np.bool_)
        mine, theirs = self._partings.of(leaf)
        asked = np.array(ask).reshape(3, 1)
        inside = (self._held + asked <= self._quota)[:, mine]
        least = np.where(asked > 0, asked - TOLERANCE, math.inf)
        kept = np.ones(len(leaves), dtype=np.bool_)
        for queues in (slice(None), theirs):  # by leaf, what it and the queue that parts there have beyond their due
            spare = np.where(inside, self._spare_of_quota[:, queues], self._spare[:, queues])[:, leaves]
            lacks = np.maximum(charges.T - spare, 0.0) - np.maximum(-spare, 0.0)
            kept &= np.logical_and.reduce(lacks < least, axis=0)
        return kept

    def _leaves_enough(self, leaf: int, ask: Vector, payer: int, lost: Sequence[float]) -> bool:
        """The same for one piece."""
        rows, (mine, theirs) = self._market.ledger.allocated, self._tree.where_they_part(leaf, payer)
        for resource in range(3):
            more = ask[resource]
            if more <= 0:
                continue
            inside = rows[mine][resource] + more <= self._quotas[mine][resource]
            for queue in (payer, theirs):
                due = (self._quotas if inside else self._bounds)[queue][resource] - TOLERANCE
                if due < math.inf:
                    spare = rows[queue][resource] - due
                    lacks = max(lost[resource] - spare, 0.0) - max(-spare, 0.0)
                    if lacks >= more - TOLERANCE:
                        return False
        return True

    def some(self, leaf: int, asks: Floats) -> Bools:
        """By chunk of one leaf (rows of `asks`): whether there may be a run that can be taken for it.

        Where `among` finds one this is true; where it is not, nobody needs to look at runs.
        """
        found = np.zeros(len(asks), dtype=np.bool_)
        wanted = (asks > 0) @ _BITS
        for queue in self._tree.paths[leaf]:
            inside = self._held[:, queue] + asks <= self._quota[:, queue]
            bits = wanted + inside @ (8 * _BITS)
            for key in set(bits[~found].tolist()):
                if self._gives(queue, key):
                    found |= bits == key
        return found

    def any(self, leaf: int, ask: Vector) -> bool:
        """The same for one chunk."""
        wanted = _wanted(ask)
        path = self._tree.paths[leaf]
        return any(self._gives(queue, wanted + 8 * self._inside(queue, ask)) for queue in path)

    def _inside(self, queue: int, ask: Vector) -> int:
        """Bits of resources of which a queue stays inside its quota with this more."""
        held, quota = self._market.ledger.allocated[queue], self._quotas[queue]
        return (held[0] + ask[0] <= quota[0]) + 2 * (held[1] + ask[1] <= quota[1]) + 4 * (held[2] + ask[2] <= quota[2])

    def _gives(self, queue: int, bits: int) -> bool:
        """Whether a queue that parts at `queue` from the leaves below that may give.

        `bits`: the resources that are asked for, and those of which `queue` stays inside its quota.
        """
        parent = self._tree.parent[queue]
        known = self._known.get(parent)
        if known is None:
            known = self._known[parent] = {}
        found = known.get((queue, bits))
        if found is None:
            found = known[queue, bits] = self._would_give(queue, bits & 7, bits >> 3)
        return found

    def _would_give(self, queue: int, wanted: int, inside: int) -> bool:
        for sibling in self._giving(queue, wanted, inside):
            bounded, below = self._bounded(sibling, wanted & ~inside), self._below[sibling]
            if not bounded:
                return True
            keeps = np.ones(len(below), dtype=np.bool_)
            for resource in bounded:
                least = self._least[resource, below]
                left = self._held[resource, sibling] - least + 2 * TOLERANCE
                keeps &= (least <= 0) | (left >= self._quota[resource, sibling])
            if keeps.any():
                return True
        return False

    def _giving(self, queue: int, wanted: int, inside: int) -> list[int]:
        """Siblings with runs that hold more than is their due, or than their quota where `queue` stays inside its own."""
        above, over, below = self._above, self._over, self._below
        return [
            sibling
            for sibling in self._tree.siblings(queue)
            if wanted & (above[sibling] | (over[sibling] & inside)) and sibling != queue and sibling in below
        ]

    def _not_barred(self, queue: int, ask: Vector, siblings: list[int]) -> list[int]:
        """Siblings of a queue that would not be more saturated than it, beyond its share."""
        ledger, shares = self._market.ledger, self._market.shares
        wanted = [resource for resource in range(3) if ask[resource] > 0]
        held = plus(ledger.allocated[queue], ask)
        if all(held[resource] <= shares[queue][resource] + TOLERANCE for resource in wanted):
            return siblings  # nobody is less saturated than he may be
        return [
            sibling
            for sibling in siblings
            if gates.stays_less_saturated(held, shares[queue], ledger.allocated[sibling], shares[sibling], wanted, 1.0)
        ]


def _wanted(ask: Vector) -> int:
    """Bits of resources that are asked for."""
    return (ask[0] > 0) + 2 * (ask[1] > 0) + 4 * (ask[2] > 0)


def _beyond(held: Floats, due: Floats) -> Floats:
    """What is held beyond a due with its tolerance; inf where nothing bounds it."""
    spare: Floats = np.where(np.isinf(due), math.inf, held - np.where(np.isinf(due), 0.0, due - TOLERANCE))
    return spare


def _bits_above(held: Sequence[float], bounds: Sequence[float]) -> int:
    """Bits of resources of which more is held."""
    return (held[0] > bounds[0]) + 2 * (held[1] > bounds[1]) + 4 * (held[2] > bounds[2])


class AllPayers:
    """Those of every pool of a walk. What a job gains or loses is counted here while room is made."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._known: dict[int, Payers] = {}  # by pool

    def of(self, market: Market) -> Payers:
        """The same as before in this cycle."""
        found = self._known.get(market.pool.number)
        if found is None:
            found = self._known[market.pool.number] = Payers(market)
        return found

    def charge(self, job: Job, holds: Sequence[Hold], sign: int = 1) -> None:
        """A job gains these, or loses them (-1)."""
        may_go = self._walk.preemptible(job)
        for market, leaf, amount in self._concerned(job, holds):
            market.ledger.add(leaf, amount, may_go, sign)
            self._look_again(market, leaf)

    def changed(self, job: Job, holds: Sequence[Hold]) -> None:
        """The books have another amount for these."""
        for market, leaf, _ in self._concerned(job, holds):
            self._look_again(market, leaf)

    def _concerned(self, job: Job, holds: Sequence[Hold]) -> Iterator[tuple[Market, int, Vector]]:
        """The job's queue in each pool, and what these count for there; none where there are no queues."""
        markets = self._walk.markets
        for number, amount in charges(holds, self._walk.memo.queued.pool_of_node).items() if markets else ():
            yield markets[number], markets[number].pool.leaf(job.spec.assoc_id), amount

    def _look_again(self, market: Market, leaf: int) -> None:
        """Whether the queues on the path are above their share."""
        known = self._known.get(market.pool.number)
        if known is not None:
            known.changed(leaf)


def _table(rows: object) -> Floats:
    found: Floats = np.ascontiguousarray(np.array(rows, dtype=np.float64).reshape(-1, 3).T)
    return found
