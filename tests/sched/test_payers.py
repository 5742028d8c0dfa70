"""Whether anybody could pay is told quickly, and never denied where the rules find a run that may be taken."""

from __future__ import annotations

import numpy as np
import pytest

from slurmbridge.cli.bench.cycles import Planned
from slurmbridge.sched import gates
from slurmbridge.sched.evictable import Victims, charged
from slurmbridge.sched.market import Market, markets
from slurmbridge.sched.memo import refreshed
from slurmbridge.sched.payers import FEW, Payers
from slurmbridge.sched.pending import NO_CODE
from slurmbridge.sched.queues import Vector
from slurmbridge.sim.clusters import SCENARIOS, Size, build

SIZE = Size(nodes=24, gpus_per_node=8, queues=12, pending=150, running=80)
ASKS = [
    (cpus, memory, gpus) for cpus in (0.0, 6.0, 96.0) for memory in (0.0, 98304.0) for gpus in (0.0, 0.4, 1.0, 16.0)
]


def at_work(scenario: str) -> tuple[Market, Victims]:
    """The pool and its runs after two cycles."""
    planned = Planned(build(SIZE, scenario))
    planned.full()
    planned.settle(1)
    snapshot = planned.snapshot
    memo = refreshed(planned.memo, snapshot, snapshot.config)
    (market,) = markets(snapshot, memo, snapshot.pending.states(planned.now) == NO_CODE)
    assert memo.rules is not None
    pool = charged(snapshot, memo.runs, memo.queued.pool_of_node, 0)
    return market, Victims(snapshot, memo.runs, planned.now, rules=memo.rules, pool=pool)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_where_a_run_may_be_taken_somebody_could_pay(scenario: str) -> None:
    market, victims = at_work(scenario)
    payers, tree = Payers(market), market.pool.tree
    payers.runs_are(victims.least_of(len(tree)))

    def piece(place: int) -> tuple[int, Vector]:
        victim = victims.victim(int(place))
        return victim.leaf, victim.charge

    leaves = [queue for queue in range(len(tree)) if not tree.children[queue]]
    told: list[bool] = []
    for _ in range(3):
        for leaf in leaves:
            quick = payers.some(leaf, np.array(ASKS)).tolist()
            assert quick == [payers.any(leaf, ask) for ask in ASKS]
            for ask, could in zip(ASKS, quick, strict=True):
                found = payers.among(leaf, ask, victims)
                assert could or not len(found)
                assert all(gates.concerns(market.ledger, market.shares, leaf, ask, [piece(place)]) for place in found)
                told.append(could)
        heavy = max(leaves, key=lambda leaf: market.ledger.allocated[leaf][2])
        market.ledger.add(heavy, (24.0, 196608.0, 2.0), True, -1)
        payers.changed(heavy)
    assert len(set(told)) == 2


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_runs_that_leave_enough_are_those_of_the_rule(scenario: str) -> None:
    """A few of them are judged one by one, many by columns."""
    market, victims = at_work(scenario)
    payers, tree = Payers(market), market.pool.tree
    places = np.flatnonzero(victims.reclaimable)
    told = set()
    for leaf in [queue for queue in range(len(tree)) if not tree.children[queue]]:
        mine = places[victims.leaf[places] != leaf]
        pieces = [(victims.victim(place).leaf, victims.victim(place).charge) for place in mine.tolist()]
        many = np.tile(mine, FEW)
        for ask in ASKS:
            rule = [gates.leaves_enough(market.ledger, market.shares, leaf, ask, [piece]) for piece in pieces]
            found = payers.leave_enough(leaf, ask, victims.leaf[many], victims.charge[many])
            assert found.tolist() == rule * FEW
            for first in range(0, len(mine), FEW):
                few = mine[first : first + FEW]
                found = payers.leave_enough(leaf, ask, victims.leaf[few], victims.charge[few])
                assert found.tolist() == rule[first : first + FEW]
            told.update(rule)
    assert told == {True, False}
