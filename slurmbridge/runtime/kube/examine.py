"""What is there to see of a cluster, for `slurmbridge doctor`? Read only; what may not be read is told as not known. Blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from slurmbridge.errors import RuntimeFault
from slurmbridge.model.examination import Claim, Examined, ExaminedNode, Lacking
from slurmbridge.model.pods import PodTemplate
from slurmbridge.reconcile.node_taints import bad_by_node, is_of
from slurmbridge.runtime.kube import place
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.device_taints import GROUP, Rule, Slice, devices_of, rules_of
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.objects import Listing, Object, Struct
from slurmbridge.runtime.kube.steady import skew

LEVEL = "pod-security.kubernetes.io/enforce"
_NO_DEVICES = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-", "attachable-volumes-")
T = TypeVar("T")


class _Condition(Struct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""


class _Info(Struct, frozen=True, kw_only=True):
    kubelet_version: str = ""
    container_runtime_version: str = ""


class _NodeStatus(Struct, frozen=True, kw_only=True):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[_Condition, ...] = ()
    node_info: _Info = _Info()


class _Node(Object, frozen=True, kw_only=True):
    status: _NodeStatus = _NodeStatus()


class _ClaimSpec(Struct, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()


class _ClaimStatus(Struct, frozen=True, kw_only=True):
    phase: str = ""


class _Claim(Object, frozen=True, kw_only=True):
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()


def examine(
    kubeconfig: str | None, namespace: str | None, templates: Mapping[str, PodTemplate], clock: Callable[[], float], *,
    gpu_resource: str,
) -> Examined:  # fmt: skip
    """Never raises: a cluster that is of no use is one of the findings."""
    try:
        there = place.find(kubeconfig, namespace)
    except RuntimeFault as fault:
        return Examined(server="", namespace=namespace or "", fault=str(fault))
    api = there.api
    try:
        return Examined(
            server=api.server,
            namespace=there.namespace,
            release=there.release,
            lacking=_known(lambda: _lacking(there)),
            nodes=_known(lambda: _nodes(api)),
            groups=_known(lambda: _groups(api)) or frozenset(),
            skew_s=_known(lambda: skew(api, clock)),
            level=_known(lambda: _level(api, there.namespace)),
            claims=tuple(_claim(api, there.namespace, name) for name in claims_of(templates)),
            tainted=_known(lambda: _tainted(api, gpu_resource)) or (),
            gpu_resource=gpu_resource,
            templates=templates,
        )
    finally:
        api.close()


def _known(look: Callable[[], T]) -> T | None:
    try:
        return look()
    except ApiFault:
        return None


def _lacking(there: place.Place) -> tuple[Lacking, ...]:
    return tuple(Lacking(what=str(lack), without=lack.right.without) for lack in place.lacks(there))


def _nodes(api: Api) -> tuple[ExaminedNode, ...]:
    listed = msgspec.json.decode(api.get("/api/v1/nodes"), type=Listing[_Node])
    return tuple(map(_node, listed.items or ()))


def _node(node: _Node) -> ExaminedNode:
    status = node.status
    devices = {
        name: (int(amount), int(status.allocatable.get(name, "0")))
        for name, amount in status.capacity.items()
        if not name.startswith(_NO_DEVICES) and amount.isdecimal() and status.allocatable.get(name, "0").isdecimal()
    }
    return ExaminedNode(
        name=node.metadata.name,
        is_ready=any(each.type == "Ready" and each.status == "True" for each in status.conditions),
        kubelet=_release(status.node_info.kubelet_version),
        runtime=status.node_info.container_runtime_version,
        devices=devices,
        labels=node.metadata.labels,
    )


def _release(text: str) -> tuple[int, int]:
    numbers = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _tainted(api: Api, gpu_resource: str) -> tuple[str, ...]:
    """An API server without DeviceTaintRules has none; one without ResourceSlices has no such devices."""
    slices = msgspec.json.decode(api.get(f"{GROUP}/resourceslices"), type=Listing[Slice]).items or ()
    rules = _known(lambda: msgspec.json.decode(api.get(f"{GROUP}/devicetaintrules"), type=Listing[Rule]).items) or ()
    bad = bad_by_node(devices_of(slices), rules_of(rules))
    return tuple(
        f"{device.name} on {node} ({device.why})"
        for node, devices in bad.items()
        for device in devices
        if is_of(device.driver, gpu_resource)
    )


def _groups(api: Api) -> frozenset[str]:
    answer: dict[str, Any] = msgspec.json.decode(api.get("/apis"))
    return frozenset(str(each.get("name", "")) for each in answer.get("groups") or ())


def _level(api: Api, namespace: str) -> str:
    found = msgspec.json.decode(api.get(f"/api/v1/namespaces/{namespace}"), type=Object)
    return found.metadata.labels.get(LEVEL, "")


def claims_of(templates: Mapping[str, PodTemplate]) -> tuple[str, ...]:
    """Names of claims that partitions' volumes are of, each once."""
    found: dict[str, None] = {}
    for template in templates.values():
        for volume in template.volumes:
            of = volume.get("persistentVolumeClaim")
            if isinstance(of, Mapping) and of.get("claimName"):
                found[str(of["claimName"])] = None
    return tuple(found)


def _claim(api: Api, namespace: str, name: str) -> Claim:
    try:
        answer = api.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
    except ApiFault as fault:
        return Claim(name=name, is_there=False if fault.kind is Kind.GONE else None)
    found = msgspec.json.decode(answer, type=_Claim)
    return Claim(name=name, is_there=True, phase=found.status.phase, access_modes=found.spec.access_modes)
