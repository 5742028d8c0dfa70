"""How sreport writes amounts and tables, and its help text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from slurmbridge.commands.help_page import help_page
from slurmbridge.lang import formats

HELP = help_page(
    "sreport [<OPTION>] [<COMMAND>]",
    34,
    (
        ("-a, --all_clusters", "accepted: there is one cluster"),
        ("    --federation", "accepted: there is one cluster"),
        ("-h, --help", "this text"),
        ("    --local", "accepted: there is one cluster"),
        ("-n, --noheader", "no headings"),
        ("-p, --parsable", "fields with | behind each"),
        ("-P, --parsable2", "fields with | between them"),
        ("-Q, --quiet", "accepted"),
        ("-t, --time=FORMAT", "Seconds, Minutes, Hours, Percent, SecPer, MinPer, HourPer"),
        ("-T, --tres=LIST", "what is counted: cpu (the default), mem, gres/gpu ..., or ALL"),
        ("-v, --verbose", "accepted"),
        ("-V, --version", "the version"),
        ("", ""),
        ("Reports:", ""),
        ("cluster Utilization", "what the nodes did"),
        ("cluster AccountUtilizationByUser", "by account, then user (Tree)"),
        ("cluster AccountUtilizationByQOS", "by account, then QOS"),
        ("cluster UserUtilizationByAccount", "by user, then account"),
        ("job SizesByAccount", "by number of CPUs (AcctAsParent, FlatView, Grouping=, PrintJobCount)"),
        ("user TopUsage", "who used most (Group, TopCount=)"),
        ("", ""),
        ("Words of reports:", ""),
        ("Start=TIME End=TIME", "the period, in whole hours; default: yesterday"),
        ("Format=LIST", "columns: NAME[%[-]WIDTH]"),
        ("Accounts= Users= Clusters=", "only these"),
        ("Partitions= Nodes= Jobs= GID=", "only jobs of these (job reports)"),
    ),
)


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """`words`: as the title says it. `seconds`: of one, 0: only parts of the whole are shown."""

    words: str
    seconds: int
    percent: bool = False


_UNITS = (
    ("seconds", 1, Unit(words="Seconds", seconds=1)),
    ("secper", 4, Unit(words="Seconds/Percentage of Total", seconds=1, percent=True)),
    ("minutes", 1, Unit(words="Minutes", seconds=60)),
    ("minper", 4, Unit(words="Minutes/Percentage of Total", seconds=60, percent=True)),
    ("hours", 1, Unit(words="Hours", seconds=3600)),
    ("hourper", 5, Unit(words="Hours/Percentage of Total", seconds=3600, percent=True)),
    ("percent", 1, Unit(words="Percentage of Total", seconds=0, percent=True)),
)


def time_words(text: str) -> tuple[Unit, str]:
    """The unit of a --time word, and the complaint about one that is none (minutes count then)."""
    lower = text.lower()
    for name, least, unit in _UNITS:
        if len(lower) >= least and name.startswith(lower):
            return unit, ""
    return _UNITS[2][2], f"unknown time format {text}"


Row = Mapping[str, "str | Amount"]


class Amount(msgspec.Struct, frozen=True):
    """TRES-seconds, and the whole they are part of. `plain`: a count, whatever the unit."""

    value: float
    whole: float = 0.0
    plain: bool = False


class Column(msgspec.Struct, frozen=True):
    """`key` names the value of a row. `wide`: width while amounts come with percentages."""

    name: str
    title: str
    width: int
    key: str
    wide: int = 0
    left: bool = False


class Chosen(msgspec.Struct, frozen=True):
    column: Column
    width: int = 0  # 0: the column's own


def find_columns(
    text: str | None, known: Sequence[Column], *, with_tres: bool
) -> tuple[tuple[Column, ...], str | None]:
    """The columns of Format= (or the report's own), and the first name that is none."""
    if text is None:
        return tuple(each for each in known if each.name in _shown(known, with_tres)), None
    found: list[Column] = []
    for part in formats.parse_sacct(text):
        column = next((each for each in known if part.name and each.name.lower().startswith(part.name.lower())), None)
        if column is None:
            return (), part.name
        if part.width:
            column = msgspec.structs.replace(column, width=part.width, wide=part.width, left=part.left)
        found.append(column)
    return tuple(found), None


def _shown(known: Sequence[Column], with_tres: bool) -> set[str]:
    hidden = {"Count", "Overcommitted"} | ({"Energy"} if with_tres else {"TresName"})
    return {each.name for each in known} - hidden


def show(value: str | Amount, unit: Unit) -> str:
    if isinstance(value, str):
        return value
    if value.plain:
        return str(int(value.value))
    share = f"{100 * value.value / value.whole if value.whole else 0.0:.2f}%"
    if not unit.seconds:
        return share
    count = str(int(value.value / unit.seconds + 0.5))
    return f"{count}({share})" if unit.percent else count


def cells(rows: Iterable[Row], columns: Sequence[Column], unit: Unit) -> list[list[str]]:
    return [[show(row.get(column.key, ""), unit) for column in columns] for row in rows]


def render(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, mode: int, unit: Unit, header: bool) -> str:
    """mode: 0 a table, 1 `|` behind each field, 2 `|` between fields."""
    lines: list[str] = []
    width: Callable[[Column], int] = lambda c: c.wide if unit.percent and unit.seconds and c.wide else c.width  # noqa: E731
    if mode:
        end = "|" if mode == 1 else ""
        if header:
            lines.append("|".join(column.title for column in columns) + end)
        lines += ["|".join(row) + end for row in rows]
    else:
        if header:
            lines.append("".join(_cell(column.title, column, width(column)) for column in columns))
            lines.append("".join("-" * width(column) + " " for column in columns))
        lines += [
            "".join(_cell(text, column, width(column)) for text, column in zip(row, columns, strict=True))
            for row in rows
        ]
    return "".join(line + "\n" for line in lines)


def _cell(text: str, column: Column, width: int) -> str:
    text = text[:width]
    return (text.ljust(width) if column.left else text.rjust(width)) + " "
