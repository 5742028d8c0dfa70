"""Nodes of a cluster: they come and go, are well and ill, are closed by operators of either side, and jobs stay whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.node_cordon import Cordon
from slurmbridge.reconcile.node_sight import Amounts, SeenCondition, SeenNode
from tests.daemon.controlled import check_use
from tests.daemon.paper_fleet import FleetSite, fleet, node

SITE = """
partitions:
  cpu: {}
  gpu:
    nodeSelector: {kind: gpu}
    tolerations: [{key: nvidia.com/gpu, operator: Exists}]
"""


Rule = Callable[[FleetSite], Awaitable[None]]


def on(conf: str, site_file: str, *nodes: SeenNode) -> Callable[[Rule], Callable[[], None]]:
    """With these files and nodes."""

    def decorate(test: Rule) -> Callable[[], None]:
        def run() -> None:
            async def whole() -> None:
                made = await fleet(*nodes, conf=conf, site_file=site_file)
                await test(made)
                check_use(made)

            asyncio.run(whole())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def rule(test: Rule) -> Callable[[], None]:
    """On two nodes, a and b, without any file."""
    return on("", "", node("a"), node("b"))(test)


async def update(made: FleetSite, words: str) -> str:
    answer = await made.run(f"scontrol update {words}", user="root")
    await made.settle()
    return answer.err


# ---- nodes that come and go


@rule
async def test_a_node_that_comes_takes_jobs_at_once(made: FleetSite) -> None:
    waiting = await made.submit("-N3 -n3", "sleep 5")
    assert made.states(waiting) == ["PENDING"]
    made.paper.put(node("c"))
    await made.settle()
    assert made.states(waiting) == ["RUNNING"]
    assert await made.sinfo("%N %T") == ["a mixed", "b mixed", "c mixed"]


@rule
async def test_a_node_that_goes_is_no_more_shown(made: FleetSite) -> None:
    made.paper.remove("b")
    await made.settle()
    assert await made.sinfo("%N") == ["a"]


@rule
async def test_a_node_that_goes_with_jobs_on_it_stays_down_until_they_are_settled(made: FleetSite) -> None:
    job = await made.submit("-w b --requeue", "sleep 50")
    made.paper.remove("b")
    await made.advance(5)
    assert made.states(job) == ["RUNNING"]  # nothing is proved here: that is the runtime's business
    assert await made.sinfo() == ["a idle none", "b down* k8s:gone: the cluster has no such node"]
    made.runtime.kill(RunKey(job, 0), "node_fail")
    await made.settle()
    assert await made.sinfo("%N") == ["a"]
    assert made.job(job).restarts == 1 and made.states(job) == ["PENDING"]


@rule
async def test_a_node_that_went_while_no_daemon_ran_stays_until_its_jobs_are_settled(made: FleetSite) -> None:
    job = await made.submit("-w b -n2 --mem=500", "sleep 50")
    made.paper.remove("b")
    await made.restart()
    assert await made.sinfo("%N %T %C") == ["a idle 0/8/0/8", "b down* 0/0/2/2"]
    check_use(made)
    made.runtime.kill(RunKey(job, 0), "node_fail")
    await made.settle()
    assert await made.sinfo("%N") == ["a"]


@rule
async def test_a_node_of_the_same_name_that_comes_again_is_the_node(made: FleetSite) -> None:
    job = await made.submit("-w b", "sleep 50")
    made.paper.remove("b")
    await made.settle()
    made.paper.put(node("b", uid="another"))
    await made.settle()
    assert await made.sinfo() == ["a idle none", "b mixed none"] and made.states(job) == ["RUNNING"]


@rule
async def test_other_sizes_apply_without_a_restart_and_reconfigure_keeps_them(made: FleetSite) -> None:
    waiting = await made.submit("-n12 -N2 --ntasks-per-node=6 --mem=15000", "sleep 5")
    made.paper.put(node("b", cpus=16, memory=32000))
    await made.settle()
    big = await made.submit("-n10 -N1 --mem=9000", "sleep 5")
    assert made.states(waiting, big) == ["RUNNING", "RUNNING"]
    assert (await made.run("scontrol reconfigure", user="root")).code == 0
    assert await made.sinfo("%N %c %m") == ["a 8 16000", "b 16 32000"]
    assert made.states(big) == ["RUNNING"]


@rule
async def test_what_an_operator_said_of_a_node_goes_on_when_it_comes_back(made: FleetSite) -> None:
    await update(made, "nodename=b state=drain reason=disk")
    made.paper.remove("b")
    await made.settle()
    await made.restart()
    made.paper.put(node("b"))
    await made.settle()
    assert await made.sinfo() == ["a idle none", "b drained disk"]
    assert made.paper.nodes["b"].is_cordoned


@rule
async def test_what_an_operator_changed_of_a_node_stays_when_others_come_and_it_grows(made: FleetSite) -> None:
    await update(made, "nodename=a weight=7 features=mine nodehostname=elsewhere")
    made.paper.put(node("c"))
    made.paper.put(node("a", cpus=9))
    await made.settle()
    assert await made.sinfo("%N %c %w %f") == ["a 9 7 mine", "b 8 1 (null)", "c 8 1 (null)"]
    await update(made, "nodename=a state=drain reason=x")
    assert made.paper.nodes["a"].is_cordoned
    await made.run("scontrol reconfigure", user="root")
    assert (await made.sinfo("%N %w %f"))[0] == "a 1 (null)"  # as Slurm does when it reads its files again


@on("", "", node("a", os="Debian 13 6.12", arch="arm64", address="10.0.0.7"))
async def test_a_node_is_shown_as_what_it_says_that_it_is(made: FleetSite) -> None:
    shown = (await made.run("scontrol show node a")).out
    assert "NodeName=a Arch=aarch64 " in shown and "OS=Debian 13 6.12 " in shown and "NodeAddr=10.0.0.7 " in shown


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


# ---- others


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


# ---- partitions


@on("", SITE, node("a"), node("g", labels={"kind": "gpu"}, gpus=2))
async def test_partitions_have_the_nodes_that_their_labels_and_tolerations_give_them(made: FleetSite) -> None:
    made.paper.taint("g", "nvidia.com/gpu")
    await made.settle()
    assert await made.sinfo("%R %N %T") == ["cpu a idle", "gpu g idle"]
    made.paper.change("a", labels={"kind": "gpu"})
    await made.settle()
    assert await made.sinfo("%R %N") == ["cpu a", "gpu a", "gpu g"]


@on("", SITE, node("a"), node("g", labels={"kind": "gpu"}))
async def test_a_node_whose_labels_leave_it_to_nobody_stays_closed_while_jobs_are_on_it(made: FleetSite) -> None:
    made.paper.taint("g", "nvidia.com/gpu")
    job = await made.submit("-p gpu", "sleep 20")
    made.paper.change("g", labels={})
    await made.settle()
    assert [line for line in await made.sinfo("%R %N %T") if " g " in line] == ["cpu g draining"]
    await made.advance(30)
    assert made.states(job) == ["COMPLETED"]


CONF = """
ClusterName=c
SlurmctldHost=ctl
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
NodeName=n1 NodeHostname=ip-1 CPUs=8 RealMemory=10000 Feature=old Weight=5
NodeName=n2 NodeHostname=ip-2
PartitionName=named Nodes=n1 Default=YES
PartitionName=all
"""


@on(CONF, "", node("ip-1"), node("x"))
async def test_what_NodeName_lines_say_goes_for_the_node_of_that_name(made: FleetSite) -> None:
    assert await made.sinfo("%R %N %T %m %w") == [
        "named n1 idle 10000 5", "all n1 idle 10000 5", "all n2 down* 1 1", "all x idle 16000 1",
    ]  # fmt: skip


@on(CONF, "", node("ip-1", cpus=4), node("ip-2"))
async def test_a_node_with_less_than_its_line_promises_is_drained(made: FleetSite) -> None:
    assert await made.sinfo("%R %N %T %E") == [
        "named n1 drained k8s:Low CPUs (4 < 8)", "all n1 drained k8s:Low CPUs (4 < 8)", "all n2 idle none",
    ]  # fmt: skip


@on("", SITE, node("a"), node("b"))
async def test_an_operators_changes_of_a_partition_stay_when_nodes_come_and_daemons_go(made: FleetSite) -> None:
    assert await update(made, "partitionname=cpu state=drain") == ""
    made.paper.put(node("c"))
    await made.settle()
    await made.restart()
    answer = await made.run("sinfo -h -p cpu -o '%a %N'")
    assert answer.out == "drain a,b,c\n"


@on("", SITE, node("a"))
async def test_a_bad_site_file_is_refused_whole_and_a_good_one_applies(made: FleetSite) -> None:
    made.site_file = SITE.replace("cpu: {}", "cpu: {placement: everywhere}")
    answer = await made.run("scontrol reconfigure", user="root")
    assert answer.code == 1 and "site.yaml:3: placement of partition cpu" in answer.err
    made.site_file = SITE + "  more: {}\n"
    assert (await made.run("scontrol reconfigure", user="root")).code == 0
    assert await made.sinfo("%R %N") == ["cpu a", "more a"]


@rule
async def test_nothing_is_done_where_nothing_changed(made: FleetSite) -> None:
    config = made.controller.memory.config
    made.paper.put(*made.paper.nodes.values())
    assert made.controller.memory.config is config
