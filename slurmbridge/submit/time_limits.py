"""How long may the job run, from when, and until when at the latest?

Follows sbatch(1) --time, --time-min, --begin, --deadline and the defaults of partition, QOS and association.
"""

from __future__ import annotations

import msgspec

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.request import JobRequest
from slurmbridge.model.units import UNLIMITED
from slurmbridge.model.verdict import Refused

MAX_SWITCH_WAIT_S = 300


class TimeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Minutes; `limit` None: unlimited. `explicit`: the user asked for it, be it without end."""

    limit: int | None
    explicit: bool
    least: int | None = None
    begin: int | None = None
    deadline: int | None = None
    switches_wait: int = 0


def find_time_limits(
    request: JobRequest, partition: Partition, max_wall: int | None, config: ClusterConfig, now: float
) -> TimeLimits | Refused:
    """`max_wall`: of the QOS, else the association; it is the limit of a job that has no other."""
    asked = request.time_limit
    if asked is not None:
        limit = None if asked >= UNLIMITED else asked
    else:
        limit = partition.default_time if partition.default_time is not None else partition.max_time
        if limit is None or limit >= UNLIMITED:
            limit = max_wall
    least = request.time_min
    if least is not None and (least >= UNLIMITED or (limit is not None and least > limit)):
        return Refused(errno=SlurmErrno.INVALID_TIME_MIN)
    deadline = request.deadline
    if deadline is not None:
        if least is None and asked is None:
            least = 1
        endless = least is None and asked is not None and asked >= UNLIMITED
        needed = least if least is not None else (limit or 1)
        if endless or deadline < now + needed * 60:
            return Refused(errno=SlurmErrno.INVALID_TIME_LIMIT)
    begin = request.begin if request.begin is not None and request.begin > now else None
    return TimeLimits(
        limit=limit,
        explicit=asked is not None,
        least=least,
        begin=begin,
        deadline=deadline,
        switches_wait=_switches_wait(request, config),
    )


def _switches_wait(request: JobRequest, config: ClusterConfig) -> int:
    """Seconds, capped by SchedulerParameters=max_switch_wait."""
    if request.switches is None:
        return 0
    most = MAX_SWITCH_WAIT_S
    for word in config.scheduler_parameters.split(","):
        name, _, value = word.partition("=")
        if name.strip() == "max_switch_wait" and value.isdecimal():
            most = int(value)
    return most if request.switches_wait is None else min(request.switches_wait, most)
