"""What holds for every decision about gangs, in worlds made at random."""

from __future__ import annotations

import copy

from hypothesis import given, settings

from slurmbridge.sched.gang_actions import run_pass
from slurmbridge.sched.pods import Status
from slurmbridge.sched.policy import DEFAULT, Policy
from slurmbridge.sched.queues import TOLERANCE, Vector
from slurmbridge.sim.case_file import Case
from slurmbridge.sim.cases import build, decide, first_states, next_states
from tests.sched.gang_worlds import one_pass, policies, worlds


@settings(max_examples=60, deadline=None)
@given(worlds(), policies)
def test_no_node_or_device_holds_more_than_it_has(world: Case, policy: Policy) -> None:
    session = one_pass(world, policy)
    for pod_node in session.nodes:
        for amounts in (pod_node.idle, pod_node.future()):
            assert all(amount >= -TOLERANCE for amount in amounts)
        assert all(later <= size + TOLERANCE for later, size in zip(pod_node.future(), pod_node.size, strict=True))
        for sharers in pod_node.shared.values():
            assert sharers[0] + sharers[2] <= 1 + TOLERANCE  # now
            assert sharers[0] + sharers[4] <= 1 + TOLERANCE  # once everything released is gone


@settings(max_examples=60, deadline=None)
@given(worlds(), policies)
def test_a_gang_runs_whole_or_not_at_all(world: Case, policy: Policy) -> None:
    session = one_pass(world, policy)
    for gang in session.gangs:
        assert not gang.incomplete or gang.rank in session.gathering
        starts = [task for task in gang.tasks if task.status == Status.STARTED]
        if starts:
            for pods in gang.sets:
                assert sum(task.active and task.target is None for task in pods.tasks) >= pods.minimum


@settings(max_examples=60, deadline=None)
@given(worlds(), policies)
def test_quota_bounds_what_cannot_be_preempted_and_limits_bound_all(world: Case, policy: Policy) -> None:
    session = one_pass(world, policy)
    ledger, tree = session.ledger, session.tree
    for place in range(len(tree)):
        assert below(ledger.allocated_np[place], tree.quota[place])
        assert below(ledger.allocated[place], tree.limit[place])


def below(held: Vector, bound: Vector) -> bool:
    return all(one <= two + TOLERANCE for one, two in zip(held, bound, strict=True))


@settings(max_examples=60, deadline=None)
@given(worlds(), policies)
def test_counters_are_the_sum_of_what_is_placed(world: Case, policy: Policy) -> None:
    session = one_pass(world, policy)
    counted = [0.0] * len(session.tree)
    for gang in session.gangs:
        for task in gang.tasks:
            if task.active:
                counted[gang.leaf] += task.charged[2]
    total = session.tree.summed([(0.0, 0.0, amount) for amount in counted])
    for place in range(len(session.tree)):
        assert abs(total[place][2] - session.ledger.allocated[place][2]) < TOLERANCE


@settings(max_examples=60, deadline=None)
@given(worlds(), policies)
def test_somebody_is_ended_or_moved_only_where_a_winner_gets_room(world: Case, policy: Policy) -> None:
    session = one_pass(world, policy)
    if any(task.evicted for gang in session.gangs for task in gang.tasks):
        assert any(
            task.target is not None and task.status == Status.PENDING for gang in session.gangs for task in gang.tasks
        )
    for gang in session.gangs:
        if not gang.preemptible:
            assert not any(task.evicted for task in gang.tasks)


@settings(max_examples=60, deadline=None)
@given(worlds(), policies)
def test_the_same_world_gives_the_same_plan(world: Case, policy: Policy) -> None:
    assert decide(world, policy) == decide(copy.deepcopy(world), policy)


@settings(max_examples=50, deadline=None)
@given(worlds())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(world: Case) -> None:
    states = first_states(world)
    for _ in range(30):
        session = build(world, states, DEFAULT)
        run_pass(session, world.session.actions)
        after = next_states(session, states)
        if after == states:
            return
        states = after
    raise AssertionError("the plans do not come to rest")
