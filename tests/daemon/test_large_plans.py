"""Plans with more starts than are made at once: a step at a time, and each step by what holds then."""

from __future__ import annotations

import asyncio

from slurmbridge.daemon.plans import AT_ONCE
from slurmbridge.model.job import Allocation, NodeShare
from slurmbridge.model.plan import Plan, Start
from slurmbridge.runtime.protocol import RunKey
from tests.daemon.controlled import CONF, Site
from tests.daemon.rules import on

TASKS = 3 * AT_ONCE // 2
MANY = CONF.replace("n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4", f"n[1-{TASKS + 2}] CPUs=1").replace(
    "n[1-4]", f"n[1-{TASKS + 2}]"
)
DUE = "--begin=now+1hour --ntasks=1 --mem=10"  # the planner that comes with a site does not take it


def start(job_id: int, node: int, task: int | None = None) -> Start:
    share = NodeShare(node=f"n{node}", cpus=1, memory_mib=10)
    return Start(job_id=job_id, array_task_id=task, allocation=Allocation(partition="debug", nodes=(share,)))


def running(made: Site) -> set[int | None]:
    return {job.array_task_id for job in made.controller.memory.jobs() if job.state.name == "RUNNING"}


async def array(made: Site) -> tuple[int, tuple[Start, ...]]:
    """One whose tasks may all start now, and how."""
    job_id = await made.submit(f"--array=0-{TASKS - 1} {DUE}")
    made.runtime.advance(3700)
    return job_id, tuple(start(job_id, task + 1, task) for task in range(TASKS))


@on(MANY)
async def test_the_first_starts_are_launched_while_later_ones_are_still_to_be_made(made: Site) -> None:
    _, starts = await array(made)
    steps = made.plans.applying(Plan(version=0, starts=starts))
    next(steps)
    assert running(made) == set(range(AT_ONCE))
    for _ in range(8):
        await asyncio.sleep(0)
    for job in made.controller.memory.jobs():
        if not job.is_pending:
            assert made.runtime.launched(RunKey(job.job_id, 0)).key.job_id == job.job_id
    assert len(list(steps)) == 1
    assert running(made) == set(range(TASKS))


@on(MANY)
async def test_a_later_start_is_not_made_when_its_job_was_cancelled_meanwhile(made: Site) -> None:
    job_id, starts = await array(made)
    steps = made.plans.applying(Plan(version=0, starts=starts))
    next(steps)
    assert (await made.run(f"scancel {job_id}")).code == 0
    for _ in steps:
        await asyncio.sleep(0)
    assert not running(made)
    begun = [job.array_task_id for job in made.controller.memory.jobs() if job.array_task_id is not None]
    assert sorted(task for task in begun if task is not None) == list(range(AT_ONCE))


@on(MANY)
async def test_what_was_started_before_a_crash_runs_and_the_rest_waits(made: Site) -> None:
    _, starts = await array(made)
    steps = made.plans.applying(Plan(version=0, starts=starts))
    next(steps)
    for _ in range(8):
        await asyncio.sleep(0)
    del steps
    runs = {job.job_id: job.array_task_id for job in made.controller.memory.jobs() if not job.is_pending}
    await made.restart()
    for number, task in runs.items():
        assert made.job(number).array_task_id == task
        assert made.job(number).state.name == "RUNNING"
    assert sorted(task for task in running(made) if task is not None) == list(range(TASKS))  # each once


@on(MANY)
async def test_components_of_one_job_are_never_in_two_steps(made: Site) -> None:
    leader = await made.submit(f"{DUE} : {DUE}")
    _, starts = await array(made)
    late = start(leader + 1, TASKS + 2)
    steps = made.plans.applying(Plan(version=0, starts=(start(leader, TASKS + 1), *starts, late)))
    next(steps)
    assert made.states(leader, leader + 1) == ["RUNNING", "RUNNING"]
    assert len(running(made)) < TASKS
    list(steps)
    assert running(made) == {None, *range(TASKS)}
