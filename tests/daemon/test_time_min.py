"""--time-min: a job that fits no other way runs with a shorter limit, never below that minimum (sbatch(1))."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.daemon.controlled import CONF, Site, check_use


def on_site(test: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        made = Site(CONF)
        await made.start()
        await test(made)
        check_use(made)

    asyncio.run(run())


async def _with_a_promise(site: Site, minutes: int) -> int:
    """One node is busy for so long; a job of higher priority waits for all four."""
    await site.submit(f"-N1 --exclusive -t{minutes}", "sleep 100000")
    wide = await site.submit("-N4 --exclusive -t60", "sleep 100000")
    assert site.states(wide) == ["PENDING"]
    return wide


def test_the_limit_becomes_what_fits_before_a_promised_start() -> None:
    async def scenario(site: Site) -> None:
        wide = await _with_a_promise(site, 30)
        job = await site.submit("-t60 --time-min=10", "sleep 100000")
        shown = (await site.run(f"scontrol show job {job}")).out
        assert "JobState=RUNNING" in shown
        assert "TimeLimit=00:30:00 TimeMin=00:10:00" in shown
        begun = site.job(job).start_time or 0
        await site.advance(31 * 60, step=30)
        assert site.states(job) == ["TIMEOUT"]
        assert site.states(wide) == ["RUNNING"]
        assert (site.job(wide).start_time or 0) <= begun + 31 * 60

    on_site(scenario)


def test_a_job_waits_where_even_its_least_time_does_not_fit() -> None:
    async def scenario(site: Site) -> None:
        await _with_a_promise(site, 30)
        too_long, whole = await site.submit("-t60 --time-min=40"), await site.submit("-t60")
        assert site.states(too_long, whole) == ["PENDING", "PENDING"]

    on_site(scenario)


def test_a_job_keeps_its_whole_limit_where_that_fits() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("-t60 --time-min=10")
        assert site.states(job) == ["RUNNING"]
        assert site.job(job).spec.time_limit == 60

    on_site(scenario)


def test_the_limit_ends_with_the_deadline() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("-t60 --time-min=10 --deadline=now+30minutes")
        assert site.states(job) == ["RUNNING"]
        assert site.job(job).spec.time_limit == 30

    on_site(scenario)


def test_a_requeued_job_has_its_whole_limit_back() -> None:
    async def scenario(site: Site) -> None:
        wide = await _with_a_promise(site, 30)
        job = await site.submit("-t60 --time-min=10", "sleep 100000")
        assert site.job(job).spec.time_limit == 30
        await site.run(f"scancel {wide}", user="root")
        await site.run(f"scontrol requeue {job}", user="root")
        await site.advance(200)
        assert site.states(job) == ["RUNNING"]
        assert site.job(job).spec.time_limit == 60

    on_site(scenario)
