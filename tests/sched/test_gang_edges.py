"""Edges of the rules about gangs, each decided by hand before it was tried: one small world, one answer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slurmbridge.sched.policy import DEFAULT, KAI, Policy
from slurmbridge.sim.case_file import Case, JobRow, WishRow
from slurmbridge.sim.cases import decide
from tests.sched.small_pods import case, job, node, queue

RACK = WishRow(topology="tree", required_level="rack")
PREFERRED = WishRow(topology="tree", preferred_level="rack")


def told(world: Case, policy: Policy = KAI) -> dict[str, str]:
    """What becomes of each task, in short: `job: decision@node decision ...`."""
    return {
        name: " ".join(
            task.decision + (f"@{task.node}" if task.node and task.decision not in ("evict", "keep") else "")
            for task in answer.tasks
        )
        for name, answer in decide(world, policy).items()
    }


def test_what_is_left_of_an_elastic_gang_gives_way_after_younger_gangs() -> None:
    jobs = [
        job("e", "a0", "2@n", "2@n", "2@n", minimum=2),
        job("young", "a0", "1@m"),
        job("w", "a0", "2", "1", priority=60),
    ]
    found = told(case([node("n", 6), node("m", 1)], [queue("a0", gpus=7)], jobs, "preempt"))
    assert found == {"e": "keep keep evict", "young": "evict", "w": "pipeline@n pipeline@m"}


def test_all_nodes_of_a_gang_that_gives_way_are_open_at_once() -> None:
    jobs = [job("g", "a0", "2@n", "1@m"), job("w", "b1", "1")]
    found = told(case([node("n", 2), node("m", 1)], [queue("a0"), queue("b1", gpus=1)], jobs, "reclaim"))
    assert found == {"g": "evict evict", "w": "pipeline@m"}


def test_a_gang_of_the_same_kinds_of_tasks_but_fewer_large_ones_is_tried() -> None:
    jobs = [job("large", "a0", "2", "2", "1"), job("small", "a0", "2", "1", "1")]
    found = told(case([node("n", 4)], [queue("a0", gpus=4)], jobs, "allocate"))
    assert found == {"large": " ".join(["stay_pending"] * 3), "small": "start@n start@n start@n"}


def test_who_comes_back_to_the_same_devices_was_never_away() -> None:
    jobs = [
        job("x", "b1", "0.5@n/1", fixed=True),
        job("y", "b1", "0.3@n/0", fixed=True),
        job("e", "a0", "0.2x2@n/0"),
        job("w", "b1", "1"),
    ]
    e = jobs[2]
    jobs[2] = replace(e, tasks=[replace(e.tasks[0], gpu_groups=["0", "1"])])
    assert told(case([node("n", 3)], [queue("a0"), queue("b1", gpus=3)], jobs, "reclaim"))["e"] == "keep"


def test_memory_is_looked_for_where_it_is_the_smallest_part() -> None:
    small, large = node("n", 1), replace(node("m", 1), gpu_memory_mib=200)
    jobs = [
        job("full", "b1", "1@n", fixed=True),
        job("half", "b1", "0.5@m/0", fixed=True),
        job("y", "a0", "0.5@m/0"),
        job("w", "b1", "100M"),
    ]
    found = told(case([small, large], [queue("a0"), queue("b1", gpus=4)], jobs, "reclaim"))
    assert (found["y"], found["w"]) == ("evict", "pipeline@m")


def departments(held: int) -> Case:
    """One department above its share of two because of a fixed gang, whose other queue is below; one with `held` devices."""
    queues = [
        queue("d0", None, gpus=2, weight=0), queue("d1", None, gpus=2, weight=0),
        queue("q00", "d0", gpus=1), queue("q01", "d0", gpus=1), queue("q10", "d1", gpus=2),
    ]  # fmt: skip
    jobs = [job("fixed", "q01", "2@n", fixed=True), *(job(f"v{number}", "q10", "1@n") for number in range(held))]
    world = case([node("n", 2 + held)], queues, [*jobs, job("w", "q00", "1")], "reclaim")
    return replace(world, queues=queues)


def test_a_department_above_its_share_takes_only_from_a_more_saturated_one() -> None:
    assert set(told(departments(3)).values()) == {"keep", "stay_pending"}  # (2 + 1) / 2 against (3 - 1) / 2
    found = told(departments(6))  # against (6 - 1) / 2
    assert (found["w"], found["v5"], found["v4"]) == ("pipeline@n", "evict", "keep")


def test_what_is_fixed_stays_inside_the_quota_of_every_level() -> None:
    queues = [
        queue("d0", None, gpus=1), queue("d1", None, gpus=1),
        queue("q00", "d0", gpus=2), queue("q01", "d0", gpus=1), queue("q10", "d1", gpus=1),
    ]  # fmt: skip
    jobs = [job("f", "q01", "1@n", fixed=True), job("v", "q10", "1@n"), job("u", "q10", "1@n")]
    for fixed, decision in ((True, "stay_pending"), (False, "pipeline@n")):
        world = case([node("n", 3)], queues, [*jobs, job("w", "q00", "1", fixed=fixed)], "reclaim")
        assert told(replace(world, queues=queues))["w"] == decision


def test_one_device_is_worth_a_whole_strict_gang() -> None:
    jobs = [job("g", "a0", *["1@n"] * 8), job("w", "b1", "1")]
    found = told(case([node("n", 8)], [queue("a0", gpus=2), queue("b1", gpus=1)], jobs, "reclaim"))
    assert found == {"g": " ".join(["evict"] * 8), "w": "pipeline@n"}


def test_a_queue_exactly_at_its_share_is_safe() -> None:
    jobs = [job("x", "a0", "1@n"), job("y", "a0", "1@n"), job("w", "b1", "2")]
    found = told(case([node("n", 3)], [queue("a0", gpus=2), queue("b1", gpus=2)], jobs, "reclaim"))
    assert found == {"x": "keep", "y": "keep", "w": "stay_pending"}


def test_several_are_moved_so_that_one_fits() -> None:
    jobs = [
        job("x", "a0", "1@n"),
        job("y", "a0", "1@m"),
        job("u", "a0", "1@m"),
        job("f", "a0", "3@o", fixed=True),
        job("w", "a0", "4"),
    ]
    nodes = [node("n", 3), node("m", 4), node("o", 4)]
    found = told(case(nodes, [queue("a0", gpus=7)], jobs, "consolidation"))
    assert found == {"x": "keep", "y": "move_pipeline@o", "u": "move_pipeline@n", "f": "keep", "w": "pipeline@m"}


@pytest.mark.parametrize(("policy", "fate"), [(KAI, "stay_pending"), (DEFAULT, "start")])
def test_a_domain_holds_unequal_tasks_as_if_all_were_the_largest(policy: Policy, fate: str) -> None:
    world = case(
        [node("n", 2, rack="r"), node("m", 2, rack="r")], [queue("a0", gpus=4)], [job("g", "a0", "2", "1", "1", wish=RACK)],
        "allocate", levels=("rack",),
    )  # fmt: skip
    assert [part.split("@")[0] for part in told(world, policy)["g"].split()] == [fate] * 3


def test_a_domain_holds_tasks_with_and_without_devices_by_the_sum() -> None:
    world = case(
        [node("n", 1, cpus=1, rack="r"), node("m", 0, cpus=1, rack="r")], [queue("a0", gpus=4)],
        [job("g", "a0", "1", "cpu", wish=RACK)], "allocate", levels=("rack",),
    )  # fmt: skip
    assert told(world)["g"] == "start@n start@m"


def test_a_node_without_the_label_is_in_no_domain() -> None:
    nodes = [node("n", 1, rack="r"), node("m", 2)]
    world = case(nodes, [queue("a0", gpus=4)], [job("g", "a0", "1", "1", wish=RACK)], "allocate", levels=("rack",))
    assert told(world)["g"] == "stay_pending stay_pending"
    world = replace(world, jobs=[job("g", "a0", "1", "1", "1", wish=PREFERRED)])  # at the root there is no bound
    assert told(world)["g"] == "start@n start@m start@m"


@pytest.mark.parametrize(
    ("topology", "required", "preferred", "decision"),
    [
        ("gone", "rack", None, "stay_pending"),
        ("gone", None, "rack", "stay_pending"),
        ("tree", "block", None, "stay_pending"),
        ("tree", "rack", "block", "start"),
    ],
)
def test_what_wishes_for_a_topology_or_level_that_is_gone_waits(
    topology: str, required: str | None, preferred: str | None, decision: str
) -> None:
    wish = WishRow(topology=topology, required_level=required, preferred_level=preferred)
    jobs = [job("g", "a0", "1", "1", wish=wish), job("other", "a0", "1")]
    found = told(case([node("n", 3, rack="r")], [queue("a0", gpus=4)], jobs, "allocate", levels=("rack",)))
    assert (found["g"].split("@")[0].split()[0], found["other"]) == (decision, "start@n")


def test_what_comes_later_stays_in_the_domain_of_what_runs() -> None:
    jobs: list[JobRow] = [job("g", "a0", "1@n", "1", minimum=1, wish=RACK)]
    world = case(
        [node("n", 1, rack="r"), node("m", 1, rack="s")], [queue("a0", gpus=4)], jobs, "allocate", levels=("rack",)
    )
    assert told(world)["g"] == "keep stay_pending"
    world = replace(world, nodes=[*world.nodes, node("o", 1, rack="r")])
    assert told(world)["g"] == "keep start@o"


def test_a_task_that_must_wait_makes_its_gang_wait() -> None:
    jobs = [job("gone", "a0", "1@n"), job("g", "a0", "1", "1")]
    jobs[0] = replace(jobs[0], tasks=[replace(jobs[0].tasks[0], state="Releasing")])
    world = case([node("n", 2)], [queue("a0", gpus=4)], jobs, "allocate")
    assert told(world)["g"] == "pipeline@n pipeline@n"
    world = replace(world, jobs=[jobs[0], job("g", "a0", "1", "1", minimum=1)])
    assert told(world)["g"] == "start@n pipeline@n"


def test_gangs_belong_in_queues_that_have_none_below() -> None:
    queues = [queue("d0", gpus=4), queue("a1", "d0", gpus=1)]
    jobs = [job("astray", "d0", "1"), job("g", "a1", "1")]
    assert told(case([node("n", 2)], queues, jobs)) == {"astray": "stay_pending", "g": "start@n"}
