"""Names for numbers: what a count means and in which unit it is. Nothing here computes."""

from __future__ import annotations

from typing import Final, NewType

JobId = NewType("JobId", int)
"""Raw job id, what sacct calls JobIDRaw. Array tasks and het components have their own."""
Uid = NewType("Uid", int)
Epoch = NewType("Epoch", float)
"""Seconds since 1970 (wall clock): for display and accounting only."""
Seconds = NewType("Seconds", int)
Minutes = NewType("Minutes", int)
"""Time limits are whole minutes, as in Slurm."""
Mebibytes = NewType("Mebibytes", int)
MilliGpu = NewType("MilliGpu", int)
"""1000 = one whole device."""

UNLIMITED: Final = Minutes(0xFFFFFFFF)
"""A time limit (or count) without end; Slurm's INFINITE."""
NO_TASK: Final = 0xFFFFFFFE
"""What `%a` prints for a job that is no array task."""
