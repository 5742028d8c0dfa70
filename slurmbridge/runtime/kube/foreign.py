"""What do pods that are not ours hold on the nodes? One watch of the whole cluster's pods, of few fields.

What counts is what a scheduler counts: the requests of pods that are on a node and have not ended ("Resource Management
for Pods and Containers", "Sidecar containers", "Pod Overhead" of the Kubernetes documentation).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from slurmbridge.manifest import pod_names
from slurmbridge.reconcile.node_sight import Amounts, Foreign
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import Kind
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.node_seen import amounts_of
from slurmbridge.runtime.kube.objects import Container, Object, Resources, Struct
from slurmbridge.runtime.kube.watching import Follower

log = logging.getLogger(__name__)
LOOK_S = 0.05


class HeldSpec(Struct, frozen=True, kw_only=True):
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = {}
    resources: Resources = Resources()  # of the pod as a whole


class HeldStatus(Struct, frozen=True, kw_only=True):
    phase: str = ""


class ForeignPod(Object, frozen=True, kw_only=True):
    """A pod as far as it takes room."""

    spec: HeldSpec = HeldSpec()
    status: HeldStatus = HeldStatus()


class ForeignPods:
    """`changed()` is called on the loop when what somebody holds changed."""

    def __init__(self, api: Api, instance: str, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._follower = Follower(
            api, "/api/v1/pods", ForeignPod, self._hand_over, labels=f"{pod_names.INSTANCE}!={instance}",
            fields="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
        )  # fmt: skip
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pods: dict[str, dict[str, tuple[bool, Amounts]]] = {}  # node -> uid
        self.by_node: dict[str, Foreign] = {}
        self.system_versions = 0  # how often what daemon sets hold changed

    async def start(self, within: float) -> bool:
        """False: they could not be listed in time. Without the right to see them nobody else is known to hold anything."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._follower.start()
        waited = 0.0
        while not await asyncio.to_thread(self._follower.wait_listed, LOOK_S):
            waited += LOOK_S
            fault = self._follower.fault
            if fault is not None and fault.kind is Kind.FORBIDDEN:
                log.warning("event=inventory.blind reason=%s", fault)
                return True
            if waited >= within:
                return False
        await asyncio.sleep(0)
        return True

    async def stop(self) -> None:
        await asyncio.to_thread(self._follower.stop)

    def _hand_over(self, changes: Sequence[Change[ForeignPod]]) -> None:
        held = [(change.before, change.after) for change in changes]
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._take, held)
        except RuntimeError:
            return  # the loop has ended; the next one lists again

    def _take(self, changes: Sequence[tuple[ForeignPod | None, ForeignPod | None]]) -> None:
        touched: dict[str, None] = {}
        for before, after in changes:
            if before is not None and before.spec.node_name:
                self._pods.get(before.spec.node_name, {}).pop(before.metadata.uid, None)
                touched[before.spec.node_name] = None
            if after is not None and after.spec.node_name and after.status.phase not in ("Succeeded", "Failed"):
                held = self._pods.setdefault(after.spec.node_name, {})
                held[after.metadata.uid] = (is_system(after), asked_for(after.spec))
                touched[after.spec.node_name] = None
        moved = False
        for node in touched:
            was, now = self.by_node.get(node, Foreign()), foreign_of(self._pods.get(node, {}).values())
            moved = moved or was != now
            self.system_versions += was.system != now.system
            if now == Foreign():
                self.by_node.pop(node, None)
                if not self._pods.get(node):
                    self._pods.pop(node, None)
            else:
                self.by_node[node] = now
        if moved:
            self._changed()


def is_system(pod: ForeignPod) -> bool:
    """Whether it belongs to the node: of a daemon set, or one that the kubelet keeps by itself."""
    return any(owner.kind in ("DaemonSet", "Node") and owner.controller for owner in pod.metadata.owner_references)


def foreign_of(held: Iterable[tuple[bool, Amounts]]) -> Foreign:
    every = list(held)
    return Foreign(
        system=total(amounts for is_system, amounts in every if is_system),
        others=total(amounts for is_system, amounts in every if not is_system),
    )


def total(amounts: Iterable[Amounts]) -> Amounts:
    every = list(amounts)
    resources: dict[str, int] = {}
    for each in every:
        for name, count in each.resources.items():
            resources[name] = resources.get(name, 0) + count
    return Amounts(
        cpu_milli=sum(each.cpu_milli for each in every),
        memory_mib=sum(each.memory_mib for each in every),
        disk_mib=sum(each.disk_mib for each in every),
        pods=sum(each.pods for each in every),
        resources=resources,
    )


def asked_for(spec: HeldSpec) -> Amounts:
    """What a scheduler sets aside for a pod."""
    main = total(_of(each.resources) for each in spec.containers)
    sidecars, most = Amounts(), Amounts()
    for each in spec.init_containers:
        own = _of(each.resources)
        if each.restart_policy == "Always":
            sidecars = total((sidecars, own))
            most = _larger(most, sidecars)
        else:
            most = _larger(most, total((sidecars, own)))
    whole = _larger(total((main, sidecars)), most)
    if spec.resources != Resources():
        whole = _over(whole, _written(spec.resources), _of(spec.resources))
    overhead = amounts_of(spec.overhead, up=True)
    return msgspec.structs.replace(total((whole, overhead)), pods=1)


def _written(resources: Resources) -> Mapping[str, str]:
    """A limit without a request is the request, too."""
    return {**resources.limits, **resources.requests}


def _of(resources: Resources) -> Amounts:
    return amounts_of(_written(resources), up=True)


def _larger(one: Amounts, other: Amounts) -> Amounts:
    names = {*one.resources, *other.resources}
    return Amounts(
        cpu_milli=max(one.cpu_milli, other.cpu_milli),
        memory_mib=max(one.memory_mib, other.memory_mib),
        disk_mib=max(one.disk_mib, other.disk_mib),
        resources={name: max(one.resources.get(name, 0), other.resources.get(name, 0)) for name in names},
    )


def _over(whole: Amounts, names: Mapping[str, str], pod: Amounts) -> Amounts:
    """What the pod as a whole asks for goes before the sum of its containers, for the resources that it names."""
    return msgspec.structs.replace(
        whole,
        cpu_milli=pod.cpu_milli if "cpu" in names else whole.cpu_milli,
        memory_mib=pod.memory_mib if "memory" in names else whole.memory_mib,
        resources={**whole.resources, **pod.resources},
    )
