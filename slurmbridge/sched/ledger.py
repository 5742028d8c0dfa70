"""How much does each queue hold at this point of the plan?

One row per queue for all its work and one for what is not preemptible; a change counts for the leaf and every queue above.
`mark` and `restore` take back whatever was tried since, bit for bit: the rows as they were are kept, nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.sched.queues import ZERO, QueueTree, Vector


class Ledger:
    """Rows by queue index. `allocated` and `allocated_np` are for reading."""

    __slots__ = ("_log", "allocated", "allocated_np", "tree")

    def __init__(
        self,
        tree: QueueTree,
        allocated: Sequence[Vector] | None = None,
        allocated_np: Sequence[Vector] | None = None,
    ) -> None:
        """Rows given are those of the leaves alone; ancestors are summed here."""
        self.tree = tree
        self.allocated: list[Vector] = [ZERO] * len(tree) if allocated is None else tree.summed(allocated)
        self.allocated_np: list[Vector] = [ZERO] * len(tree) if allocated_np is None else tree.summed(allocated_np)
        self._log: list[tuple[int, Vector, Vector]] = []

    def add(self, leaf: int, vector: Vector, preemptible: bool, sign: int = 1) -> None:
        """Count `vector` in (sign 1) or out (-1), at the leaf and above."""
        cpu, memory, gpu = vector if sign > 0 else (-vector[0], -vector[1], -vector[2])
        for queue in self.tree.paths[leaf]:
            held, fixed = self.allocated[queue], self.allocated_np[queue]
            self._log.append((queue, held, fixed))
            self.allocated[queue] = (held[0] + cpu, held[1] + memory, held[2] + gpu)
            if not preemptible:
                self.allocated_np[queue] = (fixed[0] + cpu, fixed[1] + memory, fixed[2] + gpu)

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._log)

    def restore(self, mark: int) -> None:
        """Take back everything since `mark`."""
        log = self._log
        while len(log) > mark:
            queue, held, fixed = log.pop()
            self.allocated[queue] = held
            self.allocated_np[queue] = fixed

    def settle(self) -> None:
        """Forget how to go back: marks taken so far are void."""
        self._log.clear()

    def copy(self) -> Ledger:
        """The rows as they are now, in a ledger of their own."""
        other = Ledger(self.tree)
        other.allocated = list(self.allocated)
        other.allocated_np = list(self.allocated_np)
        return other
