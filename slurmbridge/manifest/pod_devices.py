"""Who owns a device that jobs share? A pod of ours that takes it whole from the device plugin and says which one it is.

One per slot (node, index) of the planner, made before the first sharer and ended after the last. Which physical device it
gets is the plugin's choice; its init container leaves the id in the pod's status, and from then on the slot is that device.
Sharers start once it is known; each carries in an annotation which slots it was given as which devices, so that a daemon
that comes later sees who shares what (`told`, `read`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from slurmbridge.manifest import pod_names
from slurmbridge.manifest.pod_security import container_context, pod_context
from slurmbridge.manifest.pod_site import PYTHON, ROOT, STAYS, PodSite
from slurmbridge.manifest.pod_volumes import SUPERVISOR, supervisor_volume, way_in
from slurmbridge.model.pods import Manifest, PodTemplate
from slurmbridge.model.run import LaunchNode

Slot: TypeAlias = tuple[str, int]
"""Node and index, as the planner calls a device."""

HOLDER, TELLER = "device", "tell"
"""Its role, and the names of its containers."""
NODE, INDEX = f"{pod_names.DOMAIN}/node", f"{pod_names.DOMAIN}/device"
SHARES = f"{pod_names.DOMAIN}/shares"
PROGRAM = f"{ROOT}/lib/slurmbridge/supervisor/device.py"
NOBODY = 65534
PROTECTED_S = 60
"""Grace period: how long a holder outlives a deletion that is not ours, so that its sharers can be ended first."""
PARTING_S = 1
"""The same where we end it: nobody shares it any more."""
HOLDER_MIB = 32
"""What one takes; each device that may be shared has it set aside on its node (`reconcile.inventory`)."""
LONGEST_ID = 128
STAYS_PUT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def holder_name(instance: str, slot: Slot) -> str:
    node, index = slot
    return f"sb-{instance}-device-{pod_names.host_label(node)}-{index}"


def holder(slot: Slot, resource: str, template: PodTemplate, site: PodSite) -> Manifest:
    """The pod that holds the slot; it does nothing, needs nothing of a job's, and belongs to none."""
    node, index = slot
    amounts = {"memory": f"{HOLDER_MIB}Mi", resource: "1"}  # of CPUs none: a node's are given out whole, to the last
    container: Manifest = {
        "image": template.supervisor_image or site.supervisor_image or template.image,
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": container_context(PodTemplate()),
    }
    spec: Manifest = {
        "nodeName": site.kube_nodes.get(node, node),
        "restartPolicy": "Always",
        "serviceAccountName": site.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": PROTECTED_S,
        "securityContext": pod_context(PodTemplate(), uid=NOBODY, gid=NOBODY, groups=()),
        "tolerations": [*STAYS, *template.tolerations],
    }
    if way_in(template, site) == "hostPath":  # no image of ours has it
        spec["volumes"] = [{"name": SUPERVISOR, **supervisor_volume(template, site)}]
        container["volumeMounts"] = [{"name": SUPERVISOR, "mountPath": ROOT, "readOnly": True}]
    command = [PYTHON, "-I", "-S", PROGRAM]
    spec["initContainers"] = [{"name": TELLER, **container, "command": [*command, "tell"]}]
    spec["containers"] = [{"name": HOLDER, **container, "command": [*command, "hold"]}]
    if template.runtime_class_name:
        spec["runtimeClassName"] = template.runtime_class_name
    if template.priority_class_name:
        spec["priorityClassName"] = template.priority_class_name
    metadata: Manifest = {
        "name": holder_name(site.instance, slot),
        "namespace": site.namespace,
        "labels": {pod_names.INSTANCE: site.instance, pod_names.ROLE: HOLDER, INDEX: str(index)},
        "annotations": {NODE: node, STAYS_PUT: "false"},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def slot_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Slot | None:
    """The slot that a holder holds; None: it is none."""
    node, index = annotations.get(NODE), labels.get(INDEX, "")
    if labels.get(pod_names.ROLE) != HOLDER or not node or not (index.isascii() and index.isdecimal()):
        return None
    return node, int(index)


def id_of(message: str) -> str:
    """The device as the holder's init container left it; empty: not yet, or nothing that can be one."""
    word = message.strip()
    return word if word.isprintable() and 0 < len(word) <= LONGEST_ID and not set(word) & {" ", ",", "="} else ""


# What a sharer carries


def slots_of(node: LaunchNode) -> tuple[Slot, ...]:
    """Those of which a rank has the whole or a part, in the order of its devices."""
    return tuple((node.node, index) for index, _, _ in node.devices)


def told(slots: Sequence[Slot], devices: Sequence[str]) -> str:
    return ",".join(f"{node}/{index}={device}" for (node, index), device in zip(slots, devices, strict=True))


def read(text: str) -> tuple[tuple[Slot, str], ...]:
    """(slot, device) pairs; what is none is left out."""
    found = []
    for term in text.split(",") if text else ():
        place, _, device = term.partition("=")
        node, _, index = place.rpartition("/")
        if node and device and index.isascii() and index.isdecimal():
            found.append(((node, int(index)), device))
    return tuple(found)
