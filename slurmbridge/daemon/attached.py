"""Which allocations have their srun or salloc at the other end of a connection, and which lost it?

An allocation without a script ends with its caller. A caller that is seen to go away ends it at once (`daemon.held`);
after a restart of the daemon callers have `GRACE_S` to come back. A step that runs keeps the allocation: its srun talks
to the supervisor, which ends the step when srun dies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag

GRACE_S = 60.0


class Attached:
    """Counts connections by job."""

    def __init__(self) -> None:
        self._connections: Counter[int] = Counter()
        self._alone_since: dict[int, float] = {}

    def attach(self, job_id: int) -> None:
        self._connections[job_id] += 1

    def detach(self, job_id: int) -> None:
        self._connections[job_id] -= 1
        if self._connections[job_id] <= 0:
            del self._connections[job_id]

    def forsaken(self, jobs: Iterable[Job], has_steps: Callable[[int], bool], now: float) -> list[Job]:
        """Allocations whose callers have been away too long. To be asked now and then."""
        alone: dict[int, float] = {}
        found: list[Job] = []
        for job in jobs:
            if job.spec.is_batch or job.is_finished or job.spec.request.no_shell or JobFlag.COMPLETING in job.flags:
                continue
            if self._connections[job.het_job_id or job.job_id] > 0 or has_steps(job.job_id):
                continue
            since = alone[job.job_id] = self._alone_since.get(job.job_id, now)
            if now - since >= GRACE_S:
                found.append(job)
        self._alone_since = alone
        return found
