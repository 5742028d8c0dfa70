"""What is the same for all pods that one daemon makes: names, addresses, what the cluster offers. Only data.

It is found out when the daemon starts (`runtime.kube`); templates of partitions are apart (`model.pods`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from slurmbridge.model.pods import Manifest

ROOT = "/opt/slurmbridge"
"""Where a pod has the supervisor: always the same place, as its Python names its own loader by the whole path."""
PYTHON = f"{ROOT}/bin/python3"
PROGRAM = f"{ROOT}/lib/slurmbridge/supervisor/pod.py"
TOKENS = "/var/run/secrets/slurmbridge"
TOKEN_FILE = f"{TOKENS}/token"
AUDIENCE = "slurmbridge"
STAYS: tuple[Manifest, ...] = tuple(
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"}
    for taint in ("not-ready", "unreachable")
)
"""Tolerations of a node that is silent: whether its pods go is decided here, not by a timer of the cluster."""


class PodSite(msgspec.Struct, frozen=True, kw_only=True):
    instance: str  # part of every name: `pod_names.instance_of`
    namespace: str
    daemon: str  # HOST:PORT by which pods reach it
    pin: str = ""  # SHA-256 of the daemon's certificate, in hex: supervisors believe no other
    service_account: str = "default"  # without any rights: its token only says which pod speaks
    supervisor: str = "image"  # how it gets in, where a partition does not say: image, copy, hostPath
    supervisor_image: str = ""
    supervisor_path: str = ROOT  # on the nodes, with hostPath
    cluster_domain: str = "cluster.local"
    gpu_resource: str = "nvidia.com/gpu"
    kube_nodes: Mapping[str, str] = {}  # our name of a node -> the cluster's, where the two differ
    grace_s: int = 15  # beyond the time that a job's own processes are given to end
