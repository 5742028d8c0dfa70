"""Rows of `sinfo --json` and `--yaml`: nodes of a partition that are alike, as one record with its partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurmbridge.commands.document_cluster import number
from slurmbridge.commands.scontrol_show_node import gres_used
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.fields import states
from slurmbridge.fields.nodes import NodeGroup, cpu_sums, node_counts
from slurmbridge.fields.structured import Value
from slurmbridge.model.cluster import Node

COLUMNS = (
    "Partition",
    "StateComplete",
    "StateLong",
    "CPUs",
    "Memory",
    "Disk",
    "Weight",
    "Features",
    "Gres",
    "GresUsed",
    "Reason",
)
"""What nodes of one record have in common."""


def sinfo_record(group: NodeGroup, eyes: Eyes, partition: Value) -> Value:
    """One record with its partition's; without nodes its counts are 0."""
    members = group.nodes
    first = members[0] if members else None
    allocated, idle, other, total = node_counts(group)
    cpus = cpu_sums(group)
    user = eyes.view.user

    def span(get: Callable[[Node], int]) -> dict[str, Value]:
        values = [get(node) for node in members] or [0]
        return {"minimum": min(values), "maximum": max(values)}

    free = [node.free_memory for node in members if node.free_memory is not None]
    limit = group.partition.max_cpus_per_node
    return {
        "port": first.conf.port if first else 0,
        "node": {"state": _states(first)},
        "nodes": {
            "allocated": allocated,
            "idle": idle,
            "other": other,
            "total": total,
            "hostnames": _when(members, lambda node: node.conf.host or node.name),
            "addresses": _when(members, lambda node: node.conf.address or node.name),
            "nodes": [node.name for node in members],
        },
        "cpus": {
            "allocated": cpus[0],
            "idle": cpus[1],
            "other": cpus[2],
            "total": cpus[3],
            **span(lambda node: node.conf.cpus),
            "load": span(lambda node: round((node.cpu_load or 0.0) * 100)),
            "per_node": {"max": number(limit, infinite=limit is None)},
        },
        "sockets": span(lambda node: node.conf.sockets),
        "cores": span(lambda node: node.conf.cores_per_socket),
        "threads": span(lambda node: node.conf.threads_per_core),
        "disk": span(lambda node: node.conf.tmp_disk),
        "memory": {
            **span(lambda node: node.conf.real_memory),
            "free": {"minimum": number(min(free, default=None)), "maximum": number(max(free, default=None))},
            "allocated": sum(node.alloc_memory for node in members),
        },
        "weight": span(lambda node: node.conf.weight),
        "features": {
            "total": ",".join(first.conf.features) if first else "",
            "active": ",".join(first.features_active or first.conf.features) if first else "",
        },
        "gres": {
            "total": first.conf.gres if first else "",
            "used": gres_used(first) if first and first.conf.gres else "",
        },
        "cluster": "",
        "comment": first.comment if first else "",
        "extra": first.extra if first else "",
        "reason": {
            "description": first.reason if first else "",
            "time": int(first.reason_time or 0) if first else 0,
        },
        "reservation": "",
        "reason_set_by_user": user(first.reason_uid) if first and first.reason and first.reason_uid is not None else "",
        "resource_spec": {"cpus": "", "memory": first.conf.mem_spec_limit if first else 0},
        "partition": partition,
    }


def _states(node: Node | None) -> list[Value]:
    return list(states.node_complete(node).split("+")) if node is not None else []


def _when(members: Sequence[Node], name: Callable[[Node], str]) -> list[Value]:
    """Names that differ from those of the nodes: Slurm lists no others."""
    return [name(node) for node in members if name(node) != node.name]
