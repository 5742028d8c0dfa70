"""How do a pool's queues stand in this cycle: what they hold, ask for and deserve?

Running work is charged to the queue of its association in the pool of each node that it is on; waiting work asks in every
pool that one of its partitions reaches. The shares follow from both. Starts and evictions of the cycle change what is held,
not the shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.job import Job
from slurmbridge.sched import gates
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.ledger import Ledger
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.pools import PoolTree, total_of
from slurmbridge.sched.preemption import is_preemptible
from slurmbridge.sched.queue_order import QueueFacts
from slurmbridge.sched.queues import ZERO, Vector
from slurmbridge.sched.room import Hold
from slurmbridge.sched.shares import fair_shares, request_of
from slurmbridge.sched.snapshot import Snapshot

_REASONS = ("AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpGRES")
_UNITS = np.array([1.0, 1.0, 1000.0])
_WORDS = ("CPUs", "memory", "GPUs")
_FULL = "work that may not be preempted is over the quota of {queue}: {word}"


class Market(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One pool in one cycle. Lists are by queue."""

    pool: PoolTree
    total: Vector
    requested: Sequence[Vector]
    shares: Sequence[Vector]
    ledger: Ledger
    facts: dict[int, QueueFacts] = {}  # of the queues' order; grows

    def refusal(self, leaf: int, ask: Vector, preemptible: bool, accounts: Mapping[int, str]) -> Blocked | None:
        """Why work of this size may not start whatever is free: quotas are the ceiling of what cannot be preempted."""
        if preemptible:
            return None
        over = gates.over_quota(self.ledger, leaf, ask)
        if over is None:
            return None
        queue, resource = over
        name = accounts.get(self.pool.assoc_of[queue], "nobody")
        return Blocked(_REASONS[resource], _FULL.format(queue=name, word=_WORDS[resource]))


class Preemptible:
    """`is_preemptible` for every job of a cycle, asked once for each kind."""

    def __init__(self, snapshot: Snapshot, memo: Memo) -> None:
        self._qos = {qos.name: qos for qos in snapshot.accounting.qos}
        self._quotas = memo.queued.has_quotas
        self._known: dict[tuple[str, bool | None], bool] = {}

    def __call__(self, job: Job) -> bool:
        key = job.spec.qos, job.spec.preemptible
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = is_preemptible(job, self._qos, has_quotas=self._quotas)
        return found


def charges(holds: Sequence[Hold], pools: Ints) -> dict[int, Vector]:
    """What counts in each pool."""
    found: dict[int, Vector] = {}
    for hold in holds:
        number = int(pools[hold.row])
        cpus, memory, gpus = found.get(number, ZERO)
        devices = sum(device.milli for device in hold.devices) / 1000 if hold.devices else 0.0
        found[number] = cpus + hold.cpus, memory + hold.memory, gpus + devices
    return found


def markets(snapshot: Snapshot, memo: Memo, waiting: Bools) -> tuple[Market, ...]:
    """Of every pool. `waiting`: rows of pending jobs that count as asking."""
    if not memo.queued.pools:
        return ()
    allocated, firm = _held(snapshot, memo)
    asking = snapshot.pending.rows[waiting]
    per_group: NDArray[np.float64] = np.bincount(
        asking["group"], weights=asking["count"], minlength=len(memo.queued.vectors)
    ).astype(np.float64)
    made = []
    for pool in memo.queued.pools:
        asked = _asked(per_group, memo, pool, memo.queued.leaves[pool.number])
        total = total_of(pool, snapshot.columns)
        requested = request_of(pool.tree, allocated[pool.number], asked)
        usage = memo.queued.past_use[pool.number] if memo.queued.past_use else None
        made.append(
            Market(
                pool=pool,
                total=total,
                requested=requested,
                shares=fair_shares(pool.tree, total, requested, usage, snapshot.config.scheduling.history),
                ledger=Ledger(pool.tree, allocated[pool.number], firm[pool.number]),
            )
        )
    return tuple(made)


def _held(snapshot: Snapshot, memo: Memo) -> tuple[list[list[Vector]], list[list[Vector]]]:
    """By pool, what each leaf holds, and what of it may not be ended."""
    runs, pool_of_node, pools = memo.runs, memo.queued.pool_of_node, memo.queued.pools
    allocated = [np.zeros((len(pool.tree), 3)) for pool in pools]
    firm = [np.zeros((len(pool.tree), 3)) for pool in pools]
    counts, is_firm = runs.rows["counts"], runs.rows["firm"]
    for table, columns in (
        (snapshot.held.nodes, (("cpus", 0), ("memory", 1))),
        (snapshot.held.devices, (("milli", 2),)),
    ):
        at, number = runs.at(table["id"]), pool_of_node[table["row"]]
        for pool in pools:
            inside = np.flatnonzero((number == pool.number) & counts[at])
            which = at[inside]
            leaf, kept, size = runs.leaves[pool.number][which], is_firm[which], len(pool.tree)
            for name, resource in columns:
                amounts = table[name][inside]
                allocated[pool.number][:, resource] = np.bincount(leaf, weights=amounts, minlength=size)
                firm[pool.number][:, resource] = np.bincount(leaf, weights=amounts * kept, minlength=size)
    return [_vectors(each / _UNITS) for each in allocated], [_vectors(each / _UNITS) for each in firm]


def _vectors(sums: NDArray[np.float64]) -> list[Vector]:
    return [(cpus, memory, devices) for cpus, memory, devices in sums.tolist()]


def _asked(per_group: NDArray[np.float64], memo: Memo, pool: PoolTree, leaves: Ints) -> list[Vector]:
    """What waits in each leaf; groups that cannot run in the pool have leaf -1."""
    inside = np.flatnonzero((leaves >= 0) & (per_group[: len(leaves)] > 0))
    sums = np.zeros((len(pool.tree), 3))
    np.add.at(sums, leaves[inside], memo.queued.vectors[inside] * per_group[inside, None])
    return _vectors(sums)
