"""Which nodes satisfy --constraint? One column for each alternative, and what the job as a whole must have.

Source: sbatch(1) --constraint. `[a|b]` asks for all nodes to agree: each side is an alternative of its own. `a*4` asks
for four such nodes and lets the others be any; `[a*2&b*3]` for so many of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from slurmbridge.sched.columns import Bools, NodeColumns

if TYPE_CHECKING:
    from slurmbridge.lang.constraints import FeatureExpr


class Alternative(msgspec.Struct, frozen=True, eq=False):
    """Nodes that may be used, and (nodes, how many of them) that the job must have."""

    nodes: Bools
    counts: tuple[tuple[Bools, int], ...] = ()

    def within(self, allowed: Bools) -> Alternative:
        """The same among fewer nodes."""
        return Alternative(self.nodes & allowed, tuple((nodes & allowed, count) for nodes, count in self.counts))


def alternatives(text: str | None, columns: NodeColumns) -> tuple[Alternative, ...]:
    """To be tried in order. No constraint: every node."""
    if not text:
        return (Alternative(np.ones(columns.count, dtype=np.bool_)),)
    # The parser generator loads only in clusters where constraints are used.
    from slurmbridge.lang import constraints

    expression = constraints.parse(text)
    sides = expression.parts if isinstance(expression, constraints.Xor) else (expression,)
    return tuple(_alternative(side, columns) for side in sides)


def _alternative(side: FeatureExpr, columns: NodeColumns) -> Alternative:
    from slurmbridge.lang import constraints

    counts = tuple((_matching(part, columns), count) for part, count in constraints.counts(side) if count)
    if counts and not isinstance(side, constraints.Matching):
        return Alternative(np.ones(columns.count, dtype=np.bool_), counts)
    return Alternative(_matching(side, columns), counts)


def _matching(expression: FeatureExpr, columns: NodeColumns) -> Bools:
    from slurmbridge.lang import constraints

    if not columns.count:
        return np.zeros(0, dtype=np.bool_)
    hits = np.array([constraints.matches(expression, set(each)) for each in columns.feature_sets], dtype=np.bool_)
    column: Bools = hits[columns.feature_set]
    return column
