"""What a cluster's Node objects and others' pods tell, over the wire: on a cluster on paper."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from slurmbridge.manifest.pod_names import CORDON, INSTANCE
from slurmbridge.model.cluster import Partition
from slurmbridge.model.fleet import FleetConfig, Membership
from slurmbridge.reconcile.node_cordon import Cordon
from slurmbridge.reconcile.node_sight import Amounts, Foreign, SeenCondition, SeenTaint
from slurmbridge.runtime.kube.foreign import ForeignPod, HeldSpec, asked_for, is_system
from slurmbridge.runtime.kube.inventory import Inventory
from slurmbridge.runtime.kube.node_seen import amounts_of, node_of
from slurmbridge.runtime.kube.objects import Container, Meta, Node, Owner, Resources
from tests.patience import PATIENCE_S, comes
from tests.runtime.kube.paper import Paper, paper_cluster

HAS = {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "2", "ephemeral-storage": "10Gi"}
CONFIG = FleetConfig(partitions=(Partition(name="p"),), members=(("p", Membership()),))


def put_node(paper: Paper, name: str, *, spec: dict[str, Any] | None = None, **metadata: Any) -> None:
    status = {
        "capacity": HAS,
        "allocatable": {**HAS, "cpu": "3900m"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    paper.put("nodes", {"metadata": {"name": name, **metadata}, "spec": spec or {}, "status": status})


def put_pod(
    paper: Paper, name: str, node: str, cpu: str, *, owner: str = "", labels: dict[str, str] | None = None
) -> None:
    owners = [{"kind": owner, "name": "o", "uid": "u", "controller": True}] if owner else []
    metadata = {"name": name, "ownerReferences": owners, "labels": labels or {}}
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    paper.put("pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


class Bench:
    def __init__(self, paper: Paper, inventory: Inventory) -> None:
        self.paper, self.inventory, self.told = paper, inventory, 0
        inventory.listen(self.count)

    def count(self) -> None:
        self.told += 1

    async def until(self, holds: Callable[[], bool]) -> None:
        await comes(holds, lambda: (self.inventory.nodes, self.inventory.foreign))


def on_paper(test: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def whole(paper: Paper, inventory: Inventory) -> None:
            put_node(paper, "a")
            assert await inventory.start(PATIENCE_S)
            try:
                await test(Bench(paper, inventory))
            finally:
                await inventory.stop()

        with paper_cluster() as (paper, connect):
            asyncio.run(whole(paper, Inventory(connect(), "t")))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@on_paper
async def test_nodes_are_known_at_the_start_and_come_and_go(bench: Bench) -> None:
    assert [node.name for node in bench.inventory.fill(CONFIG).nodes] == ["a"]
    put_node(bench.paper, "b")
    await bench.until(lambda: "b" in bench.inventory.nodes and bench.told == 1)
    assert [node.name for node in bench.inventory.fill(CONFIG).nodes] == ["a", "b"]
    bench.paper.remove("nodes", "a")
    await bench.until(lambda: "a" not in bench.inventory.nodes and bench.told == 2)
    [conf] = bench.inventory.fill(CONFIG).nodes
    assert (conf.name, conf.cpus, conf.effective_cpus, conf.real_memory, conf.gres) == ("b", 4, 3, 8192, "gpu:2")


@on_paper
async def test_a_heartbeat_that_says_nothing_new_is_not_told(bench: Bench) -> None:
    put_node(bench.paper, "a")
    put_node(bench.paper, "b")
    await bench.until(lambda: bench.told == 1)
    assert list(bench.inventory.nodes) == ["a", "b"]


@on_paper
async def test_what_was_filled_stays_the_same_record_until_something_of_it_changed(bench: Bench) -> None:
    filled = bench.inventory.fill(CONFIG)
    assert bench.inventory.fill(filled) is filled
    put_pod(bench.paper, "theirs", "a", "1")
    await bench.until(lambda: bool(bench.inventory.foreign))
    assert bench.inventory.fill(filled) is filled
    put_pod(bench.paper, "daemon", "a", "1", owner="DaemonSet")
    await bench.until(lambda: bench.inventory.foreign["a"].system.pods == 1)
    filled = bench.inventory.fill(filled)
    assert filled.nodes[0].effective_cpus == 2
    put_node(bench.paper, "b")
    await bench.until(lambda: "b" in bench.inventory.nodes)
    assert len(bench.inventory.fill(filled).nodes) == 2


@on_paper
async def test_pods_of_others_are_counted_and_ours_are_not(bench: Bench) -> None:
    paper = bench.paper
    put_pod(paper, "ours", "a", "1", labels={INSTANCE: "t"})
    put_pod(paper, "daemon", "a", "100m", owner="DaemonSet")
    put_pod(paper, "static", "a", "50m", owner="Node")
    put_pod(paper, "theirs", "a", "1500m", owner="Job")
    put_pod(paper, "another", "a", "1", labels={INSTANCE: "other"})
    put_pod(paper, "waits", "", "1")
    wanted = Foreign(system=Amounts(cpu_milli=150, pods=2), others=Amounts(cpu_milli=2500, pods=2))
    await bench.until(lambda: bench.inventory.foreign == {"a": wanted})
    paper.status("theirs", phase="Succeeded")
    paper.remove("pods", "another")
    await bench.until(lambda: bench.inventory.foreign == {"a": Foreign(system=Amounts(cpu_milli=150, pods=2))})


@on_paper
async def test_a_cordon_is_set_and_taken_back_with_its_annotation(bench: Bench) -> None:
    bench.inventory.cordon("a", Cordon(unschedulable=True, mark="t@1 disk"))
    await bench.until(lambda: bench.inventory.nodes["a"].is_cordoned)
    assert bench.inventory.nodes["a"].cordoned_by == "t@1 disk"
    await bench.until(lambda: not bench.inventory._busy)
    bench.inventory.cordon("a", Cordon(unschedulable=False))
    await bench.until(lambda: not bench.inventory.nodes["a"].is_cordoned)
    node = bench.paper.objects["nodes"]["a"]
    assert node["spec"] == {} and CORDON not in node["metadata"]["annotations"]


@on_paper
async def test_a_cordon_of_a_node_that_was_changed_meanwhile_is_decided_anew(bench: Bench) -> None:
    bench.paper.fail = lambda method, path: (409, "changed") if method == "PATCH" else None
    bench.inventory.cordon("a", Cordon(unschedulable=True, mark="t@1 disk"))
    await bench.until(lambda: bench.told == 1)  # and who listens decides
    assert not bench.inventory.nodes["a"].is_cordoned


def test_without_the_right_to_see_pods_nodes_are_known_all_the_same() -> None:
    async def whole(paper: Paper, inventory: Inventory) -> None:
        put_node(paper, "a")
        paper.fail = lambda method, path: (403, "no") if path.endswith("/pods") else None
        assert await inventory.start(PATIENCE_S)
        assert list(inventory.nodes) == ["a"] and inventory.foreign == {}
        await inventory.stop()

    with paper_cluster() as (paper, connect):
        asyncio.run(whole(paper, Inventory(connect(), "t")))


def test_who_may_not_see_nodes_hears_it_at_once() -> None:
    async def whole(paper: Paper, inventory: Inventory) -> None:
        paper.fail = lambda method, path: (403, "not yours")
        assert not await inventory.start(600)
        fault = inventory.watch.fault
        assert fault is not None and "not yours" in str(fault)
        await inventory.stop()

    with paper_cluster() as (paper, connect):
        asyncio.run(whole(paper, Inventory(connect(), "t")))


# ---- objects


def test_a_Node_object_is_read_whole() -> None:
    text = b"""{"metadata": {"name": "a", "uid": "u", "labels": {"k": "v"}, "annotations": {"slurmbridge.io/cordon": "t@1 x"}},
      "spec": {"unschedulable": true, "taints": [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, {"key": "k", "value": "v", "effect": "NoExecute"}]},
      "status": {"capacity": {"cpu": "1500m", "memory": "1Gi", "x/y": "3", "odd": "many"}, "allocatable": {"cpu": "1"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "h"}],
        "conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "M"}],
        "nodeInfo": {"architecture": "arm64", "osImage": "Debian", "kernelVersion": "6"}}}"""
    seen = node_of(msgspec.json.decode(text, type=Node))
    assert (seen.name, seen.uid, seen.labels, seen.is_cordoned, seen.cordoned_by) == (
        "a",
        "u",
        {"k": "v"},
        True,
        "t@1 x",
    )
    assert seen.taints == (SeenTaint(key="k", value="v", effect="NoExecute"),)
    assert seen.capacity == Amounts(cpu_milli=1500, memory_mib=1024, resources={"x/y": 3})
    assert seen.conditions == (SeenCondition(type="Ready", status="False", reason="R", message="M"),)
    assert (seen.address, seen.host, seen.arch, seen.os) == ("10.0.0.1", "h", "arm64", "Debian 6")


def container(cpu: str, *, restarts: str = "", limits: dict[str, str] | None = None) -> Container:
    requests = {"cpu": cpu} if cpu else {}
    return Container(resources=Resources(requests=requests, limits=limits or {}), restart_policy=restarts)


@pytest.mark.parametrize(
    ("spec", "milli"),
    [
        (HeldSpec(containers=(container("1"), container("500m"))), 1500),
        (HeldSpec(containers=(container("1"),), init_containers=(container("3"), container("2"))), 3000),
        (HeldSpec(containers=(container("2"),), init_containers=(container("1", restarts="Always"),)), 3000),
        (
            HeldSpec(containers=(container("1"),), init_containers=(container("1", restarts="Always"), container("2"))),
            3000,
        ),
        (HeldSpec(containers=(container("1"),), overhead={"cpu": "250m"}), 1250),
        (HeldSpec(containers=(container("1"),), resources=Resources(requests={"cpu": "4"})), 4000),
        (HeldSpec(containers=(container("", limits={"cpu": "2"}),)), 2000),
        (HeldSpec(containers=(container("0.1u"),)), 1),
        (HeldSpec(), 0),
    ],
    ids=[
        "sum",
        "init",
        "sidecar",
        "init beside a sidecar",
        "overhead",
        "pod level",
        "limit alone",
        "least part",
        "nothing",
    ],
)
def test_a_pod_holds_what_a_scheduler_sets_aside_for_it(spec: HeldSpec, milli: int) -> None:
    held = asked_for(spec)
    assert (held.cpu_milli, held.pods) == (milli, 1)


def test_what_is_no_quantity_counts_as_nothing() -> None:
    assert amounts_of({"cpu": "x", "memory": "", "a/b": "-"}, up=True) == Amounts()


@pytest.mark.parametrize(("kind", "controller", "system"), [("DaemonSet", True, True), ("Node", True, True),
                                                             ("ReplicaSet", True, False), ("DaemonSet", False, False)])  # fmt: skip
def test_pods_that_belong_to_a_node_are_known_by_their_owner(kind: str, controller: bool, system: bool) -> None:
    pod = ForeignPod(metadata=Meta(owner_references=(Owner(kind=kind, controller=controller),)))
    assert is_system(pod) is system


# ---- devices with a taint of their own


def put_slice(
    paper: Paper, node: str, *taints: dict[str, str], generation: int = 1, count: int = 2, taint_of: int = 0,
    driver: str = "gpu.nvidia.com",
) -> None:  # fmt: skip
    """As NVIDIA's driver publishes the GPUs of a node (resource.k8s.io/v1, fields that are looked at and some others)."""
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {
                "uuid": {"string": f"GPU-{node}-{number}"}, "type": {"string": "gpu"}, "index": {"int": number},
                "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"}, "driverVersion": {"version": "580.0.0"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
            "taints": list(taints) if number == taint_of else [],
        }
        for number in range(count)
    ]  # fmt: skip
    spec = {
        "driver": driver, "nodeName": node, "devices": devices,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
    }  # fmt: skip
    paper.put("resourceslices", {"metadata": {"name": f"{node}-{driver}-{generation}"}, "spec": spec})


XID = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}


def bad(bench: Bench, node: str = "a") -> list[tuple[str, str, str]]:
    return [(each.name, each.uuid, each.why) for each in bench.inventory.nodes[node].bad_devices]


@on_paper
async def test_taints_of_devices_come_and_go_with_slices_and_rules(bench: Bench) -> None:
    assert bad(bench) == []
    put_slice(bench.paper, "a", XID)
    await bench.until(lambda: bad(bench) == [("gpu-0", "GPU-a-0", "gpu.nvidia.com/xid=79:NoSchedule")])
    told = bench.told
    put_slice(bench.paper, "a")
    await bench.until(lambda: bad(bench) == [] and bench.told > told)
    rule = {"deviceSelector": {"driver": "gpu.nvidia.com", "pool": "a", "device": "gpu-1"}, "taint": XID}
    bench.paper.put("devicetaintrules", {"metadata": {"name": "r"}, "spec": rule})
    await bench.until(lambda: [each[0] for each in bad(bench)] == ["gpu-1"])
    bench.paper.put("devicetaintrules", {"metadata": {"name": "r"}, "spec": {"taint": XID}})  # of no device
    await bench.until(lambda: bad(bench) == [])
    put_node(bench.paper, "b")
    put_slice(bench.paper, "b", XID)
    await bench.until(lambda: "b" in bench.inventory.nodes and len(bad(bench, "b")) == 1)
    bench.paper.remove("resourceslices", "b-gpu.nvidia.com-1")
    await bench.until(lambda: bad(bench, "b") == [])


@on_paper
async def test_only_the_newest_slices_of_a_pool_count(bench: Bench) -> None:
    put_slice(bench.paper, "a", XID)
    await bench.until(lambda: len(bad(bench)) == 1)
    put_slice(bench.paper, "a", generation=2)
    await bench.until(lambda: bad(bench) == [])


@pytest.mark.parametrize("resources", [[], ["resourceslices"]], ids=["before 1.34", "without rules"])
def test_an_api_server_that_serves_no_devices_has_no_bad_ones(resources: list[str]) -> None:
    async def whole(paper: Paper, inventory: Inventory) -> None:
        assert await inventory.start(PATIENCE_S)
        assert inventory.nodes["a"].bad_devices == ()
        await inventory.stop()

    with paper_cluster() as (paper, connect):
        paper.resources = resources
        put_node(paper, "a")
        asyncio.run(whole(paper, Inventory(connect(), "t")))


def test_without_the_right_to_see_devices_nodes_are_known_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async def whole(inventory: Inventory) -> None:
        assert await inventory.start(PATIENCE_S)
        assert list(inventory.nodes) == ["a"]
        await inventory.stop()

    with paper_cluster() as (paper, connect):
        paper.fail = lambda method, path: (403, "no") if "resource.k8s.io/v1/" in path else None
        put_node(paper, "a")
        put_slice(paper, "a", XID)
        asyncio.run(whole(Inventory(connect(), "t")))
    assert "event=inventory.no_device_taints" in caplog.text
