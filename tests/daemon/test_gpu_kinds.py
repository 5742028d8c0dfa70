"""GPUs of several types in one job: each of its nodes has all of them, or it waits (sbatch(1) --gres, --gpus*)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.manifest.environment import batch_env
from slurmbridge.manifest.launch import UserEntry, build_launch
from tests.daemon.controlled import CONF, Site, check_use

MIXED = """
GresTypes=gpu
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100
NodeName=a1 CPUs=8 RealMemory=16000 Gres=gpu:a100:4
NodeName=m[1-2] CPUs=8 RealMemory=16000 Gres=gpu:a100:2,gpu:h100:2
PartitionName=gpu Nodes=a1,m[1-2] Default=YES
"""
GPUS = CONF.replace(" Default=YES", "") + MIXED


def on_site(test: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        made = Site(GPUS)
        await made.start()
        await test(made)
        check_use(made)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--gres=gpu:a100:1,gpu:h100:2", {"m1": ["a100", "h100", "h100"]}),
        ("--gpus-per-node=a100:1,h100:1 -N2", {"m1": ["a100", "h100"], "m2": ["a100", "h100"]}),
        ("--gpus=a100:2,h100:1", {"m1": ["a100", "a100", "h100"]}),
        ("--gpus=a100:3,h100:2", {"m1": ["a100", "a100", "h100"], "m2": ["a100", "h100"]}),
        ("--gpus=h100:4,a100:2", {"m1": ["a100", "h100", "h100"], "m2": ["a100", "h100", "h100"]}),
        (
            "-n3 --gpus-per-task=a100:1,h100:1",
            {"m1": ["a100", "a100", "h100", "h100"], "m2": ["a100", "h100"]},
        ),
        ("-N1 -n2 --sockets-per-node=1 --gpus-per-socket=a100:1,h100:1", {"m1": ["a100", "h100"]}),
    ],
)
def test_each_node_of_a_job_has_devices_of_all_its_types(options: str, expected: dict[str, list[str]]) -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit(options)
        allocation = site.job(job).allocation
        assert allocation is not None, site.job(job).reason
        assert {share.node: [device.type for device in share.devices] for share in allocation.nodes} == expected
        kinds = [kind for found in expected.values() for kind in found]
        tres = dict(allocation.tres)
        assert [tres["gres/gpu"], tres["gres/gpu:a100"], tres["gres/gpu:h100"]] == [
            1000 * len(kinds),
            1000 * kinds.count("a100"),
            1000 * kinds.count("h100"),
        ]

    on_site(scenario)


def test_gpus_alone_may_need_more_than_one_node() -> None:
    async def scenario(site: Site) -> None:
        several, one_task = await site.submit("--gpus=a100:6"), await site.submit("-n1 --gpus=a100:6")
        allocation = site.job(several).allocation
        assert allocation is not None
        assert [len(share.devices) for share in allocation.nodes] == [4, 2]
        assert site.states(one_task) == ["PENDING"]

    on_site(scenario)


def test_two_jobs_never_share_a_whole_device_of_several_types() -> None:
    async def scenario(site: Site) -> None:
        jobs = [await site.submit("--gres=gpu:a100:1,gpu:h100:2") for _ in range(3)]
        assert site.states(*jobs) == ["RUNNING", "RUNNING", "PENDING"]
        assert site.job(jobs[2]).reason == "Resources"
        await site.run(f"scancel {jobs[0]}")
        await site.advance(7)
        assert site.states(jobs[2]) == ["RUNNING"]

    on_site(scenario)


def test_a_job_waits_for_types_that_no_node_has_together() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("--gres=gpu:a100:3,gpu:h100:1")
        assert (site.states(job), site.job(job).reason) == (["PENDING"], "PartitionConfig")

    on_site(scenario)


def test_texts_and_environment_name_the_types_as_they_were_typed() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("--gpus=a100:2,h100:1 --gpus-per-node=a100:2,h100:1")
        nodes = site.controller.memory.nodes()
        shown = (await site.run(f"scontrol show job {job}")).out
        assert "TresPerJob=gres/gpu:a100:2,gres/gpu:h100:1" in shown
        assert "TresPerNode=gres/gpu:a100:2,gres/gpu:h100:1" in shown
        env = batch_env(site.job(job), site.config, list(nodes), daemon_addr="")
        assert env["SLURM_GPUS"] == env["SLURM_GPUS_PER_NODE"] == "a100:2,h100:1"
        assert env["SLURM_GPUS_ON_NODE"] == "3"

    on_site(scenario)


def test_an_update_may_ask_for_several_types() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("-H --gres=gpu:a100:1")
        assert (await site.run(f"scontrol update JobId={job} TresPerNode=gres/gpu:a100:1,gres/gpu:h100:1")).code == 0
        assert dict(site.job(job).spec.req_tres)["gres/gpu:h100"] == 1000
        await site.run(f"scontrol release {job}")
        allocation = site.job(job).allocation
        assert allocation is not None
        assert [device.type for device in allocation.nodes[0].devices] == ["a100", "h100"]

    on_site(scenario)


def test_devices_are_told_in_the_order_in_which_tasks_share_them() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("-n2 -N1 --gpus-per-task=a100:1,h100:1")
        nodes = {node.name: node for node in site.controller.memory.nodes()}
        user = UserEntry(name="alice", home="/home/alice", shell="/bin/sh")
        launch = build_launch(
            site.job(job), script=b"", env=(), config=site.config, nodes=nodes, user=user, daemon_addr=""
        )
        assert [index for index, _, _ in launch.nodes[0].devices] == [0, 2, 1, 3]

    on_site(scenario)
