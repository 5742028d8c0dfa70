"""The world of one pass over gangs: nodes, gangs, queues and what has been changed so far, all of it reversible.

Three things can be done to a task: place it (now, or as a promise on what others are giving up), evict it, or change a
placement into a promise. Each is counted for its queue at once, so that whatever is decided next sees it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.pod_columns import NodeColumns
from slurmbridge.sched.pod_node import Load, PodNode
from slurmbridge.sched.pods import Gang, PodTask, Status, Topology
from slurmbridge.sched.policy import Policy
from slurmbridge.sched.queue_order import QueueFacts
from slurmbridge.sched.queues import ZERO, QueueTree, Vector, plus
from slurmbridge.sched.shares import fair_shares, request_of


class PodSession:
    """One pass. Gangs are given oldest first; tasks that run are already on their nodes."""

    def __init__(
        self,
        tree: QueueTree,
        nodes: Sequence[PodNode],
        gangs: Sequence[Gang],
        topologies: Iterable[Topology],
        policy: Policy,
        *,
        usage: Sequence[Vector] | None = None,
    ) -> None:
        self.tree = tree
        self.nodes = list(nodes)
        self.gangs = list(gangs)
        self.topologies = {topology.name: topology for topology in topologies}
        self.policy = policy
        self.total: Vector = ZERO
        for node in self.nodes:
            self.total = plus(self.total, (node.size[0], node.size[1], node.size[2]))
        sizes = [node.device_mib for node in self.nodes if node.gpus]
        self.device_mib = min(sizes, default=0.0)  # of the smallest device: what a task without a node is charged by
        self.largest_mib = max(sizes, default=0.0)  # by this it is charged least
        self.ledger = Ledger(tree)
        self.facts: dict[int, QueueFacts] = {}
        self.gathering: set[int] = set()  # ranks of gangs that hold room without being complete
        self._journal: list[Callable[[], None]] = []  # how to undo each change
        self._settle_in()
        self.columns = NodeColumns(self.nodes)
        self.shares = fair_shares(tree, self.total, self._requests(), usage, round_up=policy.shares_round_up)

    def _settle_in(self) -> None:
        """Burden nodes and queues with what is there already."""
        for gang in self.gangs:
            for task in gang.tasks:
                if task.node is None:
                    continue
                if task.status == Status.RUNNING:
                    task.node.shift(task.ask, task.labels, Load.ACTIVE, 1)
                elif task.status == Status.RELEASING:
                    task.node.shift(task.ask, task.labels, Load.RELEASING, 1)
                    continue
                else:
                    continue
                task.charged = task.ask.charge(task.node.device_mib)
                self.ledger.add(gang.leaf, task.charged, gang.preemptible)
            for pods in gang.sets:
                pods.active = sum(task.active for task in pods.tasks)
        for gang in self.gangs:
            for task in gang.tasks:
                if task.target is not None:  # promised before this pass
                    task.target.shift(task.ask, task.target_labels, Load.PIPELINED, 1)
                    task.charged = task.ask.charge(task.target.device_mib)
                    self.ledger.add(gang.leaf, task.charged, gang.preemptible)
        self.ledger.settle()

    def _requests(self) -> list[Vector]:
        own = [ZERO] * len(self.tree)
        for gang in self.gangs:
            asked = own[gang.leaf]
            for task in gang.tasks:
                if task.active:
                    asked = plus(asked, task.charged)
                elif task.status == Status.PENDING:
                    asked = plus(asked, task.ask.charge(self.device_mib))
            own[gang.leaf] = asked
        return request_of(self.tree, [ZERO] * len(self.tree), own)

    # ------------------------------------------------------------------ changes
    def place(self, task: PodTask, node: PodNode, labels: tuple[str, ...], promise: bool) -> None:
        """Put a waiting task on a node. An evicted one promised back to where it is simply stays."""
        self._remember(task)
        if task.evicted and task.node is node and set(task.labels) == set(labels):
            self._shift(node, task, task.labels, Load.RELEASING, -1)
            self._shift(node, task, task.labels, Load.ACTIVE, 1)
            task.evicted = False
        elif promise or task.evicted:
            self._shift(node, task, labels, Load.PIPELINED, 1)
            task.target, task.target_labels = node, labels
        else:
            self._shift(node, task, labels, Load.ACTIVE, 1)
            task.node, task.labels, task.status = node, labels, Status.STARTED
        task.pods.active += 1
        task.charged = task.ask.charge(node.device_mib)
        self.ledger.add(task.gang.leaf, task.charged, task.gang.preemptible)

    def postpone(self, task: PodTask) -> None:
        """Make a placement of this pass a promise on the same node."""
        node = task.node
        if task.status != Status.STARTED or node is None:
            return
        self._remember(task)
        self._shift(node, task, task.labels, Load.ACTIVE, -1)
        self._shift(node, task, task.labels, Load.PIPELINED, 1)
        task.target, task.target_labels = node, task.labels
        task.node, task.labels, task.status = None, (), Status.PENDING

    def evict(self, task: PodTask) -> None:
        """Take from a running task what it holds."""
        node = task.node
        if not task.here or node is None:
            return
        self._remember(task)
        self._shift(node, task, task.labels, Load.ACTIVE, -1)
        self._shift(node, task, task.labels, Load.RELEASING, 1)
        task.evicted = True
        task.pods.active -= 1
        self.ledger.add(task.gang.leaf, task.charged, task.gang.preemptible, -1)

    # ------------------------------------------------------------------ going back
    def mark(self) -> tuple[int, int]:
        """A point to come back to."""
        return len(self._journal), self.ledger.mark()

    def restore(self, mark: tuple[int, int]) -> None:
        """Take back every change since `mark`."""
        length, ledger = mark
        while len(self._journal) > length:
            self._journal.pop()()
        self.ledger.restore(ledger)

    def _remember(self, task: PodTask) -> None:
        self._journal.append(functools.partial(task.put_back, task.state()))

    def _shift(self, node: PodNode, task: PodTask, labels: tuple[str, ...], load: Load, sign: int) -> None:
        self._journal.append(functools.partial(node.put_back, node.state()))
        node.shift(task.ask, labels, load, sign)
