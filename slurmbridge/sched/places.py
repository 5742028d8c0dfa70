"""Where may a shape run in a partition, whatever is free? Features, named and excluded nodes, reservations.

The answer depends on configuration and node states alone, so a memo keeps it from cycle to cycle.
"""

from __future__ import annotations

import msgspec
import numpy as np

from slurmbridge.model.job import Job
from slurmbridge.model.plan import Reservation
from slurmbridge.sched.columns import Bools, NodeColumns
from slurmbridge.sched.features import Alternative, alternatives
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot


class Site(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Candidate nodes. `nodes`: usable now; `anywhere`: with those that are down or drained."""

    alternatives: tuple[Alternative, ...]  # usable nodes only
    anywhere: tuple[Alternative, ...]
    required: tuple[int, ...]
    unknown: bool = False  # a required node is not in the partition


def find(shape: Shape, view: PartitionView, columns: NodeColumns) -> Site:
    """Without reservations."""
    allowed = view.nodes.copy()
    for name in shape.exc_nodes:
        row = columns.rows.get(name)
        if row is not None:
            allowed[row] = False
    required = tuple(columns.rows[name] for name in shape.req_nodes if name in columns.rows)
    unknown = len(required) < len(shape.req_nodes) or any(not allowed[row] for row in required)
    anywhere = [
        each.within(allowed)
        for text in ((shape.prefer, shape.features) if shape.prefer else (shape.features,))
        for each in alternatives(text, columns)
    ]
    return Site(
        alternatives=tuple(each.within(columns.usable) for each in anywhere),
        anywhere=tuple(anywhere),
        required=required,
        unknown=unknown,
    )


def again(site: Site, columns: NodeColumns) -> Site:
    """The same after states of nodes changed."""
    return msgspec.structs.replace(site, alternatives=tuple(each.within(columns.usable) for each in site.anywhere))


def may_use(reservation: Reservation, job: Job) -> bool:
    """Whether the job's user or account is let in. Names with a leading '-' are shut out."""
    spec = job.spec
    if f"-{spec.user}" in reservation.users or f"-{spec.account}" in reservation.accounts:
        return False
    users = [name for name in reservation.users if not name.startswith("-")]
    accounts = [name for name in reservation.accounts if not name.startswith("-")]
    if users and accounts:
        return spec.user in users or spec.account in accounts
    if users or accounts:
        return spec.user in users or spec.account in accounts
    return True


def open_nodes(snapshot: Snapshot, reservation: str, now: float, length_s: float) -> Bools | None:
    """Nodes that reservations leave to a job of this length; None = all. A job in a reservation gets its nodes only."""
    if not snapshot.reservations:
        return None
    columns = snapshot.columns
    if reservation:
        inside = np.zeros(columns.count, dtype=np.bool_)
        for each in snapshot.reservations:
            if each.name in reservation.split(",") and each.start_time <= now < each.end_time:
                inside |= _rows_of(each, columns)
        return inside
    outside = np.ones(columns.count, dtype=np.bool_)
    for each in snapshot.reservations:
        if each.end_time > now and each.start_time < now + length_s:
            outside &= ~_rows_of(each, columns)
    return outside


def _rows_of(reservation: Reservation, columns: NodeColumns) -> Bools:
    inside = np.zeros(columns.count, dtype=np.bool_)
    for name in reservation.nodes:
        row = columns.rows.get(name)
        if row is not None:
            inside[row] = True
    return inside
