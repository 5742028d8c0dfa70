"""How gangs are decided: one rule, one small world."""

from __future__ import annotations

import pytest

from slurmbridge.sched.gang_actions import run_pass
from slurmbridge.sched.pods import Status
from slurmbridge.sched.policy import DEFAULT, KAI, Policy
from slurmbridge.sim.case_file import Case, WishRow
from slurmbridge.sim.cases import Where, build, decide, first_states
from tests.sched.small_pods import case, job, node, queue

A, B = queue("a0", gpus=2), queue("b1", gpus=2)


def told(given: Case, policy: Policy = KAI) -> dict[str, str]:
    """What becomes of each task, in short: `job: decision@node decision ...`."""
    return {
        name: " ".join(
            task.decision + (f"@{task.node}" if task.node and task.decision != "evict" else "") for task in answer.tasks
        )
        for name, answer in decide(given, policy).items()
    }


def devices(given: Case, name: str) -> list[list[str] | None]:
    return [task.gpu_group for task in decide(given, KAI)[name].tasks]


def test_a_gang_starts_whole_or_not_at_all() -> None:
    jobs = [job("big", "a0", "1", "1", "1"), job("small", "a0", "1", "1")]
    assert told(case([node("n", 2)], [A], jobs, "allocate")) == {
        "big": "stay_pending stay_pending stay_pending",
        "small": "start@n start@n",
    }


def test_an_elastic_gang_takes_what_there_is_above_its_minimum() -> None:
    jobs = [job("e", "a0", "1", "1", "1", "1", minimum=2)]
    assert told(case([node("n", 3)], [A], jobs, "allocate"))["e"] == "start@n start@n start@n stay_pending"


def test_each_set_of_a_gang_has_its_own_minimum() -> None:
    jobs = [job("g", "a0", "1:x", "1:x", "2:y", sets={"x": 1, "y": 1})]
    assert told(case([node("n", 3)], [A], jobs, "allocate"))["g"] == "start@n stay_pending start@n"
    assert told(case([node("n", 2)], [A], jobs, "allocate"))["g"] == "stay_pending stay_pending stay_pending"


def test_what_cannot_be_preempted_stays_inside_the_quota() -> None:
    jobs = [job("f", "a0", "3", fixed=True), job("p", "a0", "3")]
    assert told(case([node("n", 4)], [A], jobs, "allocate")) == {"f": "stay_pending", "p": "start@n"}


def test_a_limit_holds_even_where_there_is_room() -> None:
    jobs = [job("one", "a0", "1"), job("two", "a0", "1")]
    found = told(case([node("n", 4)], [queue("a0", gpus=1, limit=1)], jobs, "allocate"))
    assert found == {"one": "start@n", "two": "stay_pending"}


def test_the_queue_inside_its_quota_comes_first() -> None:
    jobs = [job("x", "a0", "2@n"), job("y", "a0", "1"), job("z", "b1", "1")]
    assert told(case([node("n", 3)], [A, B], jobs, "allocate")) == {"x": "keep@n", "y": "stay_pending", "z": "start@n"}


def test_parts_fill_a_shared_device_before_another_is_opened() -> None:
    jobs = [job("r", "a0", "0.5@n/1"), job("p", "a0", "0.5"), job("q", "a0", "0.3")]
    world = case([node("n", 2)], [A], jobs, "allocate")
    assert devices(world, "p") == [["1"]]
    assert devices(world, "q") != [["1"]]


def test_a_part_of_several_devices_is_on_as_many() -> None:
    world = case([node("n", 4)], [A], [job("p", "a0", "0.5x2"), job("q", "a0", "40Mx2")], "allocate")
    assert [len(set(labels or [])) for labels in (*devices(world, "p"), *devices(world, "q"))] == [2, 2]
    assert devices(world, "p") == devices(world, "q")


def test_memory_is_a_part_of_the_device_of_the_node() -> None:
    jobs = [job("r", "a0", "70M@n/0"), job("p", "a0", "40M")]
    assert told(case([node("n", 1)], [A], jobs, "allocate"))["p"] == "stay_pending"
    assert told(case([node("n", 1)], [A], [jobs[0], job("p", "a0", "30M")], "allocate"))["p"] == "start@n"


def test_a_queue_below_its_share_reclaims_the_youngest_of_who_is_above() -> None:
    jobs = [job("old", "a0", "2@n"), job("young", "a0", "2@n"), job("w", "b1", "2")]
    assert told(case([node("n", 4)], [A, B], jobs, "reclaim")) == {"old": "keep@n", "young": "evict", "w": "pipeline@n"}


def test_nothing_is_reclaimed_where_the_winner_would_not_start() -> None:
    jobs = [job("x", "a0", "3@n"), job("f", "a0", "1@m", fixed=True), job("w", "b1", "2", "2")]
    found = told(case([node("n", 3), node("m", 1)], [A, queue("b1", gpus=4)], jobs, "reclaim"))
    assert found == {"x": "keep@n", "f": "keep@m", "w": "stay_pending stay_pending"}


def test_the_room_of_a_whole_gang_is_reclaimed_and_of_an_elastic_one_a_piece() -> None:
    winner = job("w", "b1", "1")
    strict, elastic = job("g", "a0", "1@n", "1@n", "1@n"), job("g", "a0", "1@n", "1@n", "1@n", minimum=1)
    assert told(case([node("n", 3)], [A, B], [strict, winner], "reclaim"))["g"] == "evict evict evict"
    assert told(case([node("n", 3)], [A, B], [elastic, winner], "reclaim"))["g"] == "keep@n keep@n evict"


def test_a_victim_that_fits_elsewhere_is_moved() -> None:
    jobs = [job("x", "a0", "2@n"), job("y", "a0", "1@m"), job("w", "b1", "2")]
    found = told(case([node("n", 3), node("m", 2)], [queue("a0", gpus=3), B], jobs, "reclaim"))
    assert found == {"x": "keep@n", "y": "move_pipeline@n", "w": "pipeline@m"}


def test_lower_priorities_of_the_same_queue_give_way_and_no_others() -> None:
    high = job("h", "a0", "1", priority=100, fixed=True)
    low, other = job("l", "a0", "1@n"), job("l", "b1", "1@n")
    assert told(case([node("n", 1)], [A, B], [high, low], "preempt")) == {"h": "pipeline@n", "l": "evict"}
    assert told(case([node("n", 1)], [A, B], [high, other], "preempt")) == {"h": "stay_pending", "l": "keep@n"}
    equal = job("l", "a0", "1@n", priority=100)
    assert told(case([node("n", 1)], [A, B], [high, equal], "preempt"))["l"] == "keep@n"


def test_consolidation_moves_and_never_ends_anything() -> None:
    jobs = [job("x", "a0", "1@n"), job("y", "b1", "1@m", priority=90), job("w", "a0", "2")]
    found = told(case([node("n", 2), node("m", 2)], [A, B], jobs, "consolidation"))
    assert found == {"x": "keep@n", "y": "move_pipeline@n", "w": "pipeline@m"}
    jobs = [job("x", "a0", "2@n"), job("y", "b1", "1@m"), job("w", "a0", "2")]
    found = told(case([node("n", 2), node("m", 2)], [A, B], jobs, "consolidation"))
    assert found == {"x": "keep@n", "y": "keep@m", "w": "stay_pending"}


def test_what_cannot_be_preempted_is_neither_moved_nor_moves_others() -> None:
    jobs = [job("x", "a0", "1@n", fixed=True), job("y", "b1", "1@m", fixed=True), job("w", "a0", "2")]
    assert told(case([node("n", 2), node("m", 2)], [A, B], jobs, "consolidation"))["w"] == "stay_pending"


@pytest.mark.parametrize(("stale", "fate"), [(59.0, "keep@n stay_pending"), (60.0, "evict stay_pending")])
def test_what_is_left_of_a_gang_ends_when_its_grace_is_over(stale: float, fate: str) -> None:
    jobs = [job("g", "a0", "1@n", "1", stale=stale)]
    assert told(case([node("n", 1)], [A], jobs, "stalegangeviction"))["g"] == fate


RACKS = [node("n0", 1, rack="r0"), node("n1", 2, rack="r0"), node("n2", 2, rack="r1"), node("n3", 2, rack="r2")]


def test_a_required_level_keeps_a_gang_in_one_domain_the_tightest() -> None:
    wish = WishRow(topology="tree", required_level="rack")
    world = case(RACKS, [A], [job("g", "a0", "1", "1", wish=wish)], "allocate", levels=("rack",))
    assert told(world)["g"] == "start@n2 start@n2"
    world = case(RACKS, [A], [job("g", "a0", *"1111", wish=wish)], "allocate", levels=("rack",))
    assert told(world)["g"] == " ".join(["stay_pending"] * 4)


def test_a_preferred_level_is_left_only_when_no_domain_is_large_enough() -> None:
    wish = WishRow(topology="tree", preferred_level="rack")
    world = case(RACKS, [A], [job("g", "a0", *"111", wish=wish)], "allocate", levels=("rack",))
    assert {part.split("@")[1] for part in told(world)["g"].split()} == {"n0", "n1"}
    world = case(RACKS, [A], [job("g", "a0", *"11111", wish=wish)], "allocate", levels=("rack",))
    assert "stay_pending" not in told(world)["g"]


def test_ours_takes_the_victim_that_loses_least() -> None:
    jobs = [job("small", "a0", "1@m"), job("large", "a0", "3@n"), job("w", "b1", "1")]
    world = case([node("n", 3), node("m", 1)], [A, B], jobs, "reclaim")
    assert told(world, KAI) == {"small": "keep@m", "large": "evict", "w": "pipeline@n"}
    assert told(world, DEFAULT) == {"small": "evict", "large": "keep@n", "w": "pipeline@m"}


def test_ours_never_takes_a_higher_priority_because_it_is_cheaper() -> None:
    jobs = [job("small", "a0", "1@m", priority=60), job("large", "a0", "3@n"), job("w", "b1", "1")]
    world = case([node("n", 3), node("m", 1)], [A, B], jobs, "reclaim")
    assert told(world, DEFAULT)["small"] == "keep@m"


def test_what_was_run_counts_as_lost() -> None:
    jobs = [job("long", "a0", "1@m", ran=9000), job("short", "a0", "3@n", ran=60), job("w", "b1", "1")]
    world = case([node("n", 3), node("m", 1)], [A, B], jobs, "reclaim")
    assert told(world, DEFAULT) == {"long": "keep@m", "short": "evict", "w": "pipeline@n"}


def test_ours_keeps_the_room_that_was_made_for_the_winner() -> None:
    jobs = [job("x", "a0", "2@n"), job("w", "b1", "2"), job("high", "b1", "1", priority=90)]
    once = case([node("n", 2)], [queue("a0"), B], jobs[:2], "reclaim")
    assert told(once, DEFAULT) == {"x": "evict", "w": "pipeline@n"}
    states = [[Where(state="Pending")], [Where(state="Pending", node="n")], [Where(state="Pending")]]
    for policy, winner in ((KAI, "high"), (DEFAULT, "w")):
        session = build(case([node("n", 2)], [queue("a0"), B], jobs), states, policy)
        run_pass(session, ["allocate"])
        assert [gang.name for gang in session.gangs if gang.tasks[0].status == Status.STARTED] == [winner]


@pytest.mark.parametrize(
    ("waited", "small"), [(1799.0, "start@n"), (1800.0, "stay_pending"), (1800.0 + 14400, "start@n")]
)
def test_a_gang_that_waited_long_gathers_what_falls_free_for_a_time(waited: float, small: str) -> None:
    jobs = [
        job("busy", "b1", "2@n", fixed=True),
        job("big", "a0", "1", "1", "1", "1", waited=waited),
        job("small", "a0", "1"),
    ]
    world = case([node("n", 4)], [queue("a0", gpus=5), B], jobs, rounds=3)
    assert told(world, DEFAULT)["small"] == small
    assert told(world, KAI)["small"] == "start@n"
    assert told(world, DEFAULT)["big"] == " ".join(["stay_pending"] * 4)


def test_a_gang_that_was_moved_is_not_taken_apart_later_in_the_pass() -> None:
    jobs = [
        job("g", "a0", "1@n0:x", "2@n2:y", "1@n1:x", sets={"x": 1, "y": 1}),
        job("w", "b1", "1", "1", fixed=True, wish=WishRow(topology="tree", required_level="rack")),
        job("p", "a0", "1:x", "1:y", priority=60, sets={"x": 1, "y": 1}),
    ]
    nodes = [node("n0", 1, rack="r0"), node("n1", 1, rack="r0"), node("n2", 3, rack="r1")]
    queues = [queue("a0", weight=0), queue("b1", gpus=2, weight=0)]
    for policy in (KAI, DEFAULT):
        world = case(nodes, queues, jobs, levels=("rack",))
        session = build(world, first_states(world), policy)
        run_pass(session)
        assert not any(gang.incomplete for gang in session.gangs)


def test_what_was_promised_devices_gets_those_devices() -> None:
    world = case([node("n", 2)], [A, B], [job("g", "a0", "40M"), job("e", "a0", "0.5@n/0", "0.5x2", minimum=1)])
    moved = Where(state="Pending", node="n", labels=("1",))
    stays = Where(state="Running", node="n", labels=("0",))
    wins = Where(state="Pending", node="n", labels=("0", "1"))
    session = build(world, [[moved], [stays, wins]], DEFAULT)
    run_pass(session, ["allocate"])
    first, second = session.gangs
    assert (first.tasks[0].status, first.tasks[0].labels) == (Status.STARTED, ("1",))
    assert (second.tasks[1].status, second.tasks[1].labels) == (Status.STARTED, ("0", "1"))
