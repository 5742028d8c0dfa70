"""Keeps the controller's nodes and partitions in line with a cluster's, and its cordons in line with what operators say.

Whatever changed, everything is decided anew from what is seen, by pure functions of `reconcile`; so nothing has to be
remembered, and a restart or a lost event makes no difference. Nodes that are gone stay as long as jobs are on them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from slurmbridge.daemon.core import Core
from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.errors import LangError
from slurmbridge.lang import hostlist
from slurmbridge.model.cluster import ClusterConfig, Device, Health, Node, NodeConf, Partition, Taken
from slurmbridge.model.fleet import FleetConfig
from slurmbridge.model.job import Job, NodeShare
from slurmbridge.model.states import NodeBase, NodeFlag
from slurmbridge.reconcile.inventory import Kept
from slurmbridge.reconcile.node_cordon import Cordon, decide, mark_of
from slurmbridge.reconcile.node_health import Verdict, verdict
from slurmbridge.reconcile.node_others import NOTHING as NO_SLOTS
from slurmbridge.reconcile.node_others import taken_of
from slurmbridge.reconcile.node_sight import Foreign, SeenNode
from slurmbridge.reconcile.node_standing import standing
from slurmbridge.store.protocol import PutNodes

log = logging.getLogger(__name__)
NOTHING = Foreign()
ARCHES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "": "x86_64"}
"""The cluster's word for a machine -> that of uname."""
UPDATED = ("address", "comment", "extra", "features", "host", "weight")
"""Fields of a node's configuration that an operator may change."""
NOBODYS = "labels: it is no partition's any more"


class Source(Protocol):
    """The cluster: `runtime.kube.inventory.Inventory`, or one on paper. Names are the cluster's."""

    @property
    def nodes(self) -> Mapping[str, SeenNode]: ...
    @property
    def foreign(self) -> Mapping[str, Foreign]: ...
    @property
    def slots(self) -> Mapping[str, Mapping[int, str]]:
        """Ids of devices whose index is known, by our names of nodes. What it holds of a node is never changed."""

    def fill(self, config: FleetConfig, kept: Sequence[Kept] = ()) -> FleetConfig: ...
    def cordon(self, name: str, cordon: Cordon) -> None: ...
    def listen(self, changed: Callable[[], None]) -> None: ...


class Fleet:
    """`reconfigured` tells the runtime of other nodes, `tell_planner` the planner of everything."""

    def __init__(
        self, core: Core, source: Source, instance: str, *,
        reconfigured: Callable[[ClusterConfig], None], tell_planner: Callable[[], None],
        node_changed: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._core, self._source, self._instance = core, source, instance
        self._reconfigured, self._tell_planner, self._node_changed = reconfigured, tell_planner, node_changed
        self._verdicts: dict[str, tuple[tuple[object, ...], Verdict]] = {}
        self._amounts: dict[str, tuple[tuple[object, ...], Taken]] = {}
        self._partings: dict[str, Kept] = {}  # of nodes that are gone and busy
        self._is_due = False

    def begin(self) -> None:
        """Everything is in memory: look, and look again whenever the cluster or the jobs on a node that left change."""
        table = self._core.memory.node_table
        table.emptied = self._emptied
        table.shifted = self._node_changed
        self._renew_partitions(self._core.memory.config, self._core.memory.config)
        self.look()
        self._source.listen(self.look)

    # ---- configurations

    def complete(self, config: ClusterConfig) -> ClusterConfig:
        """One that was just read, with the cluster's nodes and those that jobs are still on."""
        return self._filled(config) if isinstance(config, FleetConfig) else config

    def recover(self, jobs: Iterable[Job], nodes: Iterable[Node]) -> None:
        """Before these jobs of the store are placed: nodes that left while no daemon ran get their records back."""
        memory = self._core.memory
        known, stored = set(memory.node_table.names()), {node.name: node.conf for node in nodes}
        for job in jobs:
            if job.allocation is None or not holds_resources(job):
                continue
            for share in job.allocation.nodes:
                if share.node in known:
                    continue
                before = self._partings.get(share.node, Kept(conf=NodeConf(name=share.node, cpus=0, real_memory=0)))
                conf = stored.get(share.node) or _with_room_for(share, before.conf)
                partitions = tuple(dict.fromkeys((*before.partitions, job.allocation.partition)))
                self._partings[share.node] = Kept(conf=conf, partitions=partitions)
        if self._partings and isinstance(memory.config, FleetConfig):
            self._put(self._source.fill(memory.config, tuple(self._partings.values())))

    def _filled(self, config: FleetConfig) -> FleetConfig:
        memory = self._core.memory
        filled = self._source.fill(config)
        names = {node.name for node in filled.nodes}
        partings: dict[str, Kept] = {}
        for name in memory.node_table.busy():
            node = memory.node_table.admin(name)
            if name not in names and node is not None:
                was = tuple(each.name for each in memory.config.partitions if name in each.nodes)
                partings[name] = self._partings.get(name) or Kept(conf=node.conf, partitions=was)
        self._partings = partings
        return self._source.fill(config, tuple(partings.values())) if partings else filled

    # ---- looking

    def look(self) -> None:
        """Decide everything anew."""
        memory = self._core.memory
        if not isinstance(memory.config, FleetConfig):
            return
        config = self._filled(memory.config)
        dropped = self._take(config)
        changed = memory.node_table.tell_health(self._healths(config))
        taken = memory.node_table.tell_taken(self._taken(config))
        for name in dict.fromkeys((*changed, *taken)):
            self._node_changed(name)
        self._note(changed, dropped)
        self.cordon(memory.node_table.names())

    def _take(self, config: FleetConfig) -> list[Node]:
        """The configuration, if it is another; the nodes that are no more there."""
        memory = self._core.memory
        was = memory.config
        if config is was or (config.nodes == was.nodes and _is_shaped_like(config, was)):
            return []
        before = {node.name: node for node in was.nodes}
        same_names = [node.name for node in config.nodes] == list(before)
        if same_names and _is_shaped_like(config, was):
            memory.config = config
            for conf in config.nodes:
                if conf is not before[conf.name] and conf != before[conf.name]:
                    memory.node_table.resize(self._as_updated(conf, before[conf.name]))
                    self._node_changed(conf.name)
                    log.info("event=node.resized node=%s cpus=%d memory=%d", conf.name, conf.cpus, conf.real_memory)
            self._reconfigured(config)  # by what name and where the cluster has a node may be another thing, too
            return []
        names = {conf.name for conf in config.nodes}
        dropped = [node for name in before if name not in names and (node := memory.node(name)) is not None]
        self._put(config)
        came = [name for name in names if name not in before]
        log.info("event=fleet.changed nodes=%d came=%d left=%d", len(names), len(came), len(dropped))
        return dropped

    def _put(self, config: FleetConfig) -> None:
        memory = self._core.memory
        was, memory.config = memory.config, config
        before = {node.name: node for node in was.nodes}
        confs = [self._as_updated(conf, before.get(conf.name)) for conf in config.nodes]
        memory.node_table.configure(confs, self._core.clock())
        self._renew_partitions(was, config)
        self._reconfigured(config)
        self._tell_planner()

    def _as_updated(self, conf: NodeConf, was: NodeConf | None) -> NodeConf:
        """With what `scontrol update` changed of it since the files were read."""
        node = self._core.memory.node_table.admin(conf.name)
        if node is None or was is None or node.conf is was:
            return conf
        changed = {name: getattr(node.conf, name) for name in UPDATED if getattr(node.conf, name) != getattr(was, name)}
        return replace(conf, **changed) if changed else conf

    def _renew_partitions(self, was: ClusterConfig, now: ClusterConfig) -> None:
        memory = self._core.memory
        old, new = ({each.name: each for each in config.partitions} for config in (was, now))
        known = [conf.name for conf in now.nodes]
        memory.partition_list = [
            _renewed(each, old.get(each.name), new.get(each.name), known) for each in memory.partition_list
        ]

    def _healths(self, config: FleetConfig) -> dict[str, Health]:
        memory = self._core.memory
        found: dict[str, Health] = {}
        verdicts: dict[str, tuple[tuple[object, ...], Verdict]] = {}
        for conf in config.nodes:
            node = self._source.nodes.get(conf.host or conf.name)
            made_of = (node, conf, config.members, conf.name in self._partings)
            known = self._verdicts.get(conf.name)
            if known is None or any(was is not now for was, now in zip(known[0], made_of, strict=True)):
                if node is not None:
                    memory.node_table.describe(conf.name, os=node.os, arch=ARCHES.get(node.arch, node.arch))
                known = made_of, verdict(node, conf, self._blocked(node, conf, config), self._instance)
            verdicts[conf.name] = known
            if known[1] != Verdict():
                found[conf.name] = self._health(known[1], memory.node_table.health(conf.name))
        self._verdicts = verdicts
        return found

    def _blocked(self, node: SeenNode | None, conf: NodeConf, config: FleetConfig) -> str:
        if node is None:
            return ""
        place = standing(node, conf.name, config.members)
        return place.blocked or (NOBODYS if conf.name in self._partings and not place.partitions else "")

    def _health(self, told: Verdict, before: Health) -> Health:
        """With since when: what lasts keeps its time."""
        same = (told.is_down, told.drains, told.is_silent, told.reason) == (
            before.is_down, before.drains, before.is_silent, before.reason,
        )  # fmt: skip
        if same:
            return before
        memory = self._core.memory
        return Health(
            is_down=told.is_down, drains=told.drains, is_silent=told.is_silent, reason=told.reason,
            since=self._core.clock(), uid=memory.names.user_id(memory.config.slurm_user) or 0,
        )  # fmt: skip

    def _taken(self, config: FleetConfig) -> dict[str, Taken]:
        found: dict[str, tuple[tuple[object, ...], Taken]] = {}
        for conf in config.nodes:
            kube_name = conf.host or conf.name
            node = self._source.nodes.get(kube_name)
            if node is None:
                continue
            foreign = self._source.foreign.get(kube_name, NOTHING)
            slots = self._source.slots.get(conf.name, NO_SLOTS)
            made_of = (node, conf, foreign, config.rules, slots)
            known = self._amounts.get(conf.name)
            if known is None or any(was is not now for was, now in zip(known[0], made_of, strict=True)):
                known = made_of, taken_of(node, foreign, conf, config.rules, slots)
            found[conf.name] = known
        self._amounts = found
        return {name: amounts for name, (_, amounts) in found.items()}

    def _note(self, changed: Sequence[str], dropped: Sequence[Node]) -> None:
        """Times of trouble, for `sacctmgr show event`."""
        memory = self._core.memory
        shown = [node for name in changed if (node := memory.node(name)) is not None]
        shown += [_well(node) for node in dropped if node.base is NodeBase.DOWN or node.flags]
        for node in shown:
            flags = "+".join(sorted(flag.value for flag in node.flags))
            log.info(
                "event=node.state node=%s state=%s flags=%s reason=%r", node.name, node.base.value, flags, node.reason
            )
        parting = [node for name in changed if name in self._partings and (node := memory.node_table.admin(name))]
        if shown:
            self._core.journal.write([PutNodes(nodes=tuple(parting), shown=tuple(shown))])

    # ---- operators

    def cordon(self, names: Iterable[str]) -> None:
        """What operators said of these nodes, as cordons."""
        memory = self._core.memory
        hosts = {conf.name: conf.host or conf.name for conf in memory.config.nodes}
        for name in list(names):
            node, seen = memory.node_table.admin(name), self._source.nodes.get(hosts.get(name, ""))
            if node is None or seen is None:
                continue
            is_out = node.base is NodeBase.DOWN or bool(node.flags & {NodeFlag.DRAIN, NodeFlag.FAIL})
            if not is_out and not seen.cordoned_by:
                continue
            mark = mark_of(self._instance, node.reason_time, node.reason)
            action = decide(seen, is_out=is_out, mark=mark, instance=self._instance)
            if action is not None:
                self._source.cordon(seen.name, action)

    def why_not_resumed(self, name: str) -> str:
        """What keeps a node out of work that no operator said: only the cluster can take it back. Empty: nothing."""
        return self._core.memory.node_table.health(name).reason

    # ---- jobs

    def _emptied(self, name: str) -> None:
        """The last job left a node; of one that is gone nothing keeps it now."""
        if name in self._partings and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._look_now)

    def _look_now(self) -> None:
        self._is_due = False
        self.look()


def _with_room_for(share: NodeShare, conf: NodeConf) -> NodeConf:
    """A node that nobody remembers, as large as what jobs have of it."""
    devices = {device.index: device for device in conf.devices}
    devices |= {each.index: Device(index=each.index, type=each.type) for each in share.devices}
    cpus = conf.cpus + share.cpus
    return replace(
        conf, cpus=cpus, cores_per_socket=cpus, real_memory=conf.real_memory + share.memory_mib,
        devices=tuple(devices[index] for index in sorted(devices)),
    )  # fmt: skip


def _is_shaped_like(config: ClusterConfig, other: ClusterConfig) -> bool:
    """Whether partitions, pools and topology have the same nodes."""
    return (config.partitions, config.pools, config.topologies) == (other.partitions, other.pools, other.topologies)


def _renewed(current: Partition, was: Partition | None, now: Partition | None, known: Sequence[str]) -> Partition:
    """A partition, perhaps changed by an operator, with the nodes that it has now."""
    if was is not None and now is not None and current.nodes_text == was.nodes_text:
        return replace(current, nodes=now.nodes)
    if current.nodes_text.upper() == "ALL":
        return replace(current, nodes=tuple(known))
    try:
        wanted = set(hostlist.expand(current.nodes_text))
    except LangError:
        wanted = set(current.nodes)  # of a node set
    return replace(current, nodes=tuple(name for name in known if name in wanted))


def _well(node: Node) -> Node:
    """A node that left: its trouble is over."""
    return replace(node, base=NodeBase.IDLE, flags=frozenset(), reason="", reason_uid=None, reason_time=None)
