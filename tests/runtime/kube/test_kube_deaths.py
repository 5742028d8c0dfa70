"""What proves that a run of pods has ended, so that its job may be begun again?"""

from __future__ import annotations

import pytest

from slurmbridge.wire import supervisor as wire
from tests.runtime.kube.paper_pods import KubeBench, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("lost", [[], [1]], ids=["all told", "one lost"])
def test_where_a_rank_was_lost_only_the_cluster_proves_the_end(
    monkeypatch: pytest.MonkeyPatch, lost: list[int]
) -> None:
    """Its node may be cut off, and its processes go on: the job must not be begun again meanwhile."""
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.HELD_S", -0.8)

    async def rule(bench: KubeBench) -> None:
        (head,) = await bench.silent(2, 1)
        bench.paper.node("n2", ready="Unknown")
        end = {"kind": "ended", "sequence": 2, "time": 1.0, "status": 15, "why": "node_fail", "lost": lost}
        head.hear(wire.REPORT, wire.encode(end))
        head.lost()
        bench.paper.finish("sb-t-1-0-0", 143)
        if lost:
            await bench.pass_time(0.7)
            assert not bench.ends()
            bench.paper.remove("nodes", "n2")
        await bench.hears(lambda: len(bench.ends()) == 1)

    run(rule)


@pytest.fixture
def cluster_knows_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor that speaks though it should not is asked to end after a moment."""
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.TALKING_S", 0.1)


@pytest.mark.usefixtures("cluster_knows_best")
@pytest.mark.parametrize("rank", [0, 1])
def test_a_node_that_was_deleted_by_mistake_does_not_prove_that_nothing_runs_there(rank: int) -> None:
    """Its supervisor speaks: it is told to end, and the run has ended when it is silent."""

    async def rule(bench: KubeBench) -> None:
        links = await bench.silent(2, 2)
        bench.paper.remove("nodes", f"n{rank + 1}")
        links[1 - rank].lost()
        bench.paper.finish(f"sb-t-1-0-{1 - rank}", 143)
        await bench.hears(lambda: links[rank].sent[-1][0] == wire.KILL)
        await bench.pass_time(0.3)
        assert not bench.ends()
        links[rank].lost()
        await bench.hears(lambda: len(bench.ends()) == 1)

    run(rule)


@pytest.mark.usefixtures("cluster_knows_best")
def test_a_kubelet_that_lost_a_container_does_not_prove_that_it_has_ended() -> None:
    async def rule(bench: KubeBench) -> None:
        (link,) = await bench.silent(1, 1)
        bench.paper.finish("sb-t-1-0-0", 137, "ContainerStatusUnknown")
        await bench.hears(lambda: link.sent[-1][0] == wire.KILL)
        await bench.pass_time(0.3)
        assert not bench.ends()
        link.lost()
        end = await bench.end()
        assert end.why == "node_fail" and "its node lost it" in end.message

    run(rule)


@pytest.mark.usefixtures("cluster_knows_best")
def test_what_its_supervisor_tells_of_a_run_whose_node_was_deleted_counts() -> None:
    async def rule(bench: KubeBench) -> None:
        (link,) = await bench.silent(1, 1)
        bench.paper.remove("nodes", "n1")
        await bench.hears(lambda: link.sent[-1][0] == wire.KILL)
        link.hear(wire.REPORT, wire.encode({"kind": "ended", "sequence": 2, "time": 1.0, "status": 0, "why": "exit"}))
        link.lost()
        assert (await bench.end()).why == "exit"

    run(rule)
