"""What does `slurmbridge check-config` say about a configuration that was read?

One line for each key without effect, with its place and the reason, then the size of the cluster.
"""

from __future__ import annotations

import msgspec

from slurmbridge.lang.hostlist import compress
from slurmbridge.lang.slurm_conf import why_without_effect
from slurmbridge.model.cluster import ClusterConfig, Pool, Scheduling
from slurmbridge.model.fleet import FleetConfig, Membership


def report(config: ClusterConfig) -> str:
    """The text for standard output."""
    lines = []
    for place, line, key in config.without_effect:
        why = why_without_effect(key)
        lines.append(f"{place}:{line}: {key} has no effect here" + (f": {why}" if why else ""))
    counts = f"{len(config.nodes)} nodes, {len(config.partitions)} partitions"
    if isinstance(config, FleetConfig):
        counts = f"nodes of a cluster, {len(config.declared)} declared, {len(config.partitions)} partitions"
    lines.append(f"{config.conf_file}: {counts}" if config.conf_file else counts)
    if isinstance(config, FleetConfig):
        lines += [f"partition {name}: {_members(membership)}" for name, membership in config.members]
    if config.pools:
        lines += [f"pool {pool.name}: {_nodes(pool)}" for pool in config.all_pools]
    if config.scheduling != Scheduling():
        chosen = msgspec.structs.asdict(config.scheduling).items()
        said = [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in chosen]
        lines.append(f"scheduling: {', '.join(said)}")
    return "\n".join(lines) + "\n"


def _members(membership: Membership) -> str:
    """Which nodes a partition takes of a cluster's."""
    nodes = "all nodes" if membership.named is None else compress(membership.named)
    words = [f"{key}={value}" for key, value in membership.selector]
    parts = [nodes + (f" with {', '.join(words)}" if words else "")]
    parts += [f"tolerates {each.key or 'every taint'}" for each in membership.tolerated]
    parts += [f"needs {name}: {amount}" for name, amount in membership.needs]
    return "; ".join(parts)


def _nodes(pool: Pool) -> str:
    if pool.node_selector:
        return f"{', '.join(f'{key}={value}' for key, value in pool.node_selector)}, placement {pool.placement}"
    return f"{compress(pool.nodes)}, placement {pool.placement}" if pool.nodes else "no nodes"
