"""A cluster on paper whose kubelets own devices as real ones do, and a runtime on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from slurmbridge.manifest.pod_devices import SHARES, read
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import LaunchNode
from slurmbridge.reconcile.trouble import Patience
from slurmbridge.runtime.kube.pace import Pace
from slurmbridge.runtime.kube.runtime import KubeRuntime
from slurmbridge.runtime.protocol import Ended, RunKey
from tests.patience import PATIENCE_S
from tests.runtime.contract import CONFIG
from tests.runtime.kube.paper import Paper, paper_cluster
from tests.runtime.kube.paper_pods import FOREVER, SITE, TICK_S, KubeBench, Supervisor

GPU = "nvidia.com/gpu"
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
        self.holders_run = True
        self._admitted: set[str] = set()
        self.pace = Pace()
        self.patience = Patience(device=PATIENCE_S, refusal=0.2)
        self.wrong: list[str] = []
        self.known: dict[tuple[str, int], str] = {}

    async def start(self) -> None:
        self.runtime = KubeRuntime(
            self.connect(),
            SITE,
            {},
            PodTemplate(image="base"),
            time.time,
            secret=b"kept",
            parting_s=0.1,
            patience=self.patience,
            pace=self.pace,
            known=lambda node, index, device: self.known.update({(node, index): device}),
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
            self.paper.status(name, phase="Pending", startTime="2026-01-01T00:00:00Z", initContainerStatuses=[told])
        else:
            self.paper.run(name)

    def _keep(self, name: str, pod: Object) -> None:
        """One that heeds no signal: it runs, and goes when its time is over."""
        if self.holders_run and pod.get("status", {}).get("phase") == "Pending":
            self.paper.status(name, phase="Running", containerStatuses=[{"name": "device", "state": {"running": {}}}])
            return
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

    def part(self, job: int, *indexes: int, milli: int = 500, script: bytes = FOREVER, restarts: int = 0) -> RunKey:
        nodes = (LaunchNode(rank=0, node="n1", cpus=1, devices=tuple((index, milli, 0) for index in indexes)),)
        return self.launch(job, script, restarts=restarts, nodes=nodes)

    def whole(self, job: int, *indexes: int, script: bytes = FOREVER, restarts: int = 0) -> RunKey:
        return self.part(job, *indexes, milli=1000, script=script, restarts=restarts)

    async def foreign(self, name: str, gpus: int) -> None:
        """A pod of somebody else, taken or turned away by its kubelet."""
        container = {"name": "main", "resources": {"limits": {GPU: str(gpus)}}}
        with self.paper.lock:
            self.paper.put("pods", {"metadata": {"name": name}, "spec": {"nodeName": "n1", "containers": [container]}})
        await self.hears(lambda: "phase" in self.paper.objects["pods"][name].get("status", {}))

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
        await self.hears(lambda: {report.key.job_id for report in self.reports} >= set(jobs))

    async def ended(self, job: int) -> Ended:
        def found() -> list[Ended]:
            return [end for end in self.ends() if isinstance(end, Ended) and end.key.job_id == job]

        await self.hears(lambda: bool(found()))
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
