"""A run whose end was told, and whose nodes are not free yet, is completing: it does not run, and nobody else has its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from slurmbridge.model.states import JobFlag
from slurmbridge.runtime.memory import MemoryRuntime
from slurmbridge.runtime.protocol import Ended, Ending, Report, Told
from tests.daemon.controlled import CONF, START, Site, check_use


class Slow(MemoryRuntime):
    """Nodes are free `late_s` after a run has ended."""

    late_s = 5.0
    told: Callable[[Told], None]

    def _tell(self, report: Report) -> None:
        if isinstance(report, Ended):
            self.told(Ending(key=report.key, end=report))
            self._at(self.now + self.late_s, lambda: MemoryRuntime._tell(self, report))
        else:
            super()._tell(report)


def run(rule: Callable[[Site], Awaitable[None]], conf: str = CONF) -> None:
    async def whole() -> None:
        site = Site(conf)
        site.runtime = runtime = Slow(START)
        await site.start()
        runtime.told = site.controller.running.on_report
        await rule(site)
        check_use(site)

    asyncio.run(whole())


@pytest.mark.parametrize(("body", "state"), [("sleep 10", "COMPLETED"), ("sleep 10\nexit 3", "FAILED")])
def test_a_run_that_has_ended_is_completing_until_its_nodes_are_free(body: str, state: str) -> None:
    async def rule(site: Site) -> None:
        job = await site.submit("-N4 --exclusive", body)
        later = await site.submit("-n1")
        await site.advance(11)
        assert (await site.run("squeue -h -o '%i %t'")).out.splitlines() == [f"{later} PD", f"{job} CG"]
        check_use(site)
        ended_at = site.job(job).end_time
        await site.advance(5)
        assert site.states(job, later) == [state, "RUNNING"]
        assert site.job(job).flags == frozenset() and site.job(job).end_time == ended_at == START + 10

    run(rule)


def test_a_run_that_will_be_begun_again_is_completing_before() -> None:
    async def rule(site: Site) -> None:
        job = await site.submit("--requeue -n1", "sleep 10\nexit 99")
        await site.advance(11)
        assert JobFlag.COMPLETING in site.job(job).flags
        await site.advance(5)
        assert site.job(job).restarts == 1

    run(rule, CONF + "RequeueExit=99\n")


def test_who_cancels_what_has_ended_does_not_change_how_it_ended() -> None:
    async def rule(site: Site) -> None:
        job = await site.submit("-n1")
        await site.advance(11)
        await site.run(f"scancel {job}")
        await site.advance(5)
        assert site.states(job) == ["COMPLETED"]

    run(rule)


def test_who_depends_on_a_run_waits_until_its_nodes_are_free() -> None:
    async def rule(site: Site) -> None:
        job = await site.submit("-n1")
        child = await site.submit(f"-n1 -d afterok:{job}")
        await site.advance(12)
        assert site.states(child) == ["PENDING"]
        await site.advance(5)
        assert site.states(child) == ["RUNNING"]

    run(rule)


@pytest.mark.parametrize(("ahead_s", "lasted"), [(-3600.0, 0.0), (3600.0, 10.0)], ids=["behind", "ahead"])
def test_the_clock_of_a_node_makes_no_run_end_before_it_began_or_after_now(ahead_s: float, lasted: float) -> None:
    class Skewed(MemoryRuntime):
        def _tell(self, report: Report) -> None:
            super()._tell(replace(report, time=report.time + ahead_s) if isinstance(report, Ended) else report)

    async def whole() -> None:
        site = Site()
        site.runtime = Skewed(START)
        await site.start()
        job = site.job(await site.submit("-n1"))
        await site.advance(12)
        ended = site.job(job.job_id)
        assert ended.state.name == "COMPLETED" and ended.start_time is not None
        assert ended.end_time == ended.start_time + lasted

    asyncio.run(whole())
