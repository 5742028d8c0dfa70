"""What a site says about nodes that come from a cluster: which are whose, and what their labels mean. Only data.

A configuration whose nodes come from a cluster is a `FleetConfig`; `reconcile.inventory` puts the nodes into it.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.cluster import ClusterConfig, NodeConf
from slurmbridge.model.pods import PodTemplate

GPU = "nvidia.com/gpu"


class Tolerated(msgspec.Struct, frozen=True, kw_only=True):
    """Taints that pods of a partition put up with. What is empty or None is any."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes of the cluster are a partition's: those that have all of this."""

    named: tuple[str, ...] | None = None  # by `Nodes=`; None: whichever the labels give
    selector: tuple[tuple[str, str], ...] = ()
    tolerated: tuple[Tolerated, ...] = ()
    needs: tuple[tuple[str, int], ...] = ()  # resources that each of its pods takes: (rdma/ib, 1)


class FeatureLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A label whose value is a feature; with `feature` that word stands for every value but "false"."""

    label: str
    feature: str = ""


USUAL_FEATURES = (
    FeatureLabel(label="node.kubernetes.io/instance-type"),
    FeatureLabel(label="topology.kubernetes.io/zone"),
    FeatureLabel(label="nvidia.com/gpu.product"),
)


class NodeRules(msgspec.Struct, frozen=True, kw_only=True):
    """How Node objects are read: section `nodes` of the site file."""

    features: tuple[FeatureLabel, ...] = USUAL_FEATURES
    topology: tuple[str, ...] = ()  # labels of the units that nodes are in, innermost first
    sockets: str = ""  # label with the number of sockets
    threads_per_core: str = ""  # label with that number; "true" stands for 2
    weight: str = ""  # label with a number: nodes with lower ones are filled first
    domain: str = ""  # taken off the end of names
    gpu_resource: str = GPU
    gpu_types: tuple[tuple[str, str], ...] = ()  # product as its label says -> type, where it shall not be found out
    gpu_memory: tuple[tuple[str, int], ...] = ()  # type -> MiB, in place of what labels say
    gpu_reserve: int = 0  # MiB that the driver keeps of each device


class FleetConfig(ClusterConfig, frozen=True, kw_only=True):
    """Complete once `reconcile.inventory.fill` has put the nodes in, which it may do again and again."""

    declared: tuple[NodeConf, ...] = ()  # of NodeName lines: what they say goes for the node of that name
    rules: NodeRules = NodeRules()
    members: tuple[tuple[str, Membership], ...] = ()  # by partition
    pool_names: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of pools that name their nodes
    pods: PodTemplate = PodTemplate()  # of partitions that the site file does not name
    partition_pods: tuple[tuple[str, PodTemplate], ...] = ()
