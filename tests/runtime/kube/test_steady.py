"""The cluster's time, whatever our own clock does."""

from __future__ import annotations

import time

from slurmbridge.runtime.kube.steady import Steady, skew
from tests.runtime.kube.paper import paper_cluster


def test_a_step_of_our_clock_is_none_of_the_clusters() -> None:
    wall, ticks = 1000.0, 5.0
    clock = Steady(lambda: wall, lambda: ticks)
    wall, ticks = 90_000.0, 7.0
    assert clock() == 1002.0


def test_it_is_the_api_servers_time_where_that_is_told() -> None:
    with paper_cluster() as (_, connect):
        clock = Steady(lambda: time.time() + 7200)
        clock.align(connect())
        assert abs(clock() - time.time()) < 60
        ahead = skew(connect(), lambda: time.time() + 7200)
        assert ahead is not None and abs(ahead - 7200) < 60


def test_an_api_server_that_does_not_answer_leaves_our_own() -> None:
    with paper_cluster() as (paper, connect):
        paper.fail = lambda method, path: (503, "later")
        clock = Steady(lambda: 1000.0, lambda: 5.0)
        clock.align(connect())
        assert clock() == 1000.0
