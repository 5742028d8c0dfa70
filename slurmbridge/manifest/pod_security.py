"""As whom does a pod run, and which settings of a partition leave the restricted level?

Follows "Pod Security Standards" (the restricted profile) and "Configure a Security Context" of the Kubernetes
documentation. A pod starts as its submitter and can become nobody else; what a partition allows beyond that is applied
and can be listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from slurmbridge.manifest.pod_limits import LIMITERS
from slurmbridge.model.pods import Json, Manifest, PodTemplate

OF_CONTAINERS = frozenset(
    {"allowPrivilegeEscalation", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem"}
)
OF_PODS = frozenset({"fsGroup", "fsGroupChangePolicy", "seLinuxChangePolicy", "supplementalGroupsPolicy", "sysctls"})
OF_BOTH = frozenset(
    {"appArmorProfile", "seLinuxOptions", "seccompProfile"}
)  # said of the pod, its containers inherit it
OF_THE_SUBMITTER = frozenset({"runAsUser", "runAsGroup", "runAsNonRoot", "supplementalGroups"})
KNOWN_FIELDS = OF_CONTAINERS | OF_PODS | OF_BOTH

RESTRICTED_VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
SAFE_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
SAFE_SECCOMP = frozenset({"RuntimeDefault", "Localhost"})
SAFE_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
    }
)  # fmt: skip
_PLAIN_POD: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}, "supplementalGroupsPolicy": "Strict"}
_PLAIN_CONTAINER: Manifest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """A setting because of which a namespace at the restricted level refuses the partition's pods."""

    setting: str
    why: str


def pod_context(template: PodTemplate, *, uid: int, gid: int, groups: Sequence[int]) -> Manifest:
    """securityContext of the pod: the submitter, with these supplementary groups and no other the image may name."""
    given = {key: value for key, value in template.security_context.items() if key in OF_PODS | OF_BOTH}
    return {
        **_PLAIN_POD,
        **given,
        "runAsUser": uid,
        "runAsGroup": gid,
        "runAsNonRoot": uid != 0,
        "supplementalGroups": sorted(set(groups) - {gid}),
    }


def container_context(template: PodTemplate, *, read_only: bool | None = None) -> Manifest:
    """securityContext of each container: no way up, no capabilities but those the partition adds.

    `read_only`: whether its root is without write access; None: as the partition has it.
    """
    given = {key: value for key, value in template.security_context.items() if key in OF_CONTAINERS}
    context: Manifest = {**_PLAIN_CONTAINER, **given}
    asked = given.get("capabilities")
    if isinstance(asked, Mapping):
        context["capabilities"] = {"drop": ["ALL"], **asked}
    if read_only is not None:
        context["readOnlyRootFilesystem"] = read_only
    if context.get("privileged"):
        context["allowPrivilegeEscalation"] = True  # the API refuses one without the other
    return context


def departures(template: PodTemplate, *, supervisor: str = "image") -> tuple[Departure, ...]:
    """All of them, in the order of the fields. `supervisor`: how it is brought in once `auto` is decided."""
    return tuple(Departure(setting=setting, why=why) for setting, why in _departures(template, supervisor))


def _departures(template: PodTemplate, supervisor: str) -> Iterator[tuple[str, str]]:
    context = template.security_context
    if template.host_network:
        yield "hostNetwork", "pods share the network of their node"
    for volume in template.volumes:
        for kind in sorted(set(volume) - {"name"} - RESTRICTED_VOLUMES):
            yield f"volumes {volume.get('name')}", f"{kind} is no kind of volume of the restricted level"
    if supervisor == "hostPath":
        yield "supervisor hostPath", "the supervisor's folder of the nodes is mounted"
    for folder in LIMITERS[template.gpu_sharing].departing:
        yield f"gpuSharing {template.gpu_sharing}", f"{folder} of the nodes is mounted where jobs share devices"
    if context.get("privileged"):
        yield "securityContext privileged", "containers have all rights on their node"
    if context.get("allowPrivilegeEscalation"):
        yield "securityContext allowPrivilegeEscalation", "programs may gain rights (setuid)"
    added = _part(context, "capabilities").get("add")
    for capability in added if isinstance(added, Sequence) and not isinstance(added, str) else ():
        if capability not in SAFE_CAPABILITIES:
            yield "securityContext capabilities", f"{capability} is added"
    if _part(context, "capabilities").get("drop") not in (None, ["ALL"], ("ALL",)):
        yield "securityContext capabilities", "not all capabilities are dropped"
    if "seccompProfile" in context and _part(context, "seccompProfile").get("type") not in SAFE_SECCOMP:
        yield "securityContext seccompProfile", "system calls are not filtered"
    if context.get("procMount") not in (None, "Default"):
        yield "securityContext procMount", "/proc is not masked"
    apparmor = _part(context, "appArmorProfile").get("type")
    if apparmor not in (None, "RuntimeDefault", "Localhost"):
        yield "securityContext appArmorProfile", "no profile confines the containers"
    if _part(context, "seLinuxOptions").keys() & {"user", "role"}:
        yield "securityContext seLinuxOptions", "SELinux user or role is set"
    sysctls = context.get("sysctls")
    for sysctl in sysctls if isinstance(sysctls, Sequence) and not isinstance(sysctls, str) else ():
        name = sysctl.get("name") if isinstance(sysctl, Mapping) else sysctl
        if name not in SAFE_SYSCTLS:
            yield "securityContext sysctls", f"{name} is not among the safe ones"


def _part(context: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    value = context.get(key)
    return value if isinstance(value, Mapping) else {}
