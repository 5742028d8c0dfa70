"""What is wrong with a cluster on which jobs shall run? Each check is a function of the facts; the table has their order.

Follows "Pod Security Standards", "Version Skew Policy", "Image volumes", "Dynamic Resource Allocation" and "Persistent
Volumes" of the Kubernetes documentation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from slurmbridge.commands.doctor import error, ok, warning
from slurmbridge.lang.hostlist import compress_sorted
from slurmbridge.manifest.pod_container import volume_at
from slurmbridge.manifest.pod_security import departures
from slurmbridge.model.examination import Examined, ExaminedNode, Finding
from slurmbridge.model.pods import PodTemplate

OLDEST: Final = (1, 31)
IMAGE_VOLUMES: Final = (1, 35)
"""Servers and kubelets from this release on have them without being asked to."""
LATE_S: Final = 2.0
TOO_LATE_S: Final = 60.0
DRA: Final = "resource.k8s.io"
HOME: Final = "/home/user"
SLICES: Final = "mig-"
RUNTIMES: Final = {"containerd": (2, 1), "cri-o": (1, 31)}
"""Container runtimes, and from which release on they have them."""


def _server(there: Examined) -> Iterator[Finding]:
    words = f"API server {there.server}, Kubernetes {_dotted(there.release)}, jobs in namespace {there.namespace}"
    if there.release < OLDEST:
        yield error("kube.server", f"{words}: too old", f"Kubernetes {_dotted(OLDEST)} or later is needed")
    else:
        yield ok("kube.server", words)


def _rights(there: Examined) -> Iterator[Finding]:
    if there.lacking is None:
        yield warning("kube.rights", "the cluster does not tell which rights we have", "ask its administrator")
        return
    for lack in there.lacking:
        advice = "give them to who runs the daemon: k8s/slurmbridge/templates/rights.yaml has them all"
        if lack.without:
            yield warning("kube.rights", f"missing: {lack.what}; without: {lack.without}", advice)
        else:
            yield error("kube.rights", f"missing: {lack.what}; no job can run", advice)
    if not there.lacking:
        yield ok("kube.rights", "all rights that are needed are there")


def _clock(there: Examined) -> Iterator[Finding]:
    if there.skew_s is None:
        return
    late, way = abs(there.skew_s), "before" if there.skew_s > 0 else "behind"
    words = f"this clock is {late:.0f} s {way} the cluster's"
    if late >= TOO_LATE_S:
        yield error(
            "kube.clock", f"{words}: tokens and certificates count as not yet valid, or as old", "set both by NTP"
        )
    elif late >= LATE_S:
        yield warning("kube.clock", f"{words}: times in sacct and in the cluster's events differ", "set both by NTP")
    else:
        yield ok("kube.clock", "the clocks agree")


def _nodes(there: Examined) -> Iterator[Finding]:
    if there.nodes is None:
        yield warning("kube.nodes", "nodes cannot be listed")
        return
    if not there.nodes:
        yield error("kube.nodes", "the cluster has no nodes", "add some, or look whether they register themselves")
        return
    silent = [node.name for node in there.nodes if not node.is_ready]
    yield ok("kube.nodes", f"{len(there.nodes)} nodes, {len(there.nodes) - len(silent)} of them ready")
    if silent:
        yield warning("kube.nodes", f"not ready: {compress_sorted(silent)}", "kubectl describe node says why")
    others = sum(node.labels.get("kubernetes.io/os", "linux") != "linux" for node in there.nodes)
    if others:
        yield warning("kube.nodes", f"{others} nodes are not Linux: no job can run there")


def _devices(there: Examined) -> Iterator[Finding]:
    if there.nodes is None:
        return
    whole: Counter[str] = Counter()
    missing: list[str] = []
    unlabelled: list[str] = []
    for node in there.nodes:
        for name, (capacity, allocatable) in node.devices.items():
            whole[name] += allocatable
            if allocatable < capacity:
                missing.append(f"{capacity - allocatable} of {capacity} {name} on {node.name}")
        if there.gpu_resource in node.devices and f"{there.gpu_resource}.memory" not in node.labels:
            unlabelled.append(node.name)
        if node.labels.get(f"{there.gpu_resource}.present") == "true" and not any(
            capacity for name, (capacity, _) in node.devices.items() if _is_of_gpus(name, there.gpu_resource)
        ):
            yield warning(
                "kube.devices",
                f"{node.name} has GPUs by its labels, but offers none",
                "look at the device plugin's pod there",
            )
    found = ", ".join(f"{count} {name}" for name, count in sorted(whole.items()))
    yield ok("kube.devices", f"devices for jobs: {found}" if found else "no node offers devices: jobs have no GPUs")
    if missing:
        yield warning("kube.devices", f"broken or withdrawn: {'; '.join(missing)}", "the device plugin's log says why")
    if there.tainted:
        yield warning(
            "kube.devices", f"with a taint, not given to new jobs: {'; '.join(there.tainted)}",
            "kubectl get resourceslices,devicetaintrules --output=yaml says since when",
        )  # fmt: skip
    if unlabelled:
        yield warning(
            "kube.devices.memory", f"no label tells the memory of GPUs on {compress_sorted(unlabelled)}: --gpu-memory counts"
            " on the usual size", "run GPU feature discovery, or say gpuMemoryMiB in the site file",
        )  # fmt: skip


def _is_of_gpus(name: str, resource: str) -> bool:
    domain = resource.partition("/")[0]
    return name == resource or name.startswith(f"{domain}/{SLICES}") or name == f"{resource}.shared"


def _claims_of_devices(there: Examined) -> Iterator[Finding]:
    if DRA in there.groups:
        yield ok("kube.dra", "dynamic resource allocation is served (GPUs are taken from device plugins all the same)")


def _supervisor(there: Examined) -> Iterator[Finding]:
    """How the supervisor gets into pods: each partition has a way, and nodes that can go it."""
    served = there.release >= IMAGE_VOLUMES
    old = [node.name for node in there.nodes or () if not _takes_image_volumes(node)] if served else []
    if not served:
        yield ok(
            "kube.supervisor", f"no image volumes before Kubernetes {_dotted(IMAGE_VOLUMES)}: each pod copies the supervisor,"
            " which takes a second or two",
        )  # fmt: skip
    elif not old:
        yield ok("kube.supervisor", "image volumes are there: the supervisor comes into pods without being copied")
    for name, template in there.templates.items():
        if old and template.supervisor in ("auto", "image"):
            yield error(
                "kube.supervisor", f"partition {name}: no job starts on {compress_sorted(old)}, whose kubelet or container"
                " runtime is too old for image volumes", "say supervisor: copy in the site file, or renew these nodes",
            )  # fmt: skip
        elif template.supervisor == "image" and not served:
            yield error("kube.supervisor", f"partition {name}: there are no image volumes", "supervisor: copy, or auto")
        if template.supervisor != "hostPath" and not template.supervisor_image:
            yield error(
                "kube.supervisor",
                f"partition {name}: no image brings the supervisor",
                "say supervisorImage in the site file",
            )
        if not template.image:
            yield warning(
                "kube.image", f"partition {name} has no image: only jobs with --container-image run there",
                "say image in the site file",
            )  # fmt: skip


def _takes_image_volumes(node: ExaminedNode) -> bool:
    """What is not known counts as new."""
    runtime = next((least for name, least in RUNTIMES.items() if node.runtime.startswith(f"{name}://")), (0, 0))
    numbers = re.findall(r"\d+", node.runtime.partition("://")[2])[:2]
    return (node.kubelet == (0, 0) or node.kubelet >= IMAGE_VOLUMES) and (
        len(numbers) < 2 or tuple(map(int, numbers)) >= runtime
    )


def _security(there: Examined) -> Iterator[Finding]:
    if there.level is None:
        yield warning("kube.security", "the level of pod security of the namespace is not known")
    leaving = {  # neither an image nor a copy leaves it
        name: departures(template, supervisor=template.supervisor) for name, template in there.templates.items()
    }
    for name, left in leaving.items():
        words = "; ".join(f"{each.setting}: {each.why}" for each in left)
        if left and there.level == "restricted":
            yield error(
                "kube.security", f"the namespace admits the restricted level alone, so no job of partition {name} starts:"
                f" {words}", "take these settings away, or give such partitions' jobs a namespace of another level",
            )  # fmt: skip
        elif left:
            yield warning("kube.security", f"partition {name} leaves the restricted level: {words}")
    if there.level not in (None, "restricted"):
        yield warning(
            "kube.security", f"the namespace enforces {there.level or 'no level of pod security'}; the daemon's pods keep to"
            " restricted unless a partition says otherwise, others' pods there may not",
            f"kubectl label namespace {there.namespace} pod-security.kubernetes.io/enforce=restricted",
        )  # fmt: skip
    elif there.level == "restricted" and not any(leaving.values()):
        yield ok("kube.security", "the namespace enforces the restricted level of pod security")


def _storage(there: Examined) -> Iterator[Finding]:
    for claim in there.claims:
        if claim.is_there is False:
            yield error(
                "kube.storage",
                f"there is no claim {claim.name} in namespace {there.namespace}: pods wait for it",
                "make it",
            )
        elif claim.phase and claim.phase != "Bound":
            yield warning(
                "kube.storage",
                f"claim {claim.name} is {claim.phase}: pods wait for it",
                "kubectl describe pvc says why",
            )
        elif claim.access_modes and not {"ReadWriteMany", "ReadOnlyMany"} & set(claim.access_modes):
            yield warning(
                "kube.storage", f"claim {claim.name} can be mounted on one node only ({', '.join(claim.access_modes)}): jobs"
                " on others do not start", "take a volume of access mode ReadWriteMany for what jobs share",
            )  # fmt: skip
        elif claim.is_there:
            yield ok("kube.storage", f"claim {claim.name} is bound")
    for name, template in there.templates.items():
        if not _shared(template):
            yield warning(
                "kube.storage", f"partition {name} has no volume that nodes share: output goes to the daemon, and jobs see"
                " no files of those who submit them", "say volumes and volumeMounts in the site file",
            )  # fmt: skip
        elif volume_at(template.volume_mounts, HOME) is None:
            yield warning(
                "kube.storage", f"partition {name} does not mount /home: jobs that are submitted from there do not find their"
                " folder", "mount what holds home directories, at the same path as where people log in",
            )  # fmt: skip


def _shared(template: PodTemplate) -> bool:
    return any(not {"emptyDir", "configMap", "secret", "downwardAPI"} & set(volume) for volume in template.volumes)


CHECKS: Final[tuple[Callable[[Examined], Iterator[Finding]], ...]] = (
    _server, _clock, _rights, _security, _supervisor, _nodes, _devices, _claims_of_devices, _storage,
)  # fmt: skip


def judge(there: Examined) -> list[Finding]:
    if there.fault:
        advice = "name the cluster with --kubeconfig, and see that it answers (kubectl version)"
        return [error("kube.server", there.fault, advice)]
    return [finding for check in CHECKS for finding in check(there)]


def _dotted(version: tuple[int, int]) -> str:
    return "{}.{}".format(*version)
