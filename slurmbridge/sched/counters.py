"""What runs now, by group of those who share a limit."""

from __future__ import annotations

import math
from collections.abc import Iterable

from slurmbridge.model.tres import Tres

Key = tuple[str, ...]


class Counters:
    """What runs now, by group. `copy` before adding in a cycle."""

    __slots__ = ("jobs", "minutes", "tres")

    def __init__(self) -> None:
        self.jobs: dict[Key, int] = {}
        self.tres: dict[Key, dict[str, int]] = {}
        self.minutes: dict[Key, dict[str, float]] = {}  # TRES x minutes still to run

    def copy(self) -> Counters:
        other = Counters()
        other.jobs = dict(self.jobs)
        other.tres = {key: dict(counts) for key, counts in self.tres.items()}
        other.minutes = {key: dict(counts) for key, counts in self.minutes.items()}
        return other

    def add(self, keys: Iterable[Key], tres: Tres, sign: int = 1) -> None:
        """One run more, or one less."""
        for key in keys:
            self.jobs[key] = self.jobs.get(key, 0) + sign
            counts = self.tres.setdefault(key, {})
            for name, count in tres:
                counts[name] = counts.get(name, 0) + sign * count

    def add_minutes(self, keys: Iterable[Key], tres: Tres, minutes: float) -> None:
        """Minutes without end count as none."""
        if math.isinf(minutes):
            return
        for key in keys:
            counts = self.minutes.setdefault(key, {})
            for name, count in tres:
                counts[name] = counts.get(name, 0.0) + count * minutes

    def used(self, key: Key, name: str) -> int:
        return self.tres.get(key, {}).get(name, 0)

    def left(self, key: Key, name: str) -> int:
        """Whole minutes that those who run may still use."""
        return int(self.minutes.get(key, {}).get(name, 0.0) + 1e-6)
