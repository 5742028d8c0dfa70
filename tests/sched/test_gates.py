"""Gates of quota, limit and reclaim: each rule as a small case."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.sched import gates
from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.queues import Queue, QueueTree, Vector

INF = math.inf


def gpu(count: float) -> Vector:
    return (0.0, 0.0, float(count))


def site(**held: float) -> tuple[QueueTree, Ledger]:
    """Departments d and e; a, b in d and c in e; quota 2 each (departments 4), limit 6."""
    queues = [
        Queue(name=name, parent=parent, rank=rank, quota=(INF, INF, quota), limit=(INF, INF, 6.0))
        for rank, (name, parent, quota) in enumerate(
            [("d", None, 4.0), ("e", None, 4.0), ("a", "d", 2.0), ("b", "d", 2.0), ("c", "e", 2.0)]
        )
    ]
    tree = QueueTree.build(queues)
    ledger = Ledger(tree)
    for name, count in held.items():
        ledger.add(tree.index[name], gpu(count), True)
    return tree, ledger


def test_a_limit_counts_at_every_level_and_only_for_what_is_asked() -> None:
    tree, ledger = site(a=3, b=3)
    assert gates.over_limit(ledger, tree.index["a"], gpu(1)) == (tree.index["d"], 2)
    assert gates.within_limit(ledger, tree.index["a"], (5.0, 5.0, 0.0))
    assert gates.within_limit(ledger, tree.index["c"], gpu(6))


def test_quota_is_the_ceiling_of_what_cannot_be_preempted() -> None:
    tree, ledger = site(a=5)
    assert gates.within_quota(ledger, tree.index["a"], gpu(2))
    ledger.add(tree.index["a"], gpu(1), False)
    assert not gates.within_quota(ledger, tree.index["a"], gpu(2))


def test_who_would_be_above_its_share_may_not_reclaim() -> None:
    tree, ledger = site(a=1)
    shares = [gpu(8), gpu(8), gpu(3), gpu(3), gpu(3)]
    assert gates.may_reclaim(ledger, shares, tree.index["a"], gpu(2), True)
    assert not gates.may_reclaim(ledger, shares, tree.index["a"], gpu(3), True)
    assert not gates.may_reclaim(ledger, shares, tree.index["a"], gpu(2.5), False)


def take(
    ledger: Ledger, shares: list[Vector], ask: float, *pieces: tuple[str, float], preemptible: bool = True
) -> bool:
    index = ledger.tree.index
    lost = [(index[name], gpu(count)) for name, count in pieces]
    return gates.may_take(ledger, shares, index["a"], gpu(ask), preemptible, lost)


def test_nothing_is_taken_from_a_queue_at_its_share() -> None:
    _, ledger = site(a=1, b=3)
    shares = [gpu(6), gpu(6), gpu(3), gpu(3), gpu(3)]
    assert not take(ledger, shares, 2, ("b", 2))


def test_the_last_piece_may_push_the_victim_below_its_share() -> None:
    _, ledger = site(b=4)
    shares = [gpu(6), gpu(6), gpu(3), gpu(3), gpu(3)]
    assert take(ledger, shares, 3, ("b", 4))
    assert not take(ledger, shares, 3, ("b", 1), ("b", 1))


def test_a_queue_inside_its_quota_takes_what_others_hold_above_theirs() -> None:
    _, ledger = site(a=0, b=3)
    shares = [gpu(6), gpu(6), gpu(3), gpu(3), gpu(3)]
    assert take(ledger, shares, 2, ("b", 1))
    assert not take(ledger, shares, 3, ("b", 1))


def test_a_department_above_its_share_must_stay_less_saturated_than_whom_it_takes_from() -> None:
    _, ledger = site(a=0, b=4, c=6)
    shares = [gpu(4), gpu(4), gpu(2), gpu(2), gpu(4)]
    assert take(ledger, shares, 1, ("c", 0.5))  # 5/4 against 5.5/4
    assert not take(ledger, shares, 1, ("c", 1))  # 5/4 against 5/4


def test_work_that_cannot_be_preempted_reclaims_only_inside_the_quota_of_every_level() -> None:
    _, ledger = site(c=6)
    shares = [gpu(6), gpu(4), gpu(6), gpu(2), gpu(4)]
    assert take(ledger, shares, 2, ("c", 2), preemptible=False)
    assert not take(ledger, shares, 3, ("c", 2), preemptible=False)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 3), st.booleans()), max_size=8))
def test_restoring_a_mark_brings_every_row_back(changes: list[tuple[str, float, bool]]) -> None:
    tree, ledger = site(a=1.1, b=0.7)
    before, mark = (list(ledger.allocated), list(ledger.allocated_np)), ledger.mark()
    for name, count, preemptible in changes:
        ledger.add(tree.index[name], gpu(count), preemptible)
    ledger.restore(mark)
    assert (ledger.allocated, ledger.allocated_np) == before


def test_nothing_is_taken_for_what_is_not_rationed_or_not_asked_for() -> None:
    tree, ledger = site(c=5)
    shares = [gpu(8), gpu(8), gpu(3), gpu(3), gpu(3)]
    leaf, pieces = tree.index["a"], [(tree.index["c"], gpu(1)), (tree.index["c"], gpu(1))]
    assert gates.concerns(ledger, shares, leaf, gpu(4), pieces[:1])  # inside its quota against one above it
    assert not gates.concerns(ledger, shares, leaf, gpu(4.5), pieces[:1])  # e holds 5, its share is 8
    shares[1] = gpu(4)
    assert gates.concerns(ledger, shares, leaf, gpu(4.5), pieces[:1])
    assert not gates.concerns(ledger, shares, leaf, gpu(4.5), pieces)  # the second would be inside the share
    assert not gates.concerns(ledger, shares, leaf, (4.0, 4.0, 0.0), pieces[:1])


def test_nobody_is_left_with_less_than_the_quota_for_one_who_is_above_it() -> None:
    tree, ledger = site(c=5)
    shares = [gpu(8), gpu(4), gpu(8), gpu(3), gpu(3)]
    leaf = tree.index["a"]
    assert gates.concerns(ledger, shares, leaf, gpu(4.5), [(tree.index["c"], gpu(1))])
    assert not gates.concerns(ledger, shares, leaf, gpu(4.5), [(tree.index["c"], gpu(3))])
    assert gates.concerns(ledger, shares, leaf, gpu(4), [(tree.index["c"], gpu(3))])
