"""How much of its node does a pod take? The allocation as requests and limits.

Both are equal, so that the kubelet counts as the planner does and may pin CPUs ("Guaranteed" of "Pod Quality of Service
Classes"). Whole devices and slices of a device in MIG mode are asked from their plugin by the resource that each is of; of
a device that is shared the reservation pod is the owner (`pod_devices`), and its sharers only name it.
"""

from __future__ import annotations

import re

from slurmbridge.manifest.pod_limits import Part
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.cluster import Device, is_mig_profile
from slurmbridge.model.pods import Manifest, PodTemplate
from slurmbridge.model.run import LaunchNode

WHOLE = 1000
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NOTHING = "void"  # of VISIBLE: no device, whatever the image asks for
SHAREABLE = "nvidia.com/"
"""Devices of these resources can be named to a container without being asked from their plugin."""
_PROFILE = re.compile(r"[0-9]+g\.[0-9]+gb.*", re.IGNORECASE)


def resource_of(device: Device) -> str:
    """By which a pod asks for it: as the cluster said, else by its type when that is a MIG profile. Empty: the usual one."""
    if device.resource or not is_mig_profile(device.type):
        return device.resource
    profile = _PROFILE.search(device.type)
    return f"nvidia.com/mig-{profile[0].lower().replace('+', '.')}" if profile else ""


def resources_of(node: LaunchNode, site: PodSite) -> tuple[str, ...]:
    """That of each of a rank's devices."""
    named = node.device_resources or ("",) * len(node.devices)
    return tuple(name or site.gpu_resource for name in named)


def parts_of(node: LaunchNode) -> tuple[Part, ...]:
    """Of each device that the rank shares, how much it may use. A rank has parts alone or whole devices alone."""
    is_shared = any(milli < WHOLE or mib for _, milli, mib in node.devices)
    return tuple(Part(milli=milli, mib=mib) for _, milli, mib in node.devices) if is_shared else ()


def resources(node: LaunchNode, template: PodTemplate, site: PodSite) -> Manifest:
    """`resources` of the container."""
    amounts: dict[str, str] = {"cpu": str(node.cpus)}
    if node.memory_mib:
        amounts["memory"] = f"{node.memory_mib}Mi"
    for name in resources_of(node, site) if not parts_of(node) else ():
        amounts[name] = str(int(amounts.get(name, "0")) + 1)
    for name, amount in template.resources:
        amounts.setdefault(name, amount)
    return {"requests": dict(amounts), "limits": dict(amounts)}


def device_env(node: LaunchNode, given: tuple[str, ...]) -> dict[str, str]:
    """What pins the devices of a container: only what no device plugin says by itself. `given`: those it shares."""
    if not node.devices:
        return {VISIBLE: NOTHING}
    return {VISIBLE: ",".join(given)} if parts_of(node) else {}


def shm_mib(node: LaunchNode, template: PodTemplate) -> int | None:
    """Size of /dev/shm; what lies in it counts as the job's memory. None: the node's own bound."""
    return template.shm_mib if template.shm_mib is not None else node.memory_mib or None
