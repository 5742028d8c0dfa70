"""sprio: what are the priorities of waiting jobs made of?

Follows sprio(1). The factors are those of the planner's last cycle; a job that may run in several partitions has a line
for each. Held jobs, and jobs that may not start yet (a begin time, a dependency), have no priority to explain.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Command, Print, PriorityFactors, Site
from slurmbridge.commands.help_page import help_page
from slurmbridge.lang import formats
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Factors
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

_R = Arg.REQUIRED

OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("federation"), Opt("noheader", "h"), Opt("jobs", "j", Arg.OPTIONAL), Opt("local"),
        Opt("long", "l"), Opt("cluster", "M", _R, "clusters"), Opt("clusters", "", _R), Opt("norm", "n"),
        Opt("format", "o", _R), Opt("sibling"), Opt("sort", "S", _R), Opt("partition", "p", _R), Opt("user", "u", _R),
        Opt("verbose", "v"), Opt("version", "V"), Opt("weights", "w"), Opt("help"), Opt("helpformat"), Opt("usage"),
    )
)  # fmt: skip

USAGE = (
    "Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]\n"
    "   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]\n"
)
HELP = help_page(
    "Usage: sprio [OPTIONS]",
    34,
    (
        ("    --federation", "accepted: there is one cluster"),
        ("-h, --noheader", "no heading"),
        ("-j, --jobs=LIST", "only these jobs"),
        ("    --local", "accepted: there is one cluster"),
        ("-l, --long", "all factors, users, accounts, nice"),
        ("-M, --cluster=NAME", "jobs of this cluster"),
        ("-n, --norm", "factors before they are weighed, from 0 to 1"),
        ("-o, --format=FORMAT", "columns: %[.][WIDTH]LETTER"),
        ("    --sibling", "with the name of the cluster"),
        ("-p, --partition=LIST", "only in these partitions"),
        ("-S, --sort=LIST", "order by these letters, - before one: descending"),
        ("-u, --user=LIST", "only jobs of these users"),
        ("-v, --verbose", "what was asked for"),
        ("-V, --version", "the version"),
        ("-w, --weights", "the weights of the factors"),
        ("    --helpformat", "letters of --format"),
        ("    --usage", "a short form of this text"),
    ),
)
HELP_LETTERS = ("a", "A", "b", "B", "c", "f", "F", "i", "j", "J", "n", "N", "o", "p", "P", "r", "S", "q", "Q", "s", "u",
                "y", "Y", "t", "T")  # fmt: skip


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    job: Job
    factors: Factors
    config: ClusterConfig
    user: str

    def shown(self, column: Column) -> str:
        return column.show(self)

    def points(self, factor: float, weight: int) -> str:
        return f"{factor * weight:.0f}"


Show = Callable[[Row], str]
Key = Callable[[Row], float | str]


class Column(msgspec.Struct, frozen=True):
    """`weight`: what -w shows instead."""

    title: str
    show: Show
    weight: Callable[[ClusterConfig], str] = lambda config: ""
    key: Key | None = None


def _number(job: Job) -> int:
    return job.array_job_id or job.job_id


def _tres(row: Row) -> str:
    return ",".join(f"{_upper(name)}={points:.0f}" for name, points in row.factors.tres)


def _upper(name: str) -> str:
    """TRES as sprio spells them: `CPU`, `Mem`, `GRES/gpu`."""
    return {"cpu": "CPU", "mem": "Mem", "node": "Node", "billing": "Billing"}.get(name) or name.replace(
        "gres/", "GRES/"
    )


COLUMNS: Mapping[str, Column] = {
    "a": Column("AGE", lambda r: f"{r.factors.age:.7f}", key=lambda r: r.factors.age),
    "A": Column(
        "AGE",
        lambda r: r.points(r.factors.age, r.config.priority_weight_age),
        lambda c: str(c.priority_weight_age),
        lambda r: r.factors.age * r.config.priority_weight_age,
    ),
    "b": Column("ASSOC", lambda r: f"{r.factors.assoc:.7f}", key=lambda r: r.factors.assoc),
    "B": Column(
        "ASSOC",
        lambda r: r.points(r.factors.assoc, r.config.priority_weight_assoc),
        lambda c: str(c.priority_weight_assoc),
        lambda r: r.factors.assoc * r.config.priority_weight_assoc,
    ),
    "c": Column("CLUSTER", lambda r: "(null)"),
    "f": Column("FAIRSHARE", lambda r: f"{r.factors.fairshare:.7f}", key=lambda r: r.factors.fairshare),
    "F": Column(
        "FAIRSHARE",
        lambda r: r.points(r.factors.fairshare, r.config.priority_weight_fairshare),
        lambda c: str(c.priority_weight_fairshare),
        lambda r: r.factors.fairshare * r.config.priority_weight_fairshare,
    ),
    "i": Column("JOBID", lambda r: str(_number(r.job)), lambda c: "Weights", lambda r: float(_number(r.job))),
    "j": Column("JOBSIZE", lambda r: f"{r.factors.job_size:.7f}", key=lambda r: r.factors.job_size),
    "J": Column(
        "JOBSIZE",
        lambda r: r.points(r.factors.job_size, r.config.priority_weight_job_size),
        lambda c: str(c.priority_weight_job_size),
        lambda r: r.factors.job_size * r.config.priority_weight_job_size,
    ),
    "n": Column("QOSNAME", lambda r: r.job.spec.qos, key=lambda r: r.job.spec.qos),
    "N": Column("NICE", lambda r: str(r.job.spec.nice), key=lambda r: float(r.job.spec.nice)),
    "o": Column("ACCOUNT", lambda r: r.job.spec.account, key=lambda r: r.job.spec.account),
    "p": Column("PARTITION", lambda r: f"{r.factors.partition_factor:.7f}", key=lambda r: r.factors.partition_factor),
    "P": Column(
        "PARTITION",
        lambda r: r.points(r.factors.partition_factor, r.config.priority_weight_partition),
        lambda c: str(c.priority_weight_partition),
        lambda r: r.factors.partition_factor * r.config.priority_weight_partition,
    ),
    "q": Column("QOS", lambda r: f"{r.factors.qos:.7f}", key=lambda r: r.factors.qos),
    "Q": Column(
        "QOS",
        lambda r: r.points(r.factors.qos, r.config.priority_weight_qos),
        lambda c: str(c.priority_weight_qos),
        lambda r: r.factors.qos * r.config.priority_weight_qos,
    ),
    "r": Column("PARTITION", lambda r: r.factors.partition, key=lambda r: r.factors.partition),
    "s": Column("SLUID", lambda r: r.job.sluid, key=lambda r: r.job.sluid),
    "S": Column("SITE", lambda r: "0", lambda c: "1"),
    "t": Column("TRES", _tres, lambda c: c.priority_weight_tres or "(null)"),
    "T": Column("TRES", _tres, lambda c: c.priority_weight_tres or "(null)"),
    "u": Column("USER", lambda r: r.user, key=lambda r: r.user),
    "y": Column("PRIORITY", lambda r: f"{r.factors.priority / 0xFFFFFFFF:.8f}", key=lambda r: float(r.factors.priority)),
    "Y": Column("PRIORITY", lambda r: str(r.factors.priority), key=lambda r: float(r.factors.priority)),
}  # fmt: skip


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a command line asks for."""

    parts: tuple[formats.Literal | formats.Column, ...]
    jobs: frozenset[int] | None
    partitions: frozenset[str] | None
    users: frozenset[str] | None
    sort: str
    header: bool
    weights: bool
    by_job: bool  # -j names jobs


def main(call: Call, site: Site) -> Command:
    """Exit code 0, or 1 for a wrong request."""
    scan = getopt.scan(OPTIONS, listing.join_optional(call.argv[1:], "j", ("jobs",), "hlnvw"))
    texts = {"help": HELP, "usage": USAGE, "version": listing.VERSION + "\n", "helpformat": _help_letters()}
    for given in scan.options:
        if given.key in texts:
            yield Print(texts[given.key])
            return 0
    if scan.problem:
        yield from listing.errors(*getopt.complain("sprio", scan.problem).lines)
        return 1
    parsed = scan.parsed
    if parsed.operands:
        yield Print(f"sprio: error: Unrecognized option: {parsed.operands[0]}\n", 2)
        yield Print(USAGE)
        return 1
    lines = listing.cluster_problem("sprio", parsed.last("clusters") or site.config.cluster_name, site)
    if lines:
        yield from listing.errors(*lines)
        return 1
    jobs = _jobs(parsed)
    if isinstance(jobs, str):
        yield Print(f"sprio: error: Invalid job id: {jobs}\n", 2)
        return 1
    users = parsed.last("user")
    for name in listing.words(users or ""):
        if site.user_id(name) is None and not listing.is_number(name):
            yield Print(f"sprio: error: Invalid user: {name}\n\n", 2)
    request = _request(parsed, site.config, jobs, users)
    for letter in _unknown(request.parts):
        yield Print(f"sprio: error: Invalid job format specification: {letter}\n", 2)
    if parsed.has("verbose"):
        yield Print(_verbose(parsed))
    if request.weights:
        yield Print("".join([*_heading(request), _line(request.parts, lambda c: c.weight(site.config))]))
        return 0
    factors: tuple[Factors, ...] = yield PriorityFactors()
    rows = list(_rows(factors, call, site))
    if not rows and request.by_job:
        yield Print("Unable to find jobs matching user/id(s) specified\n")
        return 0
    chosen = _sorted([row for row in rows if _passes(row, request)], request.sort)
    shown = (_line(request.parts, row.shown) for row in chosen)
    yield from listing.in_pieces(itertools.chain(_heading(request), shown))
    return 0


def _help_letters() -> str:
    rows = [HELP_LETTERS[at : at + 8] for at in range(0, len(HELP_LETTERS), 8)]
    return "".join("".join(f"%{letter}    " for letter in row) + "\n" for row in rows)


def _jobs(parsed: getopt.Parsed) -> frozenset[int] | str | None:
    """Ids of -j (tasks stand for their array), None without any, or the word that is no id."""
    text = parsed.last("jobs")
    if text is None:
        return None
    found = set()
    for word in listing.words(text):
        number = word.partition("_")[0].partition("+")[0]
        if not listing.is_id(number) or not int(number):
            return word
        found.add(int(number))
    return frozenset(found)


def _request(parsed: getopt.Parsed, config: ClusterConfig, jobs: frozenset[int] | None, users: str | None) -> Request:
    text = parsed.last("format")
    if text is None:
        text = _default_format(parsed, config, with_user=users is not None)
    partitions = parsed.last("partition")
    return Request(
        parts=formats.parse_letters(text),
        jobs=jobs or None,
        partitions=frozenset(listing.words(partitions)) if partitions is not None else None,
        users=frozenset(listing.words(users)) if users is not None else None,
        sort=parsed.last("sort") or "",
        header=not parsed.has("noheader"),
        weights=parsed.has("weights"),
        by_job=jobs is not None,
    )


def _default_format(parsed: getopt.Parsed, config: ClusterConfig, *, with_user: bool) -> str:
    """As sprio builds it: factors that have a weight, -l every factor, -n factors unweighed, -u the user."""
    norm, full = parsed.has("norm"), parsed.has("long")
    text = "%.15i %9r"
    if parsed.has("sibling"):
        text += " %8c"
    if with_user or full:
        text += " %.8u"
    if full:
        text += " %.8o"
    text += " %10y" if norm else " %.10Y %.10S"
    for letters, weight in (
        ("aA", config.priority_weight_age),
        ("bB", config.priority_weight_assoc),
        ("fF", config.priority_weight_fairshare),
        ("jJ", config.priority_weight_job_size),
        ("pP", config.priority_weight_partition),
        ("qQ", config.priority_weight_qos),
    ):
        if letters == "qQ" and full:
            text += " %10n" if norm else " %.10n"
        if weight or full:
            text += f" %10{letters[0]}" if norm else f" %.10{letters[1]}"
    if full and not norm:
        text += " %.11N"
    if full or config.priority_weight_tres:
        text += " %20t" if norm else " %.20T"
    return text


def _unknown(parts: Iterable[formats.Literal | formats.Column]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, formats.Column) and part.letter not in COLUMNS and part.letter != "%":
            yield part.letter


def _verbose(parsed: getopt.Parsed) -> str:
    rule = "-" * 29

    def shown(key: str) -> str:
        return parsed.last(key) or "(null)"

    return (
        f"{rule}\nformat     = {shown('format')}\njob_flag   = {int(parsed.has('jobs'))}\njobs       = {shown('jobs')}\n"
        f"partition  = {shown('partition')}\nusers      = {shown('user')}\n"
        f"verbose    = {parsed.count('verbose')}\n{rule}\n\n\n"
    )


def _heading(request: Request) -> list[str]:
    return [_line(request.parts, lambda column: column.title)] if request.header else []


def _line(parts: Sequence[formats.Literal | formats.Column], value: Callable[[Column], str]) -> str:
    out = []
    for part in parts:
        if isinstance(part, formats.Literal):
            out.append(part.text)
            continue
        column = COLUMNS.get(part.letter)
        if column is not None:
            text = value(column)
            if part.width:
                text = text[: part.width]
                text = text.rjust(part.width) if part.right else text.ljust(part.width)
            out.append(text)
        out.append(part.suffix)
    return "".join(out) + "\n"


def _rows(factors: Iterable[Factors], call: Call, site: Site) -> Iterable[Row]:
    """Of pending jobs that may start now and that this user may see."""
    private = "jobs" in site.config.private_data
    for each in factors:
        job = site.job(each.job_id)
        if job is None or not job.is_pending or job.priority == 0:
            continue
        if job.eligible_time is None or job.eligible_time > call.now:
            continue
        if private and job.spec.uid != call.uid and not site.is_operator(call.uid):
            continue
        yield Row(job=job, factors=each, config=site.config, user=site.user_name(job.spec.uid))


def _passes(row: Row, request: Request) -> bool:
    if request.jobs is not None and _number(row.job) not in request.jobs and row.job.job_id not in request.jobs:
        return False
    if request.partitions is not None and row.factors.partition not in request.partitions:
        return False
    return request.users is None or row.user in request.users or str(row.job.spec.uid) in request.users


def _sorted(rows: list[Row], order: str) -> list[Row]:
    """By job number, then as --sort says, its last letter first."""
    rows.sort(key=lambda row: row.job.job_id)
    letters: list[tuple[str, bool]] = []
    sign = ""
    for letter in order:
        if letter in "+-":
            sign = letter
        elif letter != ",":
            letters.append((letter, sign == "-"))
            sign = ""
    for letter, descending in reversed(letters):
        column = COLUMNS.get(letter)
        if column is not None and column.key is not None:
            rows.sort(key=column.key, reverse=descending)
    return rows
