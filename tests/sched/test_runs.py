"""Columns of what runs follow the snapshot's changes and are the ones that would be made anew."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.model.cluster import Others
from slurmbridge.model.plan import Delta
from slurmbridge.model.states import NodeBase, NodeFlag
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.memo import refreshed
from slurmbridge.sched.queues import Partings
from slurmbridge.sched.runs import Runs, runs_of
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import NOW, carried_out, cluster, job, node_state, world

ASSOCS = (
    Assoc(assoc_id=1, account="root"),
    Assoc(assoc_id=2, account="a", parent="root", quotas=(Quota(deserved=(("cpu", 8),)),)),
    Assoc(assoc_id=3, account="b", parent="root", quotas=(Quota(deserved=(("cpu", 4),)),)),
    Assoc(assoc_id=4, account="c", parent="a"),
)


def anew(snapshot: Snapshot, memo: Memo) -> Runs:
    assert memo.rules is not None
    return runs_of(snapshot, memo.rules, memo.queued.pools, memo.queued.has_quotas, Runs())


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_columns_kept_over_changes_are_those_made_anew(data: st.DataObject) -> None:
    config = cluster()
    snapshot = Snapshot.empty().apply(Delta(version=1, config=config, accounting=Accounting(assocs=ASSOCS)))
    memo, number = Memo.empty(), 10
    for version in range(2, 6):
        tasks = data.draw(st.lists(st.integers(1, 3), max_size=5))
        came = tuple(job(number + place, num_tasks=count, assoc_id=2 + place % 3) for place, count in enumerate(tasks))
        number += len(came)
        ended = data.draw(st.sets(st.sampled_from(sorted(snapshot.running) or [0])))
        for gone in ended if data.draw(st.booleans()) else (ended,):  # at once, or in several changes before a cycle
            ids = gone if isinstance(gone, set) else {gone}
            snapshot = snapshot.apply(Delta(version=version, gone=tuple(ids)))
        snapshot = snapshot.apply(Delta(version=version, jobs=came))
        plan, memo = plan_cycle(snapshot, snapshot.config, NOW, memo)
        fresh = anew(snapshot, memo)
        names = [name for name in fresh.rows.dtype.names or () if name != "kind"]
        assert all((fresh.rows[name] == memo.runs.rows[name]).all() for name in names)
        assert all((one == other).all() for one, other in zip(fresh.leaves, memo.runs.leaves, strict=True))
        snapshot = carried_out(snapshot, plan, NOW)
        memo = refreshed(memo, snapshot, snapshot.config)


def test_what_others_have_of_nodes_changes_no_columns_of_what_runs() -> None:
    snapshot = world(job(1))
    plan, memo = plan_cycle(snapshot, snapshot.config, NOW, Memo.empty())
    snapshot = carried_out(snapshot, plan)
    memo = refreshed(memo, snapshot, snapshot.config)
    moved = snapshot.apply(Delta(version=8, nodes=(node_state("n2", others=Others(cpus=1)),)))
    assert moved.room.cpus.sum() == snapshot.room.cpus.sum() - 1
    assert refreshed(memo, moved, moved.config).runs is memo.runs
    both = snapshot.apply(Delta(version=8, nodes=(node_state("n2", others=Others(cpus=1)),), gone=(1,)))
    assert not len(refreshed(memo, both, both.config).runs.rows)


def test_a_memo_kept_while_nodes_come_and_go_plans_as_a_new_one() -> None:
    waiting = [job(number, num_tasks=8, min_nodes=1, max_nodes=1) for number in range(1, 8)]
    snapshot = world(*waiting, job(9, min_nodes=4, num_tasks=32))
    memo = refreshed(Memo.empty(), snapshot, snapshot.config)
    drained, gone = frozenset({NodeFlag.DRAIN}), NodeBase.DOWN
    states: tuple[dict[str, Any], ...] = ({"flags": drained}, {"others": Others(cpus=1)}, {"base": gone}, {}, {})
    for version, state in enumerate(states, 2):
        told = tuple(node_state(name, **state) for name in ("n1", "n3"))
        snapshot = snapshot.apply(Delta(version=version, nodes=told))
        plan, memo = plan_cycle(snapshot, snapshot.config, NOW, memo)
        expected, _ = plan_cycle(snapshot, snapshot.config, NOW, Memo.empty())
        assert (plan.starts, plan.verdicts) == (expected.starts, expected.verdicts)
        snapshot = carried_out(snapshot, plan)


def test_where_a_leaf_parts_from_every_queue_is_where_it_parts_from_each() -> None:
    snapshot = Snapshot.empty().apply(Delta(version=1, config=cluster(), accounting=Accounting(assocs=ASSOCS)))
    (pool,) = refreshed(Memo.empty(), snapshot, snapshot.config).queued.pools
    tree, partings = pool.tree, Partings(pool.tree)
    for leaf in range(len(tree)):
        mine, theirs = partings.of(leaf)
        for other in range(len(tree)):
            expected = tree.where_they_part(leaf, other) if other != leaf else (-1, -1)
            assert (mine[other], theirs[other]) == expected
