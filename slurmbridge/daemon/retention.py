"""Forgets what slurmdbd.conf says is too old: small transactions one after the other, apart from all else.

Nothing goes that memory may still hold (MinJobAge), so a record never comes back after it was purged. The store looks
again at each key when it deletes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from slurmbridge.daemon.core import Core
from slurmbridge.daemon.outputs import Outputs
from slurmbridge.daemon.requests import Blobs
from slurmbridge.errors import BridgeError
from slurmbridge.model.retention import Retention
from slurmbridge.store.protocol import Limits, Purge, Store

log = logging.getLogger(__name__)

FIRST_S, EVERY_S = 60.0, 600.0
AT_ONCE = 500
"""Runs, steps and blobs of one transaction."""
PAUSE_S = 0.05
"""Between transactions: others write meanwhile."""
OUTPUT_S = 30 * 86400.0
"""How long output of a job that is over is kept, if its record does not go before."""
MEMORY_MARGIN_S = 60.0
"""How much longer than MinJobAge a finished job may stay in memory."""


class Retaining:
    def __init__(self, core: Core, store: Store, blobs: Blobs) -> None:
        self._core, self._store, self._blobs = core, store, blobs
        self.outputs: Outputs | None = None  # where jobs have no file system for what they write

    async def run(self) -> None:
        """Until cancelled. A store that cannot do it now is asked again later."""
        await asyncio.sleep(FIRST_S)
        while True:
            try:
                await self.forget()
            except BridgeError as fault:
                log.error("event=store.purge_failed reason=%s", fault)
            await asyncio.sleep(EVERY_S)

    async def forget(self) -> int:
        """Purge to the end; how many runs went."""
        memory = self._core.memory
        self._forget_usage(memory.config.retention)
        if self.outputs is not None:
            lives = memory.table.get
            await self.outputs.forget_before(self._core.clock() - OUTPUT_S, lambda job_id: lives(job_id) is not None)
        limits = self.limits()
        total = 0
        while limits is not None:
            found = await asyncio.to_thread(self._store.expired, limits, AT_ONCE)
            if not found:
                break
            # A submission from now on brings its script along again, whatever was stored before.
            self._blobs.doubt(use.sha for use in found.blobs)
            await self._core.journal.write([found])
            if self.outputs is not None:
                await self.outputs.forget(found.runs)
            total += len(found.runs)
            await asyncio.sleep(PAUSE_S)
        if total:
            log.info("event=store.purged runs=%d", total)
        return total

    def limits(self) -> Limits | None:
        """What is too old now; None: nothing is ever forgotten."""
        config = self._core.memory.config
        kept = config.retention
        if kept == Retention() or not config.min_job_age:
            return None
        now, tz = self._core.clock(), self._core.memory.time_zone("")
        latest = now - config.min_job_age - MEMORY_MARGIN_S
        moments = {
            name: min(span.before(now, tz), latest)
            for name in ("jobs", "steps", "scripts", "environments", "events", "transactions")
            if (span := getattr(kept, name)) is not None
        }
        return Limits(**moments)

    def _forget_usage(self, kept: Retention) -> None:
        """Use that was charged to associations which are gone, and that nothing was added to of late."""
        if kept.usage is None:
            return
        memory = self._core.memory
        before = kept.usage.before(self._core.clock(), memory.time_zone(""))
        living = {assoc.assoc_id for assoc in memory.accounting.assocs}
        gone = [row.assoc_id for row in memory.usage_rows.values() if row.as_of < before and row.assoc_id not in living]
        if gone:
            self._drop_usage(gone)

    def _drop_usage(self, assoc_ids: Iterable[int]) -> None:
        rows = self._core.memory.usage_rows
        self._core.memory.usage_rows = {number: row for number, row in rows.items() if number not in set(assoc_ids)}
        self._core.journal.write([Purge(usage=tuple(assoc_ids))])
