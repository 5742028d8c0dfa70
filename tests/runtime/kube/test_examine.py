"""What the doctor sees of a cluster: what is there, and "not known" for what may not be read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmbridge.model.examination import Claim, Examined, ExaminedNode
from slurmbridge.model.pods import PodTemplate
from slurmbridge.runtime.kube.examine import examine
from tests.runtime.kube.paper import Paper, paper_cluster

TEMPLATE = PodTemplate(
    volumes=(
        {"name": "home", "persistentVolumeClaim": {"claimName": "home"}},
        {"name": "apps", "persistentVolumeClaim": {"claimName": "apps"}},
        {"name": "tmp", "emptyDir": {}},
    )
)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[tuple[Paper, str]]:
    with paper_cluster() as (paper, connect):
        paper.put(
            "namespaces", {"metadata": {"name": "jobs", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
        )
        paper.put("persistentvolumeclaims", {"metadata": {"name": "home"}, "spec": {"accessModes": ["ReadWriteMany"]}, "status": {"phase": "Bound"}})  # fmt: skip
        amounts = {"cpu": "8", "memory": "16Gi", "pods": "110", "hugepages-2Mi": "0", "nvidia.com/gpu": "4"}
        paper.put(
            "nodes",
            {
                "metadata": {"name": "n1", "labels": {"a": "b"}},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}], "capacity": amounts,
                    "allocatable": {**amounts, "nvidia.com/gpu": "3"},
                    "nodeInfo": {"kubeletVersion": "v1.36.1-gke.7", "containerRuntimeVersion": "containerd://2.1.9"},
                },
            },
        )  # fmt: skip
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "jobs"}}],
            "clusters": [{"name": "c", "cluster": {"server": connect().server}}], "users": [{"name": "u", "user": {}}],
        }  # fmt: skip
        path = tmp_path / "config"
        path.write_text(json.dumps(config))
        yield paper, str(path)


def seen(path: str, **more: Any) -> Examined:
    return examine(path, None, {"batch": TEMPLATE}, more.get("clock", time.time), gpu_resource="nvidia.com/gpu")


def test_all_of_it_is_seen(there: tuple[Paper, str]) -> None:
    found = seen(there[1])
    assert (found.fault, found.namespace, found.release, found.level) == ("", "jobs", (1, 37), "baseline")
    assert found.lacking == () and found.groups == {"apps", "resource.k8s.io"}
    assert found.nodes == (
        ExaminedNode(
            name="n1", kubelet=(1, 36), runtime="containerd://2.1.9", devices={"nvidia.com/gpu": (4, 3)}, labels={"a": "b"}
        ),
    )  # fmt: skip
    assert found.claims == (
        Claim(name="home", is_there=True, phase="Bound", access_modes=("ReadWriteMany",)),
        Claim(name="apps", is_there=False),
    )


@pytest.mark.parametrize("late", [-100.0, 0.0, 100.0])
def test_how_far_the_clocks_are_apart_is_seen(there: tuple[Paper, str], late: float) -> None:
    found = seen(there[1], clock=lambda: time.time() + late)
    assert found.skew_s is not None and abs(found.skew_s - late) < 10


@pytest.mark.parametrize("resources", [["resourceslices", "devicetaintrules"], ["resourceslices"]])
def test_devices_with_a_taint_are_seen(there: tuple[Paper, str], resources: list[str]) -> None:
    paper, path = there
    paper.fail = lambda method, path: (
        (404, "no such kind") if path.rpartition("/")[2] not in resources and "/resource.k8s.io/" in path else None
    )
    taint = {"key": "xid", "value": "79", "effect": "NoSchedule"}
    for driver, number in (("gpu.nvidia.com", 0), ("net.example.com", 1)):
        devices = [{"name": f"dev-{number}", "taints": [taint]}, {"name": "well"}]
        spec = {"driver": driver, "nodeName": "n1", "pool": {"name": "n1", "generation": 1}, "devices": devices}
        paper.put("resourceslices", {"metadata": {"name": driver}, "spec": spec})
    assert seen(path).tainted == ("dev-0 on n1 (xid=79:NoSchedule)",)


def test_what_may_not_be_read_is_not_known(there: tuple[Paper, str]) -> None:
    paper, path = there
    paper.fail = lambda method, where: None if where == "/version" else (403, "no")
    found = seen(path)
    assert (found.fault, found.lacking, found.nodes, found.level) == ("", None, None, None)
    assert {claim.is_there for claim in found.claims} == {None}


def test_missing_rights_are_named(there: tuple[Paper, str]) -> None:
    paper, path = there
    paper.denied = {("create", "pods"), ("get", "pods/log")}
    lacking = seen(path).lacking
    assert lacking is not None and [bool(lack.without) for lack in lacking] == [False, True]
    assert "create of pods" in lacking[0].what


def test_a_cluster_that_does_not_answer_is_a_finding(there: tuple[Paper, str]) -> None:
    paper, path = there
    paper.fail = lambda method, where: (503, "starting")
    assert "of no use: starting" in seen(path).fault
    assert "no such file" in seen("/nowhere").fault
