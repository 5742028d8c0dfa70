"""What one measurement says, and how it is shown."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """`value` in `unit`; `ratio` to `baseline` where there is one. `limit`: the target, of the ratio if there is one."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    against: str = ""
    limit: float | None = None
    at_least: bool = False  # the target is a lower bound
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline if self.baseline else None

    @property
    def met(self) -> bool | None:
        """None where there is no target."""
        if self.limit is None:
            return None
        judged = self.value if self.ratio is None else self.ratio
        return judged >= self.limit if self.at_least else judged <= self.limit

    def line(self) -> str:
        shown = f"{self.value:10.4g} {self.unit:<8}"
        ratio = (
            f"{self.ratio:6.2f} x {self.baseline:.4g} ({self.against})"
            if self.ratio is not None and self.baseline
            else ""
        )
        target = "" if self.limit is None else f"{'>=' if self.at_least else '<='} {self.limit:g}"
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return f"{self.name:<34}{shown} {ratio:<44}{target:>9} {verdict:<7}{self.note}".rstrip()


def seconds(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> float:
    """Wall time of one command; RuntimeError when it fails."""
    began = time.perf_counter()
    answer = subprocess.run(
        argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    taken = time.perf_counter() - began
    if answer.returncode != 0:
        raise RuntimeError(f"{argv}: exit {answer.returncode}: {answer.stderr.decode(errors='replace')}")
    return taken


def interleaved(first: Callable[[], float], second: Callable[[], float], count: int) -> tuple[float, float]:
    """Medians of two measurements taken in turns, so that both see the same machine."""
    pairs = [(first(), second()) for _ in range(count + 2)][2:]
    return statistics.median(one for one, _ in pairs), statistics.median(two for _, two in pairs)
