"""A world told differently is decided alike, and plain worlds as the rules say that are read word by word."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slurmbridge.sched.policy import DEFAULT, KAI, Policy
from slurmbridge.sim.case_file import Case
from slurmbridge.sim.cases import decide
from tests.sched.gang_worlds import worlds
from tests.sched.plain_rules import World
from tests.sched.small_pods import case, job, node, queue
from tests.sched.symmetries import ALL_SYMMETRIES, fates

ACTIONS = [
    ["allocate", "consolidation", "reclaim", "preempt"],
    ["reclaim"],
    ["preempt", "consolidation"],
    ["consolidation"],
]
BUSY = case(
    [node("n", 4), node("m", 2), node("o", 0)],
    [queue("d0", gpus=3), queue("d1", gpus=2), queue("q2", "d0", gpus=1), queue("q3", "d0"), queue("q4", "d1", gpus=2)],
    [
        job("e", "q3", "1@n", "1@n", "1@n", minimum=1),
        job("f", "q2", "0.5@m/0", fixed=True),
        job("p", "q3", "40M@m/0", priority=60),
        job("c", "q4", "cpu@o"),
        job("w", "q4", "1", "1", priority=100),
        job("v", "q2", "0.5x2", priority=40),
        job("u", "q3", "2", priority=70),
    ],
)


@pytest.mark.parametrize("name", ALL_SYMMETRIES)
@pytest.mark.parametrize("policy", [KAI, DEFAULT], ids=lambda policy: policy.name)
def test_a_busy_world_told_differently_is_decided_alike(name: str, policy: Policy) -> None:
    told = ALL_SYMMETRIES[name](BUSY)
    assert fates(decide(told, policy)) == fates(decide(BUSY, policy))


@settings(max_examples=100, deadline=None)
@given(worlds(), st.sampled_from(sorted(ALL_SYMMETRIES)), st.sampled_from([KAI, DEFAULT]))
def test_any_world_told_differently_is_decided_alike(world: Case, name: str, policy: Policy) -> None:
    told = ALL_SYMMETRIES[name](world)
    assert fates(decide(told, policy)) == fates(decide(world, policy))


@settings(max_examples=200, deadline=None)
@given(worlds(plain=True), st.sampled_from(ACTIONS))
def test_plain_worlds_are_decided_as_the_rules_are_written(world: Case, actions: list[str]) -> None:
    given_world = replace(world, session=replace(world.session, actions=actions))
    assert fates(decide(given_world, KAI)) == World(given_world).run()
