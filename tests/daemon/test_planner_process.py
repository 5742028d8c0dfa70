"""The planner's process when it breaks: it is started anew, unless it never starts, and then the daemon gives up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from slurmbridge.daemon import planning
from slurmbridge.daemon.planning import WORKER, Planning
from tests.daemon.controlled import Site
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(planning, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(planning, "LONGEST_PAUSE_S", 0.01)
    caplog.set_level(logging.CRITICAL, planning.__name__)


@asynccontextmanager
async def started(command: Sequence[str], gone: asyncio.Event) -> AsyncIterator[Planning]:
    """With its first cycle due. A test's time is bounded."""
    site = Site()
    await site.start()
    made = Planning(site.clock, gone.set, command)
    made.plans = made._plans = site.plans
    site.plans.wake = made._wake
    made._wake()
    made.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield made
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await made.stop()
        await asyncio.sleep(0.1)  # in which asyncio closes the pipes


async def ends(command: Sequence[str], *, failures: int) -> tuple[int, int, bool]:
    """(cycles, failures, whether it gave up), once it gave up, planned, or failed so often."""
    gone = asyncio.Event()
    async with started(command, gone) as made:
        while not (gone.is_set() or made.cycles or made.failures >= failures):
            await asyncio.sleep(0.01)
    return made.cycles, made.failures, gone.is_set()


def test_a_planner_that_starts_plans() -> None:
    assert asyncio.run(ends(WORKER, failures=1)) == (1, 0, False)


@pytest.mark.parametrize("script", ["exit 1", "exec <&-; sleep 0.2; exit 3"], ids=["at once", "late"])
def test_a_planner_that_never_starts_is_given_up(script: str) -> None:
    assert asyncio.run(ends(("/bin/sh", "-c", script), failures=10)) == (0, planning.STILLBORN, True)


def test_a_planner_that_the_kernel_ends_is_started_again_and_again() -> None:
    assert asyncio.run(ends(("/bin/sh", "-c", "kill -9 $$"), failures=6)) == (0, 6, False)


def test_a_planner_that_started_once_is_started_again_whatever_comes(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    script = f"[ -e {mark} ] && exit 1; touch {mark}; exec {' '.join(WORKER)}"

    async def run() -> bool:
        gone = asyncio.Event()
        async with started(("/bin/sh", "-c", script), gone) as made:
            while not made.cycles:
                await asyncio.sleep(0.01)
            assert made._worker is not None
            made._worker.kill()
            made._wake()
            while made.failures < 2 * planning.STILLBORN:
                await asyncio.sleep(0.01)
        return gone.is_set()

    assert not asyncio.run(run())


def test_it_stops_whatever_has_just_come() -> None:
    """Ended at many moments of a life in which planners come and go at once."""

    async def run() -> None:
        for moment in range(60):
            async with started(("/bin/sh", "-c", "kill -9 $$"), asyncio.Event()) as made:
                await asyncio.sleep(moment * 0.0005)
            assert made._task is not None and made._task.done()

    asyncio.run(run())


def test_the_start_of_a_planner_does_not_count_as_planning() -> None:
    """It rests after a cycle for as long as that took, and the first jobs would wait for it."""
    slow = f"sleep 1; exec {' '.join(WORKER)}"

    async def run() -> float:
        async with started(("/bin/sh", "-c", slow), asyncio.Event()) as made:
            while not made.cycles:
                await asyncio.sleep(0.01)
            return made.last_cycle_s

    assert 0 < asyncio.run(run()) < 1
