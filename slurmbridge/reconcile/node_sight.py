"""What is seen of a cluster's nodes, and of what others than us hold on them, as far as decisions need it.

Made from the cluster's objects in `runtime.kube`; nothing here knows an API. CPUs are thousandths, memory MiB.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    cpu_milli: int = 0
    memory_mib: int = 0
    disk_mib: int = 0
    pods: int = 0
    resources: Mapping[str, int] = {}  # devices and the like, whole ones


class SeenTaint(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = ""


class SeenCondition(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    status: str  # True, False, Unknown
    reason: str = ""
    message: str = ""


class BadDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that shall have no new jobs, by a taint of its own."""

    driver: str
    name: str  # in the driver's pool
    uuid: str = ""
    profile: str = ""  # of a slice
    why: str = ""  # the taint


class SeenNode(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # the cluster's
    uid: str = ""
    labels: Mapping[str, str] = {}
    capacity: Amounts = Amounts()  # what the machine has
    allocatable: Amounts = Amounts()  # what pods may have of it
    is_cordoned: bool = False
    cordoned_by: str = ""  # our annotation: whose cordon it is, and why
    taints: tuple[SeenTaint, ...] = ()
    conditions: tuple[SeenCondition, ...] = ()
    address: str = ""
    host: str = ""
    arch: str = ""
    os: str = ""
    kubelet: str = ""  # version
    bad_devices: tuple[BadDevice, ...] = ()


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """What pods that are not ours ask for on one node."""

    system: Amounts = Amounts()  # of daemon sets and of pods that the node itself keeps: they stay
    others: Amounts = Amounts()  # of other schedulers and frameworks: they come and go
