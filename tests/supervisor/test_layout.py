"""Where tasks go, as a real Slurm 26.05 placed them (srun -l hostname in jobs of these shapes)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.supervisor.layout import Layout, Limits, Never, Place, Wait, plan


def places(*cpus: int, tasks: tuple[int, ...] = (), free: tuple[int, ...] = ()) -> list[Place]:
    return [
        Place(index, f"n{index + 1}", count, tasks[index] if tasks else 0, free[index] if free else count)
        for index, count in enumerate(cpus)
    ]


def laid(where: list[Place], **request: Any) -> Layout:
    found = plan(request, 7, where)
    assert isinstance(found, Layout), found
    return found


@pytest.mark.parametrize(
    ("cpus", "ntasks", "counts"),
    [((8, 8), 5, (3, 2)), ((8, 8), 7, (4, 3)), ((8, 8), 11, (6, 5)), ((2, 1), 3, (2, 1)), ((8, 8), 2, (1, 1))],
)  # fmt: skip
def test_block_gives_tasks_to_nodes_in_turn(cpus: tuple[int, ...], ntasks: int, counts: tuple[int, ...]) -> None:
    found = laid(places(*cpus), ntasks=ntasks, nodes=2)
    assert tuple(len(ids) for ids in found.tasks) == counts


@pytest.mark.parametrize(("ntasks", "counts"), [(4, (3, 1)), (5, (3, 2)), (6, (4, 2)), (7, (4, 3))])
def test_overcommitted_tasks_go_round_again(ntasks: int, counts: tuple[int, ...]) -> None:
    found = laid(places(2, 1), ntasks=ntasks, nodes=2, overcommit=True)
    assert tuple(len(ids) for ids in found.tasks) == counts


@pytest.mark.parametrize(
    ("distribution", "plane", "tasks"),
    [("block", 0, ((0, 1, 2), (3, 4))), ("cyclic", 0, ((0, 2, 4), (1, 3))), ("plane", 2, ((0, 1, 4), (2, 3))),
     ("block,pack", 0, ((0, 1, 2, 3), (4,)))],
)  # fmt: skip
def test_distributions(distribution: str, plane: int, tasks: tuple[tuple[int, ...], ...]) -> None:
    assert laid(places(8, 8), ntasks=5, nodes=2, distribution=distribution, plane=plane).tasks == tasks


@pytest.mark.parametrize(("ntasks", "name"), [(1, "cyclic"), (2, "cyclic"), (3, "block")])
def test_without_a_distribution_few_tasks_are_cyclic(ntasks: int, name: str) -> None:
    assert laid(places(8, 8), ntasks=ntasks).distribution == name


def test_without_a_count_there_is_one_task_per_node() -> None:
    assert laid(places(2, 2)).tasks == ((0,), (1,))
    assert laid(places(4, 4), per_node=2).tasks == ((0, 1), (2, 3))


def test_fewer_tasks_than_nodes_use_fewer_nodes_and_say_so() -> None:
    found = laid(places(2, 2), ntasks=1, nodes=2)
    assert (found.ranks, found.notes) == ((0,), ("warning: can't run 1 processes on 2 nodes, setting nnodes to 1",))


def test_a_plain_step_takes_all_cpus_of_its_nodes_and_an_exact_one_what_it_needs() -> None:
    assert laid(places(8, 8), ntasks=5).cpus == (8, 8)
    assert laid(places(8, 8), ntasks=5, exact=True).cpus == (3, 2)
    assert laid(places(8, 8), ntasks=2, cpus_per_task=3, exact=True).cpus == (3, 3)
    assert laid(places(8, 8), external=True).cpus == (0, 0)


def test_a_step_waits_for_cpus_that_others_hold() -> None:
    busy = places(2, 2, free=(0, 2))
    assert isinstance(plan({"ntasks": 4}, 7, busy), Wait)
    assert laid(busy, ntasks=1, nodes=1).ranks == (1,)
    assert laid(busy, ntasks=2, nodes=1, exact=True).ranks == (1,)
    assert laid(busy, ntasks=4, overlap=True).ranks == (0, 1)
    assert laid(busy, external=True).ranks == (0, 1)


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        ({"ntasks": 9}, "Unable to create step for job 7: More processors requested than permitted"),
        ({"nodes": 3}, "Only allocated 2 nodes asked for 3"),
        ({"nodelist": ["n9"]}, "Unable to create step for job 7: Requested node configuration is not available"),
    ],
)
def test_what_the_allocation_cannot_hold_is_refused(request_: dict[str, Any], line: str) -> None:
    found = plan({"job": 7, **request_}, 7, places(2, 2))
    assert isinstance(found, Never)
    assert found.lines == (line,)


def test_nodes_can_be_named_left_out_and_counted_from() -> None:
    assert laid(places(2, 2, 2), nodelist=["n3"], ntasks=1).ranks == (2,)
    assert laid(places(2, 2, 2), exclude=["n1"]).ranks == (1, 2)
    assert laid(places(2, 2, 2), relative=1, nodes=1, ntasks=1).ranks == (1,)


@given(
    st.lists(st.integers(1, 16), min_size=1, max_size=5), st.integers(1, 40), st.sampled_from(["", "block", "cyclic", "plane"]),
    st.integers(1, 4), st.booleans(),
)  # fmt: skip
def test_every_task_has_one_place_and_no_node_more_than_it_can_hold(
    cpus: list[int], ntasks: int, distribution: str, plane: int, exact: bool
) -> None:
    where = places(*cpus)
    found = plan({"ntasks": ntasks, "distribution": distribution, "plane": plane, "exact": exact}, 7, where)
    if ntasks > sum(cpus):
        assert isinstance(found, Never)
        return
    assert isinstance(found, Layout)
    assert sorted(task for ids in found.tasks for task in ids) == list(range(ntasks))
    for rank, ids, held in zip(found.ranks, found.tasks, found.cpus, strict=True):
        assert len(ids) <= cpus[rank] and held <= cpus[rank]


def test_a_node_takes_no_more_tasks_than_it_may() -> None:
    assert isinstance(plan({"ntasks": 6, "nodes": 2, "overcommit": True}, 7, places(8, 8), Limits(3)), Layout)
    assert plan({"ntasks": 7, "nodes": 2, "overcommit": True}, 7, places(8, 8), Limits(3)) == Never(
        ("Unable to create step for job 7: Task count specification invalid",)
    )
