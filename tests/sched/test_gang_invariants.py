"""What holds for every decision about gangs, in worlds made at random."""

from __future__ import annotations

import copy

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.sched.gang_actions import run_pass
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Status
from slurmbridge.sched.policy import DEFAULT, KAI, Policy
from slurmbridge.sched.queues import TOLERANCE, Vector
from slurmbridge.sim.case_file import Case, JobRow, WishRow
from slurmbridge.sim.cases import build, decide, first_states, next_states
from tests.sched.small_pods import ALL, case, job, node, queue

sizes = st.sampled_from(["1", "1", "2", "3", "0.5", "0.3", "40M", "cpu", "0.5x2"])
WISHES = [WishRow(topology="tree", required_level="rack"), WishRow(topology="tree", preferred_level="rack")]
policies = st.sampled_from([KAI, DEFAULT])


@st.composite
def worlds(draw: st.DrawFn) -> Case:
    """A few nodes, queues in two departments, and gangs; the first of them placed by a pass of their own."""
    nodes = [
        node(f"n{number}", draw(st.integers(1, 4)), cpus=6, rack=f"r{number // 2}")
        for number in range(draw(st.integers(1, 4)))
    ]
    queues = [queue("d0", gpus=draw(st.integers(0, 6))), queue("d1", gpus=draw(st.integers(0, 6)))]
    for number in range(3):
        queues.append(
            queue(
                f"q{number}", f"d{number % 2}", gpus=draw(st.integers(0, 4)), limit=draw(st.sampled_from([-1, 2, 4, 8])),
                weight=draw(st.integers(0, 2)), priority=draw(st.sampled_from([100, 100, 101])),
            )
        )  # fmt: skip

    def gang(name: str) -> JobRow:
        tasks = draw(st.lists(sizes, min_size=1, max_size=3))
        where, fixed = f"q{draw(st.integers(0, 2))}", draw(st.integers(0, 3)) == 0
        priority, kind = draw(st.sampled_from([50, 50, 60, 100])), draw(st.integers(0, 4))
        if kind == 0 and len(tasks) > 1:
            named = [f"{task}:{'xy'[place % 2]}" for place, task in enumerate(tasks)]
            return job(name, where, *named, fixed=fixed, priority=priority, sets={"x": 1, "y": 1})
        wish = draw(st.sampled_from(WISHES)) if kind == 1 else None
        least = draw(st.integers(1, len(tasks)))
        waited = draw(st.sampled_from([0.0, 0.0, 2000.0]))
        return job(name, where, *tasks, fixed=fixed, priority=priority, minimum=least, wish=wish, waited=waited)

    early = [gang(f"e{number}") for number in range(draw(st.integers(0, 5)))]
    late = [gang(f"l{number}") for number in range(draw(st.integers(1, 5)))]
    busy = case(nodes, queues, early, "allocate", levels=("rack",))
    session = one_pass(busy, KAI)
    placed = []
    for row, gang_ in zip(early, session.gangs, strict=True):
        tasks = [
            msgspec.structs.replace(
                task, state="Running", node=pod.node.name, gpu_groups=list(pod.labels)
            ) if pod.status == Status.STARTED and pod.node else task
            for task, pod in zip(row.tasks, gang_.tasks, strict=True)
        ]  # fmt: skip
        placed.append(msgspec.structs.replace(row, tasks=tasks))
    return case(nodes, queues, [*placed, *late], *ALL, levels=("rack",))


def one_pass(world: Case, policy: Policy) -> PodSession:
    session = build(world, first_states(world), policy)
    run_pass(session, world.session.actions)
    return session


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
