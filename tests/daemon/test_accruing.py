"""Whose age counts, with limits on how many of a group grow older: AccrueTime of the same jobs in Slurm 26.05.5."""

from __future__ import annotations

import asyncio

import pytest

from tests.daemon.controlled import Site
from tests.daemon.test_limits import ENFORCED, limited

ACCOUNT, USER, QOS = "account only set", "user alice set", "qos normal set"


def growing(made: Site, *ids: int) -> str:
    """`+` for each job that grows older."""
    return "".join("+" if made.job(job_id).accrue_time is not None else "-" for job_id in ids)


@pytest.mark.parametrize(
    ("limit", "jobs", "expected"),
    [
        (f"{QOS} grpjobsaccrue=1", 3, "+--"),
        (f"{ACCOUNT} grpjobsaccrue=1", 3, "+--"),
        ("account lab set grpjobsaccrue=1", 3, "+--"),
        (f"{ACCOUNT} maxjobsaccrue=1", 3, "+--"),
        (f"{QOS} maxjobsaccruepu=1", 3, "+--"),
        (f"{QOS} maxjobsaccruepa=2", 3, "++-"),
        (f"{QOS} maxjobsaccruepu=1;{ACCOUNT} grpjobsaccrue=2", 3, "+--"),
        (f"{QOS} maxjobsaccruepu=9", 3, "+++"),
    ],
)
def test_only_so_many_jobs_of_a_group_grow_older(limit: str, jobs: int, expected: str) -> None:
    async def whole() -> None:
        made = await limited(*limit.split(";"), f"{QOS} grpjobs=0")
        ids = [await made.submit("-n1") for _ in range(jobs)]
        await made.advance(2)
        made.controller.end_missed()
        assert growing(made, *ids) == expected
        shown = await made.run(f"scontrol show job {ids[-1]}")
        assert ("AccrueTime=Unknown" in shown.out) == (expected[-1] == "-")

    asyncio.run(whole())


def test_another_follows_when_one_is_gone_and_all_when_the_limit_is() -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} grpjobsaccrue=1 grpjobs=0")
        ids = [await made.submit("-n1") for _ in range(3)]
        await made.run(f"scancel {ids[0]}")
        await made.advance(2)
        made.controller.end_missed()
        assert growing(made, *ids[1:]) == "+-"
        await made.run("sacctmgr -i modify qos normal set grpjobsaccrue=-1", user="root")
        await made.settle()
        assert growing(made, *ids[1:]) == "++"

    asyncio.run(whole())


def test_a_job_that_does_not_grow_older_has_no_age() -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} maxjobsaccruepu=1 grpjobs=0", conf=AGED)
        ids = [await made.submit("-n1") for _ in range(2)]
        await made.advance(1000, step=100)
        made.controller.end_missed()
        await made.advance(600, step=100)
        first, second = (made.job(job_id).priority for job_id in ids)
        assert first > second == 1

    asyncio.run(whole())


AGED = ENFORCED + ("PriorityType=priority/multifactor\nPriorityWeightAge=100000\nPriorityMaxAge=1-0\n")
