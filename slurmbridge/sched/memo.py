"""What may be kept from one cycle to the next: things derived from records that did not change.

Each part carries the mark of what it was derived from and is made anew when that is another object, so a cycle with an
empty memo gives the same answer, only later.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import msgspec
import numpy as np

from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import JobSpec
from slurmbridge.sched import fairtree, order, priority, screen
from slurmbridge.sched.columns import Ints, NodeColumns
from slurmbridge.sched.fates import Alones, Fate, Pairs, pairs_of
from slurmbridge.sched.limits import Counters, LimitBook
from slurmbridge.sched.misfits import Misfit, standing
from slurmbridge.sched.places import Site
from slurmbridge.sched.places import again as places_again
from slurmbridge.sched.portion import Portions
from slurmbridge.sched.preemption import Rules
from slurmbridge.sched.queued import Queued, queued, with_groups
from slurmbridge.sched.runs import Runs, runs_of
from slurmbridge.sched.shape import ShapeTable
from slurmbridge.sched.snapshot import Snapshot


class Memo(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """See the module docstring. `sites` and `misfits` fill up while they are used."""

    fixed_mark: object = None
    shapes: ShapeTable | None = None  # whose numbers `misfits` uses
    sites: dict[tuple[object, ...], Site] = {}
    columns: NodeColumns | None = None  # of `sites` and `misfits`
    misfits: dict[tuple[int, int], Misfit] = {}  # (shape, partition) -> why it does not fit
    fates: dict[tuple[int, int], Fate] = {}  # (group, partition)
    alones: Alones = {}  # (shape, partition)
    again: dict[
        int, tuple[JobSpec, tuple[Hashable, float]]
    ] = {}  # run -> what it is like when it begins again: see `elsewhere`
    portions: dict[tuple[int, int], Portions | None] = {}  # (shape, partition)
    pairs: Pairs = Pairs.none()
    pairs_of: object = None  # the places that they are of
    floors: Ints = msgspec.field(default_factory=lambda: np.zeros((0, 6), dtype=np.int64))  # by the shape's number
    accounting: Accounting | None = None
    usage: tuple[UsageRow, ...] | None = None  # of `book`
    counted: tuple[UsageRow, ...] | None = None  # of `shares`
    half_life: int = 0
    shares: Mapping[int, float] = {}
    book: LimitBook | None = None
    running_mark: object = None
    counters: Counters | None = None
    runs: Runs = Runs()
    points: priority.Points = priority.Points.none()
    places: order.Places = order.Places.none()
    queued: Queued = Queued.none()
    rules: Rules | None = None
    rules_of: tuple[object, ...] = ()  # what `rules` was made of

    @classmethod
    def empty(cls) -> Memo:
        return cls()


def refreshed(memo: Memo, snapshot: Snapshot, config: ClusterConfig) -> Memo:
    """The memo with every part fit for this snapshot."""
    half_life = config.priority_decay_half_life
    changes: dict[str, object] = {}
    stale = memo.fixed_mark is not snapshot.fixed_mark or memo.shapes is not snapshot.shapes
    if stale or len(memo.sites) > 10_000:
        changes |= {
            "fixed_mark": snapshot.fixed_mark,
            "shapes": snapshot.shapes,
            "sites": {},
            "misfits": {},
            "fates": {},
            "alones": {},
            "again": {},
            "portions": {},
            "pairs": Pairs.none(),
        }
    elif memo.columns is not snapshot.columns:
        changes |= {
            "sites": {key: places_again(site, snapshot.columns) for key, site in memo.sites.items()},
            "misfits": standing(memo.misfits, memo.columns, snapshot.columns),
        }
    if memo.rules_of and memo.rules_of[0] is not config:
        changes["portions"] = {}
    if len(memo.again) > 1000 + 2 * len(snapshot.running):
        changes["again"] = {}
    changes["columns"] = snapshot.columns
    same_records = memo.accounting is snapshot.accounting
    same_usage = memo.usage is snapshot.usage
    changes["usage"] = snapshot.usage
    counted = snapshot.usage if snapshot.counted is None else snapshot.counted
    if not (same_records and memo.counted is counted and memo.half_life == half_life):
        usage = fairtree.usage_of(counted, half_life)
        changes |= {
            "counted": counted,
            "half_life": half_life,
            "shares": fairtree.factors(snapshot.accounting, usage),
        }
    book = memo.book
    if book is None or not (same_records and same_usage):
        book = LimitBook(snapshot.accounting, snapshot.usage)
        changes |= {"accounting": snapshot.accounting, "book": book}
    if memo.running_mark is not snapshot.running_mark or not same_records or "fixed_mark" in changes:
        changes |= {
            "running_mark": snapshot.running_mark,
            "counters": _counted(snapshot, book) if book.any else Counters(),
        }
    if memo.shapes is not snapshot.shapes:
        memo = msgspec.structs.replace(memo, floors=memo.floors[:0])
    memo = msgspec.structs.replace(memo, **changes)
    origin = (config, snapshot.accounting, snapshot.partitions)
    if memo.rules is None or any(one is not other for one, other in zip(origin, memo.rules_of, strict=True)):
        named = {name: view.partition for name, view in snapshot.partitions.items()}
        memo = msgspec.structs.replace(memo, rules=Rules(config, snapshot.accounting, named), rules_of=origin)
    assert memo.rules is not None
    found = queued(snapshot, memo.queued)
    memo = msgspec.structs.replace(memo, runs=runs_of(snapshot, memo.rules, found.pools, found.has_quotas, memo.runs))
    places = order.places_of(snapshot, memo.places, tuple(pool.nodes for pool in found.pools))
    if memo.pairs_of is not places.key:
        memo = msgspec.structs.replace(memo, pairs=Pairs.none(), pairs_of=places.key)
    return msgspec.structs.replace(
        memo,
        pairs=pairs_of(snapshot, places, memo.fates, memo.alones, memo.pairs),
        points=priority.points_of(snapshot, config, memo.shares, memo.points),
        places=places,
        queued=with_groups(found, snapshot, places),
        floors=screen.floors(snapshot.shapes.shapes, memo.floors),
    )


def _counted(snapshot: Snapshot, book: LimitBook) -> Counters:
    counters = Counters()
    for each in snapshot.running.values():
        allocation = each.job.allocation
        if allocation is None or each.job.state.is_finished:
            continue
        view = snapshot.partitions.get(allocation.partition)
        counters.add(book.keys(each.job, view.partition.qos if view else ""), allocation.tres)
    return counters
