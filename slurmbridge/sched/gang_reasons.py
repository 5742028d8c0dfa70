"""Why does a gang wait? The first rule that stops it, whose figure it is, and how much is missing.

The same questions that the actions ask, in the same order, put to the session after a pass.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from slurmbridge.sched import gates
from slurmbridge.sched.pod_chunks import asked, next_to_start
from slurmbridge.sched.pod_fit import admits
from slurmbridge.sched.pod_node import Ask, PodNode
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang, PodTask
from slurmbridge.sched.queues import RESOURCES, TOLERANCE

Rule = Literal["queue", "incomplete", "limit", "quota", "never", "share", "room"]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. `missing` counts in the resource, in the units of the queues."""

    rule: Rule
    queue: str | None = None
    resource: str | None = None
    missing: float = 0.0


def reason(session: PodSession, gang: Gang) -> Reason | None:
    """None: nothing of the gang waits.

    queue: it has queues below it, in which gangs belong.  incomplete: fewer tasks exist than the minimum.  limit, quota: of
    `queue`.  never: no node is large enough even when empty.  share: there is no room, and its queue would be above its
    share, so nobody has to make any.  room: the others that could make room do not suffice.
    """
    if not any(task.waits(False) for task in gang.tasks):
        return None
    if session.tree.children[gang.leaf]:
        return Reason(rule="queue", queue=session.tree.names[gang.leaf])
    chunk = next_to_start(gang)
    if not chunk:
        return Reason(rule="incomplete")
    ask = asked(chunk, session.device_mib)
    ledger, tree = session.ledger, session.tree
    passed = gates.over_limit(ledger, gang.leaf, ask)
    if passed is not None:
        queue, resource = passed
        over = ledger.allocated[queue][resource] + ask[resource] - tree.limit[queue][resource]
        return Reason(rule="limit", queue=tree.names[queue], resource=RESOURCES[resource], missing=over)
    passed = None if gang.preemptible else gates.over_quota(ledger, gang.leaf, ask)
    if passed is not None:
        queue, resource = passed
        over = ledger.allocated_np[queue][resource] + ask[resource] - tree.quota[queue][resource]
        return Reason(rule="quota", queue=tree.names[queue], resource=RESOURCES[resource], missing=over)
    if not all(any(_could_ever(node, task) for node in session.nodes) for task in chunk):
        return Reason(rule="never")
    held, share = ledger.allocated[gang.leaf], session.shares[gang.leaf]
    for resource in (2, 1, 0):
        over = held[resource] + ask[resource] - share[resource]
        if over > TOLERANCE:
            return Reason(rule="share", queue=tree.names[gang.leaf], resource=RESOURCES[resource], missing=over)
    free = float(session.columns.free_devices().sum())
    return Reason(rule="room", resource="gpu" if ask[2] else None, missing=max(0.0, ask[2] - free))


def _could_ever(node: PodNode, task: PodTask) -> bool:
    ask: Ask = task.ask
    if not admits(node, task) or ask.cpu > node.size[0] + TOLERANCE or ask.memory > node.size[1] + TOLERANCE:
        return False
    if ask.shares_devices:
        return ask.devices <= node.gpus and ask.part(node.device_mib) <= 1 + TOLERANCE
    return ask.gpus <= node.gpus
