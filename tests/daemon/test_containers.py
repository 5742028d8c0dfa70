"""--container-* from the command line to the launch: checked where the job is submitted, kept, shown and carried."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.model.capabilities import VIRTUAL_NODES, Capabilities
from slurmbridge.model.pods import ContainerWish, Manifest, PodTemplate
from slurmbridge.model.run import RunKey
from tests.daemon.controlled import CONF, Site

CONF_TWO = CONF + "PartitionName=bare Nodes=n[1-2]\n"
HOME: tuple[Manifest, ...] = ({"name": "home", "mountPath": "/home"},)
PODS = Capabilities(
    containers=True,
    templates={"bare": PodTemplate()},
    base=PodTemplate(image="site/base:1", volumes=({"name": "home", "nfs": {}},), volume_mounts=HOME),
)
ALL = (
    "--container-image=nvcr.io#nvidia/cuda:12 --container-mounts=/home/alice/in:/in:ro --container-workdir=/in "
    "--container-mount-home --container-env=A,B --container-writable"
)
WISH = ContainerWish(
    image="nvcr.io#nvidia/cuda:12", mounts="/home/alice/in:/in:ro", work_dir="/in", mount_home=True, env="A,B",
    writable=True,
)  # fmt: skip


def on_site(test: Callable[[Site], Awaitable[None]], capabilities: Capabilities = PODS) -> None:
    async def run() -> None:
        made = Site(CONF_TWO)
        made.runtime.capabilities = capabilities
        await made.start()
        await test(made)

    asyncio.run(run())


async def refused(site: Site, options: str) -> str:
    answer = await site.run(f"sbatch {options} job.sh", files={"job.sh": b"#!/bin/sh\ntrue\n"})
    assert answer.code == 1 and not answer.out
    return answer.err


def test_what_a_job_asks_of_its_container_reaches_its_launch() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit(ALL)
        assert site.runtime.launched(RunKey(job, 0)).container == WISH

    on_site(scenario)


def test_it_outlives_the_daemon() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit(f"--hold {ALL}")
        await site.restart()
        await site.run(f"scontrol release {job}")
        assert site.runtime.launched(RunKey(job, 0)).container == WISH

    on_site(scenario)


def test_it_is_shown_with_the_job() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit(ALL)
        shown = (await site.run(f"scontrol show job {job}")).out
        assert (
            "   ContainerImage=nvcr.io#nvidia/cuda:12 ContainerMounts=/home/alice/in:/in:ro ContainerWorkDir=/in "
            "ContainerMountHome=yes ContainerWritable=yes ContainerEnv=A,B\n"
        ) in shown
        (found,) = json.loads((await site.run(f"scontrol show job {job} --json")).out)["jobs"]
        assert found["container"] == "nvcr.io#nvidia/cuda:12"
        assert found["container_options"]["mounts"] == "/home/alice/in:/in:ro"
        assert (await site.run("squeue -h -O Container:40")).out.strip() == "nvcr.io#nvidia/cuda:12"

    on_site(scenario)


def test_a_job_that_asks_for_none_shows_none() -> None:
    async def scenario(site: Site) -> None:
        job = await site.submit("")
        assert "Container" not in (await site.run(f"scontrol show job {job}")).out

    on_site(scenario)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--container-mounts=/etc:/host", "--container-mounts=/etc:/host: no volume of the partition holds /etc"),
        ("--container-mounts=/home/x:/home", "/home is taken"),
        ("--no-container-mount-home", "the partition's volumes hold /home/alice"),
        ("-p bare", "the partition has no image; name one with --container-image (partition bare)"),
        ("-p bare --container-image=x --container-mount-home", "no volume of the partition holds /home/alice"),
    ],
)
def test_what_pods_of_the_partition_cannot_be_is_told_when_it_is_submitted(options: str, words: str) -> None:
    async def scenario(site: Site) -> None:
        told = await refused(site, options)
        assert words in told and told.endswith("Batch job submission failed: Invalid user request\n")

    on_site(scenario)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--container-image=me@x", "sbatch: error: --container-image=me@x: the partition's imagePullSecrets say"),
        ("--container-mounts=a:/b", "sbatch: error: --container-mounts=a:/b: 'a' is not an absolute path"),
        ("--container-workdir=a", "sbatch: error: --container-workdir=a: not an absolute path"),
        ("--container-env=A=1", "sbatch: error: --container-env=A=1: 'A=1' is no name of a variable"),
        ("--container-name=x", "sbatch: error: --container-name: the container of a job ends with it"),
    ],
)
def test_a_text_that_means_nothing_is_told_by_the_command_itself(options: str, words: str) -> None:
    async def scenario(site: Site) -> None:
        assert words in await refused(site, options)

    on_site(scenario)


@pytest.mark.parametrize("option", ALL.split(), ids=lambda option: option.partition("=")[0])
def test_on_virtual_nodes_every_one_of_them_is_refused(option: str) -> None:
    async def scenario(site: Site) -> None:
        told = await refused(site, option)
        name = option.partition("=")[0]
        assert told == (
            f"sbatch: error: {name}: running outside the image would change the result; "
            "images are not available on virtual nodes\n"
        )

    on_site(scenario, VIRTUAL_NODES)


@pytest.mark.parametrize("command", ["salloc --no-shell", "srun true"])
def test_salloc_and_srun_take_them_too(command: str) -> None:
    name, _, rest = command.partition(" ")

    async def scenario(site: Site) -> None:
        wrong = await site.run(f"{name} --container-mounts=/etc:/host {rest}")
        assert wrong.code == 1 and "no volume of the partition holds /etc" in wrong.err

    async def on_virtual_nodes(site: Site) -> None:
        wrong = await site.run(f"{name} --container-image=ubuntu {rest}")
        assert wrong.code == 1 and "--container-image: running outside the image" in wrong.err

    on_site(scenario)
    on_site(on_virtual_nodes, VIRTUAL_NODES)
