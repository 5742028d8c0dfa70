"""Which variables does a job have in a pod? The order: image, partition, submission less some names, SLURM_*.

The supervisor starts from what the container has (image and partition) and lays the launch's variables over it; so what
must not come from the host that sbatch was typed on is taken out of the launch here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from slurmbridge.manifest.pod_limits import limiter_of
from slurmbridge.manifest.pod_resources import parts_of
from slurmbridge.model.run import Launch, LaunchNode

OF_THE_CONTAINER = re.compile(r"HOSTNAME|KUBERNETES_.*|NVIDIA_.*")
"""Never of the submission: they say what this container is and which devices it may use."""
OF_THE_SYSTEM = re.compile(r"PATH|LD_.*")
"""They name files of a system: of the image, unless the partition mounts the host's software."""
SEEN = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


def in_pods(
    launch: Launch, host_names: Iterable[str], *, host_software: bool, named: frozenset[str], gpu_sharing: str = "none"
) -> Launch:
    """The launch as supervisors in pods need it. `named`: variables of the submission that the job insists on."""
    limiter = limiter_of(gpu_sharing, [part for node in launch.nodes for part in parts_of(node)])
    first = next(iter(host_names))
    nodes = tuple(_renumbered(node) for node in launch.nodes)
    env = {
        name: value
        for name, value in launch.env
        if _passes(name, host_software, named) and not limiter.kept.fullmatch(name)
    }
    env.update(limiter.job_env)
    env["HOSTNAME"] = first
    if nodes and nodes[0].devices:
        seen = ",".join(str(index) for index, _, _ in nodes[0].devices)
        env.update({name: seen for name in SEEN if name in env})
    return replace(launch, nodes=nodes, env=tuple(env.items()), base_env=(*launch.base_env, *limiter.job_env))


def _passes(name: str, host_software: bool, named: frozenset[str]) -> bool:
    if OF_THE_CONTAINER.fullmatch(name):
        return False
    return host_software or name in named or not OF_THE_SYSTEM.fullmatch(name)


def _renumbered(node: LaunchNode) -> LaunchNode:
    """A container sees its own devices only, counted from 0; their files are its runtime's business."""
    devices = tuple((place, milli, mib) for place, (_, milli, mib) in enumerate(node.devices))
    return replace(node, devices=devices, device_files=("",) * len(devices))
