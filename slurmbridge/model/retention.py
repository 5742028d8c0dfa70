"""How long is what kept? PurgeJobAfter and kin of slurmdbd.conf(5), as spans and the moments they mean.

A span of hours, days or months counts whole ones: `1month` keeps last month and this one, however far it has come.
"""

from __future__ import annotations

import datetime

import msgspec

HOURS, DAYS, MONTHS = "hours", "days", "months"


class Span(msgspec.Struct, frozen=True):
    number: int
    unit: str  # hours, days, months

    def before(self, now: float, tz: datetime.tzinfo) -> float:
        """The moment before which things are too old."""
        at = datetime.datetime.fromtimestamp(now, tz).replace(minute=0, second=0, microsecond=0)
        if self.unit == HOURS:
            return at.timestamp() - 3600.0 * self.number
        at = at.replace(hour=0)
        if self.unit == DAYS:
            return _midnight(at.date() - datetime.timedelta(days=min(self.number, at.toordinal() - 1)), tz)
        months = max(at.year * 12 + at.month - 1 - self.number, 12)
        return _midnight(datetime.date(months // 12, months % 12 + 1, 1), tz)

    def __str__(self) -> str:
        return f"{self.number} {self.unit}"


def _midnight(day: datetime.date, tz: datetime.tzinfo) -> float:
    return datetime.datetime(day.year, day.month, day.day, tzinfo=tz).timestamp()


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """None: kept for ever."""

    jobs: Span | None = None
    steps: Span | None = None
    scripts: Span | None = None
    environments: Span | None = None
    events: Span | None = None
    transactions: Span | None = None
    usage: Span | None = None  # of associations that are gone
