"""Without `safe` in AccountingStorageEnforce a run may use up what its group was given: then it is ended as timed out.

Looked at when use is counted, as by Slurm. Source: resource_limits.html, slurm.conf(5) AccountingStorageEnforce.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from msgspec.structs import replace

from slurmbridge.daemon.core import Core
from slurmbridge.daemon.spending import faded
from slurmbridge.lifecycle.ends import Death
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag, JobState, Reason
from slurmbridge.runtime.protocol import RunKey
from slurmbridge.sched.limits import LimitBook

log = logging.getLogger(__name__)


def overrun(core: Core) -> list[tuple[Job, str]]:
    """Runs whose QOS or associations have nothing left, with the limit's word."""
    memory, now = core.memory, core.clock()
    if "limits" not in memory.config.enforce or "safe" in memory.config.enforce:
        return []
    accounting = memory.limiting()
    book = LimitBook(accounting, faded(memory.all_usage(), accounting, memory.config.priority_decay_half_life, now))
    if not book.any_minutes:
        return []
    found = []
    for job in memory.table:
        if job.state is not JobState.RUNNING or JobFlag.COMPLETING in job.flags or job.allocation is None:
            continue
        partition = memory.partition(job.allocation.partition)
        word = book.used_up(job, partition.qos if partition is not None else "")
        if word:
            found.append((job, word))
    return found


def end_overrun(core: Core, kill: Callable[[RunKey, str], None]) -> None:
    """End them. `kill`: the runtime's."""
    now = core.clock()
    for job, word in overrun(core):
        log.info("event=job.overrun job=%d limit=%s", job.job_id, word)
        ended = replace(
            job,
            state=JobState.TIMEOUT,
            reason=Reason.TIME_LIMIT,
            flags=job.flags | {JobFlag.COMPLETING},
            kill_reason=Death.TIME_LIMIT.value,
            end_time=now,
        )
        key = RunKey(job.job_id, job.restarts)
        core.update([ended]).add_done_callback(functools.partial(_kill, kill, key))


def _kill(kill: Callable[[RunKey, str], None], key: RunKey, _done: object) -> None:
    kill(key, Death.TIME_LIMIT.value)
