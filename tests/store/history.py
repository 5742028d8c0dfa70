"""What every store must find of runs that are asked for. Subclasses give the fixture `store`."""

from __future__ import annotations

from slurmbridge.commands.effects import JobFilter
from slurmbridge.model.states import JobState
from slurmbridge.store.protocol import PutJobs, PutSteps, Store
from slurmbridge.store.records import encode_environment
from tests.store.records import allocation, finished, insertion, job, put, step


class HistoryContract:
    def test_history_finds_jobs_by_id_array_and_task(self, store: Store) -> None:
        put(store, insertion(job(1)))
        put(store, insertion(job(10, array_job_id=10, tasks=((3, 9, 1),))))
        tasks = [job(10 + n, array_job_id=10, array_task_id=n) for n in (1, 2)]
        put(store, PutJobs(jobs=tuple(tasks)))

        def ids(*wanted: tuple[int, int | None, int | None]) -> list[int]:
            return [row.job.job_id for row in store.history(JobFilter(job_ids=wanted))]

        assert ids((1, None, None)) == [1]
        assert ids((10, None, None)) == [11, 12, 10]
        assert ids((10, 2, None)) == [12]
        assert ids((10, 5, None)) == [10]
        assert ids((12, None, None), (1, None, None)) == [1, 12]

    def test_history_finds_the_components_of_a_heterogeneous_job(self, store: Store) -> None:
        put(store, insertion(*(job(20 + n, het_job_id=20, het_offset=n) for n in range(3))))
        assert len(store.history(JobFilter(job_ids=((20, None, None),)))) == 3
        assert [row.job.job_id for row in store.history(JobFilter(job_ids=((20, 2, None),)))] == [22]

    def test_history_filters_by_what_was_given(self, store: Store) -> None:
        put(
            store,
            insertion(finished(1, allocation=allocation("n1", "n2"))),
            insertion(finished(2, spec_changes={"uid": 1002, "account": "ml", "qos": "high", "name": "other"})),
            insertion(job(3, spec_changes={"partitions": ("long", "gpu"), "wckey": "w"})),
        )

        def ids(**wanted: object) -> list[int]:
            return [row.job.job_id for row in store.history(JobFilter(**wanted))]  # type: ignore[arg-type]

        assert ids(users=(1001,)) == [1, 3]
        assert ids(users=()) == []
        assert ids(accounts=("ml",)) == ids(qos=("high",)) == ids(names=("other",)) == [2]
        assert ids(partitions=("gpu",)) == ids(wckeys=("w",)) == [3]
        assert ids(partitions=("debug",)) == [1, 2]
        assert ids(nodes=("n2",)) == [1]
        assert ids(nodes=("n",)) == []
        assert ids(states=("COMPLETED",)) == [1, 2]
        assert ids(states=("PENDING",), accounts=("physics",)) == [3]

    def test_history_gives_runs_alive_in_the_window(self, store: Store) -> None:
        put(store, insertion(finished(1, start=1000, end=1100)), insertion(finished(2, start=2000, end=2100)))
        put(store, insertion(job(3, submit_time=2500.0)))

        def ids(start: float | None, end: float | None, *states: str) -> list[int]:
            wanted = JobFilter(start=start, end=end, states=states)
            return [row.job.job_id for row in store.history(wanted)]

        assert ids(1500, None) == [2, 3]
        assert ids(None, 2499) == [1, 2]
        assert ids(1050, 1060, "RUNNING") == [1]
        assert ids(1050, 1060, "COMPLETED") == []
        assert ids(1050, 1100, "COMPLETED") == [1]
        assert ids(1500, 1600, "PENDING") == [2]

    def test_history_shows_the_last_run_unless_duplicates_are_wanted(self, store: Store) -> None:
        put(store, insertion(finished(1, state=JobState.NODE_FAIL)))
        put(store, PutJobs(jobs=(finished(1, restarts=1),)))
        put(store, PutSteps(steps=(step(1), step(1, restarts=1), step(1, 0, restarts=1, start_time=1001.0))))
        (row,) = store.history(JobFilter())
        assert (row.job.restarts, [one.step_id for one in row.steps]) == (1, [-5, 0])
        assert [row.job.restarts for row in store.history(JobFilter(duplicates=True))] == [0, 1]
        assert store.history(JobFilter(with_steps=False))[0].steps == ()

    def test_history_brings_script_and_environment_when_wanted(self, store: Store) -> None:
        pairs = (("A", "1"), ("B", "x=y\n\udcff"))
        put(store, insertion(job(1), blobs=(("a" * 64, b"#!/bin/sh\n"), ("e" * 64, encode_environment(pairs)))))
        (row,) = store.history(JobFilter(with_script=True, with_env=True))
        assert (row.script, row.env) == (b"#!/bin/sh\n", pairs)
        (row,) = store.history(JobFilter())
        assert (row.script, row.env) == (None, None)
