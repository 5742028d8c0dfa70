"""Nodes of a real cluster: closed and opened from either side, silent, and gone, with jobs on them."""

import os
import subprocess
from collections.abc import Callable

import pytest
from cluster.driver import Cluster
from cluster.pods import manifest
from cluster.processes import PATIENCE_S

from slurmbridge.manifest.pod_names import CORDON

from .bridge import BIN, Bridge, await_true

pytestmark = [pytest.mark.root, pytest.mark.slow]


class Site:
    """A daemon on the cluster, as its operator and its users see it."""

    def __init__(self, cluster: Cluster, bridge: Bridge) -> None:
        self.cluster, self.bridge = cluster, bridge

    def operator(self, *words: str, fails: bool = False) -> str:
        environment = {**os.environ, "SLURMBRIDGE_ADDR": f"unix:{self.bridge.state}/socket"}
        done = subprocess.run(
            [BIN / words[0], *words[1:]], env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert bool(done.returncode) == fails, (words, done.stdout, done.stderr, self.log())
        return done.stdout + done.stderr

    def log(self) -> str:
        log = self.bridge.state / "daemon.log"
        return log.read_text()[-6000:] if log.exists() else ""

    def until(self, holds: Callable[[], bool], told: Callable[[], object] = lambda: "") -> None:
        await_true(holds, lambda: (told(), self.log()))

    def node(self, name: str) -> str:
        """Its state and reason; empty: it is not there."""
        return self.operator("sinfo", "--noheader", "--Node", "--nodes", name, "--format=%T %E").strip()

    def await_node(self, name: str, wanted: str) -> None:
        self.until(lambda: self.node(name).startswith(wanted), lambda: (self.node(name), wanted))

    def job(self, job_id: int) -> dict[str, str]:
        shown = self.operator("scontrol", "--oneliner", "show", "job", str(job_id))
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)

    def await_job(self, job_id: int, state: str) -> dict[str, str]:
        self.until(lambda: self.job(job_id)["JobState"] == state, lambda: self.job(job_id))
        return self.job(job_id)

    def lines(self, name: str) -> list[str]:
        """What jobs wrote to a file on the share."""
        file = self.bridge.share / name
        return file.read_text().splitlines() if file.exists() else []

    def await_lines(self, name: str, count: int) -> None:
        self.until(lambda: len(self.lines(name)) >= count, lambda: self.lines(name))


@pytest.fixture(scope="module")
def site(site: Bridge) -> Site:
    return Site(site.cluster, site)


@pytest.fixture
def node(site: Site) -> str:
    """The last of the cluster's nodes: at work, and nobody has closed it."""
    name = sorted(site.cluster.nodes)[-1]
    site.await_node(name, "idle")
    return name


def test_nodes_have_the_sizes_that_the_cluster_says(site: Site, node: str) -> None:
    seen = site.cluster.get("node", node)["status"]
    shown = site.operator("sinfo", "--noheader", "--Node", "--nodes", node, "--format=%c %G").split()
    assert shown[0] == seen["capacity"]["cpu"]
    assert ("gpu" in shown[1]) == bool(int(seen["capacity"].get("nvidia.com/gpu", 0)))


def test_a_cordon_drains_and_is_not_ours_to_take_back(site: Site, node: str) -> None:
    site.cluster.cordon(node)
    site.await_node(node, "drained k8s:cordoned")
    said = site.operator("scontrol", "update", f"nodename={node}", "state=resume", fails=True)
    assert "k8s:cordoned" in said
    assert site.cluster.get("node", node)["spec"]["unschedulable"]
    site.cluster.uncordon(node)
    site.await_node(node, "idle none")


def test_a_taint_that_nobody_tolerates_drains(site: Site, node: str) -> None:
    site.cluster.taint(node, "example.org/broken", "fan")
    site.await_node(node, "drained k8s:taint example.org/broken=fan:NoSchedule")
    site.cluster.untaint(node, "example.org/broken")
    site.await_node(node, "idle none")


def _await_cordon(site: Site, node: str, closed: bool) -> dict[str, str]:
    """Until it is one or is none; the node's annotations."""
    site.until(lambda: bool(site.cluster.get("node", node)["spec"].get("unschedulable")) == closed)
    annotations: dict[str, str] = site.cluster.get("node", node)["metadata"].get("annotations", {})
    return annotations


def test_an_operators_drain_is_a_cordon_also_after_a_restart_and_goes_with_it(site: Site, node: str) -> None:
    site.operator("scontrol", "update", f"nodename={node}", "state=drain", "reason=disk swap")
    assert _await_cordon(site, node, True)[CORDON].endswith(" disk swap")
    site.await_node(node, "drained disk swap")
    site.bridge._daemon("down")
    site.bridge.up()
    assert site.node(node) == "drained disk swap"
    site.operator("scontrol", "update", f"nodename={node}", "state=resume")
    assert CORDON not in _await_cordon(site, node, False)
    site.await_node(node, "idle none")


def test_what_pods_of_others_hold_is_not_given_out(site: Site, node: str) -> None:
    def cpus() -> tuple[int, ...]:
        shown = site.operator("sinfo", "--noheader", "--Node", "--nodes", node, "--format=%C")
        return tuple(map(int, shown.split("/")))

    _, idle, other, total = cpus()
    foreign = manifest("foreign", node=node)
    foreign["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "64Mi"}}
    site.bridge.space.create(foreign)
    site.until(lambda: cpus() == (0, idle - 1, other + 1, total), cpus)
    job = site.bridge.submit("true", f"--nodelist={node}", "--nodes=1", f"--ntasks={idle}")
    assert site.job(job)["JobState"] == "PENDING"
    site.bridge.space.kubectl("delete", "pod", "foreign", "--wait=false")
    site.await_job(job, "COMPLETED")
    assert cpus() == (0, idle, other, total)


def test_a_broken_device_is_not_given_out_until_it_is_mended(site: Site, node: str) -> None:
    whole = site.cluster.gpus(node)
    if not whole:
        pytest.skip("the cluster has no devices")
    broken = site.cluster.devices(node)[0]
    site.cluster.mark_device(node, broken, broken=True)
    try:
        site.until(lambda: site.cluster.gpus(node) == whole - 1)
        all_of_them = site.bridge.submit("true", f"--nodelist={node}", f"--gres=gpu:{whole}")
        others = site.bridge.submit(
            "echo $NVIDIA_VISIBLE_DEVICES >> devices", f"--nodelist={node}", f"--gres=gpu:{whole - 1}"
        )
        site.await_job(others, "COMPLETED")
        assert broken not in site.lines("devices")[0].split(",")
        assert site.job(all_of_them)["JobState"] == "PENDING"
    finally:
        site.cluster.mark_device(node, broken, broken=False)
    site.await_job(all_of_them, "COMPLETED")


def test_a_stopped_kubelet_closes_its_node_and_leads_to_no_second_run(site: Site, node: str) -> None:
    job = site.bridge.submit("echo begun >> silent; sleep 40; echo ended >> silent", "--requeue", f"--nodelist={node}")
    site.await_lines("silent", 1)
    site.cluster.kill(f"kubelet@{node}")
    try:
        site.await_node(node, "down* k8s:NotReady")
        assert site.job(job)["JobState"] == "RUNNING"
        site.await_lines("silent", 2)  # its container runs on
    finally:
        site.cluster.start(f"kubelet@{node}")
    found = site.await_job(job, "COMPLETED")
    assert found["Restarts"] == "0" and site.lines("silent") == ["begun", "ended"]
    site.await_node(node, "idle none")


def test_who_vouches_that_a_node_is_off_lets_its_jobs_begin_again(site: Site, node: str) -> None:
    job = site.bridge.submit("echo begun >> vouched; sleep 600", "--requeue", f"--nodelist={node}")
    site.await_lines("vouched", 1)
    try:
        site.cluster.kill(f"kubelet@{node}")
        site.cluster.kill(f"node@{node}")
        site.await_node(node, "down* k8s:NotReady")
        site.cluster.taint(node, "node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute")
        assert site.await_job(job, "PENDING")["Restarts"] == "1"
        site.await_node(node, "down* k8s:out-of-service")
        site.operator("scancel", str(job))
    finally:
        site.cluster.start(f"node@{node}")
        site.cluster.untaint(node, "node.kubernetes.io/out-of-service")
    site.cluster.await_node(node)
    site.await_node(node, "idle none")


def test_jobs_of_a_node_that_is_gone_begin_again_elsewhere(site: Site, node: str) -> None:
    job = site.bridge.submit("hostname >> gone; sleep 600", "--requeue", f"--nodelist={node}")
    final = site.bridge.submit("echo begun >> lost; sleep 600", "--no-requeue", f"--nodelist={node}")
    site.await_lines("gone", 1)
    site.await_lines("lost", 1)
    try:
        site.cluster.kill(f"kubelet@{node}")  # first of all: it shall not tell how the others end
        site.cluster.kill(f"node@{node}")
        site.await_node(node, "down* k8s:NotReady")
        found = site.job(job)
        assert (found["JobState"], found["Restarts"]) == ("RUNNING", "0")  # not proved yet
        site.cluster.kubectl("delete", "node", node)
        site.await_job(final, "NODE_FAIL")
        assert site.await_job(job, "PENDING")["Restarts"] == "1"
        site.until(lambda: node not in site.operator("sinfo", "--noheader", "--Node", "--format=%N").split())
        site.operator("scontrol", "update", f"jobid={job}", "reqnodelist=")
        site.await_lines("gone", 2)
        assert site.lines("gone")[0] == node and site.lines("gone")[1] != node
    finally:
        site.cluster.start(f"node@{node}")
    site.operator("scancel", str(job))
    site.await_job(job, "CANCELLED")
    site.cluster.await_node(node)
