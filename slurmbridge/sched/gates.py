"""May a queue take this much, and from whom? Small questions on tree, ledger and shares; no state.

Every answer is about one chunk of work: what would be allocated in the next step, as a vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.queues import TOLERANCE, ZERO, QueueTree, Vector, fits, minus, plus
from slurmbridge.sched.shares import allocatable


def within_limit(ledger: Ledger, leaf: int, ask: Vector) -> bool:
    """Would no limit, of the leaf or above, be passed in a resource that is asked for?"""
    return over_limit(ledger, leaf, ask) is None


def over_limit(ledger: Ledger, leaf: int, ask: Vector) -> tuple[int, int] | None:
    """The first (queue, resource) whose limit would be passed."""
    tree = ledger.tree
    for queue in tree.paths[leaf]:
        held, limit = ledger.allocated[queue], tree.limit[queue]
        for resource in (2, 1, 0):
            if ask[resource] > 0 and held[resource] + ask[resource] > limit[resource] + TOLERANCE:
                return queue, resource
    return None


def within_quota(ledger: Ledger, leaf: int, ask: Vector) -> bool:
    """Would work that cannot be preempted stay inside the quota, of the leaf and above?"""
    return over_quota(ledger, leaf, ask) is None


def over_quota(ledger: Ledger, leaf: int, ask: Vector) -> tuple[int, int] | None:
    """The first (queue, resource) whose quota would be passed by what is not preemptible."""
    tree = ledger.tree
    for queue in tree.paths[leaf]:
        held, most = ledger.allocated_np[queue], tree.ceiling[queue]
        for resource in (2, 1, 0):
            if ask[resource] > 0 and held[resource] + ask[resource] > most[resource] + TOLERANCE:
                return queue, resource
    return None


def starved(ledger: Ledger, queue: int, ask: Vector) -> bool:
    """Is the queue, the chunk included, still inside its quota in every resource?"""
    return fits(plus(ledger.allocated[queue], ask), ledger.tree.quota[queue])


def may_reclaim(ledger: Ledger, shares: Sequence[Vector], leaf: int, ask: Vector, preemptible: bool) -> bool:
    """May the leaf ask other queues to pay for this chunk at all?"""
    if not fits(plus(ledger.allocated[leaf], ask), shares[leaf]):
        return False
    return preemptible or fits(plus(ledger.allocated_np[leaf], ask), ledger.tree.ceiling[leaf])


def keeps_fair_share(tree: QueueTree, shares: Sequence[Vector], victim: int, remaining: Vector) -> bool:
    """Does the victim still hold more than what it is left with in any case, in some resource?"""
    return not fits(remaining, allocatable(tree, shares, victim))


def guarantees_quota(ledger: Ledger, reclaimer: int, ask: Vector, victim: int, remaining: Vector) -> bool:
    """Does the reclaimer stay inside its quota while the victim is still above its own?"""
    return starved(ledger, reclaimer, ask) and not fits(remaining, ledger.tree.quota[victim])


def may_take(
    ledger: Ledger,
    shares: Sequence[Vector],
    leaf: int,
    ask: Vector,
    preemptible: bool,
    pieces: Iterable[tuple[int, Vector]],
    multiplier: float = 1.0,
) -> bool:
    """May the leaf have the chunk at the cost of `pieces` (victim leaf, what it loses), in this order?

    `ledger` is as it was before the victims lost anything. A piece is judged before it is taken, so that the last one may
    push its queue below the share; a queue exactly at its share is safe.
    """
    tree = ledger.tree
    remaining: dict[int, Vector] = {}
    involved = {resource for resource in range(3) if ask[resource] > 0}
    for victim, lost in pieces:
        mine, theirs = tree.where_they_part(leaf, victim)
        held = remaining.get(theirs, ledger.allocated[theirs])
        if not keeps_fair_share(tree, shares, theirs, held) and not guarantees_quota(ledger, mine, ask, theirs, held):
            return False
        for queue in tree.paths[victim]:
            remaining[queue] = minus(remaining.get(queue, ledger.allocated[queue]), lost)
        involved.update(resource for resource in range(3) if lost[resource] > 0)
    for queue in tree.paths[leaf]:
        if not preemptible and not fits(plus(ledger.allocated_np[queue], ask), tree.ceiling[queue]):
            return False
        held = plus(remaining.get(queue, ledger.allocated[queue]), ask)
        for sibling in tree.siblings(queue):
            if sibling == queue or sibling not in remaining:
                continue
            if not stays_less_saturated(held, shares[queue], remaining[sibling], shares[sibling], involved, multiplier):
                return False
    return True


def concerns(
    ledger: Ledger,
    shares: Sequence[Vector],
    leaf: int,
    ask: Vector,
    pieces: Iterable[tuple[int, Vector]],
    unbegun: Sequence[bool] = (),
) -> bool:
    """Is every piece taken because of something that the leaf asks for, and so that it is not asked back at once?

    From a queue that holds, of that, more than its share, or more than its quota while the leaf's side stays inside its own;
    and nobody is left with less than his quota for one who is above it. What is not rationed is nobody's due. `unbegun`: by
    piece, whether it has only just been given: its queue is left with what it had.
    """
    tree = ledger.tree
    wants = [resource for resource in range(3) if ask[resource] > 0]
    remaining: dict[int, Vector] = {}
    for at, (victim, lost) in enumerate(pieces):
        mine, theirs = tree.where_they_part(leaf, victim)
        held, bound, quota = (
            remaining.get(theirs, ledger.allocated[theirs]),
            allocatable(tree, shares, theirs),
            tree.quota,
        )
        inside = {r for r in wants if ledger.allocated[mine][r] + ask[r] <= quota[mine][r] + TOLERANCE}
        if not any(
            held[r] > bound[r] + TOLERANCE or (r in inside and held[r] > quota[theirs][r] + TOLERANCE) for r in wants
        ):
            return False
        for queue in tree.paths[victim]:
            remaining[queue] = minus(remaining.get(queue, ledger.allocated[queue]), lost)
        left = remaining[theirs]
        if not (unbegun and unbegun[at]) and any(
            r not in inside and lost[r] > 0 and quota[theirs][r] != math.inf and left[r] < quota[theirs][r] - TOLERANCE
            for r in wants
        ):
            return False
    return True


def leaves_enough(
    ledger: Ledger, shares: Sequence[Vector], leaf: int, ask: Vector, pieces: Iterable[tuple[int, Vector]]
) -> bool:
    """Does everybody who pays then lack less of his due than the leaf gets, all together and on the level where they part?

    Who lacks something takes it from others again. The due is the quota where the leaf's side stays inside its own, else
    quota or share.
    """
    tree = ledger.tree
    lost: dict[tuple[int, int], Vector] = {}  # by the leaf's side and queue
    parted: set[int] = set()
    for victim, piece in pieces:
        sides = tree.where_they_part(leaf, victim)
        parted.add(sides[1])
        for queue in {victim, sides[1]}:
            lost[sides[0], queue] = plus(lost.get((sides[0], queue), ZERO), piece)
    for resource in range(3):
        if ask[resource] <= 0:
            continue
        lacking = 0.0
        for (mine, queue), piece in lost.items():
            inside = ledger.allocated[mine][resource] + ask[resource] <= tree.quota[mine][resource] + TOLERANCE
            due = tree.quota[queue][resource] if inside else allocatable(tree, shares, queue)[resource]
            if due == math.inf:
                continue
            held = ledger.allocated[queue][resource]
            more = max(due - held + piece[resource], 0.0) - max(due - held, 0.0)
            if queue in parted and more >= ask[resource] - TOLERANCE:
                return False
            lacking += more if not tree.children[queue] else 0.0
        if lacking >= ask[resource] - TOLERANCE:
            return False
    return True


def stays_less_saturated(
    mine: Vector, my_share: Vector, theirs: Vector, their_share: Vector, involved: Iterable[int], multiplier: float
) -> bool:
    """The guard of order: who is above its share must be strictly less saturated than whom it takes from."""
    for resource in involved:
        ours = saturation(mine[resource], my_share[resource])
        others = saturation(theirs[resource], their_share[resource])
        if ours > 1 + TOLERANCE and their_share[resource] > 0 and ours * multiplier >= others - TOLERANCE:
            return False
    return True


def saturation(held: float, share: float) -> float:
    """How much of its share a queue holds; holding without a share is infinite."""
    if share > 0:
        return held / share
    return math.inf if held > TOLERANCE else 0.0
