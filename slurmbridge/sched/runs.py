"""What of each run do cycles ask again and again, as columns? Kept from cycle to cycle, changed where runs changed.

One row a run, in the order of job ids. Whether and how it may be ended is what the site's rules say of its record; what
depends on time (how long it may not be ended yet, what it would lose) is worked out from the columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.job import Job
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.pools import PoolTree
from slurmbridge.sched.preemption import CANCEL, REQUEUE, SUSPEND, Rules, is_preemptible
from slurmbridge.sched.rows import is_among
from slurmbridge.sched.snapshot import Running, Snapshot

MODES = (None, REQUEUE, CANCEL, SUSPEND)
"""By number: how a run may be ended; None: not at all."""
_NUMBERS = {mode: number for number, mode in enumerate(MODES)}
RESTART_S = 60.0
"""What beginning again costs beside the work that is lost."""
CPU_PART = 1 / 64
"""A CPU beside a device."""
STARTS = 1e-4
"""The same of what starts in this very cycle and is taken back: nothing is lost, but as little as will do is taken."""
FOR_GOOD = 4.0
"""A run that is not begun again loses so much more."""
NOT_STARTED = math.inf

ROW = np.dtype(
    [
        ("id", np.int64),
        ("start", np.float64),
        ("weight", np.float64),  # devices and a part for each CPU
        ("exempt", np.float64),  # until then nobody may end it
        ("taken", np.int8),  # how the site's preemption may end it: a number of MODES
        ("reclaimed", np.int8),  # how it may be ended for another queue's due
        ("firm", np.bool_),  # it may not be ended so
        ("counts", np.bool_),  # it is charged; the nodes of others are only being cleared
        ("kind", np.int64),  # equal for runs of which the rules of preemption say the same
        ("serves", np.int64),  # the job for which it is on its way out; 0 = none
        ("array", np.int64),
    ]
)


class Runs(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """See the module docstring. Good as long as `key` and `mark` are the same objects; `kinds` only grows."""

    key: tuple[object, ...] = ()
    mark: object = None
    rows: NDArray[np.void] = msgspec.field(default_factory=lambda: np.zeros(0, dtype=ROW))
    leaves: tuple[Ints, ...] = ()  # by pool: the queue of each run
    kinds: dict[object, int] = {}

    def at(self, ids: Ints) -> Ints:
        """Rows of jobs that run."""
        return np.searchsorted(self.rows["id"], ids).astype(np.int64)

    def arrays(self) -> dict[int, int]:
        """Array id -> tasks that run."""
        found = self.rows["array"][(self.rows["array"] != 0) & self.rows["counts"]]
        ids, counts = np.unique(found, return_counts=True)
        return dict(zip(ids.tolist(), counts.tolist(), strict=True))

    def served(self) -> set[int]:
        """Jobs for whom others are on their way out."""
        return set(np.unique(self.rows["serves"]).tolist()) - {0}


def runs_of(snapshot: Snapshot, rules: Rules, pools: tuple[PoolTree, ...], quotas: bool, before: Runs) -> Runs:
    """Of this snapshot; what is known of runs that did not change is kept."""
    key = rules, pools, quotas
    mark, changed = snapshot.running_since
    same = len(before.key) == len(key) and all(one is other for one, other in zip(key, before.key, strict=True))
    if same and before.mark is snapshot.running_mark:
        return before
    if not same or mark is None or before.mark is not mark or len(before.kinds) > 1000 + 4 * len(snapshot.running):
        before, fresh = Runs(key=key), list(snapshot.running.values())
    else:
        fresh = [snapshot.running[job_id] for job_id in changed if job_id in snapshot.running]
        kept = ~is_among(before.rows["id"], np.fromiter(changed, dtype=np.int64, count=len(changed)))
        before = msgspec.structs.replace(
            before, rows=before.rows[kept], leaves=tuple(leaves[kept] for leaves in before.leaves)
        )
    kinds = before.kinds
    made = _Maker(rules, quotas, kinds)
    rows = np.array([made.row(each) for each in fresh], dtype=ROW)
    assocs = [each.job.spec.assoc_id for each in fresh]
    leaves = [np.array([pool.leaf(assoc) for assoc in assocs], dtype=np.int64) for pool in pools]
    rows = np.concatenate([before.rows, rows])
    order = np.argsort(rows["id"], kind="stable")
    known: Sequence[Ints] = before.leaves or [np.zeros(0, dtype=np.int64)] * len(pools)
    return Runs(
        key=key,
        mark=snapshot.running_mark,
        rows=rows[order],
        leaves=tuple(np.concatenate(each)[order] for each in zip(known, leaves, strict=True)),
        kinds=kinds,
    )


def with_starts(
    runs: Runs, starts: Mapping[int, Running], rules: Rules, pools: tuple[PoolTree, ...], quotas: bool
) -> Runs:
    """With those that start in this cycle, under keys that are no job's: below them, in rising order. Who could be ended in any
    way once he runs only waits on.
    """
    made = _Maker(rules, quotas, runs.kinds)
    rows = np.array([made.row(each) for each in starts.values()], dtype=ROW)
    rows["id"] = np.fromiter(starts, dtype=np.int64, count=len(starts))
    rows["taken"] = np.where(rows["taken"] > 0, _NUMBERS[REQUEUE], 0)
    rows["reclaimed"] = _NUMBERS[REQUEUE] if quotas else 0
    rows["exempt"] = -math.inf
    leaves = [
        np.array([pool.leaf(each.job.spec.assoc_id) for each in starts.values()], dtype=np.int64) for pool in pools
    ]
    return msgspec.structs.replace(
        runs,
        rows=np.concatenate([rows, runs.rows]),
        leaves=tuple(np.concatenate(both) for both in zip(leaves, runs.leaves, strict=True)),
    )


class _Maker:
    def __init__(self, rules: Rules, quotas: bool, kinds: dict[object, int]) -> None:
        self._rules, self._quotas, self._kinds = rules, quotas, kinds
        self._firm: dict[tuple[str, bool | None], bool] = {}

    def row(self, running: Running) -> tuple[float, ...]:
        job, rules = running.job, self._rules
        likes = job.spec.qos, job.spec.preemptible
        firm = self._firm.get(likes)
        if firm is None:
            firm = self._firm[likes] = not is_preemptible(job, rules.qos, has_quotas=self._quotas)
        taken = rules.mode_against(job) if rules.enabled else None
        reclaimed = rules.reclaim_mode(job, has_quotas=True) if self._quotas else None
        holds = running.holds
        devices = sum([device.milli for hold in holds for device in hold.devices])
        cpus = sum([hold.cpus for hold in holds])
        return (
            job.job_id,
            NOT_STARTED if job.start_time is None else job.start_time,
            devices / 1000 + CPU_PART * cpus,
            rules.exempt_until(job) if taken or reclaimed else math.inf,
            _NUMBERS[taken],
            _NUMBERS[reclaimed],
            firm,
            not job.state.is_finished,
            self._kind(job) if rules.enabled else 0,
            job.evicted.for_job if job.evicted is not None and job.evicted.for_job else 0,
            job.array_job_id,
        )

    def _kind(self, job: Job) -> int:
        rules = self._rules
        order = job.priority if rules.by_priority else 0
        key = rules.likeness(job), job.spec.partitions, order
        return self._kinds.setdefault(key, len(self._kinds))


def costs(rows: NDArray[np.void], modes: Ints, now: float) -> NDArray[np.float64]:
    """Lost device-seconds of each run if it is ended now in this way."""
    ran = np.maximum(now - rows["start"], 0.0)  # not started: nothing
    lost: NDArray[np.float64] = rows["weight"] * (ran + np.where(rows["id"] < 0, STARTS, 1.0) * RESTART_S)
    lost = np.where(modes == _NUMBERS[CANCEL], lost * FOR_GOOD, lost)
    return np.where(modes == _NUMBERS[SUSPEND], rows["weight"] * RESTART_S, lost)


def ages(rows: NDArray[np.void], now: float) -> NDArray[np.float64]:
    """What counts instead where the youngest run goes first: how long it has run, whatever it holds."""
    found: NDArray[np.float64] = np.where(rows["id"] < 0, STARTS, 1.0) + np.maximum(now - rows["start"], 0.0)
    return found


def endable(rows: NDArray[np.void], now: float) -> tuple[Ints, Bools]:
    """By row: the number of how it may be ended now (0: it may not be), and whether for another queue's due."""
    open_now = rows["exempt"] <= now
    reclaimable: Bools = open_now & (rows["reclaimed"] > 0)
    modes = np.where(reclaimable, rows["reclaimed"], np.where(open_now, rows["taken"], 0)).astype(np.int64)
    return modes, reclaimable
