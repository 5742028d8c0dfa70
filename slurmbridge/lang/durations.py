"""How long is `1-02:03:04`, and how does Slurm write a duration?

Follows sbatch(1) --time: a bare number is minutes, seconds round up to a whole minute, nothing at all is no limit.
"""

from __future__ import annotations

import functools
import re

from lark import Transformer
from lark.lexer import Token

from slurmbridge.lang.grammars import Language, number
from slurmbridge.model.units import UNLIMITED

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class _Seconds(Transformer[Token, int]):
    """Seconds of each form; UNLIMITED for none."""

    def forever(self, _: list[Token]) -> int:
        return UNLIMITED

    def minutes(self, parts: list[Token]) -> int:
        return number(parts[0]) * _MINUTE

    def minutes_seconds(self, parts: list[Token]) -> int:
        return number(parts[0]) * _MINUTE + number(parts[1])

    def hours(self, parts: list[Token]) -> int:
        return number(parts[0]) * _HOUR + number(parts[1]) * _MINUTE + number(parts[2])

    def days(self, parts: list[Token]) -> int:
        units = (_DAY, _HOUR, _MINUTE, 1)
        return sum(number(part) * unit for part, unit in zip(parts, units, strict=False))


_LANGUAGE = Language("durations", _Seconds(), "duration")


@functools.lru_cache(maxsize=4096)
def parse_seconds(text: str) -> int:
    """Seconds; UNLIMITED for -1, infinite, unlimited and for what does not fit in 32 bits."""
    return min(_LANGUAGE.parse(text), UNLIMITED)


_PLAIN = re.compile(r"([0-9]{1,5})(?::([0-5][0-9]):([0-5][0-9]))?")
"""What most time limits look like: read as the grammar reads them, in a hundredth of the time."""


@functools.lru_cache(maxsize=4096)
def parse_minutes(text: str) -> int:
    """Minutes of a time limit; UNLIMITED also for zero and for what does not fit in 32 bits."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None and plain[2] is None:
        return int(plain[1]) or UNLIMITED
    if plain is not None:
        seconds = int(plain[1]) * _HOUR + int(plain[2]) * _MINUTE + int(plain[3])
    else:
        seconds = _LANGUAGE.parse(text)
    if seconds in (0, UNLIMITED):
        return UNLIMITED
    return min(-(-seconds // _MINUTE), UNLIMITED)


def render_minutes(minutes: int | None) -> str:
    """As scontrol shows limits: `1-02:00:00`, `00:10:00`, `UNLIMITED`."""
    return "UNLIMITED" if minutes is None or minutes >= UNLIMITED else render_elapsed(minutes * _MINUTE)


def render_elapsed(seconds: int) -> str:
    """As scontrol and sacct show run times: `1-02:03:04`, `00:05:10`."""
    days, hours, minutes, rest = _split(seconds)
    return f"{days}-{hours:02d}:{minutes:02d}:{rest:02d}" if days else f"{hours:02d}:{minutes:02d}:{rest:02d}"


def render_short(seconds: int) -> str:
    """As squeue and sinfo show times: `1-02:03:04`, `2:05:10`, `5:10`, `0:00`."""
    days, hours, minutes, rest = _split(seconds)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{rest:02d}"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _split(seconds: int) -> tuple[int, int, int, int]:
    seconds = max(int(seconds), 0)
    return seconds // _DAY, seconds // _HOUR % 24, seconds // _MINUTE % 60, seconds % 60
