"""How much of a node is in other hands than ours now? Pods of other schedulers, devices that are broken, places for pods."""

from __future__ import annotations

from slurmbridge.manifest.pod_devices import HOLDER_MIB
from slurmbridge.model.cluster import NodeConf, Taken
from slurmbridge.reconcile.node_devices import shareable
from slurmbridge.reconcile.node_sight import Foreign, SeenNode


def taken_of(node: SeenNode, foreign: Foreign, conf: NodeConf) -> Taken:
    """Beyond what `conf` keeps for the system already."""
    system, others, holders = foreign.system, foreign.others, shareable(conf)
    free_cpus = max(node.allocatable.cpu_milli - system.cpu_milli - others.cpu_milli, 0) // 1000
    free_memory = max(node.allocatable.memory_mib - system.memory_mib - others.memory_mib - HOLDER_MIB * holders, 0)
    devices = []
    for resource in dict.fromkeys(device.resource for device in conf.devices if device.resource):
        broken = node.capacity.resources.get(resource, 0) - node.allocatable.resources.get(resource, 0)
        count = max(broken, 0) + system.resources.get(resource, 0) + others.resources.get(resource, 0)
        if count:
            devices.append((resource, count))
    return Taken(
        cpus=max(conf.effective_cpus - free_cpus, 0),
        memory=max(conf.real_memory - conf.mem_spec_limit - free_memory, 0),
        devices=tuple(devices),
        jobs=max(node.allocatable.pods - system.pods - others.pods - holders, 0) if node.allocatable.pods else None,
    )
