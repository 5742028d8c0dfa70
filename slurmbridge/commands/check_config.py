"""What does `slurmbridge check-config` say about a configuration that was read?

One line for each key without effect, with its place and the reason, then the size of the cluster.
"""

from __future__ import annotations

from slurmbridge.lang.hostlist import compress
from slurmbridge.lang.slurm_conf import why_without_effect
from slurmbridge.model.cluster import ClusterConfig, Pool, Scheduling


def report(config: ClusterConfig) -> str:
    """The text for standard output."""
    lines = []
    for place, line, key in config.without_effect:
        why = why_without_effect(key)
        lines.append(f"{place}:{line}: {key} has no effect here" + (f": {why}" if why else ""))
    counts = f"{len(config.nodes)} nodes, {len(config.partitions)} partitions"
    lines.append(f"{config.conf_file}: {counts}" if config.conf_file else counts)
    if config.pools:
        lines += [f"pool {pool.name}: {_nodes(pool)}" for pool in config.all_pools]
    if config.scheduling != Scheduling():
        order = config.scheduling
        lines.append(
            f"scheduling: order {order.order}, backfill {order.backfill}, promise {order.promise}, history {order.history:g}"
        )
    return "\n".join(lines) + "\n"


def _nodes(pool: Pool) -> str:
    return f"{compress(pool.nodes)}, placement {pool.placement}" if pool.nodes else "no nodes"
