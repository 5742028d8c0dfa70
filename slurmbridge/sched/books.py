"""May this placement be had, and who is charged for it? What each job gets counts in the pools of the nodes it gets.

Asked when the nodes are known: a job may get more than it asked for (whole nodes, whole cores, another device), and it may lie
in several pools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slurmbridge.model.job import Job
from slurmbridge.sched.columns import Ints
from slurmbridge.sched.eligibility import Blocked
from slurmbridge.sched.market import Market, Preemptible, charges
from slurmbridge.sched.room import Hold


class Books:
    """The ledgers of all pools. Without pools everything is admitted and nothing is written."""

    def __init__(
        self, markets: Sequence[Market], pools: Ints, accounts: Mapping[int, str], preemptible: Preemptible
    ) -> None:
        self._markets, self._pools, self._accounts, self._preemptible = markets, pools, accounts, preemptible

    def refusal(self, job: Job, holds: Sequence[Hold]) -> Blocked | None:
        """Why the job may not have these: quotas are the ceiling of what cannot be preempted."""
        if not self._markets or self._preemptible(job):
            return None
        for number, amount in charges(holds, self._pools).items():
            market = self._markets[number]
            blocked = market.refusal(market.pool.leaf(job.spec.assoc_id), amount, False, self._accounts)
            if blocked is not None:
                return blocked
        return None

    def charge(self, job: Job, holds: Sequence[Hold], sign: int = 1) -> None:
        """The job has them; -1: it has them no longer."""
        if not self._markets:
            return
        for number, amount in charges(holds, self._pools).items():
            market = self._markets[number]
            market.ledger.add(market.pool.leaf(job.spec.assoc_id), amount, self._preemptible(job), sign)

    def mark(self) -> tuple[int, ...]:
        """A point to come back to."""
        return tuple(market.ledger.mark() for market in self._markets)

    def restore(self, mark: tuple[int, ...]) -> None:
        """Take back what was charged since."""
        for market, point in zip(self._markets, mark, strict=True):
            market.ledger.restore(point)
