"""Room that is being made leads to a start, whatever becomes of the daemon meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from slurmbridge.model.states import JobState
from tests.daemon.controlled import CONF, Site

TIERS = CONF.replace("MinJobAge", "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nMinJobAge").replace(
    "Default=YES", "Default=YES GraceTime=20"
) + ("PartitionName=urgent Nodes=n[1-4] PriorityTier=10\n")


@pytest.mark.parametrize("restarts", [False, True], ids=["steady", "the daemon comes back"])
def test_as_many_runs_end_as_tasks_of_an_array_need_and_no_more(restarts: bool) -> None:
    async def whole() -> None:
        made = Site(TIERS)
        await made.start()
        low = [await made.submit("-n8 -t 60", "sleep 1000") for _ in range(4)]
        array = await made.submit("-p urgent -n8 -t 60 --array=0-1", "sleep 1000", user="bob")
        assert sum(made.job(job).evicted is not None for job in low) == 2
        await made.advance(5)
        if restarts:
            await made.restart()
        await made.advance(40)
        runs = [job for job in made.controller.memory.jobs() if job.state is JobState.RUNNING]
        assert {job.array_task_id for job in runs if job.array_job_id == array} == {0, 1}
        assert sum(made.job(job).restarts for job in low) == 2

    asyncio.run(whole())
