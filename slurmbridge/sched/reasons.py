"""Why does a job not fit, when nothing else stops it? Slurm's word for it.

Resources: it would fit if others ended. ReqNodeNotAvail: a node that it names is down or drained. Nodes required ...:
too few nodes are up. PartitionConfig, BadConstraints: it can never fit there.
Source: squeue(1), JOB REASON CODES; texts as Slurm 26.05 prints them.
"""

from __future__ import annotations

from collections.abc import Callable

from slurmbridge.lang.hostlist import compress
from slurmbridge.model.states import Reason
from slurmbridge.sched.columns import NodeColumns
from slurmbridge.sched.eligibility import NO_ROOM, Blocked
from slurmbridge.sched.places import Site

NODES_DOWN = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"


def of_misfit(site: Site, columns: NodeColumns, fits_empty: Callable[[bool], bool]) -> Blocked:
    """`fits_empty(usable_only)`: whether the shape would fit on empty nodes, the usable or all of them."""
    if site.unknown:
        return Blocked(Reason.PARTITION_CONFIG)
    down = [row for row in site.required if not columns.usable[row]]
    if down:
        names = compress([columns.names[row] for row in down])
        return Blocked(Reason.REQ_NODE_NOT_AVAIL, f"ReqNodeNotAvail, UnavailableNodes:{names}")
    if fits_empty(True):
        return NO_ROOM
    if fits_empty(False):
        return Blocked(Reason.RESOURCES, NODES_DOWN)
    if not any(each.nodes.any() for each in site.anywhere):
        return Blocked(Reason.BAD_CONSTRAINTS)
    return Blocked(Reason.PARTITION_CONFIG)
