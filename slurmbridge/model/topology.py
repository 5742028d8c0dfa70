"""How are the nodes wired? Named units (switches, blocks, later labels of nodes) on levels, innermost 0.

Source: topology.conf(5), topology.yaml(5). A unit of a level holds nodes; units of one level share none.
"""

from __future__ import annotations

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
    link_speed: int = 1


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """One topology. Partitions without one of their own use that of the cluster."""

    name: str = "default"
    kind: TopologyKind = "flat"
    cluster_default: bool = False
    units: tuple[TopologyUnit, ...] = ()  # in file order, aggregated blocks last
    block_sizes: tuple[int, ...] = ()  # BlockSizes: nodes that a block of each level is planned with

    def path_of(self, node: str) -> tuple[str, ...]:
        """The units above a node, outermost first, as far as it has any."""
        above = [unit for unit in self.units if node in unit.nodes]
        return tuple(unit.name for unit in sorted(above, key=lambda unit: -unit.level))
