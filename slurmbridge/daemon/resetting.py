"""When does use start again from nothing, and what does a new half-life do to what was used?

PriorityUsageResetPeriod and PriorityDecayHalfLife of slurm.conf(5), at the start and after `scontrol reconfigure`. Use of
a QOS with NoDecay is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from slurmbridge.daemon.core import Core
from slurmbridge.daemon.spending import faded, lasting_rows, reset_due
from slurmbridge.model.accounts import UsageRow
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.store.protocol import PutMark, PutUsage

log = logging.getLogger(__name__)

LAST_RESET = "usage_reset"
"""Name of the mark that says when use was last reset."""


class UsageResets:
    def __init__(self, core: Core, marks: Mapping[str, str]) -> None:
        self._core = core
        self._last = float(marks[LAST_RESET]) if LAST_RESET in marks else None

    def begin(self) -> None:
        """A configuration takes effect. Without an earlier reset the present period counts as begun."""
        period = self._core.memory.config.priority_usage_reset_period
        if period == "NOW":
            self._reset()
        elif period != "NONE" and self._last is None:
            self._note(self._core.clock())

    def before(self, config: ClusterConfig) -> None:
        """This configuration follows: until now use faded as the present one has it."""
        memory, now = self._core.memory, self._core.clock()
        half_life = memory.config.priority_decay_half_life
        if config.priority_decay_half_life != half_life and memory.usage_rows:
            self._put(faded(memory.usage_rows.values(), memory.accounting, half_life, now))

    def look(self) -> None:
        """Whether a reset is due."""
        memory, now = self._core.memory, self._core.clock()
        period = memory.config.priority_usage_reset_period
        if self._last is not None and reset_due(period, self._last, now, memory.time_zone("")):
            self._reset()

    def _reset(self) -> None:
        memory, now = self._core.memory, self._core.clock()
        lasting = lasting_rows(memory.accounting)
        self._put(tuple(UsageRow(assoc_id=number, as_of=now) for number in memory.usage_rows if number not in lasting))
        self._note(now)
        self._core.planner.usage_changed()
        log.info("event=usage.reset rows=%d", len(memory.usage_rows))

    def _put(self, rows: tuple[UsageRow, ...]) -> None:
        self._core.memory.usage_rows.update((row.assoc_id, row) for row in rows)
        self._core.journal.write([PutUsage(rows=rows)])

    def _note(self, now: float) -> None:
        self._last = now
        self._core.journal.write([PutMark(name=LAST_RESET, value=repr(now))])
