"""Fair shares: the edges of the rule as a table, and what holds for any tree."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.sched.queues import Queue, QueueTree, Vector
from slurmbridge.sched.shares import allocatable, fair_shares

INF = math.inf


def queue(name: str, parent: str | None = None, **gpu: float) -> Queue:
    """A queue of which only the GPU column matters."""
    return Queue(
        name=name,
        parent=parent,
        priority=int(gpu.get("priority", 0)),
        rank=int(gpu.get("rank", 0)),
        quota=(0, 0, gpu.get("quota", 0.0)),
        limit=(INF, INF, gpu.get("limit", INF)),
        weight=(1, 1, gpu.get("weight", 1.0)),
    )


def gpus(
    total: float, queues: list[Queue], asked: list[float], used: list[float] | None = None, *, round_up: bool = False
) -> list[float]:
    """GPU shares, in the order of `queues`."""
    tree = QueueTree.build(queues)
    request: list[Vector] = [(0, 0, 0)] * len(tree)
    usage: list[Vector] = [(0, 0, 0)] * len(tree)
    for place, each in enumerate(queues):
        request[tree.index[each.name]] = (0, 0, asked[place])
        usage[tree.index[each.name]] = (0, 0, used[place] if used else 0)
    shares = fair_shares(tree, (0, 0, total), request, usage, round_up=round_up)
    return [shares[tree.index[each.name]][2] for each in queues]


TABLE: dict[str, tuple[float, list[Queue], list[float], list[float]]] = {
    "weight 0 gets nothing over its quota": (4, [queue("a", weight=0)], [4], [0]),
    "weight 0 leaves the surplus to others": (4, [queue("a", weight=0), queue("b")], [4, 2], [0, 2]),
    "quota 0 with a weight gets surplus": (4, [queue("a")], [3], [3]),
    "a surplus of half a device is given as a half": (0.5, [queue("a")], [1], [0.5]),
    "quota and request may be fractional": (4, [queue("a", quota=1.5), queue("b", quota=2)], [1.5, 0.3], [1.5, 0.3]),
    "a limit caps the share": (8, [queue("a", quota=4, limit=2)], [8], [2]),
    "oversubscribed quotas are kept in full": (4, [queue("a", quota=3), queue("b", quota=3)], [3, 3], [3, 3]),
    "the oldest wins the odd device": (
        5,
        [queue("a", quota=2, rank=1), queue("b", quota=2, rank=0), queue("c", rank=2)],
        [5, 5, 0],
        [2, 3, 0],
    ),
    "what a queue does not ask for returns to the pool": (8, [queue("a", quota=6), queue("b", quota=2)], [1, 8], [1, 7]),
    "an unlimited quota is the pool": (8, [queue("a", quota=INF), queue("b", quota=1)], [20, 1], [8, 1]),
    "a higher priority is served first": (4, [queue("a", priority=1), queue("b", priority=2)], [4, 3], [1, 3]),
    "weights divide the surplus": (12, [queue("a", weight=1), queue("b", weight=3)], [12, 12], [3, 9]),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_a_share_is_quota_then_surplus(case: str) -> None:
    total, queues, asked, expected = TABLE[case]
    assert gpus(total, queues, asked) == pytest.approx(expected)


def test_past_use_lowers_the_part_of_the_surplus() -> None:
    assert gpus(16, [queue("a"), queue("b", rank=1)], [16, 16], [0.5, 0]) == [5, 11]


def test_a_leftover_is_a_whole_device_or_what_is_asked_for() -> None:
    queues = [queue("a"), queue("b", rank=1)]
    assert gpus(1, queues, [0.7, 0.7]) == pytest.approx([0.7, 0.3])
    assert gpus(1, queues, [0.7, 0.7], round_up=True) == [1, 0]


def test_children_divide_what_their_parent_has() -> None:
    queues = [queue("d", quota=4, weight=0), queue("e", quota=4), queue("a", "d", quota=2), queue("b", "d")]
    assert gpus(8, queues, [8, 0, 4, 4]) == [4, 0, 3, 1]


def test_what_is_kept_without_being_asked_back_is_quota_or_share_inside_the_limit() -> None:
    tree = QueueTree.build([queue("a", quota=2, limit=3), queue("b", quota=INF)])
    assert allocatable(tree, [(0, 0, 5), (0, 0, 1)], 0)[2] == 3
    assert allocatable(tree, [(0, 0, 1), (0, 0, 1)], 0)[2] == 2
    assert allocatable(tree, [(0, 0, 1), (0, 0, 1)], 1)[2] == INF


numbers = st.integers(0, 12).map(float) | st.sampled_from([0.3, 0.5, 1.25])


@st.composite
def sites(draw: st.DrawFn) -> tuple[float, list[Queue], list[float]]:
    """Up to three departments with up to four queues each."""
    queues, asked = [], []
    for department in range(draw(st.integers(1, 3))):
        inside = []
        for project in range(draw(st.integers(1, 4))):
            inside.append(
                queue(
                    f"d{department}q{project}", f"d{department}", quota=draw(numbers), weight=draw(numbers),
                    limit=draw(st.just(INF) | numbers), priority=draw(st.integers(0, 2)), rank=project,
                )
            )  # fmt: skip
        wanted = [draw(numbers) for _ in inside]
        queues += [queue(f"d{department}", quota=draw(numbers), weight=draw(numbers), rank=department), *inside]
        asked += [sum(wanted), *wanted]
    return draw(numbers), queues, asked


@given(sites())
def test_shares_exceed_the_pool_only_where_quotas_do_and_never_what_is_asked(
    site: tuple[float, list[Queue], list[float]],
) -> None:
    total, queues, asked = site
    shares = dict(zip([each.name for each in queues], gpus(total, queues, asked), strict=True))
    for each, wanted in zip(queues, asked, strict=True):
        assert 0 <= shares[each.name] <= min(wanted, each.limit[2]) + 1e-6
    for parent in {each.parent for each in queues}:
        below = [(each, wanted) for each, wanted in zip(queues, asked, strict=True) if each.parent == parent]
        deserved = sum(min(each.quota[2], each.limit[2], wanted) for each, wanted in below)
        pool = total if parent is None else shares[parent]
        assert sum(shares[each.name] for each, _ in below) <= max(pool, deserved) + 1e-6


@given(sites())
def test_the_same_input_gives_the_same_shares(site: tuple[float, list[Queue], list[float]]) -> None:
    total, queues, asked = site
    backwards = gpus(total, queues[::-1], asked[::-1])
    assert gpus(total, queues, asked) == backwards[::-1]
