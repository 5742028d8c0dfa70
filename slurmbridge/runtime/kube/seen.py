"""Pods, services and nodes of a cluster as the decisions of `reconcile` need them.

The only place that knows where Kubernetes keeps what: labels and annotations of ours, phases, states of containers,
conditions and taints.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from slurmbridge.manifest import pod_devices, pod_names
from slurmbridge.manifest.pod import MAIN
from slurmbridge.manifest.pod_devices import Slot
from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.holders import SeenHolder
from slurmbridge.reconcile.observed import Life, NodeState, SeenPod, SeenService
from slurmbridge.runtime.kube.objects import ContainerStatus, Meta, Node, Object, PodStatus, Struct

NO_RUN = RunKey(0, 0)
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
NOT_YET = ("PodInitializing", "ContainerCreating")
"""What a container says that waits for its turn: no reason."""


class HeldMeta(Meta, frozen=True, kw_only=True):
    finalizers: tuple[str, ...] = ()


class OnNode(Struct, frozen=True, kw_only=True):
    """Of the spec all that is not known before: we made it."""

    node_name: str = ""


class RunPod(Object, frozen=True, kw_only=True):
    """A pod with what is looked at in our own ones only."""

    metadata: HeldMeta = HeldMeta()
    spec: OnNode = OnNode()
    status: PodStatus = PodStatus()


class Warned(msgspec.Struct, frozen=True, kw_only=True):
    """The last warning about a pod."""

    reason: str = ""
    message: str = ""


def key_of(metadata: Meta, instance: str) -> RunKey | None:
    """The run that an object is of; None: it is none of ours."""
    if metadata.labels.get(pod_names.INSTANCE) != instance:
        return None
    job, restart = _number(metadata.labels.get(pod_names.JOB)), _number(metadata.labels.get(pod_names.RESTART))
    return None if job is None or restart is None else RunKey(job, restart)


def pod_of(
    pod: RunPod, key: RunKey, node_state: NodeState, warned: Warned = Warned(), *, main_name: str = MAIN, title: str = ""
) -> SeenPod:  # fmt: skip
    metadata, status = pod.metadata, pod.status
    waiting, waiting_message = _waiting(status)
    main = next((each for each in status.container_statuses if each.name == main_name), ContainerStatus())
    end = main.state.terminated
    disruption = next(
        (each for each in status.conditions if each.type == "DisruptionTarget" and each.status == "True"), None
    )
    return SeenPod(
        name=metadata.name,
        uid=metadata.uid,
        key=key,
        rank=_number(metadata.labels.get(pod_names.RANK)) or 0,
        ranks=_number(metadata.annotations.get(pod_names.RANKS)) or 1,
        spec_hash=metadata.annotations.get(pod_names.HASH, ""),
        epoch=metadata.annotations.get(pod_names.EPOCH, ""),
        node=pod.spec.node_name,
        node_state=node_state,
        life=_life(status, main),
        is_held=pod_names.HOLD in metadata.finalizers,
        is_deleting=metadata.deletion_timestamp is not None,
        created=time_of(metadata.creation_timestamp),
        reason=status.reason,
        message=status.message or (disruption.message if disruption else ""),
        waiting=waiting,
        waiting_message=waiting_message,
        exit_reason=end.reason if end else "",
        exit_code=end.exit_code if end else 0,
        disruption=disruption.reason if disruption else "",
        event=warned.reason,
        event_message=warned.message,
        last_words=end.message if end else "",
        shares=pod_devices.read(metadata.annotations.get(pod_devices.SHARES, "")),
        title=title,
    )


def holder_of(pod: RunPod, slot: Slot, node_state: NodeState) -> SeenHolder:
    told = next(
        (each for each in pod.status.init_container_statuses if each.name == pod_devices.TELLER), ContainerStatus()
    )
    end = told.state.terminated
    title = f"the pod that holds device {slot[1]}"
    return SeenHolder(
        pod=pod_of(pod, NO_RUN, node_state, main_name=pod_devices.HOLDER, title=title),
        device=pod_devices.id_of(end.message) if end is not None and end.exit_code == 0 else "",
    )


def service_of(service: Object, key: RunKey) -> SeenService:
    metadata = service.metadata
    return SeenService(
        name=metadata.name,
        uid=metadata.uid,
        key=key,
        spec_hash=metadata.annotations.get(pod_names.HASH, ""),
        epoch=metadata.annotations.get(pod_names.EPOCH, ""),
        is_deleting=metadata.deletion_timestamp is not None,
    )


def state_of(node: Node | None) -> NodeState:
    """None: the node was asked for, and there is no such object."""
    if node is None:
        return NodeState.GONE
    if any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
        return NodeState.OUT_OF_SERVICE
    is_ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    return NodeState.THERE if is_ready else NodeState.SILENT


def time_of(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _life(status: PodStatus, main: ContainerStatus) -> Life:
    containers = (*status.init_container_statuses, *status.container_statuses)
    if status.phase in ("Succeeded", "Failed") and not any(each.state.running for each in containers):
        return Life.ENDED
    if main.state.running or main.state.terminated:
        return Life.RUNNING  # of a container that ended its pod has still to say so
    return Life.WAITING if status.start_time else Life.UNTAKEN


def _waiting(status: PodStatus) -> tuple[str, str]:
    states = [each.state.waiting for each in (*status.init_container_statuses, *status.container_statuses)]
    known = [each for each in states if each is not None and each.reason]
    telling = [each for each in known if each.reason not in NOT_YET] or known
    return (telling[0].reason, telling[0].message) if telling else ("", "")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
