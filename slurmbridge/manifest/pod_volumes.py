"""Which folders does a pod have besides those of its partition? The supervisor's, /dev/shm, and a token that names the pod.

The supervisor comes in one of three ways (see docs/decisions): an image volume, a copy that an init container makes, or a
folder of the nodes. Follows "Volumes" (image, emptyDir, projected, hostPath) of the Kubernetes documentation.
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.manifest.pod_container import READ_ONLY, Settled
from slurmbridge.manifest.pod_limits import NONE, Limiter
from slurmbridge.manifest.pod_security import container_context
from slurmbridge.manifest.pod_site import AUDIENCE, PYTHON, ROOT, TOKENS, PodSite
from slurmbridge.model.pods import Manifest, PodTemplate

SUPERVISOR, TOKEN, SHM, SCRATCH = "slurmbridge", "slurmbridge-token", "slurmbridge-shm", "slurmbridge-tmp"
OURS = frozenset({SUPERVISOR, TOKEN, SHM, SCRATCH})
"""Names that a partition's own volumes cannot have."""
TAKEN = frozenset({ROOT, TOKENS, "/dev/shm"})
TOKEN_LIFE_S = 3600  # the kubelet renews it
COPY = "/copy"
TMP = "/tmp"
_COPY_PROGRAM = f"import shutil; [shutil.copytree(f'{ROOT}/{{part}}', f'{COPY}/{{part}}', symlinks=True) for part in ('bin', 'commands', 'lib')]"


def way_in(template: PodTemplate, site: PodSite) -> str:
    """image, copy or hostPath."""
    return site.supervisor if template.supervisor == "auto" else template.supervisor


def needs_scratch(template: PodTemplate, container: Settled) -> bool:
    """Whether a root without write access leaves programs no /tmp."""
    is_read_only = template.security_context.get(READ_ONLY) if container.read_only is None else container.read_only
    mounts = (*template.volume_mounts, *container.mounts)
    return bool(is_read_only) and not any(str(mount.get("mountPath")).rstrip("/") == TMP for mount in mounts)


def volumes(
    template: PodTemplate, site: PodSite, shm_mib: int | None, *, has_scratch: bool = False, limiter: Limiter = NONE
) -> list[Manifest]:  # fmt: skip
    shm: Manifest = {"medium": "Memory"}
    if shm_mib is not None:
        shm["sizeLimit"] = f"{shm_mib}Mi"
    token: Manifest = {"audience": AUDIENCE, "expirationSeconds": TOKEN_LIFE_S, "path": "token"}
    return [
        {"name": SUPERVISOR, **supervisor_volume(template, site)},
        {"name": TOKEN, "projected": {"sources": [{"serviceAccountToken": token}], "defaultMode": 0o444}},
        {"name": SHM, **(limiter.shm or {"emptyDir": shm})},
        *([{"name": SCRATCH, "emptyDir": {}}] if has_scratch else ()),
        *limiter.volumes,
        *template.volumes,
    ]


def supervisor_volume(template: PodTemplate, site: PodSite) -> Manifest:
    match way_in(template, site):
        case "image":
            return {"image": {"reference": _image(template, site), "pullPolicy": "IfNotPresent"}}
        case "copy":
            return {"emptyDir": {}}
    return {"hostPath": {"path": template.supervisor_path or site.supervisor_path, "type": "Directory"}}


def mounts(template: PodTemplate, of_user: Sequence[Manifest], *, has_scratch: bool = False) -> list[Manifest]:
    return [
        {"name": SUPERVISOR, "mountPath": ROOT, "readOnly": True},
        {"name": TOKEN, "mountPath": TOKENS, "readOnly": True},
        {"name": SHM, "mountPath": "/dev/shm"},
        *([{"name": SCRATCH, "mountPath": TMP}] if has_scratch else ()),
        *template.volume_mounts,
        *of_user,
    ]


def init_containers(template: PodTemplate, site: PodSite, resources: Manifest) -> list[Manifest]:
    """The copy, where it is made: with the container's own resources, which the pod has taken anyway."""
    if way_in(template, site) != "copy":
        return []
    amounts = {
        kind: {name: amount for name, amount in of_kind.items() if name in ("cpu", "memory")}
        for kind, of_kind in resources.items()
        if isinstance(of_kind, dict)
    }
    return [
        {
            "name": "supervisor",
            "image": _image(template, site),
            "command": [PYTHON, "-I", "-S", "-c", _COPY_PROGRAM],
            "resources": amounts,
            "securityContext": container_context(template),
            "volumeMounts": [{"name": SUPERVISOR, "mountPath": COPY}],
        }
    ]


def _image(template: PodTemplate, site: PodSite) -> str:
    return template.supervisor_image or site.supervisor_image
