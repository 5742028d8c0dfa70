"""What time is it in the cluster? For the ages of its objects: no step of our clock, and no difference to its, is part of them.

The API server's clock is read once, from the Date of an answer, and goes on with the machine's monotonic clock.
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Callable

from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault

Clock = Callable[[], float]


def skew(api: Api, clock: Clock) -> float | None:
    """Seconds that `clock` is ahead of the API server's; None: it does not tell. Blocks. ApiFault.

    Its clock is told in whole seconds, and read somewhere between the question and the answer.
    """
    before, text, after = clock(), api.date(), clock()
    try:
        theirs = email.utils.parsedate_to_datetime(text).timestamp() + 0.5
    except ValueError:
        return None
    return (before + after) / 2 - theirs


class Steady:
    """Epoch seconds. Before `align`, and where that fails, it begins with our own clock."""

    def __init__(self, wall: Clock, ticks: Clock = time.monotonic) -> None:
        self._ticks = ticks
        self._offset = wall() - ticks()

    def __call__(self) -> float:
        return self._ticks() + self._offset

    def align(self, api: Api) -> None:
        """Blocks."""
        try:
            ahead = skew(api, self)
        except ApiFault:
            return  # ages are as right as our clock is
        self._offset -= ahead or 0.0
