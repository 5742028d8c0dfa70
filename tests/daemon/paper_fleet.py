"""A controller whose nodes come from a cluster on paper: Node objects as the decisions see them, and a test's hands on them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from slurmbridge.lang.site_cluster import on_cluster
from slurmbridge.lang.site_file import read_site
from slurmbridge.lang.slurm_conf import read_cluster
from slurmbridge.model.fleet import FleetConfig
from slurmbridge.reconcile.inventory import Kept, fill
from slurmbridge.reconcile.node_cordon import Cordon
from slurmbridge.reconcile.node_sight import Amounts, Foreign, SeenCondition, SeenNode, SeenTaint
from tests.daemon.controlled import Site, check_use

READY = SeenCondition(type="Ready", status="True")


def node(name: str, *, cpus: int = 8, memory: int = 16000, gpus: int = 0, **fields: Any) -> SeenNode:
    devices = {"nvidia.com/gpu": gpus} if gpus else {}
    has = Amounts(cpu_milli=1000 * cpus, memory_mib=memory, pods=110, resources=devices)
    plain = {"uid": f"uid-{name}", "capacity": has, "allocatable": has, "conditions": (READY,), "host": name}
    return SeenNode(name=name, **{**plain, **fields})


class PaperCluster:
    """Implements `daemon.fleet.Source`; what is done to it is seen at once."""

    def __init__(self, *nodes: SeenNode) -> None:
        self.nodes: Mapping[str, SeenNode] = {node.name: node for node in nodes}
        self.foreign: Mapping[str, Foreign] = {}
        self.slots: Mapping[str, Mapping[int, str]] = {}
        self.cordons: list[tuple[str, Cordon]] = []
        self._changed: Callable[[], None] = lambda: None
        self.is_down = False  # it takes no changes

    def fill(self, config: FleetConfig, kept: Sequence[Kept] = ()) -> FleetConfig:
        return fill(config, self.nodes, self.foreign, kept)

    def listen(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def cordon(self, name: str, cordon: Cordon) -> None:
        if self.is_down:
            return
        self.cordons.append((name, cordon))
        seen = self.nodes[name]
        is_cordoned = seen.is_cordoned if cordon.unschedulable is None else cordon.unschedulable
        self.nodes = {**self.nodes, name: replace(seen, is_cordoned=is_cordoned, cordoned_by=cordon.mark)}

    # ---- the test's hands

    def put(self, *nodes: SeenNode) -> None:
        self.nodes = {**self.nodes, **{node.name: node for node in nodes}}
        self._changed()

    def change(self, name: str, **fields: Any) -> None:
        self.put(replace(self.nodes[name], **fields))

    def remove(self, name: str) -> None:
        self.nodes = {each: node for each, node in self.nodes.items() if each != name}
        self._changed()

    def ready(self, name: str, status: str, reason: str = "", message: str = "") -> None:
        said = SeenCondition(type="Ready", status=status, reason=reason, message=message)
        self.change(name, conditions=(said,))

    def taint(self, name: str, *keys: str, effect: str = "NoSchedule") -> None:
        self.change(name, taints=tuple(SeenTaint(key=key, effect=effect) for key in keys))

    def hold(self, name: str, *, cpu_milli: int = 0, system: int = 0, **more: Any) -> None:
        """Pods of others there."""
        others = Amounts(cpu_milli=cpu_milli, **more)
        self.foreign = {**self.foreign, name: Foreign(system=Amounts(cpu_milli=system), others=others)}
        self._changed()


class FleetSite(Site):
    """`conf` empty: no slurm.conf."""

    def __init__(self, *nodes: SeenNode, conf: str = "", site_file: str = "") -> None:
        self.paper = PaperCluster(*nodes)
        super().__init__(conf, site_file)
        self.cluster = self.paper

    def read_config(self) -> FleetConfig:
        """As `configuration.read_fleet` has it."""
        said = read_site(self.site_file, "site.yaml")
        if not self.conf:
            return on_cluster(None, said)
        config = read_cluster({"slurm.conf": self.conf}, "slurm.conf", cpus=0, memory_mib=0)
        return on_cluster(replace(config, nodes=tuple(each for each in config.nodes if each.cpus)), said)

    async def start(self) -> None:
        self.config = self.paper.fill(self.read_config())
        await super().start()

    async def sinfo(self, columns: str = "%N %T %E") -> list[str]:
        """One line a node."""
        answer = await self.run(f"sinfo -h -N -o '{columns}'")
        assert answer.code == 0, answer
        return [line.strip() for line in answer.out.splitlines()]


async def fleet(*nodes: SeenNode, conf: str = "", site_file: str = "") -> FleetSite:
    made = FleetSite(*nodes, conf=conf, site_file=site_file)
    await made.start()
    return made


Rule = Callable[[FleetSite], Awaitable[None]]


def on(conf: str, site_file: str, *nodes: SeenNode) -> Callable[[Rule], Callable[[], None]]:
    """With these files and nodes."""

    def decorate(test: Rule) -> Callable[[], None]:
        def run() -> None:
            async def whole() -> None:
                made = await fleet(*nodes, conf=conf, site_file=site_file)
                await test(made)
                check_use(made)

            asyncio.run(whole())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def rule(test: Rule) -> Callable[[], None]:
    """On two nodes, a and b, without any file."""
    return on("", "", node("a"), node("b"))(test)


async def update(made: FleetSite, words: str) -> str:
    answer = await made.run(f"scontrol update {words}", user="root")
    await made.settle()
    return answer.err
