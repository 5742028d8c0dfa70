"""Who owns a device that jobs share? A pod of ours that takes it whole from the device plugin and says which one it is.

One per slot (node, index) of the planner, made before the first sharer and ended after the last. Its log is one line, the
UUIDs that its container was given; sharers start once that is known (`pod_resources.device_env`).
"""

from __future__ import annotations

import re

from slurmbridge.manifest import pod_names
from slurmbridge.manifest.pod_security import container_context, pod_context
from slurmbridge.manifest.pod_site import PYTHON, ROOT, PodSite
from slurmbridge.manifest.pod_volumes import SUPERVISOR, supervisor_volume, way_in
from slurmbridge.model.pods import Manifest, PodTemplate

DEVICE = "device"
NODE, INDEX = f"{pod_names.DOMAIN}/node", f"{pod_names.DOMAIN}/device"
NOBODY = 65534
_PROGRAM = (
    "import os, signal; print('devices', os.environ.get('NVIDIA_VISIBLE_DEVICES', ''), flush=True); "
    "signal.sigwait({signal.SIGTERM, signal.SIGINT})"
)
_LINE = re.compile(r"^devices (\S+)$", re.MULTILINE)


def holder_name(instance: str, node: str, index: int) -> str:
    return f"sb-{instance}-device-{pod_names.host_label(node.replace('.', '-'))}-{index}"


def holder(node: str, index: int, template: PodTemplate, site: PodSite) -> Manifest:
    """The pod that holds the slot; it does nothing, needs nothing of a job's, and belongs to none."""
    amounts = {"cpu": "1m", "memory": "32Mi", site.gpu_resource: "1"}
    container: Manifest = {
        "name": DEVICE,
        "image": template.supervisor_image or site.supervisor_image or template.image,
        "command": [PYTHON, "-I", "-S", "-c", _PROGRAM],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": container_context(PodTemplate()),
    }
    spec: Manifest = {
        "nodeName": site.kube_nodes.get(node, node),
        "restartPolicy": "Always",
        "serviceAccountName": site.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 2,
        "securityContext": pod_context(PodTemplate(), uid=NOBODY, gid=NOBODY, groups=()),
        "tolerations": list(template.tolerations),
        "containers": [container],
    }
    if way_in(template, site) == "hostPath":  # no image of ours has it
        spec["volumes"] = [{"name": SUPERVISOR, **supervisor_volume(template, site)}]
        container["volumeMounts"] = [{"name": SUPERVISOR, "mountPath": ROOT, "readOnly": True}]
    if template.runtime_class_name:
        spec["runtimeClassName"] = template.runtime_class_name
    metadata: Manifest = {
        "name": holder_name(site.instance, node, index),
        "namespace": site.namespace,
        "labels": {pod_names.INSTANCE: site.instance, pod_names.ROLE: DEVICE, INDEX: str(index)},
        "annotations": {NODE: node},
    }
    return pod_names.sealed({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, "")


def uuids_of(log: str) -> tuple[str, ...]:
    """What a holder was given; the last line counts, as its container may have been started again. Empty: not yet."""
    found = _LINE.findall(log)
    words = tuple(word for word in found[-1].split(",") if word) if found else ()
    return () if words in (("void",), ("none",), ("all",)) else words
