"""Which nodes has the cluster, what may be used of them, and how are they? Told in the words of `reconcile`.

    inventory = Inventory(api, instance)
    await inventory.start()                      # before the controller is made: it needs nodes to recover jobs
    config = inventory.fill(read_configuration)  # at the start, and of every configuration that is read later
    inventory.listen(changed)                    # on the loop, once for many changes

Lives on the daemon's event loop; followers hand their changes over to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from slurmbridge.model.fleet import FleetConfig
from slurmbridge.reconcile import inventory
from slurmbridge.reconcile.inventory import Kept
from slurmbridge.reconcile.node_sight import Foreign, SeenNode
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.foreign import ForeignPods
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.node_seen import node_of
from slurmbridge.runtime.kube.node_watch import NodeWatch
from slurmbridge.runtime.kube.objects import Node

TOGETHER_S = 0.1
"""Changes within this time are told as one."""


class Inventory:
    """`watch` is shared with who follows pods (`Gangs`, `KubeRuntime`)."""

    def __init__(self, api: Api, instance: str) -> None:
        self.watch = NodeWatch(api)
        self._foreign = ForeignPods(api, instance, self._changed)
        self._seen: dict[str, SeenNode] = {}
        self._tell: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.watch.listen(self._nodes_changed)

    async def start(self, within: float = 30.0) -> bool:
        """False: the cluster could not be listed in time; it is tried on."""
        listed = await self.watch.start(within)
        return listed and await self._foreign.start(within)

    async def stop(self) -> None:
        self._tell = None
        if self._timer is not None:
            self._timer.cancel()
        await self._foreign.stop()
        await self.watch.stop()

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

    def fill(self, config: FleetConfig, kept: Sequence[Kept] = ()) -> FleetConfig:
        """The configuration with the cluster's nodes; `kept`: nodes that stay though the cluster has them no more."""
        return inventory.fill(config, self._seen, self._foreign.by_node, kept)

    def kube_names(self, config: FleetConfig) -> Mapping[str, str]:
        """Our name of a node -> the cluster's, where they differ (`PodSite.kube_nodes`)."""
        return inventory.kube_names(config, self._seen)

    # ---- what is seen

    def _nodes_changed(self, changes: Sequence[Change[Node]]) -> None:
        for change in changes:
            if change.after is None:
                self._seen.pop(change.key[1], None)
            else:
                self._seen[change.key[1]] = node_of(change.after)
        self._changed()

    def _changed(self) -> None:
        if self._tell is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOGETHER_S, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._tell is not None:
            self._tell()
