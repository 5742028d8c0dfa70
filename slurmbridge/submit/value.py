"""What a reader of option values answers: fields, or a complaint in Slurm's words; and how whole numbers are read."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

import msgspec

from slurmbridge.submit.option import Option


class Bad(msgspec.Struct, frozen=True):
    """A value that is refused: (level, text) lines, level "error", "fatal" or "" (as it stands), and the exit code."""

    lines: tuple[tuple[str, str], ...]
    exit_code: int = 255
    stdout: str = ""


class Clock(msgspec.Struct, frozen=True):
    """What moments are reckoned from."""

    now: float
    tz: datetime.tzinfo = datetime.UTC


Values = tuple[tuple[str, object], ...]
Reader = Callable[[Option, str | None, Clock], Values | Bad]


def error(text: str, exit_code: int = 255) -> Bad:
    """One line as `COMMAND: error: TEXT`."""
    return Bad((("error", text),), exit_code)


def fatal(text: str) -> Bad:
    """One line as `COMMAND: fatal: TEXT`; always exit 1."""
    return Bad((("fatal", text),), 1)


def invalid(option: Option, exit_code: int = 255) -> Bad:
    return error(f"Invalid --{option.long} specification", exit_code)


_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_BIGGEST = 2**31 - 1


def integer(text: str, name: str, least: int) -> int | Bad:
    """Slurm's reading of a whole number of an option; `name` as its message says it."""
    found = _INTEGER.fullmatch(text)
    value = int(found[1]) if found and len(found[1]) < 25 else None
    if found and (value is None or value > _BIGGEST):
        return error(f"Numeric argument ({text}) too large for {name}.", 1)
    if value is None or value < least:
        return error(f'Invalid numeric value "{text}" for {name}.', 1)
    return value


def leading(text: str) -> int:
    """What the C library's strtol makes of a text: the number it begins with, 0 when it begins with none."""
    found = _INTEGER.match(text)
    return int(found[1][:25]) if found else 0
