"""A shared device is its sharers' own as long as one of them may use it, and nobody's after that."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.holders import CreateHolder, DeleteHolder, Held, SeenHolder, hold, is_clear
from slurmbridge.reconcile.observed import Life, NodeState, SeenPod
from slurmbridge.reconcile.trouble import Patience
from tests.reconcile.device_world import Devices, Slot

POD = SeenPod(name="h", uid="u", key=RunKey(0, 0), rank=0, life=Life.RUNNING, node="n1", title="the pod that holds it")
FIRM = SeenHolder(pod=POD, device="GPU-1")
SLOTS: tuple[Slot, ...] = (("n1", 0), ("n1", 1))


def held(
    holder: SeenHolder | None, *, wanted: bool = False, sharers: tuple[str, ...] = (), now: float = 1000.0,
    since: float = 0.0,
) -> Held:  # fmt: skip
    return hold(holder, is_wanted=wanted, sharers=sharers, now=now, since=since)


def with_pod(**changes: object) -> SeenHolder:
    return replace(FIRM, pod=replace(POD, **changes))


def test_a_holder_is_made_for_who_wants_a_part_and_for_nobody_else() -> None:
    assert held(None, wanted=True).action == CreateHolder()
    assert held(None) == Held()


def test_nobody_has_a_part_before_the_holder_has_said_which_device_it_has() -> None:
    assert held(replace(FIRM, device=""), wanted=True, now=1.0).device == ""
    assert held(FIRM, wanted=True) == Held(device="GPU-1")


def test_nobody_has_a_part_before_the_holder_runs() -> None:
    """Its kubelet may be begun anew, turn it away and lend the device to another."""
    starting = with_pod(life=Life.WAITING)
    assert not held(starting, wanted=True, now=1.0).device and not starting.may_be_shared
    assert held(starting, wanted=True, now=Patience().start + 1).trouble is not None
    assert held(starting, sharers=("GPU-1",)) == Held()
    assert held(starting, sharers=("GPU-2",)).lost


def test_a_second_sharer_gets_the_same_device() -> None:
    assert held(FIRM, wanted=True, sharers=("GPU-1",)).device == "GPU-1"


def test_a_holder_stays_until_the_last_pod_that_may_run_is_proved_dead() -> None:
    assert held(FIRM, sharers=("GPU-1",)).action is None
    assert held(FIRM).action == DeleteHolder("h", "u")


@pytest.mark.parametrize(
    "holder", [None, with_pod(is_deleting=True), with_pod(life=Life.ENDED), replace(FIRM, device="GPU-2")],
    ids=["gone", "deleted", "ended", "another"],
)  # fmt: skip
def test_sharers_that_lost_their_device_have_to_end_and_nobody_joins_them(holder: SeenHolder | None) -> None:
    found = held(holder, wanted=True, sharers=("GPU-1",))
    assert found.lost and not found.device and found.action is None


def test_the_end_of_a_holder_that_somebody_deleted_is_hastened_only_when_nobody_shares_it() -> None:
    leaving = with_pod(is_deleting=True)
    assert held(leaving, sharers=("GPU-1",)).action is None
    assert held(leaving).action == DeleteHolder("h", "u")
    assert held(leaving, wanted=True).action == DeleteHolder("h", "u")


@pytest.mark.parametrize("state", [NodeState.GONE, NodeState.OUT_OF_SERVICE])
def test_a_holder_whose_node_is_proved_off_is_removed_without_its_kubelet(state: NodeState) -> None:
    assert held(with_pod(node_state=state)).action == DeleteHolder("h", "u", at_once=True)


def test_a_holder_on_a_silent_node_holds_on() -> None:
    assert held(with_pod(node_state=NodeState.SILENT), sharers=("GPU-1",)) == Held(device="GPU-1")


def test_what_a_holder_said_may_be_away_for_a_moment_without_harm_to_its_sharers() -> None:
    assert held(replace(FIRM, device=""), sharers=("GPU-1",)) == Held()


def test_a_device_that_another_pod_still_has_is_tried_again_for_a_while_and_then_refused() -> None:
    failed = SeenHolder(pod=replace(POD, life=Life.ENDED, reason="UnexpectedAdmissionError", created=100.0))
    wait = Patience().device
    assert held(failed, wanted=True, now=100.5, since=100.0).look == 101.0
    early = held(failed, wanted=True, now=101.5, since=100.0)
    assert (early.action, early.trouble) == (DeleteHolder("h", "u", at_once=True), None)
    late = held(failed, wanted=True, now=100.0 + wait, since=100.0)
    assert late.trouble is not None and late.trouble.why == "requeue"
    assert late.trouble.message.startswith("the pod that holds it on n1: its node could not give it its devices")


def test_a_holder_that_cannot_start_is_a_trouble_of_those_who_wait_for_it() -> None:
    stuck = SeenHolder(pod=replace(POD, life=Life.WAITING, waiting="ErrImageNeverPull"))
    found = held(stuck, wanted=True)
    assert found.trouble is not None and found.trouble.why == "launch"


def test_a_whole_device_is_made_use_of_once_no_holder_has_it() -> None:
    assert is_clear(None) and is_clear(with_pod(life=Life.ENDED))
    assert not is_clear(FIRM) and not is_clear(with_pod(is_deleting=True))


MOMENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["plan", "plan", "plan", "crash", "kubelet", "kubelet", "part", "want", "over", "take", "give", "delete"]
        ),
        st.integers(0, 1),  # slot
        st.integers(0, 3),  # run
    ),
    max_size=60,
)


def live(world: Devices, moments: list[tuple[str, int, int]]) -> None:
    for what, place, run in moments:
        world.now += 0.5
        slot = SLOTS[place]
        match what:
            case "plan":
                world.perform(slot, world.decide(slot))
            case "crash":  # between what is decided and what is done
                world.decide(slot)
            case "kubelet":
                world.kubelet()
            case "part":
                world.part()
            case "want":
                world.want(run, slot)
            case "over":
                world.over(run)
            case "take":
                world.take()
            case "give":
                world.give_back()
            case "delete":
                world.delete(slot)
        for sharer in world.sharers.values():
            holder = world.holders[sharer.slot]
            assert world.owners[sharer.device] == holder.pod.uid, "somebody uses what another may be given"


def settle(world: Devices) -> None:
    for _ in range(200):
        world.now += 1.0
        before = (dict(world.holders), dict(world.sharers))
        for slot in SLOTS:
            world.perform(slot, world.decide(slot))
        world.part()
        world.kubelet()
        if before == (world.holders, world.sharers):
            return
    raise AssertionError("it never comes to rest")


@settings(max_examples=300, deadline=None)
@given(MOMENTS, st.integers(1, 2), st.booleans())
def test_no_device_is_two_owners_whatever_is_lost_deleted_or_asked_for_by_others(
    moments: list[tuple[str, int, int]], count: int, is_shared: bool
) -> None:
    world = Devices(count)
    if is_shared:  # from the start, by two
        for run in (0, 1):
            world.want(run, SLOTS[0])
        settle(world)
    live(world, moments)


@settings(max_examples=200, deadline=None)
@given(MOMENTS, st.integers(1, 2))
def test_nothing_is_left_of_holders_that_nobody_needs(moments: list[tuple[str, int, int]], count: int) -> None:
    world = Devices(count)
    live(world, moments)
    for run in range(4):
        world.over(run)
    settle(world)
    assert not world.holders and not world.sharers
    assert {owner for owner in world.owners.values() if owner} == set(world.foreign)


@settings(max_examples=200, deadline=None)
@given(MOMENTS)
def test_who_wants_a_part_gets_it_when_others_let_go_of_a_device(moments: list[tuple[str, int, int]]) -> None:
    world = Devices(2)
    live(world, moments)
    while world.foreign:
        world.give_back()
    wished = dict(world.wishes)
    settle(world)
    assert set(world.sharers) == set(wished)
    assert all(world.sharers[run].slot == slot for run, slot in wished.items())
    assert len(world.holders) == len(set(wished.values()))
    devices = {slot: {each.device for each in world.sharers.values() if each.slot == slot} for slot in wished.values()}
    assert all(len(found) == 1 for found in devices.values())
