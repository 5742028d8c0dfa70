"""Whose turn it is, who gives way first and which node is taken: one comparison each, all before it being equal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slurmbridge.sim.case_file import QueueRow, Resource, WishRow
from tests.sched.small_pods import case, job, node, queue
from tests.sched.test_gang_edges import told

NOTHING_DUE = Resource(quota=0, limit=-1, over_quota_weight=0)


def test_who_holds_more_than_its_share_of_everything_comes_last_whatever_its_priority() -> None:
    def nothing_due(row: QueueRow) -> QueueRow:
        return replace(row, gpu=NOTHING_DUE, cpu=NOTHING_DUE, memory=NOTHING_DUE)

    queues = [nothing_due(queue("a0", priority=200)), nothing_due(queue("b1"))]
    jobs = [job("has", "a0", "1@n"), job("x", "a0", "1"), job("y", "b1", "1")]
    assert told(case([node("n", 2)], queues, jobs, "allocate")) == {"has": "keep", "x": "stay_pending", "y": "start@n"}


def test_a_higher_priority_of_the_queue_comes_before_a_smaller_share() -> None:
    queues = [queue("a0", priority=101), queue("b1")]
    jobs = [job("has", "a0", "1@n"), job("x", "a0", "1"), job("y", "b1", "1")]
    assert told(case([node("n", 2)], queues, jobs, "allocate"))["x"] == "start@n"
    queues = [queue("a0", priority=101), queue("b1", gpus=1)]  # but not before who is inside its quota
    assert told(case([node("n", 2)], queues, jobs, "allocate"))["y"] == "start@n"


def test_of_equal_shares_the_weaker_queue_comes_first_and_then_the_older() -> None:
    jobs = [job("s", "a0", "2@n"), job("t", "b1", "1@n"), job("x", "a0", "2"), job("y", "b1", "1")]
    queues = [queue("a0", gpus=4, weight=0), queue("b1", gpus=2, weight=0)]
    assert told(case([node("n", 5)], queues, jobs, "allocate"))["y"] == "start@n"
    jobs = [job("x", "b1", "1"), job("y", "a0", "1")]
    queues = [queue("a0", gpus=2), queue("b1", gpus=2)]
    assert told(case([node("n", 1)], queues, jobs, "allocate"))["y"] == "start@n"


def test_elastic_gangs_of_one_priority_grow_side_by_side() -> None:
    jobs = [job("x", "a0", *"1111", minimum=1), job("y", "a0", *"1111", minimum=1)]
    found = told(case([node("n", 4)], [queue("a0", gpus=8)], jobs, "allocate"))
    assert [found[name].count("start") for name in "xy"] == [2, 2]


def test_what_a_gang_has_above_its_minimum_gives_way_before_a_younger_gang() -> None:
    jobs = [job("e", "a0", "1@n", "1@n", minimum=1), job("young", "a0", "1@n"), job("w", "a0", "1", priority=60)]
    found = told(case([node("n", 3)], [queue("a0", gpus=3)], jobs, "preempt"))
    assert found == {"e": "keep evict", "young": "keep", "w": "pipeline@n"}


def test_a_lower_priority_gives_way_before_what_is_above_a_minimum() -> None:
    jobs = [
        job("e", "a0", "1@n", "1@n", minimum=1, priority=55),
        job("low", "a0", "1@n"),
        job("w", "a0", "1", priority=60),
    ]
    found = told(case([node("n", 3)], [queue("a0", gpus=3)], jobs, "preempt"))
    assert found == {"e": "keep keep", "low": "evict", "w": "pipeline@n"}


def test_the_queue_with_the_largest_share_pays_first() -> None:
    jobs = [
        job("x", "a0", "1@n"), job("y", "b1", "1@n"), job("z", "b1", "1@n"), job("v", "b1", "1@n"),
        job("w", "c2", "1"), job("u", "c2", "1"),
    ]  # fmt: skip
    found = told(case([node("n", 4)], [queue("a0"), queue("b1"), queue("c2", gpus=2)], jobs, "reclaim"))
    assert [name for name in "xyzv" if found[name] == "evict"] == ["z", "v"]


def test_work_without_devices_leaves_the_nodes_with_devices_alone() -> None:
    jobs = [job("c", "a0", "cpu"), job("g", "a0", "1")]
    found = told(case([node("n", 1, cpus=4), node("m", 0, cpus=64)], [queue("a0", gpus=1)], jobs, "allocate"))
    assert found == {"c": "start@m", "g": "start@n"}


def test_a_device_in_use_is_shared_before_another_is_opened_even_if_it_must_be_waited_for() -> None:
    gone = job("gone", "a0", "0.5@m/0")
    gone = replace(gone, tasks=[replace(gone.tasks[0], state="Releasing")])
    jobs = [gone, job("stays", "a0", "0.4@m/0"), job("p", "a0", "0.5")]
    found = told(case([node("n", 2), node("m", 2)], [queue("a0", gpus=2)], jobs, "allocate"))
    assert found["p"] == "pipeline@m"


def test_the_roomiest_of_the_preferred_domains_is_filled_first() -> None:
    nodes = [
        node("n", 2, zone="z", rack="a"),
        node("m", 3, zone="z", rack="b"),
        node("o", 4, zone="z", rack="c"),
        node("p", 9, zone="y", rack="d"),
    ]
    wish = WishRow(topology="tree", required_level="zone", preferred_level="rack")
    world = case(
        nodes[:3], [queue("a0", gpus=9)], [job("g", "a0", *"11111", wish=wish)], "allocate", levels=("zone", "rack")
    )
    assert told(world)["g"].split() == ["start@o"] * 4 + ["start@m"]
    assert told(replace(world, nodes=nodes))["g"].split() == ["start@p"] * 5  # one rack that holds all comes first


def test_those_who_gave_way_for_one_task_are_tried_alone_for_the_next() -> None:
    jobs = [job("x", "a0", "2@n"), job("w", "b1", "1", "1")]
    found = told(case([node("n", 2)], [queue("a0"), queue("b1", gpus=2)], jobs, "reclaim"))
    assert found == {"x": "evict", "w": "pipeline@n pipeline@n"}


@pytest.mark.parametrize(("younger", "decision"), [(15, "pipeline@n"), (16, "stay_pending")])
def test_consolidation_looks_at_sixteen_gangs_to_move(younger: int, decision: str) -> None:
    jobs = [
        job("y", "a0", "1@n"),
        *(job(f"c{number}", "a0", "cpu@o") for number in range(younger)),
        job("w", "a0", "2"),
    ]
    nodes = [node("n", 2), node("m", 1), node("o", 0)]
    assert told(case(nodes, [queue("a0", gpus=3)], jobs, "consolidation"))["w"] == decision
