"""Who gets which device, and when? On a cluster on paper, whose kubelets own devices as real ones do."""

from __future__ import annotations

import asyncio

from slurmbridge.manifest.pod_devices import SHARES, read
from slurmbridge.model.run import LaunchNode
from slurmbridge.reconcile.trouble import Patience
from tests.runtime.kube.paper_devices import DeviceBench, run
from tests.runtime.kube.paper_pods import FOREVER, TICK_S


def test_a_run_waits_for_the_holder_of_its_device_to_run() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.holders_run = False
        bench.part(1, 0)
        await bench.hears(lambda: bool(bench.holders()))
        await bench.pass_time(0.3)
        assert not bench.shared(1)
        bench.holders_run = True
        await bench.started(1)

    run(rule)


def test_two_halves_of_a_slot_are_one_device_and_another_slot_is_another() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        bench.part(2, 0)
        bench.part(3, 1)
        await bench.started(1, 2, 3)
        assert bench.shared(1) == bench.shared(2) != bench.shared(3)
        assert [[bench.known["n1", index]] for index in (0, 1)] == [bench.shared(1), bench.shared(3)]
        assert len(bench.holders()) == 2

    run(rule)


def test_a_holder_is_there_before_its_sharers_and_until_the_last_of_them_is_gone() -> None:
    async def rule(bench: DeviceBench) -> None:
        first, second = bench.part(1, 0), bench.part(2, 0)
        await bench.started(1, 2)
        assert "-device-" in bench.paper.created[0]
        bench.runtime.kill(first, "cancelled")
        await bench.ended(1)
        await asyncio.sleep(10 * TICK_S)
        assert len(bench.holders()) == 1
        bench.runtime.kill(second, "cancelled")
        await bench.ended(2)
        await bench.nothing_left()
        assert len([name for name in bench.paper.created if "-device-" in name]) == 1
        await bench.hears(lambda: bench.known == {("n1", 0): ""})  # the daemon sees it a moment later
        assert bench.known == {("n1", 0): ""}

    run(rule)


def test_parts_of_all_devices_of_a_node_leave_the_rest_of_each_usable() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, *range(8))
        bench.part(2, *range(8))
        bench.part(3, *range(4, 8), milli=250)
        await bench.started(1, 2, 3)
        assert len(set(bench.shared(1))) == 8 and bench.shared(1) == bench.shared(2)
        assert bench.shared(3) == bench.shared(1)[4:]
        assert len(bench.holders()) == 8

    run(rule, gpus=8)


def test_the_ranks_of_a_gang_share_devices_of_their_own_nodes() -> None:
    async def rule(bench: DeviceBench) -> None:
        nodes = tuple(
            LaunchNode(rank=rank, node=node, cpus=1, devices=((rank, 500, 0),))
            for rank, node in enumerate(("n1", "n2"))
        )
        bench.launch(1, FOREVER, nodes=nodes)
        await bench.started(1)
        notes = [bench.paper.objects["pods"][f"sb-t-1-0-{rank}"]["metadata"]["annotations"] for rank in (0, 1)]
        (slot, device), (other_slot, other) = (read(each[SHARES])[0] for each in notes)
        assert (slot, other_slot) == (("n1", 0), ("n2", 1))
        assert (device.split("-")[1], other.split("-")[1]) == ("n1", "n2")

    run(rule)


def test_a_whole_device_follows_the_parts_of_it_without_a_failure() -> None:
    async def rule(bench: DeviceBench) -> None:
        key = bench.part(1, 0)
        await bench.started(1)
        bench.runtime.kill(key, "cancelled")
        await bench.ended(1)
        bench.whole(2, 0)  # at once: the holder is still there
        await bench.started(2)
        assert not bench.holders() and len(bench.ends()) == 1

    run(rule, gpus=1)


def test_parts_follow_a_whole_device_that_its_kubelet_still_counts() -> None:
    async def rule(bench: DeviceBench) -> None:
        await bench.foreign("ending", 1)
        bench.part(1, 0)
        await bench.hears(lambda: bool(bench.paper.created))
        await asyncio.sleep(5 * TICK_S)
        bench.paper.finish("ending")
        await bench.started(1)
        assert not bench.ends()

    run(rule, gpus=1)


def test_a_device_that_somebody_else_has_is_not_shared_and_the_job_goes_back_to_the_queue() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.patience = Patience(device=1.5, refusal=0.2)
        await bench.again()
        await bench.foreign("other", 1)
        bench.part(1, 0)
        end = await bench.ended(1)
        assert end.why == "requeue" and "could not give it its devices" in end.message
        assert not bench.shared(1)
        await bench.hears(lambda: not bench.holders())
        assert not bench.holders()

    run(rule, gpus=1)


def test_others_never_get_a_device_that_is_shared() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        await bench.started(1)
        for number in range(3):
            await bench.foreign(f"other-{number}", 1)
        phases = [bench.paper.objects["pods"][f"other-{number}"]["status"]["phase"] for number in range(3)]
        assert sorted(phases) == ["Failed", "Failed", "Running"]

    run(rule)


def test_parts_are_of_devices_that_can_be_named_to_a_container() -> None:
    async def rule(bench: DeviceBench) -> None:
        node = LaunchNode(rank=0, node="n1", cpus=1, devices=((0, 500, 0),), device_resources=("amd.com/gpu",))
        bench.launch(1, FOREVER, nodes=(node,))
        end = await bench.ended(1)
        assert end.why == "launch" and "parts of amd.com/gpu cannot be given to pods" in end.message

    run(rule)
