"""A node that does not take what was made for it: the job goes back, but an allocation ends with who waits for it."""

from __future__ import annotations

import asyncio

import pytest

from slurmbridge.model.states import JobState
from slurmbridge.runtime.memory import MemoryRuntime
from slurmbridge.runtime.protocol import Ended, Launch
from tests.daemon.controlled import START, Answer, Site
from tests.patience import PATIENCE_S


class Refusing(MemoryRuntime):
    """Nothing that is launched fits on its node."""

    def launch(self, launch: Launch) -> None:
        text = "its node had less room than was known"
        report = Ended(key=launch.key, sequence=1, time=self.now, status=0, why="requeue", message=text)
        asyncio.get_running_loop().call_soon(self._tell, report)


def typed(line: str) -> tuple[Answer, Site]:
    async def rule() -> tuple[Answer, Site]:
        site = Site()
        site.runtime = Refusing(START)
        await site.start()
        waiting = asyncio.create_task(site.run(line))
        for _ in range(20):
            await site.settle()
        return await asyncio.wait_for(waiting, PATIENCE_S), site

    return asyncio.run(rule())


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("srun -n1 true", "srun: Job allocation 1 has been revoked"),
        ("salloc -n1 true", "salloc: Job allocation 1 has been revoked."),
    ],
)
def test_an_allocation_that_a_node_does_not_take_ends_with_an_error(line: str, last: str) -> None:
    answer, site = typed(line)
    name = line.split()[0]
    assert answer.code == 1
    assert answer.err.splitlines()[-2:] == [f"{name}: error: Something is wrong with the boot of the nodes.", last]
    job = site.job(1)
    assert (job.state, job.restarts) == (JobState.BOOT_FAIL, 0)
