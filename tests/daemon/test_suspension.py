"""Jobs that an operator suspends: others may have their CPUs, never their memory; they go on when these CPUs are free."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.daemon.controlled import CONF, Site, check_use


def on_site(test: Callable[[Site], Awaitable[None]], conf: str = CONF) -> None:
    async def run() -> None:
        made = Site(conf)
        await made.start()
        await test(made)
        check_use(made)

    asyncio.run(run())


async def _suspended(site: Site, options: str = "-w n1 -n8") -> int:
    job = await site.submit(options, "sleep 1000")
    assert (await site.run(f"scontrol suspend {job}", user="root")).code == 0
    return job


def test_others_may_have_the_cpus_of_a_suspended_job() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site)
        other = await site.submit("-w n1 -n8", "sleep 100")
        assert site.states(job, other) == ["SUSPENDED", "RUNNING"]
        check_use(site)

    on_site(scenario)


def test_memory_of_a_suspended_job_stays_its_own() -> None:
    async def scenario(site: Site) -> None:
        await _suspended(site, "-w n1 -n1 --mem=12G")
        assert site.states(await site.submit("-w n1 -n1 --mem=8G")) == ["PENDING"]

    on_site(scenario)


def test_nobody_is_promised_what_a_suspended_job_keeps() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site, "-w n1 -n1 -t5 --mem=12G")
        waiting = await site.submit("-w n1 -n1 --mem=8G")
        assert "N/A" in (await site.run(f"squeue --start -h -j {waiting}")).out
        behind = await site.submit("-w n1 -n8 --mem=1G -t600")
        assert site.states(job, waiting, behind) == ["SUSPENDED", "PENDING", "RUNNING"]

    on_site(scenario)


def test_a_job_whose_cpus_are_taken_cannot_go_on_until_they_are_free() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site)
        other = await site.submit("-w n1 -n1", "sleep 100")
        refused = await site.run(f"scontrol resume {job}", user="root")
        assert (refused.code, site.states(job)) == (1, ["SUSPENDED"])
        assert "Requested nodes are busy" in refused.err
        await site.run(f"scancel {other}")
        await site.advance(6)
        assert (await site.run(f"scontrol resume {job}", user="root")).code == 0
        assert site.states(job) == ["RUNNING"]

    on_site(scenario)


def test_an_exclusive_job_goes_on_when_it_is_alone_again() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site, "-w n1 --exclusive")
        other = await site.submit("-w n1 -n1", "sleep 100")
        assert site.states(other) == ["RUNNING"]
        assert (await site.run(f"scontrol resume {job}", user="root")).code == 1

    on_site(scenario)


def test_only_the_cpus_themselves_count_not_their_number() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site, "-w n1 -n4")
        other = await site.submit("-w n1 -n4", "sleep 100")
        shares = [site.job(each).allocation for each in (job, other)]
        cpus = [set(each.nodes[0].cpu_ids) for each in shares if each is not None]
        resumed = await site.run(f"scontrol resume {job}", user="root")
        assert (resumed.code == 0) == cpus[0].isdisjoint(cpus[1])

    on_site(scenario)


def test_a_job_that_is_killed_while_suspended_takes_no_cpus_back() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site)
        other = await site.submit("-w n1 -n8", "sleep 100")
        await site.run(f"scancel {job}")
        check_use(site)
        await site.advance(7)
        assert site.states(job, other) == ["CANCELLED", "RUNNING"]

    on_site(scenario)


def test_a_requeued_job_that_was_suspended_holds_its_cpus_again() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site)
        await site.run(f"scontrol requeue {job}", user="root")
        await site.advance(10)
        assert site.states(job) == ["RUNNING"]
        assert not site.job(job).is_without_cpus

    on_site(scenario)


def test_the_cpus_are_shared_where_the_partition_shares_cpus() -> None:
    async def scenario(site: Site) -> None:
        job = await _suspended(site)
        other = await site.submit("-w n1 -n8", "sleep 100")
        assert (await site.run(f"scontrol resume {job}", user="root")).code == 0
        assert site.states(job, other) == ["RUNNING", "RUNNING"]

    async def run() -> None:
        made = Site(CONF.replace("MaxTime=INFINITE", "MaxTime=INFINITE OverSubscribe=FORCE:2"))
        await made.start()
        await scenario(made)

    asyncio.run(run())
