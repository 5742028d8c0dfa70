"""The fields of Kubernetes objects that are used here, and nothing else of them.

Names and shapes are those of the core/v1 reference. A decoder skips all other fields without making anything of them:
that is what makes a list of ten thousand pods cheap.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Python's spelling here, Kubernetes' in the text; what is absent is empty. No cycles, so not the collector's business."""


class Owner(Struct, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    api_version: str = ""


class Meta(Struct, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()


class Object(Struct, frozen=True, kw_only=True):
    """What every object has."""

    metadata: Meta = Meta()

    @property
    def key(self) -> tuple[str, str]:
        return (self.metadata.namespace, self.metadata.name)


# Pods


class Resources(Struct, frozen=True, kw_only=True):
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class Container(Struct, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""  # "Always" on an init container makes it a sidecar


class Gate(Struct, frozen=True, kw_only=True):
    name: str = ""


class Toleration(Struct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PodSpec(Struct, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = {}
    scheduling_gates: tuple[Gate, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: dict[str, str] = {}
    restart_policy: str = "Always"


class Terminated(Struct, frozen=True, kw_only=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class Waiting(Struct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class Running(Struct, frozen=True, kw_only=True):
    started_at: str | None = None


class ContainerState(Struct, frozen=True, kw_only=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class Condition(Struct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""  # True, False, Unknown
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Struct, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    host_ip: str = msgspec.field(name="hostIP", default="")
    start_time: str | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Object, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# Nodes


class Taint(Struct, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Struct, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Address(Struct, frozen=True, kw_only=True):
    type: str = ""
    address: str = ""


class NodeInfo(Struct, frozen=True, kw_only=True):
    boot_id: str = msgspec.field(name="bootID", default="")
    kernel_version: str = ""
    os_image: str = ""
    kubelet_version: str = ""
    architecture: str = ""


class NodeStatus(Struct, frozen=True, kw_only=True):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[Address, ...] = ()
    node_info: NodeInfo = NodeInfo()


class Node(Object, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# Answers


T = TypeVar("T", bound=Object)


class ListMeta(Struct, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Listing(Struct, Generic[T], frozen=True, kw_only=True):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] | None = None


class Seen(Struct, Generic[T], frozen=True, kw_only=True):
    """A line of a watch as nearly all of them are: with an object of the kind that is watched."""

    type: str = ""
    object: T


class Event(Struct, frozen=True, kw_only=True):
    """Any line of a watch; what `object` is depends on the type."""

    type: str = ""  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    object: msgspec.Raw = msgspec.Raw(b"{}")
