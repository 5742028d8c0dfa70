"""Which nodes has the cluster, what may be used of them, and how are they? Told in the words of `reconcile`.

    inventory = Inventory(api, instance)
    await inventory.start()                      # before the controller is made: it needs nodes to recover jobs
    config = inventory.fill(read_configuration)  # at the start, and of every configuration that is read later
    inventory.listen(changed)                    # on the loop, once for many changes

Lives on the daemon's event loop; followers hand their changes over to it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec.structs import replace

from slurmbridge.manifest.pod_names import CORDON
from slurmbridge.model.fleet import FleetConfig
from slurmbridge.reconcile import inventory
from slurmbridge.reconcile.inventory import Kept
from slurmbridge.reconcile.node_cordon import Cordon
from slurmbridge.reconcile.node_sight import Foreign, SeenNode
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.device_taints import DeviceTaints
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.foreign import ForeignPods
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.node_seen import node_of
from slurmbridge.runtime.kube.node_watch import NodeWatch
from slurmbridge.runtime.kube.objects import Node

log = logging.getLogger(__name__)

TOGETHER_S = 0.1
"""Changes within this time are told as one."""
REST = 10.0
"""Of large clusters, where looking takes long, changes are gathered for so many times as long."""
NOT_CORDONED = "event=cordon.failed node=%s reason=%s"
WAITS = {
    Kind.FORBIDDEN: (60.0, logging.ERROR, NOT_CORDONED), Kind.INVALID: (60.0, logging.ERROR, NOT_CORDONED),
    Kind.GONE: (0.0, logging.INFO, NOT_CORDONED), Kind.CONFLICT: (0.5, logging.DEBUG, NOT_CORDONED),
    Kind.EXPIRED: (0.5, logging.DEBUG, NOT_CORDONED), Kind.THROTTLED: (5.0, logging.INFO, NOT_CORDONED),
    Kind.DOWN: (5.0, logging.INFO, NOT_CORDONED),
}  # fmt: skip
"""Seconds until a cordon that failed is decided anew."""


class Inventory:
    """`watch` is shared with who follows pods (`Gangs`, `KubeRuntime`)."""

    def __init__(self, api: Api, instance: str) -> None:
        self._api = api
        self.watch = NodeWatch(api)
        self._foreign = ForeignPods(api, instance, self._changed)
        self._taints = DeviceTaints(api, self._devices_changed)
        self._slots: dict[str, dict[int, str]] = {}
        self._seen: dict[str, SeenNode] = {}
        self._tell: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._memo: inventory.Memo = {}
        self._versions = 0  # how often nodes changed
        self._filled: FleetConfig | None = None
        self._filled_of: tuple[int, int, tuple[Kept, ...]] = (0, 0, ())
        self._pause_s = TOGETHER_S
        self._patches = ThreadPoolExecutor(4, thread_name_prefix="cordon")
        self._busy: set[str] = set()
        self.watch.listen(self._nodes_changed)

    async def start(self, within: float = 30.0) -> bool:
        """False: the cluster could not be listed in time; it is tried on."""
        listed = await self.watch.start(within)
        return listed and await self._foreign.start(within) and await self._taints.start(within)

    async def stop(self) -> None:
        self._tell = None
        if self._timer is not None:
            self._timer.cancel()
        await self._taints.stop()
        await self._foreign.stop()
        await self.watch.stop()
        await asyncio.to_thread(self._patches.shutdown, cancel_futures=True)

    def listen(self, changed: Callable[[], None]) -> None:
        self._tell = changed

    # ---- questions

    @property
    def nodes(self) -> Mapping[str, SeenNode]:
        """By the cluster's names."""
        return self._seen

    @property
    def foreign(self) -> Mapping[str, Foreign]:
        """What others hold, by the cluster's names; nodes that are not there hold nothing."""
        return self._foreign.by_node

    @property
    def slots(self) -> Mapping[str, Mapping[int, str]]:
        return self._slots

    def device_told(self, node: str, index: int, device: str) -> None:
        """Which device is at that index of a node, by our name of it; empty: nobody knows any more."""
        known = {place: name for place, name in self._slots.get(node, {}).items() if place != index}
        if device:
            known[index] = device
        self._slots = {**self._slots, node: known}
        self._changed()

    def fill(self, config: FleetConfig, kept: Sequence[Kept] = ()) -> FleetConfig:
        """The configuration with the cluster's nodes; `kept`: nodes that stay though the cluster has them no more."""
        of = (self._versions, self._foreign.system_versions, tuple(kept))
        if config is not self._filled or of != self._filled_of:  # else it is what would come out again
            self._filled = inventory.fill(config, self._seen, self._foreign.by_node, kept, self._memo)
            self._filled_of = of
        return self._filled

    # ---- deeds

    def cordon(self, name: str, cordon: Cordon) -> None:
        """Do that to the node as it was seen last; whatever becomes of it is seen, and decided again by who listens."""
        node = self.watch.nodes.get(name)
        if node is None or name in self._busy:
            return
        self._busy.add(name)
        change: dict[str, Any] = {
            "metadata": {
                "resourceVersion": node.metadata.resource_version,
                "annotations": {CORDON: cordon.mark or None},
            }
        }
        if cordon.unschedulable is not None:
            change["spec"] = {"unschedulable": cordon.unschedulable or None}
        loop = asyncio.get_running_loop()
        done = self._patches.submit(self._api.patch, f"/api/v1/nodes/{name}", change)
        done.add_done_callback(lambda future: _on(loop, self._patched, name, future.exception()))

    def _patched(self, name: str, fault: BaseException | None) -> None:
        wait = 0.0
        if isinstance(fault, ApiFault):
            log.log(*WAITS[fault.kind][1:], name, fault)
            wait = WAITS[fault.kind][0]
        elif fault is not None:
            raise fault
        asyncio.get_running_loop().call_later(wait, self._free, name, fault is not None)

    def _free(self, name: str, again: bool) -> None:
        self._busy.discard(name)
        if again:
            self._changed()

    # ---- what is seen

    def _nodes_changed(self, changes: Sequence[Change[Node]]) -> None:
        moved = False
        for change in changes:
            if change.after is None:
                self._seen.pop(change.key[1], None)
                moved = True
            else:
                seen = replace(node_of(change.after), bad_devices=self._taints.by_node.get(change.key[1], ()))
                if self._seen.get(seen.name) != seen:
                    self._seen[seen.name] = seen
                    moved = True
        if moved:
            self._versions += 1
            self._changed()

    def _devices_changed(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._seen:
                self._seen[name] = replace(self._seen[name], bad_devices=self._taints.by_node.get(name, ()))
        self._versions += 1
        self._changed()

    def _changed(self) -> None:
        if self._tell is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._tell is not None:
            began = time.monotonic()
            self._tell()
            self._pause_s = max(TOGETHER_S, REST * (time.monotonic() - began))


def _on(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *given: Any) -> None:
    try:
        loop.call_soon_threadsafe(call, *given)
    except RuntimeError:
        return  # the loop has ended; the next daemon decides again
