"""Which fields has a site file, and why has a field no effect on virtual nodes? Tables of `site_file`."""

from __future__ import annotations

from typing import Final

SECTIONS: Final = ("defaults", "nodes", "partitions", "pools", "scheduling")
POD_FIELDS: Final = (
    "env", "hostNetwork", "hostSoftware", "image", "imagePullSecrets", "nodeSelector", "priorityClassName", "resources",
    "runtimeClassName", "securityContext", "shmMiB", "supervisor", "supervisorImage", "supervisorPath", "tolerations",
    "volumeMounts", "volumes",
)  # fmt: skip
"""Of pods, in Kubernetes' words and shapes where it has the field; how each is read: `site_pods`."""
DEVICE_FIELDS: Final = ("gpuMemoryReserveMiB", "gpuSharing")
SHARINGS: Final = ("none", "mps", "hami-core")
"""Of gpuSharing: what keeps those that share a GPU to their memory; what each does: `manifest.pod_limits`."""
MEMORY_FIELDS: Final = ("gpuMemoryMiB", "gpuMemoryReserveMiB")
"""Of `defaults`: the memory of each type of GPU, and what the driver keeps of each device."""
POOL_FIELDS: Final = ("nodes", "nodeSelector", "placement", "devicePlacement")
SCHEDULING_CHOICES: Final = {
    "order": ("auto", "plain", "fair"),
    "backfill": ("priority", "shortest", "aged"),
    "promise": ("turn", "claim", "age"),
    "nodes": ("configured", "lasting"),
    "promised": ("idle", "lent"),
}
SCHEDULING_FIELDS: Final = (*SCHEDULING_CHOICES, "history")
PLACEMENTS: Final = ("binpack", "spread")
WHY: Final = "jobs on virtual nodes are processes of this machine, not pods"
WHY_NODES: Final = "virtual nodes are those of slurm.conf, not a cluster's"
WHY_DEVICES: Final = "virtual nodes have no real devices"


def why_without_effect(key: str) -> str | None:
    """The reason of a note of `read_site`; None for a key of another file."""
    section, _, name = key.partition(" ")
    if section == "nodes" and name:
        return WHY_NODES
    if section not in ("defaults", "partitions"):
        return None
    return WHY_DEVICES if name in DEVICE_FIELDS else WHY
