"""Nodes of a cluster and their partitions: they come and go, and jobs stay whole."""

from __future__ import annotations

from slurmbridge.model.run import RunKey
from tests.daemon.controlled import check_use
from tests.daemon.paper_fleet import FleetSite, node, on, rule, update

SITE = """
partitions:
  cpu: {}
  gpu:
    nodeSelector: {kind: gpu}
    tolerations: [{key: nvidia.com/gpu, operator: Exists}]
"""


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


@on(CONF.replace("NodeHostname=ip-2", "NodeAddr=ip-2"), "", node("ip-1"))
async def test_pods_go_to_a_declared_node_by_the_name_and_address_that_it_comes_with(made: FleetSite) -> None:
    made.paper.put(node("ip-2", address="10.0.0.2"))
    made.paper.change("ip-1", address="10.0.0.1")
    await made.settle()
    known = {each.name: (each.host, each.address) for each in made.runtime.config.nodes}
    assert known == {"n1": ("ip-1", "10.0.0.1"), "n2": ("ip-2", "10.0.0.2")}


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
