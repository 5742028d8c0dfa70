"""Which queues could give anything to a queue that reclaims? The rules of `gates` for a first, small piece.

Asked for all queues at once, and kept up to date where something is taken, because most searches end here. A set of victims
is still judged as a whole.
"""

from __future__ import annotations

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
FEW = 4
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
        self._above: list[int] = (_BITS @ (self._held > self._bound)).tolist()  # by queue: bits of resources
        self._over: list[int] = (_BITS @ (self._held > self._quota)).tolist()
        self._known: dict[int, dict[int, bool]] = {}  # by queue: see `_gives`
        self.runs_are(np.zeros((3, len(tree))))

    def runs_are(self, least: Floats) -> None:
        """By resource and queue, the least that a run which may be taken counts for; inf: there is none."""
        self._least, self._has_runs = least, np.isfinite(least[0])
        self._known.clear()
        self._sides: dict[int, tuple[Ints, Ints]] = {}
        self._below: dict[int, list[int]] = {}
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
            self._above[queue], self._over[queue] = (
                _bits_above(held, self._bounds[queue]),
                _bits_above(held, self._quotas[queue]),
            )
            for sibling in tree.siblings(queue):
                self._known.pop(sibling, None)

    def among(self, leaf: int, ask: Vector, runs: Takeable) -> Ints:
        """Places of pieces of work that may be taken first for a chunk of this size, in the order of `together`."""
        found = [runs.of_leaf(queue) for queue in self.of(leaf, ask)]
        if not found:
            return _NONE
        places = runs.together(found)
        leaves, charges = runs.leaf[places], runs.charge[places]
        mine, theirs = (column[leaves] for column in self._partings.of(leaf))
        kept = np.ones(len(places), dtype=np.bool_)
        for resource in range(3):
            if ask[resource] > 0:  # nobody is left below his quota for one who is above it
                held, quota, lost = self._held[resource], self._quota[resource], charges[:, resource]
                due = quota[theirs]
                left = held[theirs] - lost + 2 * TOLERANCE
                kept &= (held[mine] + ask[resource] <= quota[mine]) | (lost <= 0) | np.isinf(due) | (left >= due)
        return places if kept.all() else places[kept | runs.starts[places]]

    def leave_enough(self, leaf: int, ask: Vector, leaves: Ints, charges: Floats) -> Bools:
        """By piece of work, given by its leaf and what it holds: `gates.leaves_enough` of it alone."""
        if len(leaves) <= FEW:
            ledger, shares = self._market.ledger, self._market.shares
            pieces = zip(leaves.tolist(), map(_vector, charges.tolist()), strict=True)
            return np.array(
                [gates.leaves_enough(ledger, shares, leaf, ask, (each,)) for each in pieces], dtype=np.bool_
            )
        mine, theirs = (column[leaves] for column in self._partings.of(leaf))
        kept = np.ones(len(leaves), dtype=np.bool_)
        for resource in range(3):
            if ask[resource] <= 0:
                continue
            held, lost = self._held[resource], charges[:, resource]
            inside = held[mine] + ask[resource] <= self._quota[resource][mine]
            for queues in (leaves, theirs):
                due = np.where(inside, self._quota[resource][queues], self._bound[resource][queues]) - TOLERANCE
                spare = held[queues] - np.where(np.isinf(due), 0.0, due)
                more = np.maximum(lost - spare, 0.0) - np.maximum(-spare, 0.0)
                kept &= np.isinf(due) | (more < ask[resource] - TOLERANCE)
        return kept

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
                if self._gives(leaf, queue, key):
                    found |= bits == key
        return found

    def any(self, leaf: int, ask: Vector) -> bool:
        """The same for one chunk."""
        wanted = sum(1 << resource for resource in range(3) if ask[resource] > 0)
        path = self._tree.paths[leaf]
        return any(self._gives(leaf, queue, wanted + 8 * self._inside(queue, ask)) for queue in path)

    def _inside(self, queue: int, ask: Vector) -> int:
        """Bits of resources of which a queue stays inside its quota with this more."""
        return 7 & ~_bits_above(plus(self._market.ledger.allocated[queue], ask), self._quotas[queue])

    def _gives(self, leaf: int, queue: int, bits: int) -> bool:
        """Whether a queue that parts from the leaf at `queue` may give: the same for all leaves below that.

        `bits`: the resources that are asked for, and those of which `queue` stays inside its quota.
        """
        known = self._known.setdefault(queue, {})
        found = known.get(bits)
        if found is None:
            found = known[bits] = self._would_give(leaf, queue, bits)
        return found

    def _would_give(self, leaf: int, queue: int, bits: int) -> bool:
        sides = self._sides.get(queue)
        if sides is None:
            mine, theirs = self._partings.of(leaf)
            some = np.flatnonzero(self._has_runs & (mine == queue))
            sides = self._sides[queue] = some, theirs[some]
        wanted, inside = bits & 7, bits >> 3
        above, over = self._above, self._over
        giving = [
            place for place, part in enumerate(sides[1].tolist()) if wanted & (above[part] | (over[part] & inside))
        ]
        if not giving or not wanted & ~inside:
            return bool(giving)
        least, parts = self._least[:, sides[0][giving]], sides[1][giving]
        keeps = np.ones(len(giving), dtype=np.bool_)
        for resource in range(3):
            if (wanted & ~inside) >> resource & 1:
                quota = self._quota[resource, parts]
                left = self._held[resource, parts] - least[resource] + 2 * TOLERANCE
                keeps &= (least[resource] <= 0) | np.isinf(quota) | (left >= quota)
        return bool(keeps.any())

    def of(self, leaf: int, ask: Vector) -> list[int]:
        """Leaves with runs whose work may be taken for a chunk of this size. What a smaller one may not take, it may not."""
        tree, above, over = self._tree, self._above, self._over
        wanted = sum(1 << resource for resource in range(3) if ask[resource] > 0)
        found: list[int] = []
        for queue in tree.paths[leaf]:
            inside = self._inside(queue, ask)
            giving = [
                sibling
                for sibling in tree.siblings(queue)
                if wanted & (above[sibling] | (over[sibling] & inside)) and sibling != queue and sibling in self._below
            ]
            for sibling in self._not_barred(queue, ask, giving) if giving else ():
                found += self._below[sibling]
        return found

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


def _vector(row: Sequence[float]) -> Vector:
    return row[0], row[1], row[2]


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
