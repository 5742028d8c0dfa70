"""The nodes of a pass as columns, for questions about all of them at once.

What a node says of itself is the truth; the columns are brought up to date for the nodes that changed since they were last
asked. They answer too generously where only the node knows (parts of devices): who asks looks at each candidate again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from slurmbridge.sched.pod_fit import copies, parts_free
from slurmbridge.sched.pod_node import Ask, PodNode
from slurmbridge.sched.queues import TOLERANCE

Floats = npt.NDArray[np.float64]


class NodeColumns:
    """Rows by node index: what will be free of CPU, memory, whole devices and pods, and of devices already shared."""

    def __init__(self, nodes: Sequence[PodNode]) -> None:
        self.nodes = nodes
        self._future: Floats = np.zeros((len(nodes), 4))
        self._parts: Floats = np.zeros(len(nodes))
        self._changed: set[int] = {node.index for node in nodes}
        for node in nodes:
            node.changed = self._changed

    def candidates(self, ask: Ask) -> list[PodNode]:
        """The nodes on which the ask could fit, in order."""
        self._refresh()
        future = self._future
        mask = (future[:, 0] >= ask.cpu - TOLERANCE) & (future[:, 1] >= ask.memory - TOLERANCE)
        mask &= future[:, 3] >= 1 - TOLERANCE
        if ask.gpus:
            mask &= future[:, 2] >= ask.gpus - TOLERANCE
        elif ask.shares_devices:
            mask &= (future[:, 2] >= 1 - TOLERANCE) | (self._parts > TOLERANCE)
        return [self.nodes[index] for index in np.flatnonzero(mask).tolist()]

    def copies(self, ask: Ask) -> list[int]:
        """How many tasks like this each node will be able to hold."""
        self._refresh()
        if ask.shares_devices:
            return [copies(node, ask) for node in self.nodes]
        count = self._future[:, 3].copy()
        for column, amount in enumerate((ask.cpu, ask.memory, float(ask.gpus))):
            if amount:
                np.minimum(count, self._future[:, column] / amount, out=count)
        whole: list[int] = np.maximum(np.floor(count + TOLERANCE), 0).astype(np.int64).tolist()
        return whole

    def free_devices(self) -> Floats:
        """Devices, in parts, that are idle or will be and are promised to nobody."""
        self._refresh()
        free: Floats = np.maximum(self._future[:, 2], 0.0) + self._parts
        return free

    def _refresh(self) -> None:
        for index in self._changed:
            node = self.nodes[index]
            self._future[index] = node.future()
            self._parts[index] = parts_free(node)
        self._changed.clear()
