"""Is the text behind a configuration key a number, a switch, a time or a size, and which?

Wording follows what Slurm 26.05 prints for a bad value (`KillWait value (99999) is greater than 65535`); the place is
added by the pair that the text came from. Knows no key.
"""

from __future__ import annotations

from slurmbridge.errors import LangError
from slurmbridge.lang import durations, hostlist
from slurmbridge.lang.slurm_conf_lines import Pair
from slurmbridge.model.units import UNLIMITED

MAX_SMALL = 65535
MAX_NUMBER = 4_294_967_295
_TRUE = ("yes", "up", "true", "1")
_FALSE = ("no", "down", "false", "0")
_ENDLESS = ("infinite", "unlimited")


def number(pair: Pair, limit: int = MAX_NUMBER) -> int | None:
    """A count; None for INFINITE and UNLIMITED. Hexadecimal and octal as in C; K, M and so on are not known here."""
    text = pair.value.strip()
    if text.lower() in _ENDLESS:
        return None
    try:
        value = int(text, 8 if text.startswith("0") and text.isdecimal() else 0)
    except ValueError as error:
        shown = f'"{text}"' if limit == MAX_SMALL else f"({text})"
        raise pair.error(f"{pair.key} value {shown} is not a valid number") from error
    if value < 0:
        raise pair.error(f"{pair.key} value ({text}) is less than zero")
    if value > limit:
        raise pair.error(f"{pair.key} value ({text}) is greater than {limit}")
    return value


def small(pair: Pair) -> int | None:
    return number(pair, MAX_SMALL)


def count(pair: Pair, limit: int = MAX_NUMBER) -> int:
    """A number that must have an end."""
    value = number(pair, limit)
    if value is None:
        raise pair.error(f"{pair.key} value ({pair.value}) is not a valid number")
    return value


def switch(pair: Pair) -> bool:
    word = pair.value.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise pair.error(f'"{pair.value}" is not a valid option for "{pair.key}"')


def minutes(pair: Pair) -> int | None:
    """A time limit in minutes; None = no end."""
    try:
        value = durations.parse_minutes(pair.value)
    except LangError as error:
        raise pair.error(f'Bad value "{pair.value}" for {pair.key}') from error
    return None if value == UNLIMITED else value


def names(pair: Pair) -> tuple[str, ...]:
    """A comma list; ALL, NONE and (null) are the reader's business."""
    return tuple(word.strip() for word in pair.value.split(",") if word.strip())


def hosts(pair: Pair) -> tuple[str, ...]:
    """A host list, expanded."""
    try:
        return tuple(hostlist.expand(pair.value))
    except LangError as error:
        raise pair.error(f"Invalid hostlist: {pair.value}") from error
