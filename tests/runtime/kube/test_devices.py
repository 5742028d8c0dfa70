"""Devices of pods on a cluster on paper, whose kubelets own devices as real ones do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from slurmbridge.manifest.pod_devices import SHARES, read
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import LaunchNode
from slurmbridge.reconcile.trouble import Patience
from slurmbridge.runtime.kube.runtime import KubeRuntime
from slurmbridge.runtime.protocol import Ended, RunKey
from tests.runtime.contract import CONFIG
from tests.runtime.kube.paper import Paper, paper_cluster
from tests.runtime.kube.test_runtime import SITE, TICK_S, KubeBench, Supervisor

GPU = "nvidia.com/gpu"
FOREVER = b"sleep 60\n"
PATIENCE = Patience(device=1.5, refusal=0.2)
Object = dict[str, Any]


def node_of(pod: Object) -> str:
    return str(pod["spec"]["nodeName"])


def is_over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


class DeviceBench(KubeBench):
    """Its kubelets admit a pod when they have the devices it asks for, and give them back when it has ended."""

    def __init__(self, paper: Paper, connect: Callable[[], Any], gpus: int) -> None:
        super().__init__(paper, connect)
        self.owners = {(node, f"GPU-{node}-{place}"): "" for node in ("n1", "n2") for place in range(gpus)}
        self._admitted: set[str] = set()
        self.wrong: list[str] = []

    async def start(self) -> None:
        self.runtime = KubeRuntime(
            self.connect(), SITE, {}, PodTemplate(image="base"), time.time, parting_s=0.1, patience=PATIENCE
        )
        await self.runtime.start(self._hear, CONFIG, daemon_addr="unix:/nowhere")

    # ---- kubelets

    async def kubelets(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            with self.paper.lock:
                pods = list(self.paper.objects["pods"].items())
            there = {pod["metadata"]["uid"] for _, pod in pods if not is_over(pod)}
            self.owners = {device: uid if uid in there else "" for device, uid in self.owners.items()}
            for name, pod in pods:
                self._tend(name, pod)
            self._check()

    def _tend(self, name: str, pod: Object) -> None:
        uid, labels = pod["metadata"]["uid"], pod["metadata"].get("labels", {})
        if uid not in self._admitted:
            self._admitted.add(uid)
            self._admit(name, pod, labels)
        elif "slurmbridge.io/job" in labels:
            task = self._supervisors.get(uid)
            if task is not None and pod["metadata"].get("deletionTimestamp") and not task.done():
                task.cancel()
        elif not is_over(pod):
            self._keep(name, pod)

    def _admit(self, name: str, pod: Object, labels: dict[str, str]) -> None:
        wanted = int(pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get(GPU, 0))
        free = [device for device, owner in self.owners.items() if not owner and device[0] == node_of(pod)]
        if len(free) < wanted:
            self.paper.status(
                name, phase="Failed", reason="UnexpectedAdmissionError", message="no devices", startTime=None
            )
            return
        given = free[:wanted]
        self.owners.update(dict.fromkeys(given, pod["metadata"]["uid"]))
        if "slurmbridge.io/job" in labels:
            self.paper.run(name)
            key = RunKey(int(labels["slurmbridge.io/job"]), int(labels["slurmbridge.io/restart"]))
            who = Supervisor(self, name, key, int(labels["slurmbridge.io/rank"]))
            self._supervisors[pod["metadata"]["uid"]] = asyncio.create_task(self._pod(who))
        elif "slurmbridge.io/role" in labels:
            told = {"name": "tell", "state": {"terminated": {"exitCode": 0, "message": given[0][1]}}}
            self.paper.status(name, phase="Running", startTime="2026-01-01T00:00:00Z", initContainerStatuses=[told],
                              containerStatuses=[{"name": "device", "state": {"running": {}}}])  # fmt: skip
        else:
            self.paper.run(name)

    def _keep(self, name: str, pod: Object) -> None:
        """One that heeds no signal: it goes when its time is over."""
        grace = pod["metadata"].get("deletionGracePeriodSeconds")
        if grace is not None and grace <= 2:
            self.paper.status(name, phase="Failed", containerStatuses=[])
            with self.paper.lock:
                self.paper._sweep(name)

    def _check(self) -> None:
        """Whoever may use a device by name uses one that its holder owns."""
        with self.paper.lock:
            pods = list(self.paper.objects["pods"].values())
        holders = {
            pod["metadata"]["uid"] for pod in pods if pod["metadata"].get("labels", {}).get("slurmbridge.io/role")
        }
        for pod in pods:
            if not is_over(pod):
                for (node, _), device in read(pod["metadata"].get("annotations", {}).get(SHARES, "")):
                    if self.owners[node, device] not in holders:
                        self.wrong.append(f"{pod['metadata']['name']} uses {device}, which it has no right to")

    # ---- questions

    def part(self, job: int, *indexes: int, milli: int = 500, script: bytes = FOREVER, node: str = "n1") -> RunKey:
        devices = tuple((index, milli, 0) for index in indexes)
        return self.launch(job, script, nodes=(LaunchNode(rank=0, node=node, cpus=1, devices=devices),))

    def whole(self, job: int, *indexes: int, script: bytes = FOREVER) -> RunKey:
        return self.part(job, *indexes, milli=1000, script=script)

    def foreign(self, name: str, gpus: int) -> None:
        container = {"name": "main", "resources": {"limits": {GPU: str(gpus)}}}
        with self.paper.lock:
            self.paper.put("pods", {"metadata": {"name": name}, "spec": {"nodeName": "n1", "containers": [container]}})

    def shared(self, job: int) -> list[str]:
        """The devices that a run's pod may use by name; empty: there is no such pod."""
        pod = self.paper.objects["pods"].get(f"sb-t-{job}-0-0")
        if pod is None:
            return []
        env = {each["name"]: each.get("value", "") for each in pod["spec"]["containers"][0]["env"]}
        return str(env["NVIDIA_VISIBLE_DEVICES"]).split(",")

    def holders(self) -> list[str]:
        return sorted(name for name in self.paper.objects["pods"] if "-device-" in name)

    async def started(self, *jobs: int) -> None:
        await self.pass_time(5, lambda: {report.key.job_id for report in self.reports} >= set(jobs))
        assert {report.key.job_id for report in self.reports} >= set(jobs), self.paper.objects["pods"]

    async def ended(self, job: int, seconds: float = 5) -> Ended:
        def found() -> list[Ended]:
            return [end for end in self.ends() if isinstance(end, Ended) and end.key.job_id == job]

        await self.pass_time(seconds, lambda: bool(found()))
        return found()[0]

    async def again(self, *expected: RunKey) -> None:
        """The daemon died; another takes over."""
        await self.runtime.stop(end_jobs=False)
        self.reports.clear()
        await self.start()
        await self.runtime.adopt(expected)


def run(rule: Callable[[DeviceBench], Awaitable[None]], gpus: int = 2) -> None:
    async def whole(bench: DeviceBench) -> None:
        await bench.start()
        await bench.runtime.adopt([])
        kubelets = asyncio.create_task(bench.kubelets())
        try:
            await rule(bench)
            assert not kubelets.done()
        finally:
            kubelets.cancel()
            for task in bench._supervisors.values():
                task.cancel()
            await bench.runtime.stop(end_jobs=False)
        assert not bench.wrong

    with paper_cluster() as (paper, connect):
        for name in ("n1", "n2"):
            paper.node(name)
        asyncio.run(whole(DeviceBench(paper, connect, gpus)))


def test_two_halves_of_a_slot_are_one_device_and_another_slot_is_another() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        bench.part(2, 0)
        bench.part(3, 1)
        await bench.started(1, 2, 3)
        assert bench.shared(1) == bench.shared(2) != bench.shared(3)
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
        bench.foreign("ending", 1)
        await asyncio.sleep(5 * TICK_S)
        bench.part(1, 0)
        await bench.pass_time(5, lambda: bool(bench.paper.created))
        await asyncio.sleep(5 * TICK_S)
        bench.paper.finish("ending")
        await bench.started(1)
        assert not bench.ends()

    run(rule, gpus=1)


def test_a_device_that_somebody_else_has_is_not_shared_and_the_job_goes_back_to_the_queue() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.foreign("other", 1)
        await asyncio.sleep(5 * TICK_S)
        bench.part(1, 0)
        end = await bench.ended(1, 10)
        assert end.why == "requeue" and "could not give it its devices" in end.message
        assert not bench.shared(1)
        await bench.pass_time(5, lambda: not bench.holders())
        assert not bench.holders()

    run(rule, gpus=1)


def test_others_never_get_a_device_that_is_shared() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        await bench.started(1)
        for number in range(3):
            bench.foreign(f"other-{number}", 1)
        await asyncio.sleep(10 * TICK_S)
        phases = [bench.paper.objects["pods"][f"other-{number}"]["status"]["phase"] for number in range(3)]
        assert sorted(phases) == ["Failed", "Failed", "Running"]

    run(rule)


def test_who_deletes_a_holder_ends_its_sharers_before_anybody_else_has_the_device() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        bench.part(2, 0)
        bench.part(3, 1)
        await bench.started(1, 2, 3)
        with bench.paper.lock:
            bench.paper.delete("pods", "sb-t-device-n1-0", {})
        for job in (1, 2):
            end = await bench.ended(job)
            assert end.why == "node_fail" and "device" in end.message
        await bench.pass_time(5, lambda: bench.holders() == ["sb-t-device-n1-1"])
        assert bench.holders() == ["sb-t-device-n1-1"] and len(bench.ends()) == 2

    run(rule)


def test_a_daemon_that_comes_later_knows_who_shares_what() -> None:
    async def rule(bench: DeviceBench) -> None:
        first, second = bench.part(1, 0), bench.part(2, 1)
        await bench.started(1, 2)
        await bench.again(first, second)
        bench.part(3, 0)
        await bench.started(3)
        assert bench.shared(3) == bench.shared(1)
        bench.runtime.kill(second, "cancelled")
        await bench.ended(2)
        await bench.pass_time(5, lambda: bench.holders() == ["sb-t-device-n1-0"])
        assert bench.holders() == ["sb-t-device-n1-0"]

    run(rule)


def test_a_daemon_that_died_before_the_pods_were_made_goes_on_with_the_holder_it_finds() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.paper.fail = lambda method, path: (503, "") if method == "POST" and bench.holders() else None
        key = bench.part(1, 0)
        await bench.pass_time(5, lambda: bool(bench.holders()))
        await bench.runtime.stop(end_jobs=False)
        bench.paper.fail = lambda method, path: None
        await bench.start()
        await bench.runtime.adopt([key])  # and it is told that the run never began
        bench.part(1, 0)
        await bench.started(1)
        assert len([name for name in bench.paper.created if "-device-" in name]) == 1

    run(rule)


def test_a_holder_that_nobody_needs_is_found_and_removed() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        await bench.started(1)
        await bench.runtime.stop(end_jobs=False)
        bench.paper.finish("sb-t-1-0-0", words="")
        await bench.start()
        await asyncio.sleep(5 * TICK_S)
        assert len(bench.holders()) == 1  # nobody knows yet which runs there are
        await bench.runtime.adopt([])
        await bench.nothing_left()

    run(rule)


def test_a_run_that_is_killed_while_it_waits_for_its_device_leaves_nothing() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.foreign("other", 1)
        await asyncio.sleep(5 * TICK_S)
        key = bench.part(1, 0)
        bench.runtime.kill(key, "cancelled")
        end = await bench.ended(1)
        assert end.why == "cancelled"
        await bench.pass_time(5, lambda: not bench.holders())
        assert not bench.holders() and not bench.shared(1)

    run(rule, gpus=1)


def test_a_cluster_that_allows_no_holder_is_a_launch_that_failed() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.paper.fail = lambda method, path: (403, "no pods for you") if method == "POST" else None
        bench.part(1, 0)
        end = await bench.ended(1)
        assert end.why == "launch" and "no pods for you" in end.message

    run(rule)


def test_parts_are_of_devices_that_can_be_named_to_a_container() -> None:
    async def rule(bench: DeviceBench) -> None:
        node = LaunchNode(rank=0, node="n1", cpus=1, devices=((0, 500, 0),), device_resources=("amd.com/gpu",))
        bench.launch(1, FOREVER, nodes=(node,))
        end = await bench.ended(1)
        assert end.why == "launch" and "parts of amd.com/gpu cannot be given to pods" in end.message

    run(rule)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_daemon_that_is_taken_down_with_its_jobs_leaves_no_holder(parts: int) -> None:
    async def rule(bench: DeviceBench) -> None:
        for job in range(1, parts + 1):
            bench.part(job, 0)
        await bench.started(*range(1, parts + 1))
        await bench.runtime.stop(end_jobs=True)
        assert not bench.holders()
        await bench.start()

    run(rule)
