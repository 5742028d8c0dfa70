"""sshare(1): the tree of associations with shares, usage and fair-share factors.

Numbers are those of Fair Tree: a level's use and shares are parts of the siblings', a factor is a rank. Usage is the
decayed billing TRES, summed over the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from slurmbridge.commands import quotas, sshare_json
from slurmbridge.commands.accounting_words import is_word, known_tres, show_tres
from slurmbridge.commands.effects import Call, Command, Print, QueueShares, Site
from slurmbridge.commands.listing import VERSION, print_whole, structured_stop
from slurmbridge.commands.sshare_numbers import Level, compute, run_minutes
from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.plan import QueueShare
from slurmbridge.model.verdict import UsageError
from slurmbridge.submit import associations, getopt
from slurmbridge.submit.getopt import Arg, Opt

OPTIONS: Final = getopt.OptTable(
    (
        Opt("accounts", "A", Arg.REQUIRED),
        Opt("all", "a"),
        Opt("helpformat", "e"),
        Opt("json", "", Arg.OPTIONAL),
        Opt("yaml", "", Arg.OPTIONAL),
        Opt("long", "l"),
        Opt("clusters", "M", Arg.REQUIRED),
        Opt("cluster", "", Arg.REQUIRED, "clusters"),
        Opt("partition", "m"),
        Opt("noheader", "n"),
        Opt("format", "o", Arg.REQUIRED),
        Opt("parsable", "p"),
        Opt("parsable2", "P"),
        Opt("users", "u", Arg.REQUIRED),
        Opt("Users", "U"),
        Opt("uid", "", Arg.REQUIRED, "users"),
        Opt("verbose", "v"),
        Opt("version", "V"),
        Opt("help"),
        Opt("usage"),
    )
)


class Column(msgspec.Struct, frozen=True):
    name: str
    width: int  # negative: left-aligned


COLUMNS: Final = (
    Column("Account", -20), Column("Cluster", 10), Column("EffectvUsage", 13), Column("FairShare", 10),
    Column("GrpTRESMins", 30), Column("GrpTRESRaw", 30), Column("ID", 6), Column("LevelFS", 10),
    Column("NormShares", 11), Column("NormUsage", 11), Column("Partition", 12), Column("RawShares", 10),
    Column("RawUsage", 11), Column("TRESRunMins", 30), Column("User", 10),
    Column("Pool", 10), Column("DeservedTRES", 30), Column("FairTRES", 30), Column("AllocTRES", 30),
    Column("FirmTRES", 30), Column("RequestedTRES", 30), Column("OverQuotaWeight", 15), Column("QueuePriority", 13),
)  # fmt: skip
_OURS: Final = (
    "Pool", "DeservedTRES", "FairTRES", "AllocTRES", "FirmTRES", "RequestedTRES", "OverQuotaWeight", "QueuePriority",
)  # fmt: skip
"""By node pool: what an association was promised, what it gets now, what it has, what of that no other can take, what it
asks for. Slurm has no such columns."""
_LONG: Final = ("Pool", "DeservedTRES", "FairTRES", "AllocTRES", "OverQuotaWeight", "QueuePriority")
HELP: Final = """\
Usage:  sshare [OPTION]
  Valid OPTIONs are:
    -a, --all              list all users
    -A, --accounts=        display specific accounts (comma separated list)
    -e, --helpformat       print the names of the columns for --format
    --json[=data_parser]   print everything as JSON
    -l, --long             include normalized usage in output, and quotas
    -m, --partition        print the partition part of the association
    -M, --cluster=name     cluster to issue commands to
    -n, --noheader         omit header from output
    -o, --format=          comma separated list of columns, besides Slurm's own
                           Pool, DeservedTRES, FairTRES, AllocTRES, FirmTRES,
                           RequestedTRES, OverQuotaWeight and QueuePriority
    -p, --parsable         '|' delimited output with a trailing '|'
    -P, --parsable2        '|' delimited output without a trailing '|'
    -u, --users=           display specific users (comma separated list)
    -U, --Users            display only user information
    -v, --verbose          display more information
    -V, --version          display tool version number
    --yaml[=data_parser]   print everything as YAML
    --help                 display this text
"""


_NUMBERS: Final = frozenset(
    {"EffectvUsage", "FairShare", "ID", "LevelFS", "NormShares", "NormUsage", "RawShares", "RawUsage"}
)
"""Columns in which nothing is cut off: what is too wide has an exponent, or takes more room."""
_EXPONENT: Final = 6  # places of "1.e+03"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    accounts: frozenset[str] | None = None
    users: frozenset[str] | None = None  # None: all
    only_users: bool = False


def main(call: Call, site: Site) -> Command:
    parsed = getopt.parse(OPTIONS, call.argv)
    if isinstance(parsed, UsageError):
        yield Print("".join(line + "\n" for line in parsed.lines), 2)
        return parsed.exit_code
    if parsed.has("help") or parsed.has("usage"):
        yield Print(HELP)
        return 0
    if parsed.has("version"):
        yield Print(VERSION + "\n")
        return 0
    if parsed.has("helpformat"):
        yield Print(_names())
        return 0
    structured = next((given for given in reversed(parsed.options) if given.key in ("json", "yaml")), None)
    if structured is not None:
        stop = structured_stop("sshare", structured.key, structured.value)
        if stop is not None:
            yield from stop.effects()
            return stop.exit_code
    clusters = parsed.last("clusters")
    if clusters and clusters != site.config.cluster_name:
        yield Print(f"sshare: error: No cluster '{clusters}' known by database.\n", 2)
        return 1
    wanted = _selection(call, parsed)
    if structured is not None:
        figures: tuple[QueueShare, ...] = ()
        if any(assoc.quotas for assoc in site.accounting.assocs):
            figures = yield QueueShares()
        chosen = [assoc for _indent, assoc in _selected(site.accounting, wanted)]
        content, warnings = sshare_json.document(site, chosen, figures, call.now)
        yield print_whole(call, site, structured.key, {"shares": content}, warnings)
        return 0
    text = parsed.last("format") or _default_format(
        long=parsed.has("long"),
        partition=parsed.has("partition"),
        quotas_set=any(assoc.quotas for assoc in site.accounting.assocs),
    )
    columns = _columns(text)
    if isinstance(columns, str):
        yield Print(f'sshare: error: Invalid field requested: "{columns}"\n', 2)
        return 1
    separator = "|" if parsed.has("parsable") or parsed.has("parsable2") else ""
    modes = [given.key for given in parsed.options if given.key.startswith("parsable")]
    closing = bool(modes) and modes[-1] == "parsable"
    shares: tuple[QueueShare, ...] | None = None
    if any(column.name in _OURS for column in columns):
        shares = yield QueueShares()
    rows = _rows(site, wanted, call.now, shares)
    yield Print(_table(columns, rows, header=not parsed.has("noheader"), separator=separator, closing=closing))
    return 0


def _names() -> str:
    """Slurm's own columns, four a line, each in 17 places."""
    names = [column.name for column in COLUMNS if column.name not in _OURS]
    lines = [names[at : at + 4] for at in range(0, len(names), 4)]
    return "".join(" ".join(f"{name:<17}" for name in line) + "\n" for line in lines)


def _default_format(*, long: bool, partition: bool, quotas_set: bool) -> str:
    """Slurm's columns; a long listing has the quotas, too, where there are any."""
    names = ["Account", "User"] + (["Partition"] if partition else []) + ["RawShares", "NormShares", "RawUsage"]
    if long:
        names += ["NormUsage", "EffectvUsage", "FairShare", "LevelFS", "GrpTRESMins", "TRESRunMins"]
        return ",".join([*names, *(_LONG if quotas_set else ())])
    return ",".join([*names, "EffectvUsage", "FairShare"])


def _columns(text: str) -> list[Column] | str:
    """The columns of a comma list (`NAME%WIDTH`), or the name that is none."""
    found = []
    for part in filter(None, text.split(",")):
        name, percent, width = part.partition("%")
        column = next((each for each in COLUMNS if is_word(name, each.name, 1)), None)
        if column is None:
            return part
        if percent and width.lstrip("-").isdecimal() and len(width) < 6 and int(width):
            column = Column(column.name, int(width))
        found.append(column)
    return found


def _selection(call: Call, parsed: getopt.Parsed) -> Selection:
    accounts = parsed.last("accounts")
    users = parsed.last("users")
    named = frozenset(users.split(",")) if users else None
    return Selection(
        accounts=frozenset(name.lower() for name in accounts.split(",")) if accounts else None,
        users=None if parsed.has("all") else (named or frozenset({call.user})),
        only_users=parsed.has("Users"),
    )


def _rows(
    site: Site, wanted: Selection, now: float, shares: Iterable[QueueShare] | None
) -> list[Mapping[str, str]]:  # fmt: skip
    """In tree order, names set in by one per level of what is shown; with `shares` one for each pool."""
    accounting, config = site.accounting, site.config
    levels = compute(accounting, site.usage(), site.counted_usage())
    running = run_minutes(accounting, site.jobs(), now)
    order = known_tres(config)
    by_assoc: dict[int, dict[str, QueueShare]] = {}
    for share in shares or ():
        by_assoc.setdefault(share.assoc_id, {})[share.pool] = share
    rows: list[Mapping[str, str]] = []
    for indent, assoc in _selected(accounting, wanted):
        row = _row(assoc, levels[assoc.assoc_id], indent, config, order, running.get(assoc.assoc_id, {}))
        if shares is None:
            rows.append(row)
        else:
            rows += [{**row, **texts} for texts in _by_pool(assoc, by_assoc.get(assoc.assoc_id, {}), config, order)]
    return rows


def _by_pool(
    assoc: Assoc, shares: Mapping[str, QueueShare], config: ClusterConfig, order: dict[str, int]
) -> list[Mapping[str, str]]:
    """The columns of quotas: of each pool in which the association has a quota, or something runs or waits."""
    numbers = quotas.order(order, config)
    rows: list[Mapping[str, str]] = []
    for pool in config.all_pools:
        quota, share = assoc.quota_in(pool.name), shares.get(pool.name)
        if quota is None and share is None:
            continue
        shown = quotas.show(quota or Quota(), numbers)
        share = share or QueueShare(pool=pool.name, assoc_id=assoc.assoc_id, account=assoc.account)
        texts = (
            pool.name, shown.deserved, quotas.show_deserved(share.fair_share, numbers),
            quotas.show_deserved(share.allocated, numbers),
            quotas.show_deserved(share.allocated_nonpreemptible, numbers),
            quotas.show_deserved(share.requested, numbers), shown.over_quota_weight, shown.priority,
        )  # fmt: skip
        rows.append(dict(zip(_OURS, texts, strict=True)))
    return rows or [dict.fromkeys(_OURS, "")]


def _selected(accounting: Accounting, wanted: Selection) -> Iterator[tuple[int, Assoc]]:
    """(how far the name is set in, association), in tree order."""
    base: int | None = None
    for depth, assoc in associations.tree(accounting):
        if wanted.accounts is not None and assoc.account not in wanted.accounts:
            continue
        if assoc.user and wanted.users is not None and assoc.user not in wanted.users:
            continue
        if wanted.only_users and not assoc.user:
            continue
        if base is None:
            base = depth
        yield 0 if wanted.only_users else (depth if wanted.accounts is None else max(depth - base, 0)), assoc


def _row(
    assoc: Assoc, level: Level, indent: int, config: ClusterConfig, order: dict[str, int], running: Mapping[str, int]
) -> Mapping[str, str]:
    root = not assoc.user and assoc.account == associations.ROOT
    minutes = tuple((name, running.get(name, 0)) for name in order)
    return {
        "Account": " " * indent + assoc.account,
        "Cluster": config.cluster_name,
        "User": assoc.user,
        "Partition": assoc.partition,
        "ID": str(assoc.assoc_id),
        "RawShares": "" if root else ("parent" if assoc.shares_parent else str(assoc.shares)),
        "NormShares": f"{level.norm_shares:.6f}",
        "RawUsage": str(int(level.raw)),
        "NormUsage": "" if root else f"{level.norm_usage:.6f}",
        "EffectvUsage": f"{level.effective:.6f}",
        "FairShare": "" if level.factor is None else f"{level.factor:.6f}",
        "LevelFS": "" if level.level is None else f"{level.level:.6f}",
        "GrpTRESMins": show_tres(assoc.limits.grp_tres_mins, order),
        "TRESRunMins": ",".join(f"{name}={count}" for name, count in minutes),
    }


def _table(
    columns: list[Column], rows: list[Mapping[str, str]], *, header: bool, separator: str, closing: bool
) -> str:  # fmt: skip
    lines: list[list[str]] = []
    if header:
        lines.append([column.name for column in columns])
        if not separator:
            lines.append(["-" * abs(column.width) for column in columns])
    lines += [[row[column.name] for column in columns] for row in rows]
    if separator:
        return "".join(separator.join(cells) + (separator if closing else "") + "\n" for cells in lines)
    return "".join("".join(map(_cell, cells, columns)) + "\n" for cells in lines)


def _cell(text: str, column: Column) -> str:
    room = abs(column.width)
    if len(text) > room and column.name in _NUMBERS:
        text = text if "." not in text else f"{float(text):.{room - _EXPONENT if room >= _EXPONENT else 6}e}"
    elif len(text) > room:
        text = text[: room - 1] + "+"
    return (text.ljust(room) if column.width < 0 else text.rjust(room)) + " "
