"""What do limits of a QOS with the flag Relative come to? They are percent of the cluster's TRES, or of the partition's.

Follows sacctmgr(1), Relative: of a partition whose QOS it is, else of all nodes. Counts of jobs and times stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.model.accounts import Accounting, Qos
from slurmbridge.model.cluster import ClusterConfig, NodeConf, Partition
from slurmbridge.model.tres import Tres, is_gpu

RELATIVE = "Relative"
_PLAIN = (
    "max_tres_per_user",
    "max_tres_per_account",
    "max_tres_run_mins_per_user",
    "max_tres_run_mins_per_account",
    "min_tres_per_job",
)
_LIMITS = (
    "grp_tres",
    "grp_tres_mins",
    "grp_tres_run_mins",
    "max_tres_per_job",
    "max_tres_per_node",
    "max_tres_mins_per_job",
)


def absolute(accounting: Accounting, config: ClusterConfig, partitions: Sequence[Partition]) -> Accounting:
    """The same entities with every QOS in plain numbers; the very record when none is relative."""
    if not any(RELATIVE in qos.flags for qos in accounting.qos):
        return accounting
    conf = {node.name: node for node in config.nodes}
    of_partition = {each.qos: [conf[name] for name in each.nodes if name in conf] for each in partitions if each.qos}
    return msgspec.structs.replace(
        accounting,
        qos=tuple(
            _absolute(qos, totals(of_partition.get(qos.name, config.nodes), config)) if RELATIVE in qos.flags else qos
            for qos in accounting.qos
        ),
    )


def totals(nodes: Sequence[NodeConf], config: ClusterConfig) -> dict[str, int]:
    """TRES of some nodes, and licences."""
    found = {"cpu": 0, "mem": 0, "node": len(nodes)}
    for node in nodes:
        found["cpu"] += node.cpus
        found["mem"] += node.real_memory
        for device in node.devices:
            for name in (f"gres/{device.name}", f"gres/{device.name}:{device.type}")[: 2 if device.type else 1]:
                found[name] = found.get(name, 0) + (1000 if is_gpu(name) else 1)
    found["billing"] = found["cpu"]
    found.update((f"license/{each.name}", each.total) for each in config.licenses)
    return found


def _absolute(qos: Qos, total: Mapping[str, int]) -> Qos:
    limits = {name: _part(getattr(qos.limits, name), total) for name in _LIMITS}
    plain = {name: _part(getattr(qos, name), total) for name in _PLAIN}
    return msgspec.structs.replace(qos, limits=msgspec.structs.replace(qos.limits, **limits), **plain)


def _part(tres: Tres, total: Mapping[str, int]) -> Tres:
    """GPUs are counted in thousandths, in percents as in devices."""
    return tuple(
        (name, int(total.get(name, 0) * (percent / 1000 if is_gpu(name) else percent) / 100)) for name, percent in tres
    )
