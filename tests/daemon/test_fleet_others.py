"""What of a node is given out while others have a part of it, or something of it is broken?"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from slurmbridge.model.job import NodeShare
from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.node_sight import Amounts, BadDevice
from tests.daemon.paper_fleet import FleetSite, node, on, rule


@rule
async def test_what_others_hold_is_not_given_out_and_shown_as_other(made: FleetSite) -> None:
    made.paper.hold("a", cpu_milli=2100)
    made.paper.hold("b", cpu_milli=1, system=1000)
    await made.settle()
    assert await made.sinfo("%N %c %C") == ["a 8 0/5/3/8", "b 8 0/7/1/8"]
    job = await made.submit("-n7 -N1 -w b", "sleep 5")
    assert made.states(job) == ["PENDING"]  # one CPU is the daemon set's, and of another somebody has a part
    made.paper.hold("b", system=1000)
    await made.settle()
    assert made.states(job) == ["RUNNING"]


@rule
async def test_no_more_jobs_start_than_pods_may_be(made: FleetSite) -> None:
    has = replace(made.paper.nodes["a"].allocatable, pods=3)
    made.paper.change("a", allocatable=has)
    made.paper.hold("a", pods=1)
    jobs = [await made.submit("-w a", "sleep 10") for _ in range(4)]
    assert made.states(*jobs) == ["RUNNING", "RUNNING", "PENDING", "PENDING"]
    await made.advance(12)
    assert made.states(*jobs) == ["COMPLETED", "COMPLETED", "RUNNING", "RUNNING"]


@on("", "", node("g", gpus=4))
async def test_broken_devices_and_those_of_others_are_not_given_out(made: FleetSite) -> None:
    made.paper.hold("g", resources={"nvidia.com/gpu": 1})
    jobs = [await made.submit("--gres=gpu:1", "sleep 10") for _ in range(4)]
    assert made.states(*jobs) == ["RUNNING", "RUNNING", "RUNNING", "PENDING"]
    made.paper.hold("g")
    await made.settle()
    assert made.states(*jobs) == ["RUNNING"] * 4
    has = made.paper.nodes["g"].capacity
    broken = Amounts(cpu_milli=has.cpu_milli, memory_mib=has.memory_mib, pods=110, resources={"nvidia.com/gpu": 2})
    made.paper.change("g", allocatable=broken)
    await made.advance(12)
    jobs = [await made.submit("--gres=gpu:1", "sleep 10") for _ in range(3)]
    assert made.states(*jobs) == ["RUNNING", "RUNNING", "PENDING"]


@on("", "", node("g", gpus=4))
async def test_a_device_that_breaks_under_a_job_counts_as_broken_when_the_job_is_gone(made: FleetSite) -> None:
    whole = await made.submit("--gres=gpu:4", "sleep 50")
    made.paper.change("g", allocatable=replace(made.paper.nodes["g"].capacity, resources={"nvidia.com/gpu": 3}))
    others = await made.submit("--gres=gpu:3", "sleep 50")
    assert made.states(whole, others) == ["RUNNING", "PENDING"]
    made.runtime.kill(RunKey(whole, 0), "requeue")  # as when its node turns its pod away
    await made.settle()
    assert made.states(whole, others) == ["PENDING", "RUNNING"] and made.job(whole).restarts == 1
    made.paper.change("g", allocatable=made.paper.nodes["g"].capacity)
    await made.advance(60)
    assert made.states(whole, others) == ["RUNNING", "COMPLETED"]


def tainted(*numbers: int) -> tuple[BadDevice, ...]:
    return tuple(
        BadDevice(driver="gpu.nvidia.com", name=f"gpu-{number}", uuid=f"GPU-{number}", why="xid=79:NoExecute")
        for number in numbers
    )


@on("", "", node("g", gpus=4))
async def test_devices_with_a_taint_get_no_new_jobs_until_it_goes(made: FleetSite) -> None:
    running = await made.submit("--gres=gpu:2")
    made.paper.change("g", bad_devices=tainted(0, 3))
    more, less = await made.submit("--gres=gpu:1"), await made.submit("-n1")
    assert made.states(running, more, less) == ["RUNNING", "PENDING", "RUNNING"]
    shown = (await made.run("scontrol -d show node g")).out
    assert "GresDrain=gpu:2\n" in shown
    assert "Reason=k8s:device gpu-0 (GPU-0) taint xid=79:NoExecute and 1 more\n" in shown
    assert "State=MIXED " in shown and "k8s:device gpu-0" in (await made.run("sinfo -R -h")).out
    made.paper.change("g", bad_devices=())
    await made.settle()
    assert made.states(running, more) == ["RUNNING", "RUNNING"]
    shown = (await made.run("scontrol -d show node g")).out
    assert "GresDrain=N/A" in shown and "Reason=" not in shown


@on("", "", node("g", gpus=2))
async def test_a_shared_device_that_is_known_gets_no_more_sharers(made: FleetSite) -> None:
    """Which one a slot is, is known while it is shared; it is that one which is shut, not any that is free."""
    first = await made.submit("--gpu-fraction=0.5")
    [(_, slot)] = [(share.node, each.index) for share in shares(made, first) for each in share.devices]
    made.paper.slots = {"g": {slot: "GPU-7"}}
    made.paper.change("g", bad_devices=tainted(7))
    second, whole = await made.submit("--gpu-fraction=0.5"), await made.submit("--gres=gpu:1")
    assert [each.index for share in shares(made, second) for each in share.devices] == [1 - slot]
    assert made.states(first, second, whole) == ["RUNNING", "RUNNING", "PENDING"]
    made.paper.change("g", bad_devices=())
    third = await made.submit("--gpu-fraction=0.5")
    assert made.states(third) == ["RUNNING"]


@on("", "", node("g", gpus=1))
async def test_what_an_operator_said_of_a_node_goes_before_its_devices(made: FleetSite) -> None:
    await made.run("scontrol update nodename=g state=drain reason=mine", user="root")
    made.paper.change("g", bad_devices=tainted(0))
    assert await made.sinfo() == ["g drained mine"]


def shares(made: FleetSite, job: int) -> Sequence[NodeShare]:
    allocation = made.job(job).allocation
    return allocation.nodes if allocation is not None else ()
