"""Which nodes of a cluster are closed to jobs? Those that are ill, and those that operators of either side closed."""

from __future__ import annotations

from slurmbridge.reconcile.node_cordon import Cordon
from slurmbridge.reconcile.node_sight import SeenCondition
from tests.daemon.paper_fleet import FleetSite, rule, update

# ---- health


@rule
async def test_a_silent_kubelet_closes_its_node_and_ends_nothing(made: FleetSite) -> None:
    job = await made.submit("-w a --requeue", "sleep 500")
    made.paper.ready("a", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    await made.advance(400)
    assert await made.sinfo() == [
        "a down* k8s:NotReady NodeStatusUnknown Kubelet stopped posting node status.", "b idle none",
    ]  # fmt: skip
    assert made.states(job) == ["RUNNING"] and made.job(job).restarts == 0
    elsewhere = await made.submit("-n1", "sleep 1")
    assert [share.node for share in made.job(elsewhere).allocation.nodes] == ["b"]  # type: ignore[union-attr]
    made.paper.ready("a", "True")
    await made.settle()
    assert await made.sinfo() == ["a mixed none", "b mixed none"]
    await made.advance(200)
    assert made.states(job) == ["COMPLETED"]


@rule
async def test_the_cluster_and_operators_never_undo_each_other(made: FleetSite) -> None:
    await update(made, "nodename=a state=drain reason=fan")
    made.paper.ready("a", "False", "KubeletNotReady", "runtime is down")
    await made.settle()
    answer = await made.run("scontrol show node a")
    assert "State=DOWN+DRAIN " in answer.out and "Reason=fan [" in answer.out
    made.paper.ready("a", "True")
    await made.settle()
    assert (await made.sinfo())[0] == "a drained fan"
    made.paper.taint("a", "maintenance")
    await update(made, "nodename=a state=resume")
    assert (await made.sinfo())[0] == "a drained k8s:taint maintenance:NoSchedule"
    made.paper.taint("a")
    await made.settle()
    assert (await made.sinfo())[0] == "a idle none"


@rule
async def test_of_several_causes_the_heaviest_is_the_reason(made: FleetSite) -> None:
    made.paper.change(
        "a", is_cordoned=True, conditions=(SeenCondition(type="Ready", status="False", reason="KubeletNotReady"),)
    )
    await made.settle()
    answer = await made.run("scontrol show node a")
    assert "State=DOWN+DRAIN " in answer.out and "Reason=k8s:NotReady KubeletNotReady [root@" in answer.out


@rule
async def test_times_of_trouble_are_events_and_are_over_when_the_node_leaves(made: FleetSite) -> None:
    made.paper.change("a", is_cordoned=True)
    made.paper.ready("b", "Unknown")
    await made.settle()
    made.paper.change("a", is_cordoned=False)
    made.paper.remove("b")
    await made.settle()
    events = made.store.events(None, None)
    assert sorted((each.node, each.state, each.end is not None) for each in events) == [
        ("a", "DRAIN", True), ("b", "DOWN", True),
    ]  # fmt: skip


# ---- cordons


@rule
async def test_an_operators_drain_is_a_cordon_and_its_resume_takes_it_back(made: FleetSite) -> None:
    await update(made, "nodename=a state=drain reason=disk")
    seen = made.paper.nodes["a"]
    assert seen.is_cordoned and seen.cordoned_by.startswith("t@") and seen.cordoned_by.endswith(" disk")
    assert (await made.sinfo())[0] == "a drained disk"
    await update(made, "nodename=a state=resume")
    seen = made.paper.nodes["a"]
    assert not seen.is_cordoned and not seen.cordoned_by
    assert (await made.sinfo())[0] == "a idle none"


@rule
async def test_a_node_that_is_taken_down_is_cordoned_too(made: FleetSite) -> None:
    await update(made, "nodename=a state=down reason=fire")
    assert made.paper.nodes["a"].is_cordoned
    await update(made, "nodename=a state=resume")
    assert not made.paper.nodes["a"].is_cordoned


@rule
async def test_a_cordon_of_somebody_else_is_never_taken_back(made: FleetSite) -> None:
    made.paper.change("a", is_cordoned=True)
    await made.settle()
    assert (await made.sinfo())[0] == "a drained k8s:cordoned"
    said = await update(made, "nodename=a state=resume")
    assert said == "slurm_update error: Invalid node state transition: k8s:cordoned\n"
    await update(made, "nodename=a state=drain reason=mine")
    await update(made, "nodename=a state=resume")
    assert made.paper.nodes["a"].is_cordoned and made.paper.cordons == []
    assert (await made.sinfo())[0] == "a drained k8s:cordoned"


@rule
async def test_somebody_who_opens_a_node_that_we_closed_is_not_fought(made: FleetSite) -> None:
    await update(made, "nodename=a state=drain reason=disk")
    made.paper.change("a", is_cordoned=False)
    await made.advance(60)
    await made.restart()
    assert not made.paper.nodes["a"].is_cordoned
    assert (await made.sinfo())[0] == "a drained disk"  # for jobs it stays closed: that was said here
    await made.advance(10)
    await update(made, "nodename=a state=drain reason=again")  # said anew: closed anew
    assert made.paper.nodes["a"].is_cordoned
    await update(made, "nodename=a state=resume")
    assert (made.paper.nodes["a"].is_cordoned, made.paper.nodes["a"].cordoned_by) == (False, "")


@rule
async def test_a_cordon_that_could_not_be_made_is_made_later_and_once(made: FleetSite) -> None:
    made.paper.is_down = True
    await update(made, "nodename=a state=drain reason=disk")
    assert not made.paper.nodes["a"].is_cordoned
    made.paper.is_down = False
    await made.restart()
    await made.restart()
    assert made.paper.nodes["a"].is_cordoned and len(made.paper.cordons) == 1


@rule
async def test_a_cordon_that_is_left_of_another_life_is_taken_back(made: FleetSite) -> None:
    made.paper.change("a", is_cordoned=True, cordoned_by="t@1 old")
    await made.settle()
    assert made.paper.cordons == [("a", Cordon(unschedulable=False))]
    made.paper.change("b", is_cordoned=True, cordoned_by="other@1 theirs")
    await made.settle()
    assert len(made.paper.cordons) == 1 and (await made.sinfo())[1] == "b drained k8s:cordoned"
