"""What a job and its steps used: CPU time, memory, I/O. Source: wait4(2) for what was reaped, proc(5) for what runs.

CPU seconds of ended processes come from the rusage of the children they were reaped with (orphans: of the namespace's
first process, or the subreaper's own wait). Memory is the largest sum of resident sizes of a task's tree ever seen, or
the largest single process where that is more. A child's ru_maxrss starts at the size of the supervisor it was forked
from, so it counts only above that.
"""

from __future__ import annotations

import os
import resource

from slurmbridge.supervisor.space import Process, members

_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")


NOTHING: dict[str, object] = {
    "user_us": 0,
    "system_us": 0,
    "max_rss_kib": 0,
    "max_rss_node": "",
    "max_rss_task": 0,
    "max_vsize_kib": 0,
    "sum_rss_kib": 0,
    "sum_vsize_kib": 0,
    "disk_read": 0,
    "disk_write": 0,
    "pages": 0,
}


class Meter:
    """Usage of one group of processes (the batch script or a step's tasks on this node)."""

    def __init__(self) -> None:
        self.user_us = self.system_us = 0
        self.max_rss_kib = self.max_vsize_kib = 0
        self.max_rss_task = 0
        self._rss: dict[int, int] = {}  # greatest of each task
        self._vsize: dict[int, int] = {}
        self.disk_read = self.disk_write = self.pages = 0
        self._floor_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def reaped(self, usage: resource.struct_rusage, task: int = 0) -> None:
        """A child ended."""
        self.user_us += round(usage.ru_utime * 1e6)
        self.system_us += round(usage.ru_stime * 1e6)
        self.disk_read += usage.ru_inblock * 512
        self.disk_write += usage.ru_oublock * 512
        self.pages += usage.ru_majflt
        if usage.ru_maxrss > self._floor_kib * 1.25:
            self.peak(usage.ru_maxrss, task)

    def peak(self, rss_kib: int, task: int = 0) -> None:
        self._rss[task] = max(self._rss.get(task, 0), rss_kib)
        if rss_kib > self.max_rss_kib:
            self.max_rss_kib, self.max_rss_task = rss_kib, task

    def seen(self, tree: list[Process], task: int = 0) -> None:
        """A sample of one task's living processes."""
        if not tree:
            return
        self.peak(sum(process.rss_kib for process in tree), task)
        size = sum(process.vsize_kib for process in tree)
        self._vsize[task] = max(self._vsize.get(task, 0), size)
        self.max_vsize_kib = max(self.max_vsize_kib, size)

    def value(self, node: str, running: list[Process] = []) -> dict[str, object]:  # noqa: B006 (never changed)
        """As reported: microseconds, KiB, bytes. `running`: living processes whose time counts too."""
        return {
            "user_us": self.user_us + sum(process.ticks_user for process in running) * _TICK_US,
            "system_us": self.system_us + sum(process.ticks_system for process in running) * _TICK_US,
            "max_rss_kib": self.max_rss_kib,
            "max_rss_node": node if self.max_rss_kib else "",
            "max_rss_task": self.max_rss_task,
            "max_vsize_kib": self.max_vsize_kib,
            "sum_rss_kib": sum(self._rss.values()),
            "sum_vsize_kib": sum(self._vsize.values()),
            "disk_read": self.disk_read,
            "disk_write": self.disk_write,
            "pages": self.pages,
        }


def add(left: dict[str, object], right: dict[str, object]) -> dict[str, object]:
    """Sums, and the larger maximum with its place."""
    total = dict(left)
    for name in ("user_us", "system_us", "sum_rss_kib", "sum_vsize_kib", "disk_read", "disk_write", "pages"):
        total[name] = int(left.get(name, 0)) + int(right.get(name, 0))  # type: ignore[call-overload]
    if int(right["max_rss_kib"]) > int(left["max_rss_kib"]):  # type: ignore[call-overload]
        for name in ("max_rss_kib", "max_rss_node", "max_rss_task"):
            total[name] = right[name]
    total["max_vsize_kib"] = max(int(left["max_vsize_kib"]), int(right["max_vsize_kib"]))  # type: ignore[call-overload]
    return total


def tree_of(table: list[Process], root: int) -> list[Process]:
    """Living processes of one task."""
    return members(table, {root})
