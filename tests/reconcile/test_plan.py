"""A run's objects become what they shall be, whatever is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slurmbridge.reconcile.observed import Life, NodeState, SeenPod
from slurmbridge.reconcile.plan import (
    CreatePod,
    CreateService,
    DeletePod,
    FreePod,
    Goal,
    Plan,
    State,
    Wanted,
    Wish,
    plan,
    was_begun,
)
from tests.reconcile.world import KEY, World, wanted

SERVICE = Wanted(name="service", spec_hash="s")


def wish(ranks: int, goal: Goal = Goal.BEGIN, version: str = "a", epoch: str = "1") -> Wish:
    return Wish(key=KEY, goal=goal, epoch=epoch, pods=wanted(ranks, version), service=SERVICE if ranks > 1 else None)


def now(world: World, wanted: Wish | None) -> Plan:
    pods, services = world.sight(0)
    return plan(wanted, pods, services)


def settle(world: World, wanted: Wish | None) -> Plan:
    """Plan and do until nothing is left to do."""
    for _ in range(50):
        found = now(world, wanted)
        for action in found.actions:
            world.do(action, wanted)
        before = dict(world.pods)
        world.kubelets()
        if not found.actions and before == world.pods:
            return found
    raise AssertionError("it never comes to rest")


def test_a_run_of_one_node_is_one_pod_at_once() -> None:
    assert now(World(), wish(1)).actions == (CreatePod(0),)


def test_a_gang_gets_its_service_then_its_other_ranks_and_rank_0_last() -> None:
    world = World()
    first = now(world, wish(3))
    assert first.actions == (CreateService("service"), CreatePod(1), CreatePod(2))
    for action in first.actions:
        world.do(action, wish(3))
    assert now(world, wish(3)).actions == (CreatePod(0),)


def test_rank_0_waits_for_a_service_that_could_not_be_made_yet() -> None:
    world = World()
    for rank in (1, 2):
        world.do(CreatePod(rank), wish(3))
    assert now(world, wish(3)).actions == (CreateService("service"),)


def test_a_complete_run_leaves_nothing_to_do() -> None:
    world = World()
    assert settle(world, wish(3)) == Plan(state=State.COMPLETE)


@pytest.mark.parametrize("age", ["epoch", "spec"])
def test_a_pod_of_another_life_or_shape_goes_before_ours_come(age: str) -> None:
    world = World()
    old = wish(2, epoch="0") if age == "epoch" else wish(2, version="b")
    settle(world, old)
    first = now(world, wish(2))
    assert not any(isinstance(action, CreatePod) for action in first.actions)
    assert settle(world, wish(2)).state is State.COMPLETE
    assert {(pod.spec_hash, pod.epoch) for pod in world.pods.values()} == {("a0", "1"), ("a1", "1")}


def test_a_member_that_ends_or_is_taken_away_breaks_the_gang_and_is_not_made_again() -> None:
    for harm in ("end", "delete"):
        world = World()
        settle(world, wish(3))
        pod = world.pods["pod-1"]
        world.pods["pod-1"] = replace(pod, is_deleting=True) if harm == "delete" else replace(pod, life=Life.ENDED)
        for goal in (Goal.BEGIN, Goal.RUN):
            assert now(world, wish(3, goal)) == Plan(state=State.BROKEN)


def test_a_run_that_was_found_and_misses_a_rank_is_broken() -> None:
    world = World()
    settle(world, wish(3))
    del world.pods["pod-2"]
    assert now(world, Wish(key=KEY, goal=Goal.RUN)).state is State.BROKEN


def test_an_ended_pod_stays_to_be_read_until_its_run_is_settled() -> None:
    world = World()
    settle(world, wish(2))
    world.end("pod-0")
    found = settle(world, wish(2, Goal.END))
    assert found.state is State.DEAD and set(world.pods) == {"pod-0", "pod-1"}


def test_what_may_still_run_is_not_dead() -> None:
    world = World()
    settle(world, wish(1))
    world.pods["pod-0"] = replace(world.pods["pod-0"], is_deleting=True, node_state=NodeState.SILENT)
    assert now(world, wish(1, Goal.END)).state is State.ENDING


@pytest.mark.parametrize("state", [NodeState.GONE, NodeState.OUT_OF_SERVICE])
def test_a_node_that_is_proved_off_takes_its_pods_along(state: NodeState) -> None:
    world = World()
    settle(world, wish(1))
    pod = world.pods["pod-0"] = replace(world.pods["pod-0"], node_state=state)
    assert now(world, wish(1, Goal.END)).state is State.DEAD
    assert now(world, wish(1, Goal.RELEASE)).actions == (
        DeletePod("pod-0", pod.uid, at_once=True), FreePod("pod-0", pod.uid),
    )  # fmt: skip


def test_a_run_that_nobody_knows_is_removed_whole() -> None:
    world = World()
    settle(world, wish(3))
    assert settle(world, None).state is State.CLEAR
    assert not world.pods and not world.services


def test_rank_0_tells_whether_a_run_may_have_begun() -> None:
    world = World()
    for action in now(world, wish(3)).actions:
        world.do(action, wish(3))
    assert not was_begun(list(world.pods.values()))
    settle(world, wish(3))
    assert was_begun(list(world.pods.values()))


MOMENTS = st.lists(
    st.tuples(
        st.sampled_from(["plan", "plan", "plan", "kubelets", "end"]),
        st.integers(0, 3),  # age of what is seen
        st.integers(0, 4),  # actions done before the crash
    ),
    max_size=25,
)


def live(world: World, moments: list[tuple[str, int, int]], wanted: Wish | None) -> None:
    for what, age, done in moments:
        world.remember()
        if what == "kubelets":
            world.kubelets()
        elif what == "plan":
            pods, services = world.sight(age)
            for action in plan(wanted, pods, services).actions[:done]:
                world.do(action, wanted)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 4), MOMENTS, st.booleans())
def test_a_crash_between_any_two_actions_leads_to_the_same_pods_made_once(
    ranks: int, moments: list[tuple[str, int, int]], has_leftovers: bool
) -> None:
    world = World()
    if has_leftovers:
        settle(world, wish(ranks, epoch="0"))
        world.made.clear()
    live(world, moments, wish(ranks))
    found = settle(world, wish(ranks))
    assert found == Plan(state=State.COMPLETE)
    assert sorted(world.made) == sorted((pod.name, pod.spec_hash) for pod in wish(ranks).pods)
    assert {pod.epoch for pod in world.pods.values()} == {"1"}
    assert not world.early


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 4), MOMENTS, MOMENTS, MOMENTS, st.booleans())
def test_a_crash_between_any_two_actions_leaves_nothing_of_a_run_that_is_over(
    ranks: int,
    begin: list[tuple[str, int, int]],
    end: list[tuple[str, int, int]],
    release: list[tuple[str, int, int]],
    is_known: bool,
) -> None:
    world = World()
    live(world, begin, wish(ranks))
    live(world, end, wish(ranks, Goal.END))
    assert settle(world, wish(ranks, Goal.END)).state is State.DEAD
    assert all(pod.is_dead for pod in world.pods.values())
    last = wish(ranks, Goal.RELEASE) if is_known else None
    live(world, release, last)
    assert settle(world, last) == Plan(state=State.CLEAR)
    assert not world.pods and not world.services


@settings(max_examples=100, deadline=None)
@given(st.lists(st.builds(SeenPod, name=st.just("x"), uid=st.text("ab", max_size=1), key=st.just(KEY), rank=st.integers(0, 3),
                          ranks=st.integers(1, 4), life=st.sampled_from(Life), is_deleting=st.booleans(),
                          node_state=st.sampled_from(NodeState)), max_size=5), st.sampled_from(Goal))  # fmt: skip
def test_the_same_sight_in_any_order_gives_the_same_plan(pods: list[SeenPod], goal: Goal) -> None:
    pods = list({(pod.rank, pod.uid): pod for pod in pods}.values())
    assert plan(wish(3, goal), pods) == plan(wish(3, goal), pods[::-1])
