"""Which queues could give anything to a queue that reclaims? The rules of `gates` for a first, small piece.

Asked for all queues at once, and kept up to date where something is taken, because most searches end here. A set of victims
is still judged as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


class Payers:
    """Of one pool in one cycle. Tables have a row a resource and a column a queue."""

    def __init__(self, market: Market) -> None:
        self._market, self._partings = market, market.pool.partings
        tree = market.pool.tree
        self._size = len(tree)
        self._held, shares = _table(market.ledger.allocated), _table(market.shares)
        quota = _table(tree.quota)
        self._bound = np.minimum(_table(tree.limit), np.maximum(quota, shares)) + TOLERANCE  # see `allocatable`
        self._quota = quota + TOLERANCE
        self._above, self._over = self._held > self._bound, self._held > self._quota
        self._known: dict[int, dict[tuple[int, int], bool]] = {}  # by leaf: see `_gives`
        self.runs_are(np.zeros((3, self._size)))

    def runs_are(self, least: Floats) -> None:
        """By resource and queue, the least that a run which may be taken counts for; inf: there is none."""
        self._least, self._has_runs = least, np.isfinite(least[0])
        self._known.clear()

    @property
    def any_above(self) -> bool:
        """Whether any queue holds more than is its due."""
        return bool(self._above.any())

    def changed(self, leaf: int) -> None:
        """What a leaf and the queues above it hold is not what it was."""
        self._known.clear()
        for queue in self._market.pool.tree.paths[leaf]:
            held = self._held[:, queue] = self._market.ledger.allocated[queue]
            self._above[:, queue], self._over[:, queue] = held > self._bound[:, queue], held > self._quota[:, queue]

    def among(self, leaf: int, ask: Vector, leaves: Ints, charges: Floats, unbegun: Bools | None = None) -> Bools:
        """By piece of work, given by its leaf and what it holds: whether it may be taken first for a chunk of this size.

        `unbegun`: which of them have only just been given.
        """
        found = self.of(leaf, ask)[leaves]
        places = np.flatnonzero(found)
        if not len(places):
            return found
        mine, theirs = (column[leaves[places]] for column in self._partings.of(leaf))
        kept = np.ones(len(places), dtype=np.bool_)
        for resource in range(3):
            if ask[resource] > 0:  # nobody is left below his quota for one who is above it
                held, quota, lost = self._held[resource], self._quota[resource], charges[places, resource]
                inside = held[mine] + ask[resource] <= quota[mine]
                left = held[theirs] - lost + 2 * TOLERANCE
                kept &= inside | (lost <= 0) | np.isinf(quota[theirs]) | (left >= quota[theirs])
        found[places] = kept if unbegun is None else kept | unbegun[places]
        return found

    def leave_enough(self, leaf: int, ask: Vector, leaves: Ints, charges: Floats) -> Bools:
        """By piece of work as in `among`: `gates.leaves_enough` of it alone."""
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
        for queue in self._market.pool.tree.paths[leaf]:
            inside = self._held[:, queue] + asks <= self._quota[:, queue]
            bits = wanted + inside @ (8 * _BITS)
            for key in np.unique(bits[~found]).tolist():
                if self._gives(leaf, queue, key):
                    found |= bits == key
        return found

    def any(self, leaf: int, ask: Vector) -> bool:
        """The same for one chunk."""
        wanted = sum(1 << resource for resource in range(3) if ask[resource] > 0)
        for queue in self._market.pool.tree.paths[leaf]:
            held, quota = self._held[:, queue].tolist(), self._quota[:, queue].tolist()
            inside = sum(8 << resource for resource in range(3) if held[resource] + ask[resource] <= quota[resource])
            if self._gives(leaf, queue, wanted + inside):
                return True
        return False

    def _gives(self, leaf: int, queue: int, bits: int) -> bool:
        """Whether a queue that parts from the leaf at `queue` may give. `bits`: the resources that are asked for, and those of
        which `queue` stays inside its quota.
        """
        known = self._known.setdefault(leaf, {})
        found = known.get((queue, bits))
        if found is None:
            found = known[queue, bits] = self._would_give(leaf, queue, bits)
        return found

    def _would_give(self, leaf: int, queue: int, bits: int) -> bool:
        mine, theirs = self._partings.of(leaf)
        some = np.flatnonzero(self._has_runs & (mine == queue))
        parts, least = theirs[some], self._least[:, some]
        held, quota = self._held[:, parts], self._quota[:, parts]
        gives, keeps = np.zeros(len(some), dtype=np.bool_), np.ones(len(some), dtype=np.bool_)
        for resource in range(3):
            if not bits >> resource & 1:
                continue
            gives |= self._above[resource, parts]
            if bits >> resource & 8:
                gives |= self._over[resource, parts]
            else:
                left = held[resource] - least[resource] + 2 * TOLERANCE
                keeps &= (least[resource] <= 0) | np.isinf(quota[resource]) | (left >= quota[resource])
        return bool((gives & keeps).any())

    def of(self, leaf: int, ask: Vector) -> Bools:
        """By queue: whether its work may be taken for a chunk of this size. What a smaller one may not take, it may not."""
        mine, theirs = self._partings.of(leaf)
        wanted = [resource for resource in range(3) if ask[resource] > 0]
        found = np.zeros(self._size, dtype=np.bool_)
        for resource in wanted:
            held, quota = self._held[resource], self._quota[resource]
            inside = held[mine] + ask[resource] <= quota[mine]
            found |= self._above[resource][theirs] | (self._over[resource][theirs] & inside)
        found[leaf] = False
        if found.any():
            found &= ~self._barred(leaf, ask, wanted)[theirs]
        return found

    def _barred(self, leaf: int, ask: Vector, wanted: list[int]) -> Bools:
        """By queue: whether it would be more saturated than the side that takes from it, beyond that one's share."""
        market = self._market
        tree, ledger, shares = market.pool.tree, market.ledger, market.shares
        barred = np.zeros(self._size, dtype=np.bool_)
        for queue in tree.paths[leaf]:
            held = plus(ledger.allocated[queue], ask)
            if all(held[resource] <= shares[queue][resource] + TOLERANCE for resource in wanted):
                continue  # nobody is less saturated than he may be
            for sibling in tree.siblings(queue):
                barred[sibling] = not gates.stays_less_saturated(
                    held, shares[queue], ledger.allocated[sibling], shares[sibling], wanted, 1.0
                )
        return barred


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
