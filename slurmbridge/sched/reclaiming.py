"""May a queue have this room at the cost of these runs? What a search for victims asks of the rules of quotas.

Two questions. `judge`: whether it may at all, by what the job asks for and, once that is known, by what it would get. `mildly`:
whether besides nobody is left to take as much from others again. Who looks for victims asks the second first: a run may hold
much more than its queue has beyond its due; where nothing else would do it is ended all the same, but its queue then has a
claim on others, these on others again, and each time it is the youngest runs that cost least.
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.sched import gates
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.evictable import Victim
from slurmbridge.sched.making_room import Rule
from slurmbridge.sched.market import Market, charges
from slurmbridge.sched.place import Placement
from slurmbridge.sched.queues import ZERO, Vector


def amount(market: Market, placement: Placement, pools: Ints) -> Vector:
    """What a placement counts for: whole nodes, cores and devices may be more than what was asked for."""
    return charges(placement.holds, pools).get(market.pool.number, ZERO)


def judge(market: Market, leaf: int, ask: Vector, may_go: bool, pools: Ints) -> Rule:
    """For a chunk of this size; `may_go`: the job may be ended for others in turn."""

    def allowed(victims: Sequence[Victim], placement: Placement | None) -> bool:
        more = ask if placement is None else amount(market, placement, pools)
        ordered = sorted(victims, key=lambda each: each.cost)
        pieces, unbegun = [(each.leaf, each.charge) for each in ordered], [each.starts for each in ordered]
        return (
            gates.may_reclaim(market.ledger, market.shares, leaf, more, may_go)
            and gates.concerns(market.ledger, market.shares, leaf, ask, pieces, unbegun)
            and gates.may_take(market.ledger, market.shares, leaf, more, may_go, pieces)
        )

    return allowed


def mildly(market: Market, leaf: int, ask: Vector, rule: Rule) -> Rule:
    """The rule, where nobody is left to take as much from others again."""

    def allowed(victims: Sequence[Victim], placement: Placement | None) -> bool:
        pieces = [(victim.leaf, victim.charge) for victim in victims]
        mild = all(victim.starts for victim in victims)  # who has not begun leaves his queue as it was
        mild = mild or gates.leaves_enough(market.ledger, market.shares, leaf, ask, pieces)
        return mild and rule(victims, placement)

    return allowed
