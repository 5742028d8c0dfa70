"""The reports of sreport: columns, titles, and the rows that each makes of runs and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from slurmbridge.commands import sreport_sums as sums
from slurmbridge.commands.effects import Site
from slurmbridge.commands.sreport_layout import Amount, Column, Row
from slurmbridge.lang import hostlist
from slurmbridge.model.cluster import NodeEvent
from slurmbridge.model.job import Job
from slurmbridge.submit import associations

GROUPS = (50, 250, 500, 1000)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a report is made of."""

    site: Site
    period: sums.Period
    jobs: tuple[Job, ...]
    events: tuple[NodeEvent, ...]
    known_since: float
    tres: tuple[str, ...]
    values: Mapping[str, str]
    switches: frozenset[str]

    def names(self, key: str) -> frozenset[str] | None:
        """A comma list among the words, lower case; None: not given."""
        text = self.values.get(key)
        return frozenset(filter(None, text.lower().split(","))) if text is not None else None

    def users(self) -> dict[int, str]:
        return {job.spec.uid: self.site.user_name(job.spec.uid) for job in self.jobs}

    def whole(self) -> dict[str, float]:
        """What could have been used: the cluster since it is known."""
        rows = sums.utilization(self.site.nodes(), (), (), self.tres, self.period, self.known_since)
        return {row.tres: row.reported for row in rows}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    least: int = 99  # how many letters of the name are enough
    columns: tuple[Column, ...] = ()
    sums: Callable[[Ask], Sequence[Row]] = lambda ask: ()
    title: Callable[[Ask], str] = lambda ask: ""
    measure: Callable[[Ask, str, str], str] = lambda ask, unit, what: (
        f"Usage reported in {unit}" if unit.startswith("Percentage") else f"Usage reported in {what} {unit}"
    )
    groups: Callable[[Ask], tuple[Column, ...]] | None = None
    shows_length: bool = True
    refused: str = ""

    def is_called(self, word: str) -> bool:
        return len(word) >= min(self.least, len(self.name)) and self.name.lower().startswith(word.lower())


CLUSTER = Column("Cluster", "Cluster", 9, "cluster")
TRES = Column("TresName", "TRES Name", 14, "tres")
USED = Column("Used", "Used", 8, "used", 17)
ENERGY = Column("Energy", "Energy", 8, "energy", 17)
LOGIN = Column("Login", "Login", 9, "login")
PROPER = Column("Proper", "Proper Name", 15, "proper")
ACCOUNT = Column("Accounts", "Account", 15, "account")
COUNT = Column("Count", "TRES Count", 10, "count")


def _amounts(ask: Ask, own: Mapping[str, float], whole: Mapping[str, float], row: dict[str, str | Amount]) -> list[Row]:
    """One row for each TRES asked for."""
    return [
        {
            **row,
            "cluster": ask.site.config.cluster_name,
            "tres": name,
            "used": Amount(own.get(name, 0.0), whole.get(name, 0.0)),
            "energy": Amount(0.0, 0.0),
            "count": Amount(_size(ask, name), plain=True),
        }
        for name in ask.tres
    ]


def _size(ask: Ask, tres: str) -> int:
    return sum(sums.size_of(node, tres) for node in ask.site.nodes())


def _utilization(ask: Ask) -> list[Row]:
    rows: list[Row] = []
    wall = ask.period.end - ask.period.start
    for each in sums.utilization(ask.site.nodes(), ask.jobs, ask.events, ask.tres, ask.period, ask.known_since):
        whole = each.reported
        rows.append(
            {
                "cluster": ask.site.config.cluster_name,
                "tres": each.tres,
                "count": Amount(each.size, plain=True),
                "allocated": Amount(each.allocated, whole),
                "down": Amount(each.down, whole),
                "planned_down": Amount(each.planned_down, whole),
                "idle": Amount(each.idle, whole),
                "planned": Amount(each.planned, whole),
                "over": Amount(0.0, whole),
                "reported": Amount(each.reported, each.size * wall),
            }
        )
    return rows


def _pairs(ask: Ask, *, qos: bool = False) -> sums.Totals:
    found = sums.by_pair(sums.uses(ask.jobs, ask.period), ask.tres, ask.users(), qos=qos)
    accounts, users = ask.names("accounts"), ask.names("users")
    return {
        (account, name): own
        for (account, name), own in found.items()
        if (accounts is None or account in accounts) and (qos or users is None or name in users) and any(own.values())
    }


def _by_account(ask: Ask) -> list[Row]:
    """Accounts with what is below them, each followed by its users."""
    accounting, whole, pairs = ask.site.accounting, ask.whole(), _pairs(ask)
    accounts, users = ask.names("accounts"), ask.names("users")
    rows: list[Row] = []
    told: set[tuple[str, str]] = set()
    for depth, assoc in sums.in_tree(accounting):
        indent = " " * depth if "tree" in ask.switches else ""
        if assoc.user:
            key = assoc.account, assoc.user
            if key in pairs and key not in told:
                told.add(key)
                names: dict[str, str | Amount] = {"login": assoc.user, "proper": assoc.user}
                rows += _amounts(ask, pairs[key], whole, {"account": indent + assoc.account, **names})
        elif users is None and (accounts is None or assoc.account in accounts):
            own = sums.of_subtree(accounting, assoc.account, pairs)
            if any(own.values()):
                rows += _amounts(ask, own, whole, {"account": indent + assoc.account})
    return rows


def _by_qos(ask: Ask) -> list[Row]:
    accounting, whole, pairs = ask.site.accounting, ask.whole(), _pairs(ask, qos=True)
    accounts = ask.names("accounts")
    rows: list[Row] = []
    for _, assoc in sums.in_tree(accounting):
        if assoc.user or (accounts is not None and assoc.account not in accounts):
            continue
        below = associations.descendants(accounting, assoc.account)
        for name in dict.fromkeys(qos for _, qos in pairs):
            own = sums.added(part for (account, qos), part in pairs.items() if account in below and qos == name)
            if any(own.values()):
                rows += _amounts(ask, own, whole, {"account": assoc.account, "qos": name})
    return rows


def _by_user(ask: Ask) -> list[Row]:
    """Who used most first; every pair of user and account is a row of its own, unless they are grouped."""
    whole, pairs = ask.whole(), _pairs(ask)
    joined: dict[tuple[str, str], dict[str, float]] = {}
    if "group" in ask.switches:
        for name in dict.fromkeys(name for _, name in pairs):
            mine = {account: own for (account, each), own in pairs.items() if each == name}
            joined[",".join(sorted(mine)), name] = sums.added(mine.values())
    else:
        joined = dict(pairs)
    first = ask.tres[0]
    ordered = sorted(joined.items(), key=lambda item: (-item[1].get(first, 0.0), item[0][1], item[0][0]))
    rows: list[Row] = []
    for (account, name), own in ordered:
        rows += _amounts(ask, own, whole, {"account": account, "login": name, "proper": name})
    return rows


def _top_count(ask: Ask) -> int:
    return int(ask.values.get("topcount", "10"))


def _top(ask: Ask) -> list[Row]:
    return _by_user(ask)[: _top_count(ask) * len(ask.tres)]


# ---- job sizes ----


def _bounds(ask: Ask) -> list[tuple[int, int | None]]:
    """(least, most) CPUs of each group."""
    text = ask.values.get("grouping", "")
    if text.lower() == "individual":
        return [(size, size) for size in sorted({use.cpus for use in sums.uses(_sized(ask), ask.period)})]
    numbers = sorted({int(word) for word in text.split(",") if word.isdecimal() and len(word) < 10}) or list(GROUPS)
    starts = [0, *numbers]
    return [(low, high - 1) for low, high in zip(starts, numbers, strict=False)] + [(numbers[-1], None)]


def _group_columns(ask: Ask) -> tuple[Column, ...]:
    columns = []
    for at, (low, high) in enumerate(_bounds(ask)):
        title = f">= {low} CPUs" if high is None else f"{low} CPUs" if low == high else f"{low}-{high} CPUs"
        columns.append(Column(title, title, 13, f"group{at}"))
    return (*columns, Column("Total", "Total Count", 11, "total"), Column("Share", "% of cluster", 12, "share"))


def _sized(ask: Ask) -> list[Job]:
    """Runs that the words of the report ask for."""
    users, partitions, gids, ids = ask.names("users"), ask.names("partitions"), ask.names("gid"), ask.names("jobs")
    text = ask.values.get("nodes")
    nodes = frozenset(hostlist.expand(text)) if text else None
    names = ask.users()
    found = []
    for job in ask.jobs:
        held = job.allocation
        if held is None or (users is not None and names[job.spec.uid] not in users):
            continue
        if partitions is not None and held.partition.lower() not in partitions:
            continue
        if gids is not None and str(job.spec.gid) not in gids:
            continue
        if ids is not None and not ids & {str(job.job_id), str(job.array_job_id)}:
            continue
        if nodes is None or any(share.node in nodes for share in held.nodes):
            found.append(job)
    return found


def _sizes(ask: Ask) -> list[Row]:
    accounting, wanted = ask.site.accounting, ask.names("accounts")
    found = sums.uses(_sized(ask), ask.period)
    counted = "printjobcount" in ask.switches
    if "flatview" in ask.switches:
        heads = {use.job.spec.account: frozenset({use.job.spec.account}) for use in found}
        heads = {name: heads[name] for name in sorted(heads) if wanted is None or name in wanted}
    else:
        tops = sorted(wanted) if wanted else [associations.ROOT]
        if "acctasparent" in ask.switches:
            tops = sorted({a.account for a in accounting.assocs if not a.user and a.parent in tops})
        heads = {name: associations.descendants(accounting, name) for name in tops}
    weigh: Callable[[sums.Use], float] = (lambda use: 1.0) if counted else (lambda use: use.of("cpu"))
    parts = {name: [use for use in found if use.job.spec.account in below] for name, below in heads.items()}
    whole = sum(weigh(use) for uses in parts.values() for use in uses)
    rows: list[Row] = []
    for name, uses in parts.items():
        if not uses:
            continue
        own = sum(map(weigh, uses))
        row: dict[str, str | Amount] = {"cluster": ask.site.config.cluster_name, "account": name}
        for at, (low, high) in enumerate(_bounds(ask)):
            inside = sum(weigh(use) for use in uses if use.cpus >= low and (high is None or use.cpus <= high))
            row[f"group{at}"] = Amount(inside, own, counted)
        row["total"] = Amount(own, own, counted)
        row["share"] = f"{100 * own / whole if whole else 0.0:.2f}%"
        rows.append(row)
    return rows


def _size_measure(ask: Ask, unit: str, what: str) -> str:
    return "Units are in number of jobs ran" if "printjobcount" in ask.switches else f"Time reported in {unit}"


_BY_USER = (CLUSTER, LOGIN, PROPER, ACCOUNT, TRES, USED, ENERGY, COUNT)
_WCKEYS = "sums by workload key; sacct -o wckey lists what they sum up"
_AMOUNTS = (
    Column("Allocated", "Allocated", 8, "allocated", 17), Column("Down", "Down", 8, "down", 17),
    Column("PlannedDown", "PLND Down", 8, "planned_down", 17), Column("Idle", "Idle", 8, "idle", 17),
    Column("Planned", "Planned", 8, "planned", 17), Column("Overcommitted", "Over Comm", 8, "over", 17),
    Column("Reported", "Reported", 8, "reported", 17),
)  # fmt: skip

REPORTS = (
    Report(
        kind="cluster", name="Utilization", least=1, columns=(CLUSTER, TRES, *_AMOUNTS, COUNT), sums=_utilization,
        title=lambda ask: "Cluster Utilization", shows_length=False,
    ),
    Report(
        kind="cluster", name="AccountUtilizationByUser", least=21, sums=_by_account,
        columns=(CLUSTER, ACCOUNT, LOGIN, PROPER, TRES, USED, ENERGY, COUNT),
        title=lambda ask: "Cluster/Account/User Utilization",
    ),
    Report(
        kind="cluster", name="AccountUtilizationByQOS", least=21, sums=_by_qos,
        columns=(CLUSTER, ACCOUNT, Column("QOS", "QOS", 12, "qos"), TRES, USED, ENERGY, COUNT),
        title=lambda ask: "Cluster/Account/QOS Utilization",
    ),
    Report(
        kind="cluster", name="UserUtilizationByAccount", least=18, columns=_BY_USER, sums=_by_user,
        title=lambda ask: "Cluster/User/Account Utilization",
    ),
    Report(kind="cluster", name="UserUtilizationByWckey", least=18, refused=_WCKEYS),
    Report(kind="cluster", name="WCKeyUtilizationByUser", least=1, refused=_WCKEYS),
    Report(
        kind="job", name="SizesByAccount", least=1, columns=(CLUSTER, Column("Account", "Account", 9, "account")),
        sums=_sizes, title=lambda ask: "Job Sizes", measure=_size_measure, groups=_group_columns,
    ),
    Report(kind="job", name="SizesByAccountAndWckey", least=15, refused=_WCKEYS),
    Report(kind="job", name="SizesByWckey", least=8, refused=_WCKEYS),
    Report(kind="reservation", name="Utilization", least=1, refused="use of past reservations; none is kept"),
    Report(
        kind="user", name="TopUsage", least=1, columns=_BY_USER, sums=_top,
        title=lambda ask: f"Top {_top_count(ask)} Users",
    ),
)  # fmt: skip
