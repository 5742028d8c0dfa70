"""Bad devices of all nodes, from ResourceSlices and DeviceTaintRules of resource.k8s.io/v1 (Kubernetes 1.34, rules 1.37).

An API server that does not serve them has no such devices. Without the right to read them nothing is known of any; it is
tried on, and the log has said so. Of the slices of a pool only those of its newest generation count.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from slurmbridge.reconcile.node_sight import BadDevice, SeenTaint
from slurmbridge.reconcile.node_taints import SeenDevice, TaintRule, bad_by_node
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.objects import Object, Struct, Taint
from slurmbridge.runtime.kube.watching import Follower

log = logging.getLogger(__name__)

GROUP = "/apis/resource.k8s.io/v1"
LOOK_S = 0.05


class Attribute(Struct, frozen=True, kw_only=True):
    string: str = ""


NOTHING = Attribute()


class Attributes(Struct, frozen=True, kw_only=True):
    """A driver's own names come with its domain or without."""

    uuid: Attribute = NOTHING
    profile: Attribute = NOTHING
    nvidia_uuid: Attribute = msgspec.field(name="gpu.nvidia.com/uuid", default=NOTHING)
    nvidia_profile: Attribute = msgspec.field(name="gpu.nvidia.com/profile", default=NOTHING)


class SliceDevice(Struct, frozen=True, kw_only=True):
    name: str = ""
    node_name: str = ""  # where devices of a slice are of several nodes
    attributes: Attributes = Attributes()
    taints: tuple[Taint, ...] = ()


class SlicePool(Struct, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0


class SliceSpec(Struct, frozen=True, kw_only=True):
    driver: str = ""
    pool: SlicePool = SlicePool()
    node_name: str = ""
    devices: tuple[SliceDevice, ...] = ()


class Slice(Object, frozen=True, kw_only=True):
    spec: SliceSpec = SliceSpec()


class Selector(Struct, frozen=True, kw_only=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class RuleSpec(Struct, frozen=True, kw_only=True):
    device_selector: Selector | None = None  # None: of no device
    taint: Taint = Taint()


class Rule(Object, frozen=True, kw_only=True):
    spec: RuleSpec = RuleSpec()


class DeviceTaints:
    """`changed(nodes)` is called on the loop with the names of nodes whose bad devices are others now."""

    def __init__(self, api: Api, changed: Callable[[Sequence[str]], None]) -> None:
        self._api, self._changed = api, changed
        self._slices = Follower(api, f"{GROUP}/resourceslices", Slice, self._hand_over)
        self._rules = Follower(api, f"{GROUP}/devicetaintrules", Rule, self._hand_over)
        self._followers: list[Follower[Any]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False
        self.by_node: dict[str, tuple[BadDevice, ...]] = {}

    async def start(self, within: float) -> bool:
        """False: they are served, and could not be listed in time."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            served = await asyncio.to_thread(self._served)
            by_name: dict[str, Follower[Any]] = {"resourceslices": self._slices, "devicetaintrules": self._rules}
            self._followers = [follower for name, follower in by_name.items() if name in served]
            for follower in self._followers:
                follower.start()
        waited = 0.0
        while waiting := [each for each in self._followers if not each.wait_listed(0.0)]:
            if all(each.fault is not None and each.fault.kind is Kind.FORBIDDEN for each in waiting):
                log.warning("event=inventory.no_device_taints reason=%s", waiting[0].fault)
                break
            if waited >= within:
                return False
            await asyncio.sleep(LOOK_S)
            waited += LOOK_S
        self._take()
        return True

    def _served(self) -> frozenset[str]:
        """Kinds of the group. An API server that does not say it is taken for one without."""
        try:
            found = msgspec.json.decode(self._api.get(GROUP), type=_Kinds)
        except ApiFault as fault:
            if fault.kind is not Kind.GONE:
                log.warning("event=inventory.no_device_taints reason=%s", fault)
            return frozenset()
        return frozenset(each.name for each in found.resources)

    async def stop(self) -> None:
        for follower in self._followers:
            await asyncio.to_thread(follower.stop)

    def _hand_over(self, changes: Sequence[Change[Any]]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._note)
        except RuntimeError:
            return  # the loop has ended; the next one lists again

    def _note(self) -> None:
        """Many slices change at once when a driver is rolled out."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(LOOK_S, self._take)

    def _take(self) -> None:
        self._is_due = False
        was = self.by_node
        self.by_node = bad_by_node(devices_of(list(self._slices.mirror)), rules_of(list(self._rules.mirror)))
        others = [name for name in {**was, **self.by_node} if was.get(name) != self.by_node.get(name)]
        if others:
            self._changed(others)


class _Kind(Struct, frozen=True, kw_only=True):
    name: str = ""


class _Kinds(Struct, frozen=True, kw_only=True):
    resources: tuple[_Kind, ...] = ()


def devices_of(slices: Sequence[Slice]) -> Iterator[SeenDevice]:
    """Those that are published now."""
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        pool = (each.spec.driver, each.spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), each.spec.pool.generation)
    for each in slices:
        spec = each.spec
        if spec.pool.generation < newest[spec.driver, spec.pool.name]:
            continue
        for device in spec.devices:
            has = device.attributes
            yield SeenDevice(
                driver=spec.driver, pool=spec.pool.name, name=device.name, node=spec.node_name or device.node_name,
                uuid=has.uuid.string or has.nvidia_uuid.string, profile=has.profile.string or has.nvidia_profile.string,
                taints=tuple(map(_taint, device.taints)),
            )  # fmt: skip


def rules_of(rules: Iterable[Rule]) -> Iterator[TaintRule]:
    for rule in rules:
        chosen = rule.spec.device_selector
        if chosen is not None:
            yield TaintRule(
                taint=_taint(rule.spec.taint), driver=chosen.driver, pool=chosen.pool, device=chosen.device
            )  # fmt: skip


def _taint(taint: Taint) -> SeenTaint:
    return SeenTaint(key=taint.key, value=taint.value, effect=taint.effect)
