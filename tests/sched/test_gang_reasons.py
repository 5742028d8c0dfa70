"""Each rule that can stop a gang is named, with what is missing."""

from __future__ import annotations

import pytest

from slurmbridge.sched.gang_actions import run_pass
from slurmbridge.sched.gang_reasons import Reason, reason
from slurmbridge.sched.policy import KAI
from slurmbridge.sim.case_file import JobRow
from slurmbridge.sim.cases import build, first_states
from tests.sched.small_pods import case, job, node, queue

A, B = queue("a0", gpus=2, limit=3), queue("b1", gpus=2, weight=0)

TABLE: dict[str, tuple[list[JobRow], Reason | None]] = {
    "nothing waits": ([job("w", "a0", "1")], None),
    "a queue with queues below": ([job("w", "all", "1")], Reason(rule="queue", queue="all")),
    "fewer tasks than the minimum": ([job("w", "a0", "1", minimum=2)], Reason(rule="incomplete")),
    "limit": (
        [job("r", "a0", "2@n"), job("w", "a0", "2")],
        Reason(rule="limit", queue="a0", resource="gpu", missing=1),
    ),
    "quota": (
        [job("w", "b1", "3", fixed=True)],
        Reason(rule="quota", queue="b1", resource="gpu", missing=1),
    ),
    "no node is large enough": ([job("w", "b1", "5")], Reason(rule="never")),
    "nobody has to make room": (
        [job("r", "b1", "2@n"), job("f", "a0", "2@n", fixed=True), job("w", "b1", "1")],
        Reason(rule="share", queue="b1", resource="gpu", missing=1),
    ),
    "those who could do not suffice": (
        [job("f", "a0", "1@n", fixed=True), job("g", "a0", "2@n", fixed=True), job("w", "b1", "2")],
        Reason(rule="room", resource="gpu", missing=1),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_first_rule_that_stops_a_gang_is_told(name: str) -> None:
    jobs, expected = TABLE[name]
    world = case([node("n", 4)], [A, B], jobs)
    session = build(world, first_states(world), KAI)
    run_pass(session)
    assert reason(session, session.gangs[-1]) == expected
