"""The order of queues: each comparison by itself, and the heaps against the plain definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.queue_order import QueueOrder
from slurmbridge.sched.queues import EVEN, UNLIMITED, Queue, QueueTree, Vector

INF = math.inf
TOTAL: Vector = (100.0, 100.0, 10.0)


def gpu(count: float) -> Vector:
    return 0.0, 0.0, count


def order(queues: list[Queue], held: dict[str, Vector], shares: Vector, *, reverse: bool = False) -> QueueOrder[str]:
    tree = QueueTree.build(queues)
    ledger = Ledger(tree)
    for name, vector in held.items():
        ledger.add(tree.index[name], vector, True)
    return QueueOrder(ledger, [shares] * len(tree), TOTAL, reverse=reverse)


def first(queues: list[Queue], held: dict[str, Vector], chunk: Vector = gpu(1), shares: Vector = gpu(2)) -> str:
    """Which queue's item is popped first, when each has one."""
    turns: QueueOrder[str] = order(queues, held, shares)
    for queue in queues:
        turns.push(turns.ledger.tree.index[queue.name], (0.0,), queue.name, chunk)
    return turns.pop()[1]


def queue(name: str, quota: Vector = UNLIMITED, priority: int = 0, rank: int = 0, limit: Vector = UNLIMITED) -> Queue:
    return Queue(name=name, quota=quota, priority=priority, rank=rank, limit=limit, weight=EVEN)


TABLE: dict[str, tuple[list[Queue], dict[str, Vector], str]] = {
    "over its share of everything comes last": (
        [queue("a", gpu(9), priority=9), queue("b", gpu(0))], {"a": (1.0, 1.0, 3.0), "b": (0.0, 0.0, 9.0)}, "b",
    ),
    "inside its quota with the chunk comes first": (
        [queue("a", (INF, INF, 2.0), priority=9), queue("b", (INF, INF, 8.0))], {"a": gpu(2), "b": gpu(5)}, "b",
    ),
    "a higher priority comes first": (
        [queue("a", (INF, INF, 9.0)), queue("b", (INF, INF, 9.0), priority=1)], {"b": gpu(5)}, "b",
    ),
    "the smaller dominant share comes first": (
        [queue("a", (INF, INF, 4.0)), queue("b", (INF, INF, 9.0))], {"a": gpu(2), "b": gpu(3)}, "b",
    ),
    "the older comes first when all is equal": ([queue("a", rank=2), queue("b", rank=1)], {}, "b"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_the_first_difference_decides(case: str) -> None:
    queues, held, expected = TABLE[case]
    assert first(queues, held) == expected


def test_inside_a_leaf_the_key_decides() -> None:
    turns = order([queue("a")], {}, gpu(2))
    for key, item in ((2.0, "late"), (1.0, "early")):
        turns.push(0, (key,), item)
    assert [item for _, item in turns] == ["early", "late"]


def test_reversed_who_holds_most_gives_first_and_what_it_gave_counts() -> None:
    queues = [queue("a", (INF, INF, 1.0)), queue("b", (INF, INF, 1.0), rank=1)]
    turns = order(queues, {"a": gpu(5), "b": gpu(4)}, gpu(1), reverse=True)
    for leaf, name in enumerate("ab"):
        for number in range(2):
            turns.push(leaf, (float(number),), f"{name}{number}", gpu(2))
    assert [item for _, item in turns] == ["a0", "b0", "a1", "b1"]


def test_popping_from_nothing_is_an_error() -> None:
    with pytest.raises(IndexError):
        order([queue("a")], {}, gpu(1)).pop()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=24),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
)
def test_heaps_agree_with_a_fresh_order_at_every_step(items: list[tuple[int, int, int]], quotas: list[int]) -> None:
    queues = [Queue(name="d"), Queue(name="e", rank=1)] + [
        Queue(name=f"q{number}", parent="de"[number % 2], rank=number, quota=(INF, INF, float(quota)))
        for number, quota in enumerate(quotas)
    ]
    turns = order(queues, {}, gpu(2))
    tree, ledger = turns.ledger.tree, turns.ledger
    left = [
        (tree.index[f"q{where}"], (float(key), float(number)), f"i{number}", gpu(size))
        for number, (where, key, size) in enumerate(items)
    ]
    for leaf, key, name, chunk in left:
        turns.push(leaf, key, name, chunk)
    while left:
        fresh: QueueOrder[str] = QueueOrder(ledger, turns.shares, TOTAL)
        for leaf, key, name, chunk in left:
            fresh.push(leaf, key, name, chunk)
        leaf, name = turns.pop()
        assert (leaf, name) == fresh.pop()
        chunk = next(entry[3] for entry in left if entry[2] == name)
        left = [entry for entry in left if entry[2] != name]
        ledger.add(leaf, chunk, True)
        turns.touch(leaf)
    assert len(turns) == 0
