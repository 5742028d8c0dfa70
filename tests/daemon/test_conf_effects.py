"""Keys of slurm.conf that once were only shown: each takes effect as slurm.conf(5) says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.errors import ConfigError
from tests.daemon.controlled import CONF, LIMITS, Site, check_use

GPUS = CONF.replace(" Default=YES", "").replace("DefMemPerCPU=100\n", "DefMemPerCPU=100\nDefCpuPerGPU=2\n") + (
    "GresTypes=gpu\n"
    "NodeName=g1 CPUs=16 RealMemory=16000 Gres=gpu:a100:4\n"
    "PartitionName=gpu Nodes=g1 Default=YES\n"
    "PartitionName=rich Nodes=g1 DefCpuPerGPU=4 DefMemPerGPU=500\n"
)


def on_site(test: Callable[[Site], Awaitable[None]], conf: str = CONF) -> None:
    async def run() -> None:
        made = Site(conf)
        await made.start()
        await test(made)
        check_use(made)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "cpus", "memory"),
    [
        ("--gres=gpu:2", 4, 400),
        ("-p rich --gpus=2", 8, 1000),
        ("-p rich --gpus=2 --cpus-per-gpu=1", 2, 1000),
        ("-p rich --gpus=2 -c3", 3, 1000),
        ("-p rich --gpus=2 --mem=300", 8, 300),
        ("-p rich -n2 --gpus-per-task=1", 8, 1000),
        ("-p rich", 1, 100),
    ],
)
def test_cpus_and_memory_of_a_gpu_have_defaults(options: str, cpus: int, memory: int) -> None:
    async def scenario(site: Site) -> None:
        allocation = site.job(await site.submit(options)).allocation
        assert allocation is not None
        assert (allocation.nodes[0].cpus, allocation.nodes[0].memory_mib) == (cpus, memory)

    on_site(scenario, GPUS)


@pytest.mark.parametrize(("hosts", "code"), [("ALL", 0), ("ctl", 0), ("login[1-2],ctl", 0), ("login[1-2]", 1)])
def test_jobs_come_from_the_hosts_of_AllocNodes(hosts: str, code: int) -> None:
    async def scenario(site: Site) -> None:
        answer = await site.run("sbatch --wrap true")
        assert answer.code == code
        assert ("Access/permission denied" in answer.err) == bool(code)

    on_site(scenario, CONF.replace("MaxTime=INFINITE", f"MaxTime=INFINITE AllocNodes={hosts}"))


PREEMPTION = CONF.replace("MinJobAge", "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nMinJobAge") + (
    "PartitionName=urgent Nodes=n[1-4] PriorityTier=10\n"
)


@pytest.mark.parametrize(("parameters", "young_goes"), [("", False), ("PreemptParameters=youngest_first\n", True)])
def test_with_youngest_first_the_run_that_began_last_gives_way_else_the_one_that_loses_least(
    parameters: str, young_goes: bool
) -> None:
    async def scenario(site: Site) -> None:
        old = await site.submit("-w n1 -n2", "sleep 100000")
        await site.advance(600, step=60)
        young = await site.submit("-w n1 -n6", "sleep 100000")
        await site.advance(300, step=60)
        urgent = await site.submit("-p urgent -w n1 -n2")
        await site.advance(8)
        assert site.states(urgent) == ["RUNNING"]
        assert [site.job(old).restarts, site.job(young).restarts] == ([0, 1] if young_goes else [1, 0])

    on_site(scenario, parameters + PREEMPTION)


def test_a_job_that_loses_its_node_too_often_is_held() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("-n1", "sleep 100000")
        for lost in range(3):
            allocation = site.job(job).allocation
            assert allocation is not None, lost
            node = allocation.nodes[0].node
            await site.run(f"scontrol update nodename={node} state=down reason=power", user="root")
            await site.run(f"scontrol update nodename={node} state=resume", user="root")
            await site.advance(6)
        held = site.job(job)
        assert (held.state.name, held.reason, held.held_by) == ("PENDING", "JobHoldMaxRequeue", "admin")
        assert (await site.run(f"scontrol release {job}")).code == 1
        await site.run(f"scontrol release {job}", user="root")
        assert site.states(job) == ["RUNNING"]
        assert site.job(job).failures == 0

    on_site(scenario, "MaxBatchRequeue=2\n" + CONF)


EXITS = "RequeueExit=3,10-12\nRequeueExitHold=11-20\n" + CONF


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (3, ("RUNNING", "", 1)),
        (10, ("RUNNING", "", 1)),
        (12, ("PENDING", "user", 1)),
        (20, ("PENDING", "user", 1)),
        (4, ("FAILED", "", 0)),
        (0, ("COMPLETED", "", 0)),
    ],
)
def test_a_batch_job_is_begun_again_after_certain_exit_codes(code: int, expected: tuple[str, str, int]) -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("", f"sleep 5\nexit {code}")
        await site.advance(6)
        found = site.job(job)
        assert (found.state.name, found.held_by, found.restarts) == expected
        if found.held_by:
            assert "JobState=SPECIAL_EXIT" in (await site.run(f"scontrol show job {job}")).out
            await site.run(f"scontrol release {job}")
            assert (site.states(job), site.job(job).flags) == (["RUNNING"], frozenset())

    on_site(scenario, EXITS)


def test_an_exit_code_is_a_number_of_a_byte() -> None:
    with pytest.raises(ConfigError, match="Invalid RequeueExit value: 1-x"):
        Site("RequeueExit=1-x\n" + CONF)


def test_what_is_never_to_be_requeued_ends_with_its_exit_code() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("--no-requeue", "sleep 5\nexit 3")
        await site.advance(6)
        assert site.states(job) == ["FAILED"]

    on_site(scenario, EXITS)


@pytest.mark.parametrize(
    ("line", "option", "names", "shown"),
    [
        ("", "", "CORE MEMLOCK NOFILE", ("ALL", "(null)")),
        ("PropagateResourceLimits=none", "", "", ("NONE", "(null)")),
        ("PropagateResourceLimits=core,rlimit_nofile", "", "CORE NOFILE", ("CORE,RLIMIT_NOFILE", "(null)")),
        ("PropagateResourceLimitsExcept=MEMLOCK", "", "CORE NOFILE", ("(null)", "MEMLOCK")),
        ("PropagateResourceLimitsExcept=memlock,core", "", "NOFILE", ("(null)", "MEMLOCK,CORE")),
        ("PropagateResourceLimitsExcept=ALL", "", "", ("(null)", "ALL")),
        ("PropagateResourceLimitsExcept=NONE", "", "CORE MEMLOCK NOFILE", ("(null)", "NONE")),
        ("PropagateResourceLimitsExcept=MEMLOCK", "--propagate=MEMLOCK", "MEMLOCK", ("(null)", "MEMLOCK")),
        ("PropagateResourceLimits=NONE\nPropagateResourceLimitsExcept=CORE", "", "MEMLOCK NOFILE", ("(null)", "CORE")),
    ],
)
def test_the_callers_limits_travel_as_the_site_says(line: str, option: str, names: str, shown: tuple[str, str]) -> None:
    async def scenario(site: Site) -> None:
        job = site.job(await site.submit(option))
        assert job.spec.rlimits == tuple(limit for limit in LIMITS if limit[0] in names.split())
        lines = (await site.run("scontrol show config")).out.splitlines()
        of_limits = dict(line.split(" = ") for line in lines if line.startswith("PropagateResourceLimits"))
        assert {key.strip(): value for key, value in of_limits.items()} == {
            "PropagateResourceLimits": shown[0],
            "PropagateResourceLimitsExcept": shown[1],
        }

    on_site(scenario, CONF + line + "\n")
