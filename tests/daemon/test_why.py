"""`slurmbridge why JOB`: the rule, how far from fitting, whom it waits for, what would help, when it may start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.model.plan import Eviction, Plan
from tests.daemon.controlled import CONF, Site, site

TWO_PARTITIONS = CONF + "PartitionName=other Nodes=n[3-4]\n"
"""n1 to n4 with 8 CPUs and 16,000 MiB each."""


def rule(test: Callable[[Site], Awaitable[None]]) -> Callable[[], None]:
    """Run an asynchronous rule on a fresh site."""

    def run() -> None:
        async def whole() -> None:
            await test(await site(TWO_PARTITIONS))

        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def why(made: Site, job: int | str, user: str = "alice") -> str:
    answer = await made.run(f"slurmbridge why {job}", user=user)
    return answer.out or answer.err


@rule
async def test_a_job_that_waits_for_nodes_hears_how_many_hold_its_share_and_what_the_others_lack(made: Site) -> None:
    await made.submit("-N1 -n6 -w n1 -t 10", "sleep 300")
    await made.submit("-N1 -n1 -w n2 -t 20 --mem=15500", "sleep 300")
    said = await why(made, await made.submit("-N4 -n16 --mem=1000 -t 5"))
    assert "PENDING Resources: what it asks for is in use" in said
    assert "partition debug: Resources: 2 of 4 usable nodes hold its share now, 4 needed" in said
    assert "share: 4 tasks, 4 CPUs, 1000 MiB" in said
    assert "n1: 4 CPUs asked, 2 of 8 free" in said
    assert "n2: 1000 MiB asked, 500 of 16000 free" in said


@rule
async def test_it_hears_who_has_its_nodes_and_until_when(made: Site) -> None:
    first = await made.submit("-N1 -n8 -w n1 -t 10", "sleep 300")
    said = await why(made, await made.submit("-N4 -n32 -t 5"))
    assert f"job {first} has n1 until 2027-01-15T08:10:00 at most" in said
    assert "2027-01-15T08:10:00 on n[1-4]" in said


@rule
async def test_it_hears_who_comes_before_it(made: Site) -> None:
    await made.submit("-N1 -n8 -t 10", "sleep 300")
    gang = await made.submit("-N4 -n32 -t 5")
    said = await why(made, await made.submit("-N4 -n32 -t 5"))
    assert f"1 job before it in its partitions: {gang}" in said


@rule
async def test_it_hears_which_one_demand_is_in_the_way(made: Site) -> None:
    await made.submit("-N1 -n8 -w n1 -t 10", "sleep 300")
    said = await why(made, await made.submit("-N1 -n8 -w n1"))
    assert "without --nodelist it would fit now" in said
    assert "in partition other it would fit now" not in said.replace("without --nodelist", "")
    assert "1 needed" in said and "0 of 1 usable nodes" in said


@rule
async def test_it_hears_of_another_partition_in_which_it_would_fit(made: Site) -> None:
    await made.submit("-N2 -n16 -w n[3-4] -t 10", "sleep 300")
    said = await why(made, await made.submit("-p other -N2 -n16"))
    assert "in partition debug it would fit now" in said


@rule
async def test_it_hears_of_a_shorter_limit_with_which_it_would_fit_before_a_reservation(made: Site) -> None:
    line = "scontrol create reservation starttime=now+3600 duration=60 nodes=n[1-4] users=root reservationname=down"
    assert (await made.run(line, user="root")).code == 0
    said = await why(made, await made.submit("-N1 -n1 -t 120"))
    assert "with a time limit of 60 minutes it would fit now in partition debug" in said


@rule
async def test_nodes_that_take_no_jobs_are_named_with_their_state(made: Site) -> None:
    await made.run("scontrol update nodename=n4 state=drain reason=disk", user="root")
    said = await why(made, await made.submit("-N4 -n32"))
    assert "usable: 3 of 4 nodes" in said and "n4 IDLE+DRAIN (disk)" in said


@rule
async def test_a_job_that_waits_for_licenses_would_fit_without_them(made: Site) -> None:
    await made.submit("-L matlab:2 -n1", "sleep 100")
    said = await why(made, await made.submit("-L matlab:1 -n1"))
    assert "PENDING Licenses" in said and "without --licenses it would fit now" in said


@rule
async def test_a_held_job_hears_how_to_let_it_go(made: Site) -> None:
    held = await made.submit("--hold -n1")
    assert await why(made, held) == (
        f"{held} PENDING JobHeldUser: its owner holds it\n    to let it go: scontrol release {held}\n"
    )


@rule
async def test_a_job_with_a_time_to_begin_hears_it(made: Site) -> None:
    assert "not before 2027-01-15T09:00:00" in await why(made, await made.submit("--begin=now+3600 -n1"))


@rule
async def test_a_job_that_depends_on_others_hears_on_which_and_how_they_are(made: Site) -> None:
    first = await made.submit("-n1", "sleep 100")
    said = await why(made, await made.submit(f"-d afterok:{first} -n1"))
    assert "PENDING Dependency" in said and f"afterok:{first} is not yet so (job {first} is RUNNING)" in said


@rule
async def test_an_array_is_told_of_as_a_whole_and_by_tasks_whether_started_or_not(made: Site) -> None:
    array = await made.submit("--array=0-5 -N1 -n8", "sleep 100")
    said = await why(made, array)
    assert f"{array}_0 RUNNING" in said and f"{array}_[4-5] PENDING Resources" in said
    assert (await why(made, f"{array}_5")).startswith(f"{array}_[4-5] PENDING")
    assert (await why(made, f"{array}_0")).startswith(f"{array}_0 RUNNING")


@rule
async def test_a_heterogeneous_job_is_told_of_by_components(made: Site) -> None:
    await made.submit("-N4 -n32 -t 10", "sleep 100")
    both = await made.submit("-n8 : -n1")
    said = await why(made, both)
    assert f"{both}+0 PENDING" in said and f"{both}+1 PENDING" in said


@rule
async def test_a_job_that_runs_or_has_ended_waits_for_nothing(made: Site) -> None:
    job = await made.submit("-n1", "sleep 5")
    assert await why(made, job) == f"{job} RUNNING\n    it started 2027-01-15T08:00:00 on n1\n"
    await made.advance(6)
    assert await why(made, job) == f"{job} COMPLETED\n"


@pytest.mark.parametrize(
    ("mode", "grace", "said"),
    [
        ("CANCEL", 0, "it was ended for job {winner} (reclaim)"),
        ("REQUEUE", 60, "it is to end by 2027-01-15T08:01:00 for job {winner} (reclaim)"),
        ("SUSPEND", 0, "it was suspended for job {winner}, and goes on when that one has ended"),
        ("REQUEUE", 0, "its last run gave way (reclaim) for job {winner}"),
    ],
)
def test_a_run_that_gave_way_hears_to_whom(mode: str, grace: int, said: str) -> None:
    async def whole() -> None:
        made = await site(TWO_PARTITIONS)
        victim = await made.submit("-N4 -n32 --mem=1000", "sleep 100")
        winner = await made.submit("-N4 -n32 --mem=1000", "sleep 100")
        await made.run(f"scontrol update jobid={winner} priority=9000000", user="root")
        eviction = Eviction(job_id=victim, mode=mode, for_job=winner, grace_s=grace, reason="reclaim")
        made.plans.apply(Plan(version=0, evictions=(eviction,)))
        await made.settle()
        assert said.format(winner=winner) in await why(made, victim)

    asyncio.run(whole())


@rule
async def test_a_job_that_nobody_knows_is_slurms_error(made: Site) -> None:
    for name in ("9999", "9999_1", "x"):
        answer = await made.run(f"slurmbridge why {name}")
        assert (answer.code, answer.err) == (1, f"slurmbridge: error: {name}: Invalid job id specified\n")


def test_jobs_of_others_stay_private_where_the_site_says_so() -> None:
    async def whole() -> None:
        made = await site(CONF + "PrivateData=jobs\n")
        other = await made.submit("-N4 -n32 -t 10", "sleep 100", user="bob")
        assert "Invalid job id specified" in await why(made, other)
        said = await why(made, await made.submit("-n8 -N1"))
        assert f"job {other} " not in said and "a job has n1 until" in said
        assert f"job {other} has n1" in await why(made, other + 1, "root")

    asyncio.run(whole())


def test_a_limit_is_told_with_its_numbers() -> None:
    async def whole() -> None:
        made = await site(CONF + "AccountingStorageEnforce=associations,limits,qos\n")
        for line in (
            "sacctmgr -i add account lab", "sacctmgr -i add user alice account=lab",
            "sacctmgr -i modify qos normal set maxtresperuser=cpu=10",
        ):  # fmt: skip
            assert (await made.run(line, user="root")).code == 0, line
        await made.submit("-n8 -N1", "sleep 100")
        said = await why(made, await made.submit("-n4 -N1"))
        assert "QOSMaxCpuPerUserLimit" in said
        assert "limit of QOS normal: MaxTRESPerUser cpu=10; cpu=8 in use, cpu=4 asked" in said

    asyncio.run(whole())
