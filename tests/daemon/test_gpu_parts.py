"""Parts of GPUs: by portion, by memory on devices of several sizes, of several devices; and MIG profiles, never in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.errors import ConfigError
from slurmbridge.lang.site_file import read_site, with_site
from slurmbridge.model.capabilities import Capabilities
from slurmbridge.model.pods import PodTemplate
from tests.daemon.controlled import CONF, Site, check_use

GPUS = CONF.replace(" Default=YES", "") + (
    "GresTypes=gpu,shard,mps\n"
    "NodeName=s1 CPUs=8 RealMemory=16000 Weight=1 Gres=gpu:a10:2,shard:8\n"
    "NodeName=l1 CPUs=8 RealMemory=16000 Weight=2 Gres=gpu:h100:2,shard:8\n"
    "NodeName=m1 CPUs=8 RealMemory=16000 Weight=3 Gres=gpu:1g.10gb:7,gpu:a100_3g.20gb:2\n"
    "PartitionName=gpu Nodes=s1,l1,m1 Default=YES\n"
    "PartitionName=mig Nodes=m1\n"
)
SITE = "defaults: {gpuMemoryMiB: {a10: 24576, h100: 81920}, gpuMemoryReserveMiB: 1024}\n"


def on_site(test: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        made = Site(GPUS, SITE)
        await made.start()
        await test(made)
        check_use(made)

    asyncio.run(run())


def held(site: Site, job: int) -> list[tuple[str, int, int, int]]:
    """(node, index, milli, MiB) of each device."""
    allocation = site.job(job).allocation
    nodes = allocation.nodes if allocation is not None else ()
    return [(share.node, each.index, each.milli, each.mib) for share in nodes for each in share.devices]


def test_memory_is_a_part_of_the_device_that_was_chosen() -> None:
    async def scenario(site: Site) -> None:
        small, large = await site.submit("--gpu-memory=11776M"), await site.submit("--gpu-memory=40448M")
        assert held(site, small) == [("s1", 0, 500, 11776)]  # half of 24 GiB without the driver's
        assert held(site, large) == [("l1", 0, 500, 40448)]

    on_site(scenario)


def test_what_the_driver_keeps_is_nobodys() -> None:
    async def scenario(site: Site) -> None:
        whole, more = await site.submit("--gpu-memory=79G"), await site.submit("--gpu-memory=80G")
        assert held(site, whole) == [("l1", 0, 1000, 79 * 1024)]
        assert site.states(more) == ["PENDING"]

    on_site(scenario)


def test_a_portion_leaves_sharers_by_memory_the_rest_of_that_device() -> None:
    async def scenario(site: Site) -> None:
        half = await site.submit("-w l1 --gpu-fraction=0.5")
        fits = await site.submit("-w l1 --gpu-memory=39G")
        third = await site.submit("-w l1 --gpu-memory=39G")
        assert held(site, half) == [("l1", 0, 500, 40448)]
        assert [device[1] for device in held(site, fits) + held(site, third)] == [0, 1]

    on_site(scenario)


def test_the_same_part_of_several_devices_is_of_one_node() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("--gres=gpu:2 --gpu-memory=40G")
        assert [device[:2] for device in held(site, job)] == [("l1", 0), ("l1", 1)]
        never = await site.submit("--gres=gpu:3 --gpu-memory=10G")
        assert (site.states(never), site.job(never).reason) == (["PENDING"], "PartitionConfig")

    on_site(scenario)


def test_shards_and_percents_share_a_device_with_portions() -> None:
    async def scenario(site: Site) -> None:
        jobs = [await site.submit(f"-w s1 {words}") for words in ("--gres=shard:2", "--gres=mps:25", "--gres=gpu:0.25")]
        assert [device[1:3] for job in jobs for device in held(site, job)] == [(0, 500), (0, 250), (0, 250)]
        after = await site.submit("-w s1 --gres=shard:1")
        assert held(site, after)[0][1] == 1

    on_site(scenario)


def test_a_mig_profile_is_a_type_of_its_own() -> None:
    async def scenario(site: Site) -> None:
        several, one = await site.submit("--gres=gpu:1g.10gb:2"), await site.submit("--gpus=a100_3g.20gb:1")
        assert held(site, several) == [("m1", 0, 1000, 0), ("m1", 1, 1000, 0)]
        assert held(site, one) == [("m1", 7, 1000, 0)]
        both = await site.submit("--gres=gpu:1g.10gb:5,gpu:a100_3g.20gb:1")
        assert [device[1] for device in held(site, both)] == [2, 3, 4, 5, 6, 8]

    on_site(scenario)


def test_a_slice_of_a_device_is_never_shared() -> None:
    async def scenario(site: Site) -> None:
        for words in ("--gpu-fraction=0.5", "--gpu-memory=1G", "--gres=gpu:0.5", "--gres=mps:10"):
            job = await site.submit(f"-p mig {words}")
            assert (site.states(job), site.job(job).reason) == (["PENDING"], "PartitionConfig"), words
        for words in ("--gres=gpu:1g.10gb:0.5", "--gpus=1g.10gb:2 --gpu-memory=5G"):
            answer = await site.run(f"sbatch -p mig {words} --wrap true")
            assert answer.code == 1
            assert "1g.10gb is a MIG profile: such a device cannot be shared" in answer.err

    on_site(scenario)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("defaults: {gpuMemoryReserveMiB: 30000, gpuMemoryMiB: {a10: 24576}}", "leaves nothing of a GPU a10"),
        ("defaults: {gpuMemoryReserveMiB: 1.5}", "gpuMemoryReserveMiB is a whole number of MiB"),
        ("defaults: {gpuMemoryMiB: 5}", "gpuMemoryMiB is not a mapping"),
    ],
)
def test_a_site_file_that_leaves_no_memory_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        with_site(Site(GPUS).config, read_site(text, "site.yaml"))


def test_why_tells_of_devices_that_the_job_could_use() -> None:
    async def scenario(site: Site) -> None:
        shared, typed = await site.submit("-p mig --gpu-fraction=0.5"), await site.submit("-w s1 --gres=gpu:h100:1")
        for job in (shared, typed):
            assert "1 GPU asked, it has 0" in (await site.run(f"slurmbridge why {job}")).out

    on_site(scenario)


@pytest.mark.parametrize(
    ("sharing", "label"),
    [("none", "not_enforced"), ("mps", "mps:each_process"), ("hami-core", "hami-core:each_container")],
)
def test_who_shares_a_device_is_shown_what_keeps_it_to_its_memory(sharing: str, label: str) -> None:
    async def scenario(site: Site) -> None:
        pods = Capabilities(containers=True, base=PodTemplate(image="x", gpu_sharing=sharing))
        site.controller.memory.capabilities = pods
        half, memory = await site.submit("--gpu-fraction=0.5"), await site.submit("--gpu-memory=4G --hold")
        whole = await site.submit("--gres=gpu:h100:1")
        shown = [(await site.run(f"scontrol show job {job}")).out for job in (half, memory, whole)]
        assert f"   GpuMemoryLimit=11.50G GpuMemoryLimiter={label}\n" in shown[0]
        assert f"   GpuMemoryLimit=4G GpuMemoryLimiter={label}\n" in shown[1]
        assert "GpuMemory" not in shown[2]

    on_site(scenario)


def test_on_virtual_nodes_nothing_keeps_a_job_to_its_part_of_a_device() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("--gpu-memory=4G")
        assert "GpuMemoryLimit=4G GpuMemoryLimiter=not_enforced" in (await site.run(f"scontrol show job {job}")).out

    on_site(scenario)
