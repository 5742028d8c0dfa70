"""Which gang is next, to start or to give back? Gangs put into the order of queues.

Inside a leaf: higher priority; then gangs below a minimum before those at it before those above; then the older.
"""

from __future__ import annotations

from collections.abc import Iterable

from slurmbridge.sched.pod_chunks import asked, next_to_start
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang
from slurmbridge.sched.queue_order import Key, QueueOrder


def key_of(gang: Gang) -> Key:
    """Smaller starts first."""
    return -float(gang.priority), float(gang.fullness()), float(gang.rank)


def to_start(session: PodSession, gangs: Iterable[Gang], *, virtual: bool = False) -> QueueOrder[Gang]:
    """The gangs that have a next step."""
    order: QueueOrder[Gang] = QueueOrder(session.ledger, session.shares, session.total, facts=session.facts)
    for gang in gangs:
        push(session, order, gang, virtual=virtual)
    return order


def push(session: PodSession, order: QueueOrder[Gang], gang: Gang, *, virtual: bool = False) -> None:
    """Put a gang in, if it has a next step. Only queues without queues below them have gangs of their own."""
    tasks = next_to_start(gang, virtual)
    if tasks and not session.tree.children[gang.leaf]:
        order.push(gang.leaf, key_of(gang), gang, asked(tasks, session.device_mib))
