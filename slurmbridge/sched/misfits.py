"""Why a shape fits nowhere, and for how long that is known: kept from cycle to cycle while nodes come and go.

That a job waits for resources follows from nodes on which it would fit if they were empty. As long as those may take work
nothing else about the cluster changes the answer, for shapes that fit on more nodes whenever they fit on some.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from slurmbridge.model.job import GpuScope
from slurmbridge.sched.columns import Bools, NodeColumns
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.places import Site
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView


class Misfit(msgspec.Struct, frozen=True, eq=False):
    """`rows`: nodes that bear it out by themselves; None: it is known of the nodes as they are now."""

    blocked: Blocked
    rows: tuple[int, ...] | None = None


Misfits = Mapping[tuple[int, int], Misfit]
"""By (shape, partition)."""


def fits_on_more(shape: Shape, view: PartitionView, site: Site) -> bool:
    """Whether a shape that fits on some empty nodes certainly does when there are more of them: see `choose`.

    Not so where nodes have to be neighbours, are named or counted, or share out what the job as a whole asks for.
    """
    if shape.contiguous or shape.node_counts or shape.req_nodes or site.required:
        return False
    if len(site.alternatives) != 1 or site.alternatives[0].counts:
        return False
    if shape.gpu is not None and shape.gpu.scope is GpuScope.JOB:
        return False
    if not shape.tasks_given and shape.tasks_per_node > 1:
        return False
    if view.near is None or not view.near.minds(shape) or shape.max_nodes == 1:
        return True
    return not (view.near.spans or view.near.optional) and len(np.unique(view.near.levels[-1])) == 1


def standing(known: Misfits, before: NodeColumns | None, now: NodeColumns) -> dict[tuple[int, int], Misfit]:
    """Those that hold although the states of nodes changed, or what others have there."""
    if before is None or before.names is not now.names:
        return {}
    worse = _worse(before, now)
    return {
        key: each for key, each in known.items() if each.rows is not None and not any(worse[row] for row in each.rows)
    }


def _worse(before: NodeColumns, now: NodeColumns) -> list[bool]:
    """By row, whether a node may have less to give than it had."""
    found: Bools = np.zeros(now.count, dtype=np.bool_)
    for row, (was, node) in enumerate(zip(before.nodes, now.nodes, strict=True)):
        if was is not node:
            found[row] = not now.usable[row] or was.others != node.others
    worse: list[bool] = found.tolist()
    return worse
