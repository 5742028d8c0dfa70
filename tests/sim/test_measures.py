"""The figures, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.model.accounts import Accounting, Assoc
from slurmbridge.sim.clock import Run
from slurmbridge.sim.measures import Figures, figures, table
from slurmbridge.sim.shares import Tree, filled
from slurmbridge.sim.workload import Machine, TraceJob

NODE = Machine(node="g", cpus=8, gpus=4, gpu_mem_mib=1000)


def job(submit: float, run: float, gpus: int, account: str = "a", **fields: object) -> TraceJob:
    return TraceJob(
        id=str(submit), submit_s=submit, run_s=run, limit_s=run, gpus=gpus, account=account, cpus=1, **fields  # type: ignore[arg-type]
    )  # fmt: skip


def of(jobs: list[TraceJob], runs: list[Run], *assocs: Assoc) -> Figures:
    tree = Tree(Accounting(assocs=assocs), sorted({each.account for each in jobs}))
    return figures(jobs, [NODE], runs, tree, 1.5)


def test_waits_slowdowns_and_makespan_come_from_submissions_and_ends() -> None:
    jobs = [job(0, 100, 1), job(10, 5, 1), job(100, 50, 1)]
    found = of(jobs, [Run(0, 0, 100), Run(1, 40, 45), Run(2, 150, 200)])
    assert (found.jobs, found.makespan_s, found.wall_s) == (3, 200, 1.5)
    assert found.mean_wait_s == pytest.approx((0 + 30 + 50) / 3)
    assert found.p95_wait_s == 50
    assert found.mean_bounded_slowdown == pytest.approx((1 + 35 / 10 + 100 / 50) / 3)


def test_utilisation_is_of_the_time_from_first_to_last_submission() -> None:
    jobs = [job(0, 100, 2), job(50, 100, 1, gpu_milli=500)]
    found = of(jobs, [Run(0, 0, 100), Run(1, 50, 150)])
    assert found.gpu_utilisation == pytest.approx(50 * 2 / (4 * 50))
    assert found.cpu_utilisation == pytest.approx(50 * 1 / (8 * 50))


def test_a_share_of_a_device_by_memory_counts_as_its_part() -> None:
    jobs = [job(0, 100, 1, gpu_mem_mib=250), job(100, 1, 0)]
    assert of(jobs, [Run(0, 0, 100), Run(1, 100, 101)]).gpu_utilisation == pytest.approx(0.25 / 4)


def test_lost_work_is_waiting_and_is_no_use() -> None:
    jobs = [job(0, 100, 2), job(100, 10, 1)]
    found = of(jobs, [Run(0, 0, 60, lost=True), Run(0, 60, 160), Run(1, 100, 110)])
    assert found.preempted_gpu_hours == pytest.approx(2 * 60 / 3600)
    assert found.mean_wait_s == 30 and found.gpu_utilisation == pytest.approx(40 * 2 / 400)


def test_the_largest_gangs_wait_is_the_longest_of_those_that_ask_for_most() -> None:
    jobs = [job(0, 10, 2, nodes=2), job(0, 10, 4), job(0, 10, 1)]
    found = of(jobs, [Run(0, 5, 15), Run(1, 20, 30), Run(2, 90, 100)])
    assert found.largest_gang_wait_s == 20


def test_the_share_error_is_half_the_distance_from_what_is_deserved() -> None:
    # for 10 s `a` uses all 4 devices while `b` waits for 4: each deserves 2 of 4, so a half is in wrong hands
    jobs = [job(0, 10, 4, "a"), job(0, 10, 4, "b"), job(20, 1, 4, "a")]
    found = of(jobs, [Run(0, 0, 10), Run(1, 10, 20), Run(2, 20, 21)])
    assert found.share_error == pytest.approx(0.5 * 10 / 20)


def test_nobody_deserves_more_than_it_asks_for_and_fairshare_weighs() -> None:
    assocs = (Assoc(assoc_id=1, account="a", parent="root", shares=3), Assoc(assoc_id=2, account="b", parent="root"))
    tree = Tree(Accounting(assocs=assocs), ["a", "b"])
    assert tree.deserved(8, np.array([9.0, 9.0])).tolist() == [6, 2]
    assert tree.deserved(8, np.array([1.0, 9.0])).tolist() == [1, 7]
    assert tree.deserved(8, np.array([1.0, 2.0])).tolist() == [1, 2]


def test_what_one_account_leaves_goes_to_its_siblings_first() -> None:
    assocs = (
        Assoc(assoc_id=1, account="left", parent="root"),
        Assoc(assoc_id=2, account="a", parent="left"),
        Assoc(assoc_id=3, account="b", parent="left"),
        Assoc(assoc_id=4, account="right", parent="root"),
    )
    tree = Tree(Accounting(assocs=assocs), ["a", "b", "right"])
    assert tree.deserved(8, np.array([1.0, 9.0, 9.0])).tolist() == [1, 3, 4]
    assert tree.deserved(8, np.array([1.0, 1.0, 9.0])).tolist() == [1, 1, 6]
    assert [round(each.part, 3) for each in tree.shares().values()] == [0.25, 0.25, 0.5]


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), min_size=1, max_size=6), capacity=st.integers(0, 40)
)
def test_filling_up_gives_out_everything_that_is_asked_for(rows: list[tuple[int, int]], capacity: int) -> None:
    wanted = np.array([float(each[0]) for each in rows])
    weights = np.array([float(each[1]) for each in rows])
    given_out = filled(float(capacity), weights, wanted)
    assert (given_out <= wanted + 1e-9).all()
    assert given_out.sum() == pytest.approx(min(capacity, wanted.sum()))
    levels = given_out / weights
    hungry = given_out < wanted - 1e-9
    if hungry.any():  # whoever wants more has as much as anybody, by weight
        assert levels[hungry].min() == pytest.approx(levels[hungry].max())
        assert levels.max() <= levels[hungry].min() + 1e-9


def test_policies_stand_side_by_side() -> None:
    jobs = [job(0, 10, 1), job(10, 1, 1)]
    found = of(jobs, [Run(0, 0, 10), Run(1, 10, 11)])
    lines = table([("ours", found), ("easy", found)]).splitlines()
    assert lines[0].split() == ["ours", "easy"] and len(lines) == 12
