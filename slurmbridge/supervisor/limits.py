"""The time limit of a run on CLOCK_BOOTTIME: the warning signal before it, its end, and time spent suspended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from slurmbridge.supervisor.kernel import boottime
from slurmbridge.supervisor.loop import Timer

if TYPE_CHECKING:
    from slurmbridge.supervisor.head import Head


class Limits:
    """Armed by `begin`; every change arms it anew. Time suspended does not count."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._limit: int | None = head.header["time_limit"]
        self._start = 0.0
        self._suspended_at: float | None = None
        self._suspended_s = 0.0
        self._timers: list[Timer] = []
        self._warned = False
        self._over = False

    def begin(self) -> None:
        """The run starts now."""
        self._start = boottime()
        self._arm()

    def set(self, limit: int | None) -> None:
        """Seconds from the start, None = no limit."""
        self._limit = limit
        self._arm()

    def end_time(self) -> int:
        """When the limit falls due, wall clock; 0 without a limit."""
        if self._limit is None or not self._start:
            return 0
        return int(time.time() + self._start + self._suspended_s + self._limit - boottime())

    def suspend(self) -> None:
        if self._suspended_at is None:
            self._suspended_at = boottime()
            self._disarm()

    def resume(self) -> None:
        if self._suspended_at is not None:
            self._suspended_s += boottime() - self._suspended_at
            self._suspended_at = None
            self._arm()

    def cancel(self) -> None:
        """For good."""
        self._over = True
        self._disarm()

    def _disarm(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _arm(self) -> None:
        self._disarm()
        if self._over or self._limit is None or not self._start or self._suspended_at is not None:
            return
        header, now = self._head.header, boottime()
        end = self._start + self._suspended_s + self._limit
        self._timers.append(self._head.loop.after(end + header["over_time"] - now, self._expire))
        if header["signal"] and not self._warned:
            seconds = int(header["signal"][1])
            self._timers.append(self._head.loop.after(end - seconds - now, self._warn))

    def _warn(self) -> None:
        self._warned = True
        number, _, batch_only = self._head.header["signal"]
        self._head.signal(int(number), "batch" if batch_only else "", None)

    def _expire(self) -> None:
        self._head.kill("timeout")
