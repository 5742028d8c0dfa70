"""sbatch(1) --dependency as rules."""

from __future__ import annotations

import pytest

from slurmbridge.lifecycle import dependencies
from slurmbridge.lifecycle.dependencies import TermState
from slurmbridge.model.job import Job
from slurmbridge.model.request import Dependency, DependencyTerm
from slurmbridge.model.states import JobFlag, JobState, Reason
from tests.lifecycle.build import ended, job, running, spec

W, D, N = TermState.WAITING, TermState.DONE, TermState.NEVER

PARENTS = {
    "pending": job(1),
    "running": running(1),
    "completed": ended(1),
    "failed": ended(1, JobState.FAILED),
    "timeout": ended(1, JobState.TIMEOUT),
    "cancelled while pending": job(1, state=JobState.CANCELLED, end_time=105.0),
    "completing": ended(1, JobState.CANCELLED, flags=frozenset({JobFlag.COMPLETING})),
}
TABLE = {
    "after": (W, D, D, D, D, D, D),
    "afterany": (W, W, D, D, D, D, W),
    "afterok": (W, W, D, N, N, N, W),
    "afternotok": (W, W, N, D, D, D, W),
    "afterburstbuffer": (W, W, D, D, D, D, W),
}


@pytest.mark.parametrize(
    ("kind", "parent", "expected"),
    [
        pytest.param(kind, PARENTS[name], state, id=f"{kind}-{name}")
        for kind, states in TABLE.items()
        for name, state in zip(PARENTS, states, strict=True)
    ],
)
def test_term_follows_its_parent(kind: str, parent: Job, expected: TermState) -> None:
    term = DependencyTerm(kind=kind, job_id=1)
    assert dependencies.term_state(term, job(2), (parent,), now=1000.0) is expected


def test_a_parent_that_is_forgotten_counts_as_ended_well() -> None:
    assert dependencies.term_state(DependencyTerm(kind="afterok", job_id=1), job(2), (), now=0.0) is D


def test_after_with_minutes_waits_for_the_clock() -> None:
    term = DependencyTerm(kind="after", job_id=1, minutes=5)
    assert dependencies.term_state(term, job(2), (running(1),), now=110.0 + 299) is W
    assert dependencies.term_state(term, job(2), (running(1),), now=110.0 + 300) is D


def test_afterok_of_an_array_needs_every_task() -> None:
    tasks = [ended(1, array_job_id=1, array_task_id=0), ended(2, JobState.FAILED, array_job_id=1, array_task_id=1)]
    term = DependencyTerm(kind="afterok", job_id=1)
    assert dependencies.term_state(term, job(3), tasks, now=1e9) is N
    assert dependencies.term_state(term, job(3), tasks[:1], now=1e9) is D


def test_an_array_with_tasks_left_is_not_over() -> None:
    record = job(1, array_job_id=1, tasks=((1, 3, 1),))
    assert dependencies.term_state(DependencyTerm(kind="afterany", job_id=1), job(5), (record,), now=1e9) is W


def test_aftercorr_looks_at_the_task_of_the_same_index() -> None:
    tasks = [ended(1, array_job_id=1, array_task_id=0), running(2, array_job_id=1, array_task_id=1)]
    term = DependencyTerm(kind="aftercorr", job_id=1)
    child = job(9, array_job_id=8, array_task_id=0)
    assert dependencies.term_state(term, child, tasks, now=1e9) is D
    assert dependencies.term_state(term, job(9, array_job_id=8, array_task_id=1), tasks, now=1e9) is W


def test_an_array_record_gives_away_the_tasks_whose_correspondents_ended() -> None:
    record = job(9, of=spec(dependency=Dependency(terms=(DependencyTerm(kind="aftercorr", job_id=1),))), array_job_id=9, tasks=((0, 5, 1),))  # fmt: skip
    tasks = (
        ended(1, array_job_id=1, array_task_id=0),
        ended(2, JobState.FAILED, array_job_id=1, array_task_id=1),
        running(3, array_job_id=1, array_task_id=2),
        ended(4, array_job_id=1, array_task_id=7),
    )
    assert dependencies.decided_tasks(record, lambda job_id: tasks) == [0, 1]
    assert dependencies.evaluate(record, lambda job_id: tasks, (), now=1e9) is record


def _child(*terms: DependencyTerm, any_of: bool = False) -> Job:
    return job(5, of=spec(dependency=Dependency(terms=terms, any_of=any_of)))


def _evaluate(child: Job, *parents: Job, twins: tuple[Job, ...] = ()) -> Job:
    def family(job_id: int) -> tuple[Job, ...]:
        return tuple(p for p in parents if p.job_id == job_id)

    return dependencies.evaluate(child, family, twins, now=1e9)


def test_all_terms_are_needed_when_joined_by_comma() -> None:
    child = _child(DependencyTerm(kind="afterok", job_id=1), DependencyTerm(kind="afterany", job_id=2))
    half = _evaluate(child, ended(1), running(2))
    assert not dependencies.is_satisfied(half)
    assert dependencies.is_satisfied(_evaluate(half, ended(1), ended(2)))


def test_one_term_is_enough_when_joined_by_question_mark() -> None:
    child = _child(DependencyTerm(kind="afterok", job_id=1), DependencyTerm(kind="afterany", job_id=2), any_of=True)
    after = _evaluate(child, ended(1, JobState.FAILED), ended(2))
    assert dependencies.is_satisfied(after)
    assert not dependencies.is_impossible(after)


def test_afterok_is_never_satisfied_when_the_parent_failed() -> None:
    after = _evaluate(_child(DependencyTerm(kind="afterok", job_id=1)), ended(1, JobState.FAILED))
    assert dependencies.is_impossible(after)
    assert dependencies.waiting_reason(after) == Reason.DEPENDENCY_NEVER


def test_singleton_lets_the_oldest_of_a_name_go_first() -> None:
    child = _child(DependencyTerm(kind="singleton"))
    assert not dependencies.is_satisfied(_evaluate(child, twins=(job(4), child)))
    assert dependencies.is_satisfied(_evaluate(child, twins=(child, job(6))))
    assert not dependencies.is_satisfied(_evaluate(child, twins=(child, running(6))))


def test_a_satisfied_term_stays_satisfied_when_the_parent_is_forgotten_or_requeued() -> None:
    after = _evaluate(_child(DependencyTerm(kind="afterok", job_id=1)), ended(1))
    assert dependencies.is_satisfied(_evaluate(after, job(1)))
