"""The controller from command lines to ends, on the shipped fakes and a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.runtime.protocol import RunKey
from tests.daemon.controlled import CONF, Site, check_use, site


def rule(test: Callable[[Site], Awaitable[None]]) -> Callable[[], None]:
    """Run an asynchronous rule on a fresh site."""

    def run() -> None:
        async def whole() -> None:
            made = await site()
            await test(made)
            check_use(made)

        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@rule
async def test_a_job_runs_and_ends(made: Site) -> None:
    job_id = await made.submit("-n2")
    assert made.states(job_id) == ["RUNNING"]
    await made.advance(11)
    assert made.states(job_id) == ["COMPLETED"]
    rows = await made.run(f"sacct -n -P -X -o JobID,State,ExitCode -j {job_id}")
    assert rows.out == f"{job_id}|COMPLETED|0:0\n"


@rule
async def test_a_retry_with_the_same_nonce_is_the_same_job(made: Site) -> None:
    first = await made.run("sbatch --parsable --wrap true", nonce="a" * 32)
    again = await made.run("sbatch --parsable --wrap true", nonce="a" * 32)
    assert first.out == again.out
    await made.restart()
    third = await made.run("sbatch --parsable --wrap true", nonce="a" * 32)
    assert third.out == first.out
    other_user = await made.run("sbatch --parsable --wrap true", nonce="a" * 32, user="bob")
    assert other_user.out != first.out


@rule
async def test_a_gang_waits_for_all_its_nodes(made: Site) -> None:
    small = await made.submit("-N1 -n8 -t 5", "sleep 60")
    gang = await made.submit("-N4 -n32")
    assert made.states(small, gang) == ["RUNNING", "PENDING"]
    assert made.job(gang).reason == "Resources"
    await made.advance(61)
    assert made.states(gang) == ["RUNNING"]


@rule
async def test_the_time_limit_ends_a_job_as_timeout(made: Site) -> None:
    job_id = await made.submit("-t 1", "sleep 600")
    await made.advance(70)
    assert (made.job(job_id).state, made.job(job_id).reason) == (JobState.TIMEOUT, "TimeLimit")


@rule
async def test_array_tasks_respect_the_limit_and_the_last_keeps_the_arrays_id(made: Site) -> None:
    array = await made.submit("-a 1-6%2", "sleep 5")
    memory = made.controller.memory

    def tasks(state: JobState) -> int:
        return sum(1 for job in memory.jobs_of_array(array) if job.state is state and not job.tasks)

    assert tasks(JobState.RUNNING) == 2
    most = 0
    for _ in range(20):
        await made.advance(1)
        most = max(most, tasks(JobState.RUNNING))
    assert (most, tasks(JobState.COMPLETED)) == (2, 6)
    assert made.job(array).array_task_id == 6


@rule
async def test_a_cancelled_array_is_one_record_and_takes_no_ids(made: Site) -> None:
    array = await made.submit("-H -a 0-999")
    assert (await made.run(f"scancel {array}")).code == 0
    assert made.job(array).state is JobState.CANCELLED
    assert await made.submit("-H") == array + 1


@rule
async def test_one_task_of_an_array_can_be_cancelled(made: Site) -> None:
    array = await made.submit("-H -a 0-3")
    assert (await made.run(f"scancel {array}_2")).code == 0
    states = {(job.array_task_id, job.state.name) for job in made.controller.memory.jobs_of_array(array)}
    assert (2, "CANCELLED") in states
    await made.run(f"scontrol release {array}")
    await made.advance(12)
    done = [job for job in made.controller.memory.jobs_of_array(array) if job.state is JobState.COMPLETED]
    assert sorted(job.array_task_id or 0 for job in done) == [0, 1, 3]


@rule
async def test_dependencies_start_their_children_or_say_never(made: Site) -> None:
    good = await made.submit("", "sleep 5")
    bad = await made.submit("", "sleep 5\nexit 3")
    after_good = await made.submit(f"-d afterok:{good}")
    after_bad = await made.submit(f"-d afterok:{bad}")
    not_ok = await made.submit(f"-d afternotok:{bad}")
    killed = await made.submit(f"-d afterok:{bad} --kill-on-invalid-dep=yes")
    chained = await made.submit(f"-d afterany:{killed}")
    assert made.job(after_good).reason == "Dependency"
    await made.advance(6)
    assert made.states(after_good, not_ok) == ["RUNNING", "RUNNING"]
    assert (made.job(after_bad).state.name, made.job(after_bad).reason) == ("PENDING", "DependencyNeverSatisfied")
    assert made.states(killed, chained) == ["CANCELLED", "RUNNING"]


@rule
async def test_singletons_of_a_name_run_one_by_one(made: Site) -> None:
    ids = [await made.submit("-J one -d singleton", "sleep 5") for _ in range(3)]
    assert made.states(*ids) == ["RUNNING", "PENDING", "PENDING"]
    await made.advance(6)
    assert made.states(*ids) == ["COMPLETED", "RUNNING", "PENDING"]


@rule
async def test_hold_release_and_begin(made: Site) -> None:
    held = await made.submit("-H")
    later = await made.submit("--begin=now+60seconds")
    assert made.states(held, later) == ["PENDING", "PENDING"]
    await made.run(f"scontrol release {held}")
    assert made.states(held) == ["RUNNING"]
    await made.advance(61)
    assert made.states(later) == ["RUNNING"]


@rule
async def test_a_requeued_job_runs_again_under_its_id_and_history_has_both_runs(made: Site) -> None:
    job_id = await made.submit("", "sleep 100")
    await made.advance(10)
    assert (await made.run(f"scontrol requeue {job_id}")).code == 0
    await made.advance(1)
    job = made.job(job_id)
    assert (job.state.name, job.restarts) == ("RUNNING", 1)
    rows = (await made.run(f"sacct -D -n -X -P -o State -j {job_id}")).out.split()
    assert len(rows) == 2


@rule
async def test_a_foreign_job_cannot_be_touched(made: Site) -> None:
    job_id = await made.submit("", "sleep 100")
    for line, code in [
        (f"scancel {job_id}", 210),
        (f"scontrol hold {job_id}", 1),
        (f"scontrol update jobid={job_id} timelimit=1", 1),
        (f"scontrol requeue {job_id}", 1),
    ]:
        answer = await made.run(line, user="bob")
        assert answer.code == code, (line, answer)
    assert "sleep 100" not in (await made.run(f"scontrol write batch_script {job_id} -", user="bob")).out
    assert "sleep 100" in (await made.run(f"scontrol write batch_script {job_id} -")).out
    assert made.states(job_id) == ["RUNNING"]


@rule
async def test_a_node_that_goes_down_requeues_its_jobs_and_an_idle_one_takes_them(made: Site) -> None:
    job_id = await made.submit("-N1 --exclusive", "sleep 100")
    node = made.job(job_id).batch_host
    answer = await made.run(f"scontrol update nodename={node} state=down reason=gone", user="root")
    assert answer.code == 0
    await made.advance(2)
    job = made.job(job_id)
    assert (job.state.name, job.restarts) == ("RUNNING", 1)
    assert job.batch_host != node


@rule
async def test_a_restart_of_the_daemon_loses_and_repeats_nothing(made: Site) -> None:
    running = await made.submit("-n4", "sleep 30")
    waiting = await made.submit("-N4 -n32")
    held = await made.submit("-H -a 1-5")
    await made.advance(3)
    await made.restart()
    assert made.states(running, waiting, held) == ["RUNNING", "PENDING", "PENDING"]
    await made.advance(30)
    assert made.states(running, waiting) == ["COMPLETED", "RUNNING"]
    assert made.job(running).restarts == 0
    assert await made.submit("-H") == held + 1


@rule
async def test_an_end_while_the_daemon_is_away_is_reported_when_it_returns(made: Site) -> None:
    job_id = await made.submit("", "sleep 5\nexit 4")
    made.runtime.crash()
    made.runtime.advance(20)
    await made.start()
    job = made.job(job_id)
    assert (job.state.name, job.exit_code >> 8) == ("FAILED", 4)


@rule
async def test_a_lost_run_is_requeued_or_failed(made: Site) -> None:
    may = await made.submit("", "sleep 100")
    may_not = await made.submit("--no-requeue", "sleep 100")
    for job_id in (may, may_not):
        made.runtime.lose(RunKey(job_id, 0))
    await made.settle()
    assert (made.job(may).state.name, made.job(may).restarts) == ("RUNNING", 1)
    assert made.job(may_not).state is JobState.NODE_FAIL


@rule
async def test_a_cancelled_run_completes_only_when_its_processes_are_gone(made: Site) -> None:
    job_id = await made.submit("", "trap '' TERM\nsleep 100")
    await made.run(f"scancel {job_id}")
    assert JobFlag.COMPLETING in made.job(job_id).flags
    assert sum(node.alloc_cpus for node in made.controller.memory.nodes()) == 1
    await made.advance(6)
    assert (made.job(job_id).state, made.job(job_id).flags) == (JobState.CANCELLED, frozenset())


@rule
async def test_usage_is_charged_once(made: Site) -> None:
    job_id = await made.submit("-n2", "sleep 50")
    await made.advance(51)
    assert made.states(job_id) == ["COMPLETED"]
    rows = {row.assoc_id: dict(row.raw) for row in made.controller.memory.all_usage()}
    assert {row.assoc_id: dict(row.raw) for row in made.store.load(0.0).usage} == rows
    assert all(raw["cpu"] == 100 for raw in rows.values())


@rule
async def test_het_components_start_and_end_together(made: Site) -> None:
    job_id = await made.submit("-n1 : -n2", "sleep 5")
    assert made.states(job_id, job_id + 1) == ["RUNNING", "RUNNING"]
    await made.advance(7)
    assert made.states(job_id, job_id + 1) == ["COMPLETED", "COMPLETED"]


@rule
async def test_a_missed_deadline_ends_a_pending_job(made: Site) -> None:
    await made.submit("-N4 -n32 -t 60", "sleep 900")
    late = await made.submit("-N4 -n32 -t 5 --deadline=now+10minutes")
    await made.advance(400, step=50)
    made.controller.end_missed()
    await made.settle()
    assert made.states(late) == ["DEADLINE"]


@rule
async def test_old_jobs_are_forgotten_but_accounted_for(made: Site) -> None:
    job_id = await made.submit("", "sleep 1")
    await made.advance(2)
    await made.advance(400, step=100)
    made.controller.purge()
    assert made.controller.memory.job(job_id) is None
    assert (await made.run(f"sacct -n -X -P -o State -S now-1hour -j {job_id}")).out == "COMPLETED\n"


def test_submission_stops_at_the_last_id() -> None:
    async def whole() -> None:
        made = await site(CONF.replace("KillWait=5", "KillWait=5\nFirstJobId=10\nMaxJobId=12"))
        ids = [await made.submit("-H") for _ in range(3)]
        assert ids == [10, 11, 12]
        answer = await made.run("sbatch -H --wrap true")
        assert answer.code == 1
        await made.restart()
        assert (await made.run("sbatch -H --wrap true")).code == 1

    asyncio.run(whole())


@pytest.mark.parametrize("limit", [1, 3])
def test_licences_are_never_given_out_twice(limit: int) -> None:
    async def whole() -> None:
        made = await site(CONF.replace("matlab:2", f"matlab:{limit}"))
        ids = [await made.submit("-L matlab:1", "sleep 5") for _ in range(4)]
        assert made.states(*ids).count("RUNNING") == limit
        await made.advance(30)
        assert made.states(*ids) == ["COMPLETED"] * 4
        assert all(not used for used in made.controller.memory.licenses_used().values())

    asyncio.run(whole())


async def _ends(made: Site, array: int) -> list[str]:
    rows = await made.run(f"sacct -n -P -X -o JobID,State -j {array}")
    return sorted(line.split(" by ")[0] for line in rows.out.splitlines())


@rule
async def test_tasks_follow_those_of_their_own_index_one_by_one(made: Site) -> None:
    first = await made.submit("--array=1-3", "sleep 10")
    second = await made.submit(f"--array=1-3 -d aftercorr:{first} --kill-on-invalid-dep=yes")
    await made.run(f"scancel {first}_2")
    await made.advance(8)
    assert f"{second}_2|CANCELLED" in await _ends(made, second)
    await made.advance(30)
    assert await _ends(made, second) == [f"{second}_1|COMPLETED", f"{second}_2|CANCELLED", f"{second}_3|COMPLETED"]


@rule
async def test_tasks_submitted_after_their_parents_ended_are_decided_at_once(made: Site) -> None:
    first = await made.submit("--array=1-3", "sleep 10")
    await made.run(f"scancel {first}_2")
    await made.advance(12)
    second = await made.submit(f"--array=1-3 -d aftercorr:{first}")
    await made.advance(12)
    assert await _ends(made, second) == [f"{second}_1|COMPLETED", f"{second}_2|PENDING", f"{second}_3|COMPLETED"]
    rows = await made.run(f"squeue -h -j {second} -t PD -o '%i %r'")
    assert rows.out == f"{second}_2 DependencyNeverSatisfied\n"


@rule
async def test_tasks_of_corresponding_parents_are_found_again_after_a_restart(made: Site) -> None:
    first = await made.submit("--array=1-2", "sleep 10")
    second = await made.submit(f"--array=1-2 -d aftercorr:{first}")
    await made.advance(5)
    await made.restart()
    await made.advance(30)
    assert await _ends(made, second) == [f"{second}_1|COMPLETED", f"{second}_2|COMPLETED"]


@rule
async def test_a_restart_forgets_no_failed_task_of_an_array_that_is_not_over(made: Site) -> None:
    """What depends on the whole array must still see it."""
    array = await made.submit("--array=0-1%1", "sleep 1\nexit 3")
    await made.run(f"scontrol hold {array}_1")
    await made.advance(400, step=50)
    for _ in range(2):
        task = next(job for job in made.controller.memory.jobs_of_array(array) if job.array_task_id == 0)
        assert task is not None
        assert task.state is JobState.FAILED
        await made.restart()
