"""What are the objects of a run? One pod per allocated node, made for that node, and for several a headless service.

Follows the core/v1 reference. Pure: the same launch gives the same objects, to the last byte, so that a hash tells whether
an object that is there already is the one that is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slurmbridge.manifest import pod_devices, pod_names, pod_volumes
from slurmbridge.manifest.pod_container import Settled
from slurmbridge.manifest.pod_limits import Limiter, limiter_of
from slurmbridge.manifest.pod_resources import VISIBLE, device_env, parts_of, resources, shm_mib
from slurmbridge.manifest.pod_security import container_context, pod_context
from slurmbridge.manifest.pod_site import PROGRAM, PYTHON, STAYS, TOKEN_FILE, PodSite
from slurmbridge.model.pods import Json, Manifest, PodTemplate
from slurmbridge.model.run import Launch, LaunchNode

MAIN = "job"


class RunObjects(msgspec.Struct, frozen=True, kw_only=True):
    """All that is made for a run."""

    pods: tuple[Manifest, ...]  # by rank
    service: Manifest | None = None


def build(
    launch: Launch,
    template: PodTemplate,
    site: PodSite,
    container: Settled,
    *,
    devices: Sequence[tuple[str, ...]] = (),
) -> RunObjects:
    """`devices`: of each rank the ids of the devices it shares, in their order."""
    hosts = pod_names.host_names([node.node for node in launch.nodes])
    is_gang = len(launch.nodes) > 1
    pods = tuple(
        pod_names.sealed(
            _pod(launch, node, template, site, container, hosts[node.rank], is_gang,
                 devices[node.rank] if devices else ()),
            launch.epoch,
        )
        for node in launch.nodes
    )  # fmt: skip
    return RunObjects(pods=pods, service=pod_names.sealed(_service(launch, site), launch.epoch) if is_gang else None)


def _pod(
    launch: Launch,
    node: LaunchNode,
    template: PodTemplate,
    site: PodSite,
    container: Settled,
    host: str,
    is_gang: bool,
    given: tuple[str, ...],
) -> Manifest:
    key = launch.key
    amounts = resources(node, template, site)
    parts = parts_of(node)
    limiter = limiter_of(template.gpu_sharing, parts)
    has_scratch = pod_volumes.needs_scratch(template, container)
    spec: Manifest = {
        "nodeName": site.kube_nodes.get(node.node, node.node),
        "restartPolicy": "Never",
        "serviceAccountName": site.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": launch.kill_wait_s + site.grace_s,
        "securityContext": pod_context(template, uid=launch.uid, gid=launch.gid, groups=launch.groups),
        "tolerations": [*STAYS, *template.tolerations],
        "containers": [_container(launch, node, template, site, container, amounts, given, limiter)],
        "volumes": pod_volumes.volumes(
            template, site, shm_mib(node, template), has_scratch=has_scratch, limiter=limiter
        ),
        **_network(launch, template, site, host, is_gang),
    }
    before = pod_volumes.init_containers(template, site, amounts)
    if before:
        spec["initContainers"] = before
    if template.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in template.image_pull_secrets]
    if template.priority_class_name:
        spec["priorityClassName"] = template.priority_class_name
    if template.runtime_class_name:
        spec["runtimeClassName"] = template.runtime_class_name
    texts = {
        pod_names.JOB_NAME: launch.job_name, pod_names.USER: launch.user, pod_names.ACCOUNT: launch.account,
        pod_names.PARTITION: launch.partition, pod_names.COMMENT: launch.comment,
        pod_names.RANKS: str(len(launch.nodes)),
        pod_devices.SHARES: pod_devices.told(pod_devices.slots_of(node), given) if parts else "",
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_names.pod_name(site.instance, key, node.rank),
            "namespace": site.namespace,
            "labels": pod_names.labels(site.instance, key, node.rank, launch.uid),
            "annotations": {name: text for name, text in texts.items() if text},
            "finalizers": [pod_names.HOLD],
        },
        "spec": spec,
    }


def _container(
    launch: Launch, node: LaunchNode, template: PodTemplate, site: PodSite, container: Settled, amounts: Manifest,
    given: tuple[str, ...], limiter: Limiter,
) -> Manifest:  # fmt: skip
    pinned = {**device_env(node, given), **limiter.env(parts_of(node))}
    own: list[Json] = [variable for variable in template.env if variable.get("name") not in {VISIBLE, *pinned}]
    own += [{"name": name, "value": value} for name, value in pinned.items()]
    return {
        "name": MAIN,
        "image": container.image,
        "command": [PYTHON, "-I", "-S", PROGRAM],
        "args": arguments(launch, node, site, container),
        "env": own,
        "resources": amounts,
        "securityContext": container_context(template, read_only=container.read_only),
        "terminationMessagePolicy": "File",
        "volumeMounts": pod_volumes.mounts(
            template,
            (*limiter.mounts, *container.mounts),
            has_scratch=pod_volumes.needs_scratch(template, container),
        ),
        "workingDir": "/",  # a runtime makes a working directory that is missing, as root; the supervisor changes to it
    }


def arguments(launch: Launch, node: LaunchNode, site: PodSite, container: Settled) -> list[Json]:
    """Of the supervisor: nothing secret, only where to dial and who to be; a launch comes over the connection.

    `--same SRC DST`: start nothing unless the user reaches SRC and finds the same folder at DST. A kubelet mounts parts of
    a volume with all rights, also those that the user has no way to.
    """
    words: list[Json] = [
        "--daemon", site.daemon, "--token", TOKEN_FILE, "--job", str(launch.key.job_id),
        "--restart", str(launch.key.restarts), "--rank", str(node.rank), "--node", node.node,
    ]  # fmt: skip
    if site.pin:
        words += ["--pin", site.pin]
    for bind in container.binds:
        words += ["--same", bind.source, bind.target]
    return words


def _network(launch: Launch, template: PodTemplate, site: PodSite, host: str, is_gang: bool) -> Manifest:
    """Host name and, in a gang, how one rank finds another by its node's name."""
    found: Manifest = {"hostname": host}
    if template.host_network:
        found = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}  # its name and addresses are the node's
    elif is_gang:
        service = pod_names.run_name(site.instance, launch.key)
        found["subdomain"] = service
        found["dnsConfig"] = {"searches": [f"{service}.{site.namespace}.svc.{site.cluster_domain}"]}
    return found


def _service(launch: Launch, site: PodSite) -> Manifest:
    """Headless, and it names ranks before they are ready: they look for each other before anything runs."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": pod_names.run_name(site.instance, launch.key),
            "namespace": site.namespace,
            "labels": pod_names.labels(site.instance, launch.key),
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": pod_names.labels(site.instance, launch.key),
        },
    }
