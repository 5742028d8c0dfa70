"""MaxMemPerCPU, MaxMemPerNode and TRESBillingWeights: what Slurm 26.05.5 made of the same jobs."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.daemon.controlled import CONF, Site, site

PARTS = CONF + (
    "PartitionName=mm Nodes=n[1-4] MaxMemPerNode=1000\n"
    "PartitionName=mc Nodes=n[1-4] MaxMemPerCPU=200\n"
    'PartitionName=w Nodes=n[1-4] TRESBillingWeights="CPU=2.0,Mem=1.0G"\n'
)
FIELDS = ("Reason", "NumCPUs", "CPUs/Task", "MinCPUsNode", "ReqTRES", "AllocTRES")


async def shown(made: Site, options: str) -> dict[str, str]:
    job_id = await made.submit(options, "sleep 100")
    answer = await made.run(f"scontrol show job {job_id}")
    return {name: found[1] for name in FIELDS if (found := re.search(rf"\b{name}=(\S+)", answer.out))}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("-p mm --mem=500", "None"),
        ("-p mm --mem=2000", "MaxMemPerLimit"),
        ("-p mm -n4 --mem-per-cpu=300", "None"),
        ("-p mm --mem-per-cpu=1200", "MaxMemPerLimit"),
        ("-p mm -c4 --mem-per-cpu=300", "MaxMemPerLimit"),
        ("-p mm --mem=0", "MaxMemPerLimit"),
        ("-p mm", "None"),
        ("-p mm,debug --mem=2000", "None"),
    ],
)
def test_a_job_waits_where_it_wants_more_memory_of_a_node_than_allowed(options: str, reason: str) -> None:
    async def whole() -> None:
        assert (await shown(await site(PARTS), options))["Reason"] == reason

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("options", "cpus", "per_task", "on_node", "allocated"),
    [
        ("--mem-per-cpu=100", "1", "1", "1", "cpu=1,mem=100M"),
        ("--mem-per-cpu=500", "3", "3", "3", "cpu=3,mem=501M"),
        ("-n2 --mem-per-cpu=500", "6", "3", "1", "cpu=6,mem=1002M"),
        ("-c2 --mem-per-cpu=300", "4", "4", "4", "cpu=4,mem=600M"),
        ("--mem=500", "3", "3", "3", "cpu=3,mem=500M"),
        ("-c2 --mem=500", "3", "3", "3", "cpu=3,mem=500M"),
        ("-n2 --mem=500", "4", "2", "4", "cpu=4,mem=500M"),
        ("-n4 --mem=500", "4", "1", "4", "cpu=4,mem=500M"),
        ("-n3 -c2 --mem=900", "6", "2", "6", "cpu=6,mem=900M"),
        ("-N2 --ntasks-per-node=2 --mem=1000", "12", "3", "6", "cpu=12,mem=2000M"),
    ],
)
def test_a_job_gets_more_cpus_for_more_memory_per_cpu_than_allowed(
    options: str, cpus: str, per_task: str, on_node: str, allocated: str
) -> None:
    async def whole() -> None:
        found = await shown(await site(PARTS), f"-p mc {options}")
        assert (found["NumCPUs"], found["CPUs/Task"], found["MinCPUsNode"]) == (cpus, per_task, on_node)
        assert found["AllocTRES"].startswith(allocated + ",")

    asyncio.run(whole())


def test_the_limit_of_the_cluster_holds_where_a_partition_has_none() -> None:
    async def whole() -> None:
        made = await site(PARTS + "MaxMemPerNode=400\n")
        assert (await shown(made, "-p debug --mem=500"))["Reason"] == "MaxMemPerLimit"
        assert (await shown(made, "-p mm --mem=500"))["Reason"] == "None"

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("enforce", "options", "is_refused"),
    [
        ("ALL", "-p mm --mem=2000", True),
        ("ALL", "-p mm,debug --mem=2000", True),
        ("ANY", "-p mm,debug --mem=2000", False),
        ("NO", "-p mm --mem=2000", False),
    ],
)
def test_enforced_memory_limits_refuse(enforce: str, options: str, is_refused: bool) -> None:
    async def whole() -> None:
        made = await site(PARTS + f"EnforcePartLimits={enforce}\n")
        answer = await made.run(f"sbatch {options} --wrap true")
        assert answer.err.endswith("Memory required by task is not available\n") is is_refused

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("flags", "options", "billed"),
    [
        ("", "-n2 --mem=1024", 5),
        ("", "--mem-per-cpu=3000", 4),
        ("MAX_TRES", "-n2 --mem=1024", 4),
        ("MAX_TRES", "-n1 --mem=3072", 3),
        ("MAX_TRES_GRES", "-n1 --mem=3072", 3),
    ],
)
def test_jobs_are_billed_by_the_weights_of_their_partition(flags: str, options: str, billed: int) -> None:
    async def whole() -> None:
        made = await site(PARTS + (f"PriorityFlags={flags}\n" if flags else ""))
        found = await shown(made, f"-p w {options}")
        assert f"billing={billed}" in found["ReqTRES"].split(",")
        assert f"billing={billed}" in found["AllocTRES"].split(",")

    asyncio.run(whole())
