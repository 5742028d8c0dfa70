"""What a partition says about the pods of its jobs, and what a job says about its container. Only data.

A template has the fields of a site file: Kubernetes' own words and shapes where Kubernetes has the field, ours where not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

Json: TypeAlias = str | int | float | bool | Sequence["Json"] | Mapping[str, "Json"] | None
Manifest: TypeAlias = dict[str, Json]
"""A Kubernetes object, or a part of one, as it goes over the wire."""


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """Of one partition. Volumes, mounts, variables and tolerations are kept as they are written."""

    image: str = ""  # of jobs that name none
    image_pull_secrets: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()  # which nodes are the partition's
    tolerations: tuple[Manifest, ...] = ()
    volumes: tuple[Manifest, ...] = ()
    volume_mounts: tuple[Manifest, ...] = ()
    env: tuple[Manifest, ...] = ()
    resources: tuple[tuple[str, str], ...] = ()  # added to each pod: (rdma/ib, 1)
    priority_class_name: str = ""
    runtime_class_name: str = ""
    security_context: Manifest = {}  # of pod and container alike; who knows which field belongs where: manifest.pod_security
    host_network: bool = False
    host_software: bool = (
        False  # /apps, modules and the like are mounted: PATH and LD_* of the submission mean something
    )
    shm_mib: int | None = None  # None: as much as the job's memory
    supervisor: str = "auto"  # how it gets into the pod: auto, image, copy, hostPath
    supervisor_image: str = ""
    supervisor_path: str = ""  # on the nodes, with hostPath
    gpu_sharing: str = "none"  # what keeps sharers of a device to their memory: none, mps, hami-core


class ContainerWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a job asks of its container (pyxis options), as typed."""

    image: str = ""
    mounts: str = ""
    work_dir: str = ""
    mount_home: bool | None = None  # None: as the partition has it
    writable: bool | None = None  # its root; None: as the partition has it
    env: str = ""

    @property
    def is_plain(self) -> bool:
        return self == ContainerWish()
