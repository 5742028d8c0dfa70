"""What do UsageFactor and LimitFactor of a QOS make of other limits? Source: sacctmgr(1), SPECIFICATIONS FOR QOS."""

from __future__ import annotations

import msgspec

from slurmbridge.model.accounts import Limits, Qos
from slurmbridge.model.tres import Tres


def safe_minutes(qos: Qos | None, minutes: float) -> float:
    """With UsageFactorSafe a run counts for limits as long as its use will be."""
    return minutes * qos.usage_factor if qos is not None and "UsageFactorSafe" in qos.flags else minutes


def of_assoc(limits: Limits, factor: float | None) -> Limits:
    """Limits of an association for a job whose QOS has this LimitFactor: those on TRES in use, in groups and per job."""
    if factor is None or not (limits.grp_tres or limits.max_tres_per_job):
        return limits
    return msgspec.structs.replace(
        limits, grp_tres=_times(limits.grp_tres, factor), max_tres_per_job=_times(limits.max_tres_per_job, factor)
    )


def _times(tres: Tres, factor: float) -> Tres:
    return tuple((name, int(count * factor)) for name, count in tres)
