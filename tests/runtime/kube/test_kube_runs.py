"""Pods keep the contract of all runtimes, and what else a run of them must."""

from __future__ import annotations

import inspect
import json

import pytest

from slurmbridge.model.pods import ContainerWish
from slurmbridge.runtime.protocol import Ended
from tests.runtime.contract import Contract
from tests.runtime.kube.paper_pods import FOREVER, GANG, KubeBench, run

pytestmark = pytest.mark.slow
RULES = [name for name, rule in inspect.getmembers(Contract, inspect.isfunction) if name.startswith("test_")]


@pytest.mark.parametrize("rule", RULES)
def test_contract(rule: str) -> None:
    async def kept(bench: KubeBench) -> None:
        await getattr(Contract(), rule)(bench)

    run(kept)


def test_a_gang_runs_and_leaves_nothing_behind() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 3\n", nodes=GANG)
        end = await bench.end()
        assert end.status == 3 << 8
        await bench.nothing_left()

    run(rule)


def test_an_end_is_told_when_the_kubelets_have_let_the_pods_go() -> None:
    """Before that they would turn away the next pod that is made for their nodes."""

    async def rule(bench: KubeBench) -> None:
        bench.answers = False
        bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.hears(lambda: bool(bench.ends()))
        assert len(bench.ends()) == 1
        phases = [pod["status"]["phase"] for pod in bench.paper.objects["pods"].values()]
        assert len(phases) == 2 and set(phases) <= {"Succeeded", "Failed"}

    run(rule)


def test_that_a_run_is_about_to_end_is_told_once_and_before_its_end() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.hears(lambda: bool(bench.ends()))
        assert [ending.end for ending in bench.endings] == bench.ends()

    run(rule)


def test_an_end_that_no_connection_told_is_read_from_the_pod() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.is_mute = True
        bench.launch(1, b"exit 4\n")
        end = await bench.end()
        assert (end.status, end.why) == (4 << 8, "exit")
        await bench.nothing_left()

    run(rule)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_clock_that_is_wrong_makes_no_pod_too_old(when: str) -> None:
    async def rule(bench: KubeBench) -> None:
        bench.has_kubelets = False
        if when == "before":
            await bench.runtime.stop(end_jobs=False)
            bench.ahead_s = 7200.0
            await bench.start()
        key = bench.launch(1, b"exit 3\n")
        await bench.hears(lambda: bool(bench.runtime.pods(key)))
        bench.ahead_s = 7200.0
        bench.paper.status("sb-t-1-0-0", phase="Pending", startTime="2026-01-01T00:00:00Z")
        await bench.pass_time(0.3)
        bench.has_kubelets = True
        end = await bench.end()
        assert end.status == 3 << 8

    run(rule)


def test_a_pod_that_somebody_deletes_ends_its_whole_gang_as_a_failed_node() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, FOREVER, nodes=GANG)
        await bench.hears(lambda: bool(bench.reports))
        pod = bench.paper.objects["pods"]["sb-t-1-0-1"]
        with bench.paper.lock:
            bench.paper.delete("pods", "sb-t-1-0-1", {"preconditions": {"uid": pod["metadata"]["uid"]}})
        end = await bench.end()
        assert end.why == "node_fail" and "rank 1 on n2" in end.message
        await bench.nothing_left()

    run(rule)


def test_why_pods_are_deleted_is_known_better_here_than_by_the_supervisor_that_sees_it() -> None:
    async def rule(bench: KubeBench) -> None:
        key = bench.launch(1, FOREVER)
        await bench.hears(lambda: bool(bench.reports))
        run = bench.runtime._runs[key]
        run.why = ("preempt", "another scheduler took its place")
        seen = Ended(key=key, sequence=2, time=1.0, status=15, why="node_fail", message="its pod was deleted")
        bench.runtime._report(run, seen)
        (end,) = bench.ends()
        assert isinstance(end, Ended)
        assert (end.why, end.message, end.status) == ("preempt", "another scheduler took its place", 15)

    run(rule)


def test_what_pods_cannot_be_is_a_launch_that_failed_with_the_reason() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 0\n", container=ContainerWish(mounts="/etc:/host"))
        end = await bench.end()
        assert end.why == "launch" and "--container-mounts" in end.message
        assert not bench.paper.created

    run(rule)


def test_nothing_of_a_script_is_in_the_cluster() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 0 # secret words\n", env=(("TOKEN", "secret words"),))
        await bench.hears(lambda: bool(bench.ends()))
        assert "secret words" not in json.dumps(bench.paper.history)

    run(rule)
