"""How much of a node is in other hands than ours now? Pods of other schedulers, devices that are broken, places for pods."""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.manifest.pod_devices import HOLDER_MIB
from slurmbridge.model.cluster import NodeConf, Taken
from slurmbridge.model.fleet import NodeRules
from slurmbridge.reconcile.node_devices import shareable
from slurmbridge.reconcile.node_sight import Foreign, SeenNode
from slurmbridge.reconcile.node_taints import bad_of, text_of

NOTHING: Mapping[int, str] = {}


def taken_of(
    node: SeenNode, foreign: Foreign, conf: NodeConf, rules: NodeRules = NodeRules(), slots: Mapping[int, str] = NOTHING
) -> Taken:
    """Beyond what `conf` keeps for the system already. `slots`: ids of devices whose index is known.

    A device that a plugin has withdrawn and one that has a taint count as the same: which one a plugin means it does not say.
    """
    system, others, holders = foreign.system, foreign.others, shareable(conf)
    free_cpus = max(node.allocatable.cpu_milli - system.cpu_milli - others.cpu_milli, 0) // 1000
    free_memory = max(node.allocatable.memory_mib - system.memory_mib - others.memory_mib - HOLDER_MIB * holders, 0)
    bad_ones = bad_of(node, rules)
    devices, bad, known = [], [], []
    for resource in dict.fromkeys(device.resource for device in conf.devices if device.resource):
        there = node.capacity.resources.get(resource, 0)
        tainted = bad_ones.get(resource, ())
        broken = max(there - node.allocatable.resources.get(resource, 0), min(len(tainted), there))
        if broken:
            bad.append((resource, broken))
            ids = {device.uuid for device in tainted if device.uuid}
            known += [index for index, device in slots.items() if device in ids]
        count = broken + system.resources.get(resource, 0) + others.resources.get(resource, 0)
        if count:
            devices.append((resource, count))
    return Taken(
        cpus=max(conf.effective_cpus - free_cpus, 0),
        memory=max(conf.real_memory - conf.mem_spec_limit - free_memory, 0),
        devices=tuple(devices),
        bad=tuple(bad),
        slots=tuple(sorted(known)),
        trouble=text_of(bad_ones),
        jobs=max(node.allocatable.pods - system.pods - others.pods - holders, 0) if node.allocatable.pods else None,
    )
