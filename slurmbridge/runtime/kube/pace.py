"""How long does a run that its node did not take keep its place before the daemon hears of it, and tries again?

A node tells only every ten seconds what it has. Until it did, or where we may not see who has it, the planner sends the job
there again at once; so from the second time on there is a pause, which grows. A run that ends in another way ends the count.
"""

from __future__ import annotations

from slurmbridge.runtime.kube.faults import Backoff

PAUSES = Backoff(first=1.0, longest=60.0)
REMEMBERED = 10_000
"""Jobs at most: of those that somebody cancels meanwhile nothing more is heard."""


class Pace:
    def __init__(self, pauses: Backoff = PAUSES) -> None:
        self._pauses = pauses
        self._turned_away: dict[int, int] = {}  # by job: how often, one run after the other

    def turned_away(self, job_id: int) -> float:
        """One more time; seconds of pause."""
        before = self._turned_away.pop(job_id, 0)
        self._turned_away[job_id] = before + 1
        if len(self._turned_away) > REMEMBERED:
            del self._turned_away[next(iter(self._turned_away))]
        return self._pauses.delay(before - 1, 1.0) if before else 0.0

    def forget(self, job_id: int) -> None:
        self._turned_away.pop(job_id, None)
