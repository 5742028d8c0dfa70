"""Which nodes satisfy --constraint? One column for each alternative.

Source: sbatch(1) --constraint. `[a|b]` asks for all nodes to agree: each side is an alternative of its own.
"""

from __future__ import annotations

import msgspec
import numpy as np

from slurmbridge.sched.columns import Bools, NodeColumns


class Alternative(msgspec.Struct, frozen=True, eq=False):
    """Nodes that may be used, and (nodes, how many of them) that the job must have."""

    nodes: Bools
    counts: tuple[tuple[Bools, int], ...] = ()


def alternatives(text: str | None, columns: NodeColumns) -> tuple[Alternative, ...]:
    """To be tried in order. No constraint: every node."""
    if not text:
        return (Alternative(np.ones(columns.count, dtype=np.bool_)),)
    from slurmbridge.lang import constraints

    expression = constraints.parse(text)
    hits = np.array([constraints.matches(expression, set(each)) for each in columns.feature_sets], dtype=np.bool_)
    return (Alternative(hits[columns.feature_set] if columns.count else np.zeros(0, dtype=np.bool_)),)
