"""The cluster is a real one: what happens to its machines shows in its objects."""

import os
import time
from collections.abc import Iterator

import pytest

from .driver import Cluster
from .places import ClusterError
from .pods import ENDS, Namespace, manifest, namespace
from .processes import wait_until

pytestmark = [pytest.mark.root, pytest.mark.slow]
ours = pytest.mark.skipif("KUBECONFIG" in os.environ, reason="parts of somebody else's cluster are not stopped")


@pytest.fixture(scope="module")
def space(cluster: Cluster) -> Iterator[Namespace]:
    with namespace(cluster, "sb-cluster-test") as made:
        yield made


@pytest.mark.scenario
@ours
def test_a_pod_on_each_node_gets_a_device_of_that_node(cluster: Cluster, space: Namespace) -> None:
    nodes = cluster.nodes
    assert len(nodes) >= 2
    space.create(
        *(manifest(f"gpu-{node}", "echo $NVIDIA_VISIBLE_DEVICES; hostname", node=node, gpus=1) for node in nodes)
    )
    for node in nodes:
        pod = space.await_phase(f"gpu-{node}", *ENDS)
        assert pod["status"]["phase"] == "Succeeded"
        assert pod["spec"]["nodeName"] == node
        device, host = space.output(f"gpu-{node}").split()
        assert device in cluster.devices(node)
        assert host == f"gpu-{node}"


@ours
def test_pods_of_two_nodes_reach_each_other_and_the_machine(cluster: Cluster, space: Namespace) -> None:
    first, second = cluster.nodes[:2]
    space.create(manifest("listens", "echo hello | nc -l -p 7000", node=first))
    address = space.await_phase("listens", "Running")["status"]["podIP"]
    space.create(manifest("dials", f"until nc {address} 7000; do sleep 0.2; done", node=second))
    assert space.await_phase("dials", *ENDS)["status"]["phase"] == "Succeeded"
    assert space.output("dials") == "hello\n"


@ours
def test_more_devices_than_are_left_are_refused_by_kubelet(cluster: Cluster, space: Namespace) -> None:
    node = cluster.nodes[0]
    space.create(manifest("greedy", node=node, gpus=cluster.gpus(node) + 1))
    pod = space.await_phase("greedy", "Failed")
    assert pod["status"]["reason"] == "UnexpectedAdmissionError"


@ours
def test_a_broken_device_leaves_what_can_be_allocated(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    whole, broken = cluster.gpus(node), cluster.devices(node)[0]
    cluster.mark_device(node, broken, broken=True)
    assert wait_until(lambda: cluster.gpus(node) == whole - 1, every=0.2)
    cluster.mark_device(node, broken, broken=False)
    assert wait_until(lambda: cluster.gpus(node) == whole, every=0.2)


@pytest.mark.scenario
@ours
def test_pods_run_on_while_the_api_server_is_dead_and_are_there_when_it_is_back(
    cluster: Cluster, space: Namespace
) -> None:
    node = cluster.nodes[0]
    space.create(manifest("outlives", "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.5; done", node=node))
    before = space.await_phase("outlives", "Running")
    cluster.kill("kube-apiserver")
    assert not cluster.alive("kube-apiserver")
    time.sleep(2)
    cluster.start("kube-apiserver")
    cluster.await_api()
    after = space.await_phase("outlives", "Running")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    for each in cluster.nodes:
        cluster.await_node(each)


def test_a_taint_that_is_not_tolerated_ends_pods_of_that_node(cluster: Cluster, space: Namespace) -> None:
    first, second = cluster.nodes[:2]
    space.create(manifest("tainted", node=first), manifest("spared", node=second))
    space.await_phase("tainted", "Running")
    space.await_phase("spared", "Running")
    cluster.taint(first, "test", "gone", "NoExecute")
    try:
        gone = wait_until(lambda: not space.kubectl("get", "pod", "tainted", "--ignore-not-found"), every=0.2)
        assert gone
        assert space.pod("spared")["status"]["phase"] == "Running"
    finally:
        cluster.untaint(first, "test")


def test_a_drained_node_is_empty_and_takes_nothing_until_it_is_uncordoned(cluster: Cluster, space: Namespace) -> None:
    node = cluster.nodes[0]
    space.create(manifest("drained", node=node))
    space.await_phase("drained", "Running")
    cluster.drain(node)
    try:
        assert not space.kubectl("get", "pod", "drained", "--ignore-not-found")
        assert cluster.get("node", node)["spec"]["unschedulable"]
    finally:
        cluster.uncordon(node)
    assert "unschedulable" not in cluster.get("node", node)["spec"]


@ours
def test_a_killed_kubelet_makes_its_node_not_ready_while_its_pods_run_on(cluster: Cluster, space: Namespace) -> None:
    node = cluster.nodes[-1]
    tolerant = [{"operator": "Exists"}]
    space.create(manifest("unaware", node=node, tolerations=tolerant))
    space.await_phase("unaware", "Running")
    cluster.kill(f"kubelet@{node}")
    cluster.await_node(node, ready=False)
    assert "sleep 1000" in cluster.on_node(node, "ps", "ax")
    cluster.start(f"kubelet@{node}")
    cluster.await_node(node)
    assert space.await_phase("unaware", "Running")["status"]["containerStatuses"][0]["restartCount"] == 0


@ours
def test_a_node_that_lost_its_power_comes_back_without_its_processes(cluster: Cluster, space: Namespace) -> None:
    node = cluster.nodes[-1]
    tolerant = [{"operator": "Exists"}]
    space.create(manifest("lost", node=node, tolerations=tolerant))
    space.await_phase("lost", "Running")
    boot = cluster.get("node", node)["status"]["nodeInfo"]["bootID"]
    cluster.kill(f"node@{node}")
    cluster.await_node(node, ready=False)
    cluster.start(f"node@{node}")
    cluster.await_node(node)
    assert wait_until(lambda: cluster.get("node", node)["status"]["nodeInfo"]["bootID"] != boot, every=0.2)
    assert space.await_phase("lost", *ENDS)["status"]["phase"] == "Failed"


def test_nodes_on_paper_are_ready_and_run_what_is_bound_to_them(cluster: Cluster, space: Namespace) -> None:
    with cluster.paper_nodes(20, gpus=8, labels={"pool": "paper"}) as names:
        assert all(cluster.node_ready(name) for name in names)
        assert cluster.gpus(names[3]) == 8
        ends = manifest("ends", node=names[3])
        ends["metadata"]["annotations"] = {"paper/seconds": "1", "paper/exit": "7"}
        held = manifest("held", node=names[4])
        held["metadata"]["finalizers"] = ["it/held"]
        space.create(manifest("stays", node=names[4]), ends, held)
        space.await_phase("stays", "Running")
        space.await_phase("held", "Running")
        space.kubectl("delete", "pod", "held", "--wait=false")
        space.await_phase("held", *ENDS)
        space.kubectl("patch", "pod", "held", "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
        state = space.await_phase("ends", *ENDS)["status"]["containerStatuses"][0]["state"]["terminated"]
        assert state["exitCode"] == 7
        cluster.kubectl("annotate", "node", names[5], "paper/silent=true")
        cluster.await_node(names[5], ready=False)
        assert cluster.node_ready(names[6])
    assert not cluster.kubectl("get", "nodes", "--selector=pool=paper", "--ignore-not-found")


def test_a_user_without_rights_is_refused(cluster: Cluster) -> None:
    if cluster.places is None:
        pytest.skip("the users of somebody else's cluster are not ours to make")
    other = Cluster(cluster.user("alice", "devs"), cluster.tool)
    with pytest.raises(ClusterError, match="pods is forbidden"):
        other.kubectl("get", "pods")
