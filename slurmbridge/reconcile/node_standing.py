"""Whose is a node, and what keeps a partition's jobs off it? Labels, taints and resources against what partitions say.

Source: "Assigning Pods to Nodes", "Taints and Tolerations" of the Kubernetes documentation. A node whose taint some of its
partitions tolerate is theirs alone; one that none of them tolerates stays where its labels put it, and is drained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from slurmbridge.model.fleet import Membership, Tolerated
from slurmbridge.reconcile.node_sight import SeenNode, SeenTaint

HARD = ("NoSchedule", "NoExecute")
ROLE = "node-role.kubernetes.io/"
"""Taints like this say what a node is there for: without a toleration it is not a partition's, unless the partition names
it."""
OTHERWISE_TOLD = frozenset(
    f"node.kubernetes.io/{word}"
    for word in (
        "not-ready", "unreachable", "unschedulable", "out-of-service", "memory-pressure", "disk-pressure", "pid-pressure",
        "network-unavailable",
    )
)  # fmt: skip
"""Taints that follow a condition or a cordon, which says more."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    partitions: tuple[str, ...] = ()
    blocked: str = ""  # why none of them may use it


def standing(node: SeenNode, name: str, members: Sequence[tuple[str, Membership]]) -> Standing:
    """`name`: ours of the node."""
    free: list[str] = []
    blocked: dict[str, str] = {}
    for partition, membership in members:
        if not _is_selected(node, name, membership):
            continue
        why = _blocked(node, membership)
        if why:
            blocked[partition] = why
        else:
            free.append(partition)
    if free or not blocked:
        return Standing(partitions=tuple(free))
    return Standing(partitions=tuple(blocked), blocked=next(iter(blocked.values())))


def _is_selected(node: SeenNode, name: str, membership: Membership) -> bool:
    if membership.named is not None and name not in membership.named:
        return False
    if any(node.labels.get(key) != value for key, value in membership.selector):
        return False
    roles = (taint for taint in node.taints if taint.key.startswith(ROLE) and taint.effect in HARD)
    return membership.named is not None or all(is_tolerated(taint, membership.tolerated) for taint in roles)


def _blocked(node: SeenNode, membership: Membership) -> str:
    for taint in node.taints:
        if taint.effect not in HARD or taint.key in OTHERWISE_TOLD or is_tolerated(taint, membership.tolerated):
            continue
        return f"taint {taint_text(taint)}"
    for resource, amount in membership.needs:
        if node.capacity.resources.get(resource, 0) < amount:
            return f"lacks {resource}"
    return ""


def is_tolerated(taint: SeenTaint, tolerated: Iterable[Tolerated]) -> bool:
    return any(
        each.key in ("", taint.key) and each.value in (None, taint.value) and each.effect in ("", taint.effect)
        for each in tolerated
    )


def taint_text(taint: SeenTaint) -> str:
    """As kubectl writes it."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
