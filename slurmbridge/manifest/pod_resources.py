"""How much of its node does a pod take? The allocation as requests and limits.

Both are equal, so that the kubelet counts as the planner does and may pin CPUs ("Guaranteed" of "Pod Quality of Service
Classes"). Whole devices are asked from their plugin; of a device that is shared the reservation pod is the owner, and its
sharers only name it.
"""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import Manifest, PodTemplate
from slurmbridge.model.run import LaunchNode

WHOLE = 1000
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NOTHING = "void"  # of VISIBLE: no device, whatever the image asks for


def shares_devices(node: LaunchNode) -> bool:
    return any(milli < WHOLE or mib for _, milli, mib in node.devices)


def resources(
    node: LaunchNode, template: PodTemplate, site: PodSite, kinds: Mapping[int, str] | None = None
) -> Manifest:
    """`resources` of the container. `kinds`: type of the slices among the node's devices, by index."""
    amounts: dict[str, str] = {"cpu": str(node.cpus)}
    if node.memory_mib:
        amounts["memory"] = f"{node.memory_mib}Mi"
    if not shares_devices(node):
        for index, _, _ in node.devices:
            name = site.slice_resources.get((kinds or {}).get(index, ""), site.gpu_resource)
            amounts[name] = str(int(amounts.get(name, "0")) + 1)
    for name, amount in template.resources:
        amounts.setdefault(name, amount)
    return {"requests": dict(amounts), "limits": dict(amounts)}


def device_env(node: LaunchNode, uuids: tuple[str, ...]) -> dict[str, str]:
    """What pins the devices of a container: only what no device plugin says by itself."""
    if not node.devices:
        return {VISIBLE: NOTHING}
    return {VISIBLE: ",".join(uuids)} if shares_devices(node) else {}


def shm_mib(node: LaunchNode, template: PodTemplate) -> int | None:
    """Size of /dev/shm; what lies in it counts as the job's memory. None: the node's own bound."""
    return template.shm_mib if template.shm_mib is not None else node.memory_mib or None
