"""Facts about a configuration that every submission asks for, worked out once per configuration.

A memo of one entry: it never changes an answer, it saves walking over thousands of nodes for each job.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from slurmbridge.model.cluster import ClusterConfig, NodeConf, Partition


class Sizes:
    """The largest of some nodes in every direction, and what the largest few have together."""

    def __init__(self, confs: Iterable[NodeConf]) -> None:
        nodes = list(confs)
        self.count = len(nodes)
        self.cpus = max((node.cpus for node in nodes), default=0)
        self.memory = max((node.real_memory for node in nodes), default=0)
        self.tmp = max((node.tmp_disk for node in nodes), default=0)
        self.shapes = frozenset((node.sockets, node.cores_per_socket, node.threads_per_core) for node in nodes)
        self._cpus = [0, *itertools.accumulate(sorted((node.cpus for node in nodes), reverse=True))]
        self._nodes = nodes
        self._gpus: dict[str, list[int]] = {}

    def cpus_of(self, most: int | None) -> int:
        """CPUs of the `most` largest nodes."""
        return self._cpus[self.count if most is None else min(most, self.count)]

    def gpus_of(self, type_name: str, most: int | None) -> int:
        """GPUs of that type (of any: empty) on the `most` nodes that have most."""
        sums = self._gpus.get(type_name)
        if sums is None:
            held = [sum(each.name == "gpu" and type_name in each.type for each in node.devices) for node in self._nodes]
            sums = self._gpus[type_name] = [0, *itertools.accumulate(sorted(held, reverse=True))]
        return sums[self.count if most is None else min(most, self.count)]


class Known:
    """Of one ClusterConfig."""

    def __init__(self, config: ClusterConfig) -> None:
        self.config = config
        self.features = frozenset(name for node in config.nodes for name in node.features)
        self._memory = {node.name: node.real_memory for node in config.nodes}
        self._largest: dict[str, tuple[tuple[str, ...], int]] = {}
        self._confs = {node.name: node for node in config.nodes}
        self._sizes: dict[str, tuple[tuple[str, ...], Sizes]] = {}

    def largest_memory(self, partition: Partition) -> int:
        """MiB of the partition's largest node."""
        found = self._largest.get(partition.name)
        if found is None or found[0] is not partition.nodes:
            largest = max((self._memory.get(name, 0) for name in partition.nodes), default=0)
            found = self._largest[partition.name] = (partition.nodes, largest)
        return found[1]

    def sizes(self, partition: Partition, without: Collection[str] = ()) -> Sizes:
        """Of the partition's nodes, but those left out."""
        if without:
            gone = set(without)
            return Sizes(self._confs[name] for name in partition.nodes if name in self._confs and name not in gone)
        found = self._sizes.get(partition.name)
        if found is None or found[0] is not partition.nodes:
            sizes = Sizes(self._confs[name] for name in partition.nodes if name in self._confs)
            found = self._sizes[partition.name] = (partition.nodes, sizes)
        return found[1]


_last: list[Known] = []


def known(config: ClusterConfig) -> Known:
    """The facts of this configuration."""
    if not _last or _last[0].config is not config:
        _last[:] = [Known(config)]
    return _last[0]
