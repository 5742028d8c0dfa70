"""sreport: how much was used in a period, by whom?

Follows sreport(1). A period is whole hours: its start is rounded down, its end up, and it ends with the hour that is now
at the latest. Sums come from the runs that the store remembers. Reports about workload keys and reservations are refused:
nothing is kept that they could sum up.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.commands import listing
from slurmbridge.commands.accounting_words import known_tres
from slurmbridge.commands.effects import Call, Command, History, JobFilter, JobRow, Print, Reports, Site
from slurmbridge.commands.sreport_layout import HELP, Column, cells, find_columns, render, time_words
from slurmbridge.commands.sreport_sums import Period
from slurmbridge.commands.sreport_tables import REPORTS, Ask, Report
from slurmbridge.errors import LangError
from slurmbridge.lang import times
from slurmbridge.model.accounts import Transaction
from slurmbridge.model.cluster import NodeEvent
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

_R = Arg.REQUIRED
OPTIONS = getopt.OptTable(
    (
        Opt("all_clusters", "a"), Opt("autocomplete", "", _R), Opt("federation"), Opt("help", "h"), Opt("local"),
        Opt("noheader", "n"), Opt("parsable", "p"), Opt("parsable2", "P"), Opt("quiet", "Q"), Opt("time", "t", _R),
        Opt("tres", "T", _R), Opt("verbose", "v"), Opt("version", "V"), Opt("usage"),
    )
)  # fmt: skip
_HOUR = 3600
_RULE = "-" * 80
KINDS = ("cluster", "job", "reservation", "user")


class Conditions(msgspec.Struct, kw_only=True):
    """NAME=VALUE words of a report."""

    values: dict[str, str] = {}
    switches: set[str] = set()
    complaints: list[str] = []
    errors: list[str] = []
    failed: bool = False


def main(call: Call, site: Site) -> Command:
    """Exit code 0, or 1 for a wrong request."""
    parsed = getopt.parse(OPTIONS, call.argv)
    if not isinstance(parsed, getopt.Parsed):
        yield Print("".join(line + "\n" for line in parsed.lines), 2)
        return parsed.exit_code
    words = list(parsed.operands)
    if parsed.has("help") or parsed.has("usage") or words[:1] == ["help"]:
        yield Print(HELP)
        return 0
    if parsed.has("version") or words[:1] == ["version"]:
        yield Print(listing.VERSION + "\n")
        return 0
    if words and len(words[0]) > 1 and any(word.startswith(words[0].lower()) for word in ("exit", "quit")):
        return 0
    if not words:
        yield Print("sreport: error: reports are not asked for interactively; give one on the command line\n", 2)
        return 1
    kind = next((each for each in KINDS if each.startswith(words[0].lower())), None)
    if kind is None:
        yield Print(f"invalid keyword: {words[0]}\n", 2)
        return 1
    if len(words) < 2:
        yield Print(f"too few arguments for keyword:{words[0]}\n", 2)
        return 1
    report = next((each for each in REPORTS if each.kind == kind and each.is_called(words[1])), None)
    if report is None:
        yield Print(f"Not valid report {words[1]}\nValid {kind} reports are, {_VALID[kind]}\n", 2)
        return 1
    if report.refused:
        yield Print(f"sreport: error: not available in this release of slurmbridge: {report.refused}\n", 2)
        return 1
    tres = _tres(parsed.last("tres"), site)
    if not tres:
        yield Print("sreport: fatal: No valid TRES given\n", 2)
        return 1
    conditions = _conditions(words[2:])
    period, wrong = _period(conditions.values, call, site)
    if wrong:
        conditions.complaints.append(wrong)
    unit, problem = time_words(parsed.last("time") or "Minutes")
    if problem:
        yield Print(problem, 2)
    columns, unknown = find_columns(conditions.values.get("format"), report.columns, with_tres=parsed.has("tres"))
    if unknown is not None:
        conditions.complaints.append(f" Unknown field '{unknown}'")
        conditions.failed = True
    if conditions.errors:
        yield Print("".join(f"sreport: error: {line}\n" for line in conditions.errors), 2)
    if conditions.complaints:
        yield Print("".join(line + "\n" for line in conditions.complaints), 2)
    jobs: tuple[JobRow, ...] = ()
    moments: tuple[Transaction, ...] = ()
    events: tuple[NodeEvent, ...] = ()
    if not conditions.values.get("clusters") or site.config.cluster_name in conditions.values["clusters"].split(","):
        jobs = yield History(
            filter=JobFilter(start=period.start, end=min(period.end, call.now), duplicates=True, with_steps=False)
        )
        moments = yield Reports(what="transactions")
        events = yield Reports(what="events", start=period.start, end=period.end)
    known_since = min([site.start_time, *(each.time for each in moments), *(row.job.submit_time for row in jobs)])
    elsewhere = not jobs and not moments and bool(conditions.values.get("clusters"))
    ask = Ask(
        site=site,
        period=period,
        jobs=() if elsewhere else tuple(row.job for row in jobs if _may_see(row, call, site)),
        events=events,
        known_since=period.end if elsewhere else known_since,
        tres=tres,
        values=conditions.values,
        switches=frozenset(conditions.switches),
    )
    found = report.sums(ask)
    mode = 2 if parsed.has("parsable2") else 1 if parsed.has("parsable") else 0
    if not parsed.has("noheader"):
        what = "CPU" if not parsed.has("tres") else "TRES"
        yield Print(_title(report, ask, unit.words, what, site, call))
    columns = columns or ()
    if report.groups is not None and columns is not None:
        columns = (*columns, *report.groups(ask))
    layout: Sequence[Column] = columns
    if "tree" in conditions.switches and not conditions.values.get("format"):
        layout = [
            msgspec.structs.replace(each, width=20, wide=20, left=True) if each.name == "Account" else each
            for each in columns
        ]
    yield Print(render(layout, cells(found, layout, unit), mode=mode, unit=unit, header=not parsed.has("noheader")))
    return 1 if conditions.failed else 0


_VALID = {
    "cluster": '"AccountUtilizationByUser", "AccountUtilizationByQOS", "UserUtilizationByAccount", '
    '"UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"',
    "job": '"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"',
    "reservation": '"Utilization"',
    "user": '"Top"',
}


def _may_see(row: JobRow, call: Call, site: Site) -> bool:
    """PrivateData=usage hides what others used, but from operators and coordinators."""
    if "usage" not in site.config.private_data or row.job.spec.uid == call.uid:
        return True
    return site.is_operator(call.uid) or site.coordinates(call.uid, row.job.spec.account)


def _tres(text: str | None, site: Site) -> tuple[str, ...]:
    known = known_tres(site.config)
    if text is None:
        return ("cpu",)
    if text.upper() == "ALL":
        return tuple(known)
    return tuple(name for name in text.lower().split(",") if name in known)


_NAMES = {
    "accounts": 2, "accts": 2, "clusters": 1, "end": 1, "format": 1, "gid": 2, "grouping": 2, "jobs": 1, "nodes": 1,
    "partitions": 1, "start": 1, "users": 1, "wckeys": 2, "topcount": 4, "names": 2, "qos": 1,
}  # fmt: skip
_SWITCHES = {"acctasparent": 4, "all_clusters": 1, "flatview": 2, "group": 5, "printjobcount": 2, "tree": 4}


def _conditions(words: Sequence[str]) -> Conditions:
    found = Conditions(values={}, switches=set(), complaints=[], errors=[])
    for word in words:
        name, equals, value = word.partition("=")
        lower = name.lower()
        if not equals:
            switch = next((full for full, least in _SWITCHES.items() if _is(lower, full, least)), None)
            if switch is not None:
                found.switches.add(switch)
            continue
        full = next((full for full, least in _NAMES.items() if _is(lower, full, least)), None)
        if full is None:
            found.complaints += [f" Unknown condition: {word}", "Use keyword set to modify value"]
            found.failed = True
        elif full == "topcount" and not listing.is_number(value):
            found.errors.append(f"Invalid value for TopCount ({value})")
            found.failed = True
        else:
            found.values["accounts" if full == "accts" else full] = value.strip("'\"")
    return found


def _is(text: str, full: str, least: int) -> bool:
    return len(text) >= min(least, len(full)) and full.startswith(text)


def _period(values: Mapping[str, str], call: Call, site: Site) -> tuple[Period, str]:
    """Whole hours; by default from the beginning of yesterday to that of today. Also what was wrong with the words."""
    tz, now, wrong = listing.time_zone(call, site), call.now, ""
    today = datetime.datetime.fromtimestamp(now, tz)
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    moments = {
        "start": (midnight - datetime.timedelta(days=1)).timestamp(),
        "end": midnight.replace(minute=today.minute, second=today.second).timestamp(),
    }
    for name in moments:
        if name in values:
            try:
                moments[name] = float(times.parse(values[name], now, tz, past=True))
            except LangError as error:
                wrong = f"Invalid time specification (pos={error.place}): {values[name]}"
    start = moments["start"] // _HOUR * _HOUR
    end = -(-min(moments["end"], now) // _HOUR) * _HOUR
    return Period(start, max(end, start + _HOUR), now), wrong


def _title(report: Report, ask: Ask, unit: str, what: str, site: Site, call: Call) -> str:
    tz = listing.time_zone(call, site)

    def shown(moment: float) -> str:
        return datetime.datetime.fromtimestamp(moment, tz).strftime("%Y-%m-%dT%H:%M:%S")

    period = ask.period
    length = f" ({int(period.end - period.start)} secs)" if report.shows_length else ""
    return (
        f"{_RULE}\n{report.title(ask)} {shown(period.start)} - {shown(period.end - 1)}{length}\n"
        f"{report.measure(ask, unit, what)}\n{_RULE}\n"
    )
