"""What of a node is given out while others have a part of it, or something of it is broken?"""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.node_sight import Amounts
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
