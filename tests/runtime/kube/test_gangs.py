"""Pods of runs on an API server: made once, told truly, removed whole, whatever dies in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from slurmbridge.manifest.pod import RunObjects, build
from slurmbridge.manifest.pod_container import Settled
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import LaunchNode, RunKey
from slurmbridge.reconcile.plan import was_begun
from slurmbridge.reconcile.trouble import Patience
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.gangs import Broken, Cleared, Complete, Dead, Gangs, News
from tests.patience import PATIENCE_S, comes
from tests.runtime.contract import launch_of
from tests.runtime.kube.paper import Paper, paper_cluster

N = TypeVar("N", bound=News)
KEY = RunKey(7, 0)
SITE = PodSite(instance="t", namespace="jobs", daemon="ctl:1", supervisor_image="sb")


class Bench:
    """A cluster on paper, and one daemon's view of it after another."""

    def __init__(self, paper: Paper, connect: Callable[[], Api]) -> None:
        self.paper, self.connect = paper, connect
        self.news: list[News] = []
        self.now = 1767225600.0  # when things on paper are made

    async def start(self, **more: Any) -> Gangs:
        self.news = []
        self.gangs = Gangs(self.connect(), "t", "jobs", self.news.append, lambda: self.now, again_s=0.02, **more)
        assert await self.gangs.start(PATIENCE_S)
        return self.gangs

    async def hear(self, kind: type[N]) -> N:
        await self.comes(lambda: any(isinstance(each, kind) for each in self.news))
        return next(each for each in self.news if isinstance(each, kind))

    async def comes(self, holds: Callable[[], bool]) -> None:
        await comes(holds, lambda: (self.news, self.paper.objects["pods"]))

    async def begun(self, ranks: int, **more: Any) -> Gangs:
        """The run, with all its pods."""
        gangs = await self.start(**more)
        gangs.begin(KEY, objects(ranks), "5")
        await self.hear(Complete)
        return gangs

    async def half_made(self) -> Gangs:
        """A daemon after one that died between the first and the last of three pods."""
        self.paper.fail = lambda method, path: (500, "no") if method == "POST" and len(self.paper.created) > 2 else None
        gangs = await self.start()
        gangs.begin(KEY, objects(3), "5")
        await self.comes(lambda: len(self.paper.created) == 3)
        await gangs.stop()
        self.paper.fail = lambda method, path: None
        return await self.start()

    async def ends_without_a_trace(self) -> None:
        """The run, when it is told to end."""
        self.gangs.end(KEY)
        await self.stop_deleted()
        await self.hear(Dead)
        self.gangs.release(KEY)
        await self.hear(Cleared)
        assert not self.pods() and not self.paper.objects["services"]

    def pods(self) -> list[str]:
        return sorted(self.paper.objects["pods"])

    def run_all(self) -> None:
        for name in self.pods():
            self.paper.run(name)

    async def stop_deleted(self) -> None:
        """What a kubelet does with pods that are to go."""
        await self.comes(
            lambda: all(pod["metadata"].get("deletionTimestamp") for pod in self.paper.objects["pods"].values())
        )
        for name in self.pods():
            self.paper.finish(name, 143)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with paper_cluster() as (paper, connect):
        for name in ("n0", "n1", "n2"):
            paper.node(name)
        yield Bench(paper, connect)


def run(rule: Callable[[], Awaitable[None]], bench: Bench) -> None:
    async def whole() -> None:
        try:
            await rule()
        finally:
            await bench.gangs.stop()

    asyncio.run(whole())


def objects(ranks: int, image: str = "base") -> RunObjects:
    nodes = tuple(LaunchNode(rank=rank, node=f"n{rank}", cpus=1) for rank in range(ranks))
    launch = launch_of(KEY, b"#!/bin/sh\n", uid=1000, nodes=nodes, epoch="5")
    return build(launch, PodTemplate(image=image), SITE, Settled(image=image))


def test_a_gang_is_made_with_rank_0_last(bench: Bench) -> None:
    async def rule() -> None:
        await bench.begun(3)
        assert sorted(bench.paper.created) == ["sb-t-7-0", "sb-t-7-0-0", "sb-t-7-0-1", "sb-t-7-0-2"]
        assert bench.paper.created[-1] == "sb-t-7-0-0"

    run(rule, bench)


def test_a_run_that_is_over_leaves_nothing(bench: Bench) -> None:
    async def rule() -> None:
        gangs = await bench.begun(2)
        bench.run_all()
        gangs.end(KEY)
        await bench.stop_deleted()
        dead = await bench.hear(Dead)
        assert [pod.exit_code for pod in dead.pods] == [143, 143] and len(bench.pods()) == 2
        gangs.release(KEY)
        await bench.hear(Cleared)
        assert not bench.pods() and not bench.paper.objects["services"]

    run(rule, bench)


def test_the_last_words_of_a_supervisor_are_heard_with_the_end_of_its_pod(bench: Bench) -> None:
    async def rule() -> None:
        await bench.begun(1)
        bench.paper.finish("sb-t-7-0-0", 0, words='{"kind":"ended"}')
        broken = await bench.hear(Broken)
        assert broken.trouble is None
        assert [pod.last_words for pod in broken.pods] == ['{"kind":"ended"}']

    run(rule, bench)


@pytest.mark.parametrize("moment", ["some", "all"])
def test_after_a_crash_the_run_is_found_and_each_pod_was_made_once(bench: Bench, moment: str) -> None:
    async def rule() -> None:
        if moment == "some":
            gangs = await bench.half_made()
        else:
            await (await bench.begun(3)).stop()
            gangs = await bench.start()
        has_begun = was_begun(gangs.found(KEY))
        assert has_begun == (moment == "all")
        gangs.adopt([KEY] if has_begun else [])
        if not has_begun:
            gangs.begin(KEY, objects(3), "5")
        await bench.hear(Complete)
        assert len(bench.paper.created) == len(set(bench.paper.created)) == 4

    run(rule, bench)


def test_runs_that_nobody_knows_are_removed_after_a_restart_and_not_before_it_is_known(bench: Bench) -> None:
    async def rule() -> None:
        gangs = await bench.begun(2)
        bench.run_all()
        await gangs.stop()
        gangs = await bench.start()
        await asyncio.sleep(0.1)
        assert not any(pod["metadata"].get("deletionTimestamp") for pod in bench.paper.objects["pods"].values())
        gangs.adopt([])
        await bench.stop_deleted()
        await bench.comes(lambda: not bench.pods() and not bench.paper.objects["services"])

    run(rule, bench)


def test_what_is_there_of_a_run_that_will_be_begun_stays(bench: Bench) -> None:
    """It waits for its devices, after a restart between its first and its last pod."""

    async def rule() -> None:
        gangs = await bench.half_made()
        gangs.adopt([], due=[KEY])
        await asyncio.sleep(0.1)
        gangs.begin(KEY, objects(3), "5")
        await bench.hear(Complete)
        assert len(bench.paper.created) == len(set(bench.paper.created)) == 4

    run(rule, bench)


def test_a_run_that_is_ended_before_it_is_begun_leaves_nothing_of_its_earlier_pods(bench: Bench) -> None:
    async def rule() -> None:
        gangs = await bench.begun(2)
        await gangs.stop()
        gangs = await bench.start()
        gangs.adopt([], due=[KEY])
        await bench.ends_without_a_trace()

    run(rule, bench)


def test_a_pod_of_an_earlier_life_goes_before_ours_comes(bench: Bench) -> None:
    async def rule() -> None:
        gangs = await bench.start()
        gangs.begin(KEY, objects(1, image="old"), "5")
        await bench.hear(Complete)
        await gangs.stop()
        gangs = await bench.start()
        gangs.begin(KEY, objects(1), "5")
        await bench.stop_deleted()
        await bench.hear(Complete)
        (pod,) = bench.paper.objects["pods"].values()
        assert pod["spec"]["containers"][0]["image"] == "base"

    run(rule, bench)


def test_a_refused_pod_breaks_its_run_with_the_words_of_the_cluster(bench: Bench) -> None:
    async def rule() -> None:
        bench.paper.fail = lambda method, path: (422, "hostPath is too much") if method == "POST" else None
        gangs = await bench.start()
        gangs.begin(KEY, objects(1), "5")
        broken = await bench.hear(Broken)
        assert broken.trouble is not None and broken.trouble.why == "launch"
        assert "hostPath is too much" in broken.trouble.message

    run(rule, bench)


def test_an_image_that_cannot_be_pulled_breaks_its_run_when_its_time_is_over(bench: Bench) -> None:
    async def rule() -> None:
        await bench.begun(1, patience=Patience(image=5.0))
        waiting = [{"name": "job", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]
        bench.paper.status("sb-t-7-0-0", phase="Pending", startTime="2026-01-01T00:00:00Z", containerStatuses=waiting)
        await asyncio.sleep(0.1)
        assert not any(isinstance(each, Broken) for each in bench.news)
        bench.now += 6
        bench.paper.status("sb-t-7-0-0", hostIP="1.2.3.4")
        broken = await bench.hear(Broken)
        assert broken.trouble is not None and "no such image" in broken.trouble.message

    run(rule, bench)


def test_a_volume_that_cannot_be_mounted_is_told_by_the_clusters_own_warning(bench: Bench) -> None:
    async def rule() -> None:
        await bench.begun(1, patience=Patience(mount=5.0))
        uid = bench.paper.objects["pods"]["sb-t-7-0-0"]["metadata"]["uid"]
        bench.paper.put("events", {"metadata": {"name": "e"}, "involvedObject": {"uid": uid}, "type": "Warning",
                                   "reason": "FailedMount", "message": "server not found"})  # fmt: skip
        bench.now += 11
        bench.paper.status("sb-t-7-0-0", phase="Pending", startTime="2026-01-01T00:00:00Z")
        broken = await bench.hear(Broken)
        assert broken.trouble is not None and "FailedMount: server not found" in broken.trouble.message

    run(rule, bench)


def test_a_silent_node_proves_nothing_and_a_node_that_is_gone_does(bench: Bench) -> None:
    async def rule() -> None:
        gangs = await bench.begun(1)
        bench.run_all()
        bench.paper.node("n0", ready="Unknown")
        gangs.end(KEY)
        await bench.comes(lambda: "deletionTimestamp" in bench.paper.objects["pods"]["sb-t-7-0-0"]["metadata"])
        await asyncio.sleep(0.1)
        assert not any(isinstance(each, Dead) for each in bench.news)
        bench.paper.remove("nodes", "n0")
        await bench.hear(Dead)
        gangs.release(KEY)
        await bench.hear(Cleared)
        assert not bench.pods()

    run(rule, bench)


def test_a_node_that_went_while_nobody_looked_is_asked_for(bench: Bench) -> None:
    async def rule() -> None:
        gangs = await bench.begun(1)
        bench.run_all()
        await gangs.stop()
        bench.paper.remove("nodes", "n0")
        gangs = await bench.start()
        gangs.adopt([KEY])
        broken = await bench.hear(Broken)
        assert broken.trouble is not None and broken.trouble.why == "node_fail"

    run(rule, bench)


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_a_change_that_met_another_one_leaves_no_pod_behind(bench: Bench, method: str) -> None:
    async def rule() -> None:
        conflicts = iter(range(3))
        bench.paper.fail = lambda asked, path: (
            (409, "the object has been modified") if asked == method and next(conflicts, None) is not None else None
        )
        await bench.begun(2)
        bench.run_all()
        await bench.ends_without_a_trace()

    run(rule, bench)


def test_what_others_hold_a_pod_by_is_left_to_them(bench: Bench) -> None:
    async def rule() -> None:
        gangs = await bench.begun(1)
        name, theirs = "sb-t-7-0-0", "example.org/audit"

        def held_by() -> list[str]:
            return list(bench.paper.objects["pods"][name]["metadata"]["finalizers"])

        both = {"metadata": {"finalizers": [theirs, *held_by()]}}
        with bench.paper.lock:
            bench.paper.patch("pods", name, both)
        bench.run_all()
        gangs.end(KEY)
        await bench.stop_deleted()
        await bench.hear(Dead)
        gangs.release(KEY)
        await bench.comes(lambda: held_by() == [theirs])
        with bench.paper.lock:
            bench.paper.patch("pods", name, {"metadata": {"finalizers": None}})
        await bench.hear(Cleared)
        assert not bench.pods()

    run(rule, bench)


def test_an_api_server_that_fails_for_a_while_loses_nothing(bench: Bench) -> None:
    async def rule() -> None:
        count = iter(range(1000))
        bench.paper.fail = lambda method, path: (503, "later") if method != "GET" and next(count) % 2 == 0 else None
        gangs = await bench.begun(2)
        bench.run_all()
        gangs.end(KEY)
        await bench.stop_deleted()
        gangs.release(KEY)
        await bench.hear(Cleared)
        assert not bench.pods() and len(bench.paper.created) == 3

    run(rule, bench)
