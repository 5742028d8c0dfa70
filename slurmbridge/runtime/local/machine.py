"""What this machine has to say about the virtual nodes on it: memory, load, boot time. They share all of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.runtime.protocol import NodeSample


class Machine:
    """Reads /proc once per sample."""

    def __init__(self, config: ClusterConfig) -> None:
        self._names = tuple(node.name for node in config.nodes)
        system = os.uname()
        self._os = f"{system.sysname} {system.release} {system.version}"
        self._boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def sample(self) -> Sequence[NodeSample]:
        """One per node, in configuration order."""
        free, load = _free_memory_mib(), os.getloadavg()[0]
        return [
            NodeSample(node=name, free_memory_mib=free, cpu_load=load, boot_time=self._boot, os=self._os)
            for name in self._names
        ]


def _free_memory_mib() -> int | None:
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemFree:"):
                return int(line.split()[1]) // 1024
    return None
