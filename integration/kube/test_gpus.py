"""Parts of GPUs as pods, on kubelets that lend made-up devices: who shares one, who waits, and what others can have."""

import time
from collections.abc import Iterator

import pytest
from cluster.pods import manifest
from cluster.processes import wait_until

from slurmbridge.manifest.pod_devices import PROTECTED_S

from .bridge import USER, Bridge

pytestmark = [pytest.mark.root, pytest.mark.slow]
TELL = "echo devices $NVIDIA_VISIBLE_DEVICES; while [ ! -e over-$SLURM_JOB_ID ]; do sleep 0.1; done"


@pytest.fixture
def node(site: Bridge) -> Iterator[str]:
    """A node whose devices are all free before and after."""
    yield sorted(site.cluster.nodes)[0]
    site.command("scancel", f"--user={USER}")
    site.space.kubectl("delete", "pods", "--selector=!slurmbridge.io/instance", "--wait=false")
    assert wait_until(lambda: not site.pods(), every=0.2), site.pods()


def submit(site: Bridge, node: str, *options: str) -> int:
    return site.submit(TELL, f"--nodelist={node}", "--time=10", *options)


def devices(site: Bridge, job: int) -> list[str]:
    """What the job was given; it runs."""
    site.await_output(job, "devices ")
    return site.output(job).split()[1].split(",")


def end(site: Bridge, *jobs: int) -> None:
    for job in jobs:
        (site.share / f"over-{job}").touch()
    for job in jobs:
        assert site.await_state(job, "COMPLETED", "FAILED", "NODE_FAIL") == "COMPLETED"


def state(site: Bridge, job: int) -> str:
    return site.command("squeue", "-h", "-o", "%T", "-j", str(job)).strip()


def holders(site: Bridge) -> list[str]:
    return [name for name in site.pods() if "-device-" in name]


@pytest.mark.scenario
def test_two_halves_share_a_device_and_what_does_not_fit_beside_them_waits(site: Bridge, node: str) -> None:
    others = [manifest(f"other-{number}", node=node, gpus=1) for number in range(site.cluster.gpus(node) - 1)]
    site.space.create(*others)
    for other in others:
        site.space.await_phase(other["metadata"]["name"], "Running")
    first = submit(site, node, "--gpu-fraction=0.5")
    (device,) = devices(site, first)
    more = submit(site, node, "--gpu-fraction=0.6")
    second = submit(site, node, "--gpu-fraction=0.5", "--time=5")
    assert devices(site, second) == [device]
    assert state(site, more) == "PENDING" and len(holders(site)) == 1
    shown = site.command("scontrol", "show", "job", str(first))
    assert "GpuMemoryLimit=40G GpuMemoryLimiter=not_enforced" in shown
    end(site, first, second)
    assert devices(site, more) == [device]  # the only one that others have not
    end(site, more)


def test_parts_of_all_devices_leave_as_large_parts_of_all(site: Bridge, node: str) -> None:
    count = site.cluster.gpus(node)
    jobs = [submit(site, node, f"--gres=gpu:{count}", "--gpu-memory=40G") for _ in range(2)]
    first, second = (devices(site, job) for job in jobs)
    assert first == second and len(set(first)) == count == len(holders(site))
    end(site, *jobs)


def test_a_whole_pod_of_others_never_has_a_device_that_is_shared(site: Bridge, node: str) -> None:
    job = submit(site, node, "--gpu-fraction=0.25")
    (shared,) = devices(site, job)
    names = [f"foreign-{number}" for number in range(site.cluster.gpus(node))]
    site.space.create(
        *(manifest(name, "echo $NVIDIA_VISIBLE_DEVICES; sleep 1000", node=node, gpus=1) for name in names)
    )
    phases = [site.space.await_phase(name, "Running", "Failed")["status"] for name in names]
    assert sorted(each["phase"] for each in phases) == ["Failed", *["Running"] * (len(names) - 1)]
    running = [name for name, each in zip(names, phases, strict=True) if each["phase"] == "Running"]
    assert wait_until(lambda: all(site.space.output(name).strip() for name in running), every=0.2)
    assert shared not in {site.space.output(name).strip() for name in running}
    end(site, job)


def test_a_device_that_others_have_is_waited_for(site: Bridge, node: str) -> None:
    count = site.cluster.gpus(node)
    site.space.create(manifest("greedy", node=node, gpus=count))
    site.space.await_phase("greedy", "Running")
    time.sleep(1.0)  # until the daemon has surely seen it; the job may come earlier, and is then begun again
    job = submit(site, node, "--gpu-fraction=0.5")
    time.sleep(3.0)
    assert state(site, job) == "PENDING" and not site.output(job)
    site.space.kubectl("delete", "pod", "greedy", "--wait=false")
    assert len(devices(site, job)) == 1
    end(site, job)


def test_whole_devices_follow_parts_of_them_without_a_second_start(site: Bridge, node: str) -> None:
    count = site.cluster.gpus(node)
    part = submit(site, node, "--gpu-fraction=0.5")
    devices(site, part)
    whole = submit(site, node, f"--gres=gpu:{count}")
    assert state(site, whole) == "PENDING"
    end(site, part)
    assert len(devices(site, whole)) == count
    assert "Restarts=0" in site.command("scontrol", "show", "job", str(whole))
    end(site, whole)


def test_who_deletes_a_holder_ends_its_sharers(site: Bridge, node: str) -> None:
    job = submit(site, node, "--gpu-fraction=0.5", "--no-requeue")
    devices(site, job)
    (holder,) = holders(site)
    site.space.kubectl("delete", "pod", holder, "--wait=false")
    assert site.await_state(job, "NODE_FAIL", "COMPLETED", "FAILED") == "NODE_FAIL"
    assert wait_until(lambda: not holders(site), 2 * PROTECTED_S, 0.2)


def test_a_daemon_that_is_killed_finds_who_shares_what(site: Bridge, node: str) -> None:
    first = submit(site, node, "--gpu-fraction=0.5")
    (device,) = devices(site, first)
    site.kill()
    site.up()
    second = submit(site, node, "--gpu-fraction=0.5")
    assert devices(site, second) == [device] and len(holders(site)) == 1
    end(site, first, second)
    assert wait_until(lambda: not holders(site), every=0.2)
