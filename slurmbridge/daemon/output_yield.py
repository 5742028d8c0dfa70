"""Whose kept output goes when the disk is nearly full: the oldest of who has most of it.

Else whoever wrote much first would have the disk for a month, and nobody else's output were kept. Nobody is brought below
who has second most, and no job that still writes loses anything.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import msgspec

from slurmbridge.daemon import output_note
from slurmbridge.daemon.output_note import ENDING


class KeptJob(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the shelf."""

    job_id: int
    uid: int  # -1: not known
    size: int  # bytes
    last: float  # when it was written to, seconds of the epoch
    is_over: bool  # nothing more comes


def kept_jobs(folder: str) -> list[KeptJob]:
    """In no order. Looks at every file: for now and then."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [_job(os.path.join(folder, name), int(name)) for name in names if name.isdecimal()]


def _job(folder: str, job_id: int) -> KeptJob:
    size, last, uid, is_over = 0, 0.0, -1, True
    for each in os.scandir(folder):
        status = each.stat(follow_symlinks=False)
        size, last = size + status.st_size, max(last, status.st_mtime)
        note = output_note.read(each.path.removesuffix(ENDING)) if each.name.endswith(ENDING) else None
        if note is not None:
            uid, is_over = note.uid, is_over and note.over
    return KeptJob(job_id=job_id, uid=uid, size=size, last=last, is_over=is_over)


def to_go(found: Sequence[KeptJob], wanted: int) -> list[KeptJob]:
    """Of one user, oldest first, for so many bytes where that is fair; empty: all that he has is still written to."""
    of: Counter[int] = Counter()
    for job in found:
        of[job.uid] += job.size
    if not of:
        return []
    (most, total), *others = of.most_common(2)
    second = others[0][1] if others else 0
    going: list[KeptJob] = []
    for job in sorted(
        (job for job in found if job.uid == most and job.is_over), key=lambda job: (job.last, job.job_id)
    ):
        if wanted <= 0 or total - job.size < second:
            break
        going.append(job)
        wanted, total = wanted - job.size, total - job.size
    return going
