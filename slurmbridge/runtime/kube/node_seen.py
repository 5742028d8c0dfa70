"""A Node object as the decisions of `reconcile` need it: the only place that knows where Kubernetes keeps what of a node."""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.errors import LangError
from slurmbridge.manifest.pod_names import CORDON
from slurmbridge.reconcile.node_sight import Amounts, SeenCondition, SeenNode, SeenTaint
from slurmbridge.runtime.kube import quantities
from slurmbridge.runtime.kube.objects import Node

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""The taint that goes with a cordon."""


def node_of(node: Node) -> SeenNode:
    metadata, spec, status = node.metadata, node.spec, node.status
    addresses = {each.type: each.address for each in status.addresses}
    return SeenNode(
        name=metadata.name,
        uid=metadata.uid,
        labels=metadata.labels,
        capacity=amounts_of(status.capacity, up=False),
        allocatable=amounts_of(status.allocatable, up=False),
        is_cordoned=spec.unschedulable,
        cordoned_by=metadata.annotations.get(CORDON, ""),
        taints=tuple(
            SeenTaint(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in spec.taints
            if taint.key != UNSCHEDULABLE
        ),
        conditions=tuple(
            SeenCondition(type=each.type, status=each.status, reason=each.reason, message=each.message)
            for each in status.conditions
        ),
        address=addresses.get("InternalIP", ""),
        host=addresses.get("Hostname", metadata.name),
        arch=status.node_info.architecture,
        os=f"{status.node_info.os_image} {status.node_info.kernel_version}".strip(),
        kubelet=status.node_info.kubelet_version,
    )


def amounts_of(written: Mapping[str, str], *, up: bool) -> Amounts:
    """Of a list of resources; `up`: of what is asked for, else of what is there. What is no quantity counts as nothing."""
    resources: dict[str, int] = {}
    plain = {"cpu": 0, "memory": 0, "ephemeral-storage": 0, "pods": 0}
    for name, text in written.items():
        try:
            if name == "cpu":
                plain[name] = quantities.milli(text, up=up)
            elif name in ("memory", "ephemeral-storage"):
                plain[name] = quantities.mebibytes(text, up=up)
            elif name == "pods":
                plain[name] = quantities.count(text)
            else:
                resources[name] = quantities.count(text)
        except LangError:
            continue
    return Amounts(
        cpu_milli=plain["cpu"],
        memory_mib=plain["memory"],
        disk_mib=plain["ephemeral-storage"],
        pods=plain["pods"],
        resources=resources,
    )
