"""Which moment is `now+1hour`, `16:00`, `2030-01-20T12:34` or `teatime`, and how does Slurm write a moment?

Follows sbatch(1) --begin and sacct(1) -S. The caller gives the clock and the time zone. A `LangError` has `place` as in
Slurm's `Invalid time specification (pos=N): TEXT`, which is its message; the message is empty where Slurm says nothing
of the kind (an empty text).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number

_LATEST = 253402300799  # the last second of the year 9999
_DAY = 86400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": _DAY, "w": 7 * _DAY, "": 1}
_CLOCK_WORDS = {"midnight": 0, "noon": 12, "fika": 15, "teatime": 16, "elevenses": 11}
_DAY_WORDS = {"today": 0, "tomorrow": 1}

_Part = tuple[str, tuple[int, ...]]
"""("clock", h m s) | ("day", offset) | ("date", y m d, y = -1 when open) | ("offset", seconds) | ("epoch", seconds)."""


class _Parts(Transformer[Token, list[_Part]]):
    def start(self, parts: list[_Part]) -> list[_Part]:
        return parts

    def word(self, parts: list[Token]) -> _Part:
        text = parts[0].lower()
        return ("day", (_DAY_WORDS[text],)) if text in _DAY_WORDS else ("clock", (_CLOCK_WORDS[text], 0, 0))

    def epoch(self, parts: list[Token]) -> _Part:
        return "epoch", (number(parts[0][3:]),)

    def now(self, _: list[Token]) -> _Part:
        return "offset", (0,)

    def offset(self, parts: list[Token]) -> _Part:
        sign, digits = parts[0], parts[1]
        if digits.start_pos != sign.end_pos:
            raise LangError("", place=(digits.start_pos or 0) - 2)
        unit = parts[2][0].lower() if len(parts) > 2 else ""
        seconds = number("".join(digits.split())) * _UNITS[unit]
        return "offset", (-seconds if "-" in sign else seconds,)

    def clock(self, parts: list[Token]) -> _Part:
        hour = int(parts[0])
        numbers = [int(part) for part in parts[1:] if part.type != "HALF"]
        half = parts[-1] if parts[-1].type == "HALF" else None
        if half is not None:
            word = half.strip().lower()
            if hour > 12 or (word == "am" and hour > 12):
                raise LangError("", place=half.start_pos or 0)
            hour = hour % 12 + (12 if word == "pm" else 0)
        return "clock", (hour, numbers[0], numbers[1] if len(numbers) > 1 else 0)

    def iso(self, parts: list[Token]) -> _Part:
        return "date", (int(parts[0][:4]), int(parts[1][:2]), int(parts[2]))

    def american(self, parts: list[Token]) -> _Part:
        numbers = [int(part) for part in parts if part.type != "SEPARATOR"]
        year = 2000 + numbers[2] if len(numbers) > 2 else -1
        return "date", (year, numbers[0], numbers[1])


_LANGUAGE = Language("times", _Parts(), "time")


def parse(text: str, now: float, tz: datetime.tzinfo = datetime.UTC, past: bool = False) -> int:
    """Epoch seconds. An open year or day is the next to come, with `past` (sacct, sreport) the last that was."""
    try:
        parts = _LANGUAGE.parse(text)
    except LangError as error:
        raise _located(error, text) from error
    date: tuple[int, int, int] | None = None
    clock: tuple[int, ...] | None = None
    today = datetime.datetime.fromtimestamp(now, tz)
    for kind, numbers in parts:
        if kind == "epoch":
            return _bounded(numbers[0], text)
        if kind == "offset":
            moment = _bounded(int(now) + numbers[0], text)
            if len(parts) == 1:
                return moment
            then = datetime.datetime.fromtimestamp(moment, tz)
            date, clock = (then.year, then.month, then.day), (then.hour, then.minute, then.second)
        elif kind == "clock":
            clock = numbers
        elif kind == "day":
            day = today.date() + datetime.timedelta(days=numbers[0])
            date = (day.year, day.month, day.day)
        else:
            date = (numbers[0], numbers[1], numbers[2])
    if date is None and clock is None:
        raise LangError("", text=text, expected=("a time",))
    return _moment(date, clock or (0, 0, 0), today, past, text)


def _moment(
    date: tuple[int, int, int] | None, clock: tuple[int, ...], today: datetime.datetime, past: bool, text: str
) -> int:
    if date is None:
        is_over = clock[:2] <= (today.hour, today.minute)
        day = today.date() + datetime.timedelta(days=1 if is_over and not past else 0)
        date = (day.year, day.month, day.day)
    year, month, day_number = date
    if year < 0:
        key, here = (month, day_number, *clock[:2]), (today.month, today.day, today.hour, today.minute)
        year = today.year
        if past and key > here:
            year -= 1
        elif not past and key <= here:
            year += 1
    try:
        first = datetime.datetime(year, month, 1, clock[0], clock[1], clock[2])
        local = first + datetime.timedelta(days=day_number - 1)  # February 30th is March 2nd, as mktime has it
        return _bounded(int(local.replace(tzinfo=today.tzinfo).timestamp()), text)
    except (ValueError, OverflowError) as error:
        raise LangError(f"Invalid time specification (pos=0): {text}", text=text) from error


def _bounded(moment: int, text: str) -> int:
    if abs(moment) > _LATEST:
        raise LangError(f"Invalid time specification (pos=0): {text}", text=text, expected=("a year below 10000",))
    return moment


def _located(error: LangError, text: str) -> LangError:
    """Slurm's own idea of the place: it reads digit by digit where a token is read whole here."""
    place = error.place
    wanted = set(error.expected)
    here, after = text[place : place + 1], text[place + 1 : place + 2]
    if wanted & {"minute", "second", "yy"} and here.isdecimal() and not after.isdecimal():
        place += 1
    elif "now" in wanted and text[place : place + 3].lower() == "now":
        place += 3
    elif "count" in wanted or "unit" in wanted:
        place -= 1
    elif "day" in wanted and here == "0" and not after.isdecimal():
        place -= 1
    elif "month" in wanted and here == "0" and not after.isdecimal():
        place -= 1
    return LangError(
        f"Invalid time specification (pos={place}): {text}", text=text, place=place, expected=error.expected
    )


def render(epoch: float | None, tz: datetime.tzinfo = datetime.UTC, style: str = "standard", now: float = 0.0) -> str:
    """`2030-01-20T12:34:56`, or what SLURM_TIME_FORMAT asks for; `Unknown` for None.

    Styles: "standard" (or empty), "relative" (to `now`: clock time today, `Tomorr 12:00`, `20 Jan 12:34`), else strftime.
    """
    if epoch is None:
        return "Unknown"
    try:
        moment = datetime.datetime.fromtimestamp(int(epoch), tz)
    except (ValueError, OverflowError, OSError):
        return "Unknown"
    if style in ("", "standard"):
        return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    if style == "relative":
        return _relative(moment, datetime.datetime.fromtimestamp(now, tz))
    try:
        return moment.strftime(style) or "Unknown"
    except ValueError:
        return style


def _relative(moment: datetime.datetime, today: datetime.datetime) -> str:
    days = (moment.date() - today.date()).days
    forms: tuple[tuple[Callable[[], bool], str], ...] = (
        (lambda: days == 0, "%H:%M:%S"),
        (lambda: days == -1, "Ystday %H:%M"),
        (lambda: days == 1, "Tomorr %H:%M"),
        (lambda: abs(days) <= 6, "%a %H:%M"),
        (lambda: moment.year == today.year, "%-d %b %H:%M"),
        (lambda: True, "%-d %b %Y"),
    )
    return next(moment.strftime(form) for applies, form in forms if applies())
