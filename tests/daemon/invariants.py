"""What must hold in a controller at every moment, and what must hold once nothing runs any more."""

from __future__ import annotations

from collections import Counter

from slurmbridge.daemon.jobtable import holds_resources, is_over
from slurmbridge.lifecycle import arrays
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.runtime.protocol import RunKey
from tests.daemon.controlled import Site, check_use


def check(made: Site) -> None:
    """At every moment (all that was written is stored at once by the store of these tests)."""
    check_use(made)
    check_licenses(made)
    check_table(made)
    check_runs(made)
    check_records(made)
    check_store(made)


def check_licenses(made: Site) -> None:
    memory = made.controller.memory
    held: Counter[str] = Counter()
    for job in memory.jobs():
        if holds_resources(job) and job.allocation is not None:
            held.update({term.name: term.count for term in job.allocation.licenses})
    used = {name: count for name, count in memory.licenses_used().items() if count}
    assert used == dict(held)
    assert used.get("matlab", 0) <= 2


def check_table(made: Site) -> None:
    """Counters and indexes of the job table against the jobs in it."""
    table = made.controller.memory.table
    by_user: Counter[str] = Counter()
    for job in table:
        if not is_over(job):
            by_user[job.spec.user] += arrays.count(job.tasks) if job.tasks else 1
    for user in ("alice", "bob", "root"):
        assert table.count_open(user, "", "") == by_user[user], user
    waiting = {job.job_id for job in table if job.is_pending and job.spec.dependency is not None}
    assert {job.job_id for job in table.waiting()} == waiting
    for job in table:
        assert job in table.family(job.array_job_id or job.job_id)


def check_runs(made: Site) -> None:
    """Every job that holds nodes has a run, every run a job; no run belongs to a job that is pending or over."""
    runs = set(made.runtime._runs)
    held = {RunKey(job.job_id, job.restarts) for job in made.controller.memory.jobs() if holds_resources(job)}
    assert held == runs


def check_records(made: Site) -> None:
    for job in made.controller.memory.jobs():
        assert (job.allocation is not None) >= holds_resources(job)
        if job.is_pending:
            assert job.allocation is None and job.end_time is None and job.cancelled_by is None, job
            assert (job.priority == 0) == bool(job.held_by), (job.job_id, job.priority, job.held_by)
            assert not job.kill_reason, job
        if job.evicted is not None and job.evicted.mode == "SUSPEND":
            assert job.state is JobState.SUSPENDED or is_over(job) or JobFlag.COMPLETING in job.flags, job
        if job.state is JobState.RUNNING:
            assert job.start_time is not None and job.allocation is not None
        if is_over(job):
            assert (
                job.end_time is not None and not job.kill_reason and not job.tasks
            ) or job.state is JobState.CANCELLED, job
        if JobFlag.COMPLETING in job.flags:
            assert job.kill_reason, job


def check_store(made: Site) -> None:
    """What a restart would read is what is in memory, but for what planning alone sets."""
    memory = {job.job_id: _durable(job) for job in made.controller.memory.jobs()}
    stored = {job.job_id: _durable(job) for job in made.store.load(0.0).jobs}
    for job_id, job in memory.items():
        assert stored[job_id] == job, job_id


def _durable(job: Job) -> tuple[object, ...]:
    return (
        job.job_id, job.restarts, job.state, job.flags, job.tasks, job.array_task_id, job.held_by, job.priority == 0,
        job.allocation, job.end_time, job.kill_reason, job.dep_done, job.dep_failed, job.exit_code, job.spec.time_limit,
    )  # fmt: skip


def check_quiet(made: Site) -> None:
    """Nothing runs and nothing is in use."""
    memory = made.controller.memory
    assert not made.runtime._runs
    assert [job.job_id for job in memory.jobs() if not is_over(job)] == []
    assert not any(memory.licenses_used().values())
    for node in memory.nodes():
        assert (node.alloc_cpus, node.alloc_memory, node.alloc_devices, node.running_jobs) == (0, 0, (), ())
