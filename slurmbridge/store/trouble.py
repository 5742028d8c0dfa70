"""Which state of a node is worth an event? sacctmgr(1), "show event"."""

from __future__ import annotations

from slurmbridge.model.cluster import Node
from slurmbridge.model.states import NodeBase, NodeFlag


def node_trouble(node: Node) -> str:
    """The state that makes an event of sacctmgr, empty for a node that works."""
    parts = [node.base.value] if node.base in (NodeBase.DOWN, NodeBase.ERROR) else []
    parts += [f.value for f in (NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.MAINTENANCE) if f in node.flags]
    return "+".join(parts)
