"""How do the components of a heterogeneous job stay apart?

Follows slurmctld: they never share a node, so the nodes that one requires by name are excluded for all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.job import JobSpec
from slurmbridge.model.verdict import Refused


def keep_apart(specs: Sequence[JobSpec], order: Sequence[str]) -> list[JobSpec] | Refused:
    """The specs with what each excludes; `order`: the node names as configured. Two that require one node are refused."""
    kept = []
    for place, spec in enumerate(specs):
        taken = {node for other, each in enumerate(specs) if other != place for node in each.req_nodes}
        if not taken:
            kept.append(spec)
            continue
        if taken & {*spec.req_nodes}:
            return Refused(errno=SlurmErrno.INVALID_NODE_NAME)
        excluded = taken | {*spec.exc_nodes}
        kept.append(msgspec.structs.replace(spec, exc_nodes=tuple(node for node in order if node in excluded)))
    return kept
