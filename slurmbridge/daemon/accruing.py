"""Keeps to the limits on whose age counts (`daemon.accrual`) as jobs come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from slurmbridge.daemon.accrual import settled
from slurmbridge.daemon.core import Core
from slurmbridge.model.job import Job

LOOK_EVERY_S = 1.0


class Accruing:
    """`withheld` for each change, `look` now and then."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._is_due = self._is_granting = False
        self._looked = 0.0

    def withheld(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """These change: who would begin to grow older has to wait for the next look."""
        if self._is_granting or not self._core.memory.limits_accruing:
            return jobs
        found = []
        for job in jobs:
            before = self._core.memory.table.get(job.job_id)
            is_new = before is None or before.accrue_time is None
            found.append(replace(job, accrue_time=None) if job.is_pending and job.accrue_time and is_new else job)
        self._is_due = True
        if self._core.clock() - self._looked >= LOOK_EVERY_S:
            asyncio.get_running_loop().call_soon(self.look)
        return found

    def look(self) -> None:
        """Let those grow older for whom there is room now."""
        if not self._is_due:
            return
        self._is_due, self._looked = False, self._core.clock()
        memory = self._core.memory
        if memory.limits_accruing:
            changed = settled(memory.table, memory.accounting, self._looked)
        else:
            waiting = (job for job in memory.table if job.is_pending and job.eligible_time and not job.accrue_time)
            changed = [replace(job, accrue_time=max(job.eligible_time or 0.0, self._looked)) for job in waiting]
        if changed:
            self._is_granting = True
            self._core.update(changed)
            self._is_granting = False

    def anew(self) -> None:
        """Limits changed."""
        self._is_due = True
        asyncio.get_running_loop().call_soon(self.look)
