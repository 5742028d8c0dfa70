"""GPUs with a taint of their own, as a driver for dynamic resource allocation or an operator says it: no new jobs get them."""

from collections.abc import Iterator
from typing import Any

import pytest
from cluster.driver import Cluster

from .bridge import Bridge, await_true

pytestmark = [pytest.mark.root, pytest.mark.slow]
DRIVER = "gpu.nvidia.com"
GROUP = "resource.k8s.io/v1"
XID = {"key": f"{DRIVER}/xid", "value": "79", "effect": "NoSchedule"}


@pytest.fixture
def node(site: Bridge) -> Iterator[str]:
    name = sorted(site.cluster.nodes)[0]
    yield name
    site.cluster.kubectl("delete", "resourceslices,devicetaintrules", "--all")
    await_drained(site, name, "N/A")


def publish(cluster: Cluster, node: str, tainted: int, generation: int = 1) -> None:
    """The slice of all GPUs of a node; the first ones have a taint."""
    devices: list[dict[str, Any]] = [
        {
            "name": f"gpu-{number}",
            "attributes": {"uuid": {"string": f"GPU-{number}"}, "type": {"string": "gpu"}},
            "capacity": {"memory": {"value": "80Gi"}},
            **({"taints": [XID]} if number < tainted else {}),
        }
        for number in range(cluster.gpus(node))
    ]
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    metadata = {"name": f"{node}-{generation}"}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    cluster.apply([{"apiVersion": GROUP, "kind": "ResourceSlice", "metadata": metadata, "spec": spec}])


def await_drained(site: Bridge, node: str, count: str) -> None:
    await_true(lambda: f"GresDrain={count}\n" in show(site, node), lambda: show(site, node))


def show(site: Bridge, node: str) -> str:
    return site.command("scontrol", "-d", "show", "node", node)


def submit(site: Bridge, node: str, gpus: int) -> int:
    return site.submit("true", f"--nodelist={node}", f"--gres=gpu:{gpus}")


@pytest.mark.scenario
def test_a_tainted_device_gets_no_new_jobs_until_the_taint_goes(site: Bridge, node: str) -> None:
    count = site.cluster.gpus(node)
    publish(site.cluster, node, 1)
    await_drained(site, node, "gpu:1")
    assert f"Reason=k8s:device gpu-0 (GPU-0) taint {DRIVER}/xid=79:NoSchedule" in show(site, node)
    all_of_it, less = submit(site, node, count), submit(site, node, count - 1)
    site.await_state(less, "COMPLETED")
    assert site.await_state(all_of_it, "PENDING", "RUNNING", "COMPLETED") == "PENDING"
    publish(site.cluster, node, 0)
    site.await_state(all_of_it, "COMPLETED")
    await_drained(site, node, "N/A")


def test_a_rule_taints_devices_from_outside(site: Bridge, node: str) -> None:
    publish(site.cluster, node, 0)
    chosen = {"driver": DRIVER, "pool": node, "device": "gpu-1"}
    rule = {
        "apiVersion": GROUP, "kind": "DeviceTaintRule", "metadata": {"name": "bad"},
        "spec": {"deviceSelector": chosen, "taint": {**XID, "effect": "NoExecute"}},
    }  # fmt: skip
    site.cluster.apply([rule])
    await_drained(site, node, "gpu:1")
    assert "device gpu-1 (GPU-1)" in show(site, node)
    site.cluster.kubectl("delete", "devicetaintrules", "bad")
    await_drained(site, node, "N/A")
