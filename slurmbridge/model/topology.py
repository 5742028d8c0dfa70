"""How are the nodes wired? Named units (switches, blocks, later labels of nodes) on levels, innermost 0.

Source: topology.conf(5), topology.yaml(5). A unit of a level holds nodes; units of one level share none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

TopologyKind = Literal["tree", "block", "flat"]


class TopologyUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A switch, or a block (also one of several base blocks)."""

    name: str
    level: int = 0  # 0: nodes hang on it, or it is a base block
    nodes: tuple[str, ...] = ()  # all below it, in configuration order
    children: tuple[str, ...] = ()  # units right below it
    children_text: str = ""  # as written
    nodes_text: str = ""  # as written; empty for those that follow from others
    link_speed: int = 1


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """One topology. Partitions without one of their own use that of the cluster."""

    name: str = "default"
    kind: TopologyKind = "flat"
    cluster_default: bool = False
    units: tuple[TopologyUnit, ...] = ()  # in file order, aggregated blocks last
    block_sizes: tuple[int, ...] = ()  # BlockSizes: nodes that a block of each level is planned with

    def paths(self, nodes: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Of each node the units above it, outermost first, as far as it has any."""
        found: dict[str, list[tuple[int, str]]] = {node: [] for node in nodes}
        for unit in self.units:
            for node in unit.nodes:
                if node in found:
                    found[node].append((-unit.level, unit.name))
        return {node: tuple(name for _, name in sorted(above)) for node, above in found.items()}

    def addresses(self, nodes: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Of each node its address and the kinds of the address's parts: SLURM_TOPOLOGY_ADDR, SLURM_TOPOLOGY_ADDR_PATTERN."""
        if self.kind == "flat":
            return {node: (node, "node") for node in nodes}
        word = "switch" if self.kind == "tree" else "block"
        found = {}
        for node, path in self.paths(nodes).items():
            above = path if self.kind == "tree" else path[-1:]  # of blocks the base block alone
            found[node] = ".".join((*above, node)), ".".join((*(word for _ in above), "node"))
        return found
