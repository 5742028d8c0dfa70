"""When is a node cordoned for an operator's `scontrol update`, and when is that taken back?

An annotation says that a cordon is ours, of which drain it is and why. A cordon without it is somebody else's and stays; a
node that somebody opened again, though we had closed it, stays open: its annotation tells that this drain had its cordon.
The same is decided after any restart, whatever part of it was done before.
"""

from __future__ import annotations

import msgspec

from slurmbridge.reconcile.node_health import is_ours
from slurmbridge.reconcile.node_sight import SeenNode


class Cordon(msgspec.Struct, frozen=True, kw_only=True):
    """Set or clear `unschedulable`, and the annotation; empty: without one."""

    unschedulable: bool | None  # None: leave it as it is
    mark: str = ""


def mark_of(instance: str, since: float | None, reason: str) -> str:
    """What the annotation says."""
    return f"{instance}@{since or 0:.0f} {reason}".strip()


def decide(node: SeenNode, *, is_out: bool, mark: str, instance: str) -> Cordon | None:
    """`is_out`: an operator drained it or took it down; `mark`: that of this drain. None: nothing is to be done."""
    ours = is_ours(node, instance)
    if not is_out:
        return Cordon(unschedulable=False if node.is_cordoned else None) if ours else None
    if ours and _drain(node.cordoned_by) == _drain(mark):
        return None
    if node.is_cordoned and not ours:
        return None
    return Cordon(unschedulable=None if node.is_cordoned else True, mark=mark)


def _drain(mark: str) -> str:
    return mark.partition(" ")[0]
