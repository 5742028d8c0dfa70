"""Quotas from sacctmgr to what runs: who gets idle capacity, who gives it back, and what those hear who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.daemon.controlled import CONF, Site, check_use
from tests.daemon.rules import Rule

GPUS = CONF.replace(
    "NodeName=n[1-4] CPUs=8", "GresTypes=gpu\nAccountingStorageTRES=gres/gpu\nNodeName=n[1-4] Gres=gpu:a100:4 CPUs=8"
)


def on_site(*setup: str, conf: str = CONF, site_file: str = "") -> Callable[[Rule], Callable[[], None]]:
    """On a site where these were typed after sacctmgr -i, of which n[1-4] have 8 CPUs each."""

    def decorate(test: Rule) -> Callable[[], None]:
        def run() -> None:
            async def whole() -> None:
                made = Site(conf, site_file)
                await made.start()
                for line in setup:
                    answer = await made.run(f"sacctmgr -i {line}", user="root")
                    assert answer.code == 0, (line, answer)
                await test(made)
                check_use(made)

            asyncio.run(whole())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


TWO = (
    "add account ml DeservedTRES=cpu=16",
    "add account bio DeservedTRES=cpu=16",
    "add user alice account=ml",
    "add user bob account=bio",
)


async def running(made: Site, *job_ids: int) -> int:
    return made.states(*job_ids).count("RUNNING")


async def reasons(made: Site, *job_ids: int) -> list[str]:
    answer = await made.run(f"squeue -h -j {','.join(map(str, job_ids))} -o %i|%r", user="root")
    return sorted(answer.out.split())


@on_site(*TWO)
async def test_idle_capacity_goes_to_anyone_whose_work_may_be_ended(made: Site) -> None:
    jobs = [await made.submit("-A ml -n8 -t 60", "sleep 1000") for _ in range(4)]
    assert await running(made, *jobs) == 4


@on_site(*TWO)
async def test_what_is_over_the_share_is_taken_back_when_its_owner_asks_and_started_again_later(made: Site) -> None:
    over = [await made.submit("-A ml -n8 -t 60", "sleep 1000") for _ in range(4)]
    await made.advance(20)
    mine = await made.submit("-A bio -n8 -t 60", "sleep 100", user="bob")
    await made.advance(10)
    assert made.states(mine) == ["RUNNING"]
    assert sorted(made.states(*over)) == ["PENDING", "RUNNING", "RUNNING", "RUNNING"]
    (victim,) = [job_id for job_id in over if made.states(job_id) == ["PENDING"]]
    assert (made.job(victim).restarts, made.job(mine).restarts) == (1, 0)
    await made.advance(110)
    assert made.states(mine, victim) == ["COMPLETED", "RUNNING"]
    await made.advance(1000)
    assert made.states(*over) == ["COMPLETED"] * 4


@on_site(*TWO)
async def test_nobody_loses_what_is_inside_the_share(made: Site) -> None:
    mine = [await made.submit("-A ml -n8 -t 60", "sleep 1000") for _ in range(2)]
    theirs = [await made.submit("-A bio -n8 -t 60", "sleep 1000", user="bob") for _ in range(6)]
    await made.advance(30)
    assert await running(made, *mine) == 2
    assert await running(made, *theirs) == 2
    assert sum(made.job(each).restarts for each in (*mine, *theirs)) == 0


@on_site(*TWO)
async def test_work_that_may_not_be_ended_waits_at_the_quota_and_hears_why(made: Site) -> None:
    firm = [await made.submit("-A ml -n8 -t 60 --preemptible=no", "sleep 1000") for _ in range(3)]
    await made.advance(2)
    assert await running(made, *firm) == 2
    assert await reasons(made, firm[2]) == [f"{firm[2]}|AssocGrpCpuLimit"]
    told = (await made.run(f"scontrol show job {firm[2]}")).out
    assert "Reason=AssocGrpCpuLimit" in told
    other = await made.submit("-A ml -n8 -t 60", "sleep 1000")
    assert made.states(other) == ["RUNNING"]


@on_site("add account ml DeservedTRES=gres/gpu=4", "add user alice account=ml", conf=GPUS)
async def test_devices_over_the_quota_are_AssocGrpGRES(made: Site) -> None:
    firm = [await made.submit("-A ml -n1 --gres=gpu:3 -t 60 --preemptible=no", "sleep 1000") for _ in range(2)]
    assert await running(made, *firm) == 1
    assert await reasons(made, firm[1]) == [f"{firm[1]}|AssocGrpGRES"]
    part = await made.submit("-A ml -n1 --gres=gpu:1 -t 60 --preemptible=no", "sleep 1000")
    cpus = await made.submit("-A ml -n4 -t 60 --preemptible=no", "sleep 1000")
    assert made.states(part, cpus) == ["RUNNING", "RUNNING"]


@on_site("add account ml DeservedTRES=cpu=8", "add user alice account=ml")
async def test_what_a_job_gets_counts_and_not_what_it_asked_for(made: Site) -> None:
    whole = await made.submit("-A ml -n1 --exclusive -t 60 --preemptible=no", "sleep 1000")
    second = await made.submit("-A ml -n1 -t 60 --preemptible=no", "sleep 1000")
    assert made.states(whole, second) == ["RUNNING", "PENDING"]
    third = await made.submit("-A ml -n1 --exclusive -t 60 --preemptible=no", "sleep 1000")
    assert await reasons(made, second, third) == [f"{second}|AssocGrpCpuLimit", f"{third}|AssocGrpCpuLimit"]


@on_site(
    "add account ml DeservedTRES=cpu=8 pool=left",
    "add account bio DeservedTRES=cpu=8 pool=right",
    "add user alice account=ml",
    "add user bob account=bio",
    site_file="pools:\n  left: {nodes: 'n[1-2]'}\n  right: {nodes: 'n[3-4]'}\n",
)
async def test_each_pool_has_quotas_of_its_own(made: Site) -> None:
    firm = [await made.submit("-A ml -n8 -t 60 --preemptible=no", "sleep 1000") for _ in range(2)]
    assert await running(made, *firm) == 1
    assert {share.node for share in made.job(firm[0]).allocation.nodes} <= {"n1", "n2"}  # type: ignore[union-attr]
    there = await made.submit("-A ml -n8 -t 60 -w n3 --preemptible=no", "sleep 1000")
    assert made.states(there) == ["PENDING"]
    over = [
        await made.submit("-A ml -n8 -t 60 -w n2", "sleep 1000"),
        await made.submit("-A ml -n8 -t 60 -w n3", "sleep 1000"),
        await made.submit("-A ml -n8 -t 60 -w n4", "sleep 1000"),
    ]
    mine = await made.submit("-A bio -n8 -t 60", "sleep 1000", user="bob")
    await made.advance(5)
    assert made.states(mine) == ["RUNNING"]
    assert {share.node for share in made.job(mine).allocation.nodes} <= {"n3", "n4"}  # type: ignore[union-attr]
    assert await running(made, *over) == 2


@on_site(
    "add account org DeservedTRES=cpu=16",
    "add account vision parent=org DeservedTRES=cpu=8",
    "add account speech parent=org",
    "add account other DeservedTRES=cpu=16",
    "add user alice account=vision",
    "add user bob account=speech",
    "add user bob account=other",
)
async def test_in_a_tree_each_level_shares_out_what_it_was_given(made: Site) -> None:
    speech = [await made.submit("-A speech -n4 -t 60", "sleep 1000", user="bob") for _ in range(8)]
    assert await running(made, *speech) == 8
    vision = [await made.submit("-A vision -n4 -t 60", "sleep 1000") for _ in range(9)]
    await made.advance(5)
    assert (await running(made, *vision), await running(made, *speech)) == (5, 3)  # 8 + half of 24, and the other half
    other = [await made.submit("-A other -n4 -t 60", "sleep 1000", user="bob") for _ in range(6)]
    await made.advance(5)
    assert await running(made, *other) == 4
    assert (await running(made, *vision), await running(made, *speech)) == (3, 1)


@on_site(*TWO)
async def test_arrays_take_turns(made: Site) -> None:
    first = await made.submit("-A ml -n8 -t 60 --array=0-9", "sleep 100")
    second = await made.submit("-A bio -n8 -t 60 --array=0-9", "sleep 100", user="bob")
    await made.advance(250)
    counts = []
    for array in (first, second):
        tasks = made.controller.memory.jobs_of_array(array)
        counts.append([sum(job.state.name == name for job in tasks) for name in ("RUNNING", "COMPLETED")])
    assert [each[0] for each in counts] == [2, 2]
    assert abs(counts[0][1] - counts[1][1]) <= 2


@on_site(*TWO)
async def test_sshare_shows_the_figures_that_decided(made: Site) -> None:
    for _ in range(4):
        await made.submit("-A ml -n8 -t 60", "sleep 1000")
    await made.submit("-A bio -n8 -t 60 --preemptible=no", "sleep 1000", user="bob")
    await made.advance(5)
    shown = await made.run(
        "sshare -nPa -o account,user,deservedtres,fairtres,alloctres,firmtres,requestedtres", user="root"
    )
    rows = {tuple(line.split("|")[:2]): line.split("|")[2:] for line in shown.out.splitlines()}
    assert [cell.split(",")[0] for cell in rows[" ml", ""]] == ["cpu=16", "cpu=24", "cpu=24", "", "cpu=32"]
    assert [cell.split(",")[0] for cell in rows[" bio", ""]] == ["cpu=16", "cpu=8", "cpu=8", "cpu=8", "cpu=8"]
    long = (await made.run("sshare -l", user="root")).out.splitlines()
    assert "FairTRES" in long[0]


@pytest.mark.parametrize("order", ["plain", "auto"])
def test_without_turns_one_line_is_kept(order: str) -> None:
    """plain: quotas are there, but jobs go by priority alone."""

    async def whole() -> None:
        made = Site(CONF, f"scheduling: {{order: {order}}}\n")
        await made.start()
        for line in TWO:
            await made.run(f"sacctmgr -i {line}", user="root")
        mine = [await made.submit("-A ml -n8 -t 60", "sleep 1000") for _ in range(5)]
        theirs = await made.submit("-A bio -n8 -t 60", "sleep 1000", user="bob")
        await made.advance(5)
        assert made.states(theirs) == ["PENDING" if order == "plain" else "RUNNING"]
        assert await running(made, *mine) == (4 if order == "plain" else 3)

    asyncio.run(whole())


def test_fair_order_without_a_quota_takes_turns_by_fairshare() -> None:
    async def whole() -> None:
        made = Site(CONF, "scheduling: {order: fair}\n")
        await made.start()
        lines = (
            "add account ml fairshare=3",
            "add account bio",
            "add user alice account=ml",
            "add user bob account=bio",
        )
        for line in lines:
            await made.run(f"sacctmgr -i {line}", user="root")
        await made.run("scontrol update nodename=n[1-4] state=drain reason=x", user="root")
        theirs = [await made.submit("-A bio -n8 -t 60", "sleep 1000", user="bob") for _ in range(4)]
        mine = [await made.submit("-A ml -n8 -t 60", "sleep 1000") for _ in range(4)]
        await made.run("scontrol update nodename=n[1-4] state=resume", user="root")
        await made.advance(2)
        assert (await running(made, *mine), await running(made, *theirs)) == (3, 1)

    asyncio.run(whole())
