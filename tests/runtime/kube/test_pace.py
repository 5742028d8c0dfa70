"""Pauses between launches of a job that no node takes."""

from __future__ import annotations

from slurmbridge.runtime.kube.faults import Backoff
from slurmbridge.runtime.kube.pace import REMEMBERED, Pace


def test_the_first_time_is_without_a_pause_and_the_others_have_longer_ones_up_to_a_longest() -> None:
    pace = Pace(Backoff(first=1.0, longest=5.0))
    assert [pace.turned_away(1) for _ in range(6)] == [0.0, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert pace.turned_away(2) == 0.0


def test_a_job_that_is_forgotten_counts_anew() -> None:
    pace = Pace()
    pace.turned_away(1)
    pace.forget(1)
    assert pace.turned_away(1) == 0.0


def test_of_more_jobs_than_are_remembered_the_oldest_is_forgotten() -> None:
    pace = Pace()
    for job in range(REMEMBERED + 1):
        pace.turned_away(job)
    assert pace.turned_away(1) > 0.0
    assert pace.turned_away(0) == 0.0
