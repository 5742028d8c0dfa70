"""Facts about a configuration that every submission asks for, worked out once per configuration.

A memo of one entry: it never changes an answer, it saves walking over thousands of nodes for each job.
"""

from __future__ import annotations

from slurmbridge.model.cluster import ClusterConfig, Partition


class Known:
    """Of one ClusterConfig."""

    def __init__(self, config: ClusterConfig) -> None:
        self.config = config
        self.features = frozenset(name for node in config.nodes for name in node.features)
        self._memory = {node.name: node.real_memory for node in config.nodes}
        self._largest: dict[str, tuple[tuple[str, ...], int]] = {}

    def largest_memory(self, partition: Partition) -> int:
        """MiB of the partition's largest node."""
        found = self._largest.get(partition.name)
        if found is None or found[0] is not partition.nodes:
            largest = max((self._memory.get(name, 0) for name in partition.nodes), default=0)
            found = self._largest[partition.name] = (partition.nodes, largest)
        return found[1]


_last: list[Known] = []


def known(config: ClusterConfig) -> Known:
    """The facts of this configuration."""
    if not _last or _last[0].config is not config:
        _last[:] = [Known(config)]
    return _last[0]
