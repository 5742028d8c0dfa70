"""Which rows has each entity of `sacctmgr show`, under the conditions given?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from slurmbridge.commands import quotas
from slurmbridge.commands import sacctmgr_values as values
from slurmbridge.commands.accounting_words import is_word, known_tres
from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.listing import time_zone
from slurmbridge.commands.sacctmgr_conditions import Words
from slurmbridge.lang import times
from slurmbridge.model.accounts import Account, Assoc, Qos, Transaction, User
from slurmbridge.submit import associations

Rows = Iterable[Mapping[str, str]]


def _source(site: Site, words: Words) -> values.Source:
    return values.source(
        site.config,
        site.accounting,
        own_limits="woplimits" in words.switches,
        parents="wopinfo" not in words.switches,
        raw_qos="withrawqos" in words.switches,
    )


def _matches(words: Words, **texts: str) -> bool:
    return all(key not in words.where or text in words.where[key] for key, text in texts.items())


def _selected(site: Site, words: Words, *, users: bool = True, accounts: bool = True) -> list[tuple[int, Assoc]]:
    """Associations that the conditions let through, in tree order."""
    found = []
    wanted = words.where.get("accounts", ()) if accounts else ()
    below = frozenset[str]()
    if "withsub" in words.switches:
        below = frozenset().union(*(associations.descendants(site.accounting, name) for name in wanted))
    defaults = {user.name: user.default_account for user in site.accounting.users}
    for depth, assoc in associations.tree(site.accounting):
        if accounts and "accounts" in words.where and assoc.account not in wanted and assoc.account not in below:
            continue
        if users and not _matches(words, users=assoc.user):
            continue
        if not _matches(words, partitions=assoc.partition, ids=str(assoc.assoc_id), parents=assoc.parent):
            continue
        if "clusters" in words.where and site.config.cluster_name not in words.where["clusters"]:
            continue
        if "qos" in words.where and (
            not assoc.user  # accounts are not searched
            or set(words.where["qos"]).isdisjoint(associations.effective_qos(site.accounting, assoc))
        ):
            continue
        if "default_qos" in words.where and assoc.default_qos not in words.where["default_qos"]:
            continue
        if "pools" in words.where and all(quota.pool not in words.where["pools"] for quota in assoc.quotas):
            continue
        if "onlydefaults" in words.switches and (not assoc.user or defaults.get(assoc.user) != assoc.account):
            continue
        found.append((depth, assoc))
    return found


def wanted_assocs(site: Site, words: Words) -> list[Assoc]:
    return [assoc for _depth, assoc in _selected(site, words)]


def _by_pool(row: Mapping[str, str], assoc: Assoc, show_: values.Source, words: Words) -> Rows:
    """The row once for each quota that is wanted, when columns of quotas are shown; else as it is."""
    if quotas.SHOWN_BY_POOL not in words.switches:
        yield row
        return
    wanted = words.where.get("pools")
    for texts in quotas.columns(assoc, quotas.order(show_.order, show_.config)):
        if wanted is None or texts["Pool"] in wanted:
            yield {**row, **texts}


def _association(site: Site, words: Words) -> Rows:
    show_ = _source(site, words)
    tree = "tree" in words.switches
    for depth, assoc in _selected(site, words):
        yield from _by_pool(values.assoc_row(assoc, show_, depth if tree else 0), assoc, show_, words)


def wanted_users(site: Site, words: Words) -> list[User]:
    admin = words.where.get("admin")
    return [
        user
        for user in sorted(site.accounting.users, key=lambda each: each.name)
        if _matches(words, users=user.name, default_accounts=user.default_account)
        and (admin is None or any(is_word(text, user.admin_level, 1) for text in admin))
    ]


def _user(site: Site, words: Words) -> Rows:
    show_ = _source(site, words)
    with_assocs = "withassoc" in words.switches
    selected = _selected(site, words, users=False) if with_assocs else []
    narrowed = with_assocs and not {"accounts", "partitions"}.isdisjoint(words.where)
    for user in wanted_users(site, words):
        row = values.user_row(user, show_)
        mine = [assoc for _depth, assoc in selected if assoc.user == user.name]
        if narrowed and all(assoc.account != user.default_account for assoc in mine):
            row["Def Acct"] = ""
        if not mine:
            yield row
        for assoc in mine:
            yield from _by_pool(values.assoc_row(assoc, show_) | row, assoc, show_, words)


def wanted_accounts(site: Site, words: Words) -> list[Account]:
    return [
        account
        for account in sorted(site.accounting.accounts, key=lambda each: each.name)
        if _matches(words, accounts=account.name, descriptions=account.description, organizations=account.organization)
    ]


def _account(site: Site, words: Words) -> Rows:
    show_ = _source(site, words)
    with_assocs = "withassoc" in words.switches
    selected = _selected(site, words, accounts=False) if with_assocs else []
    for account in wanted_accounts(site, words):
        row = values.account_row(account)
        mine = [assoc for _depth, assoc in selected if assoc.account == account.name]
        if not mine:
            yield row
        for assoc in mine:
            yield from _by_pool(values.assoc_row(assoc, show_) | row, assoc, show_, words)


def wanted_qos(site: Site, words: Words) -> list[Qos]:
    by_name = words.where.get("qos_names") is not None
    return [
        qos
        for qos in sorted(site.accounting.qos, key=lambda qos: (qos.name if by_name else "", qos.qos_id))
        if _matches(words, qos_names=qos.name, ids=str(qos.qos_id), descriptions=qos.description)
    ]


def _qos(site: Site, words: Words) -> Rows:
    show_ = _source(site, words)
    return (values.qos_row(qos, show_) for qos in wanted_qos(site, words))


def _cluster(site: Site, words: Words) -> Rows:
    if _matches(words, clusters=site.config.cluster_name):
        address = site.config.control_addr or site.config.control_host
        yield values.cluster_row(_source(site, words), address)
    for name in site.accounting.clusters:
        if name != site.config.cluster_name and _matches(words, clusters=name):
            yield {"Cluster": name, "Name": name, "ControlPort": "0", "RPC": "0", "Share": "1"}


def _tres(site: Site, words: Words) -> Rows:
    for full, number in known_tres(site.config).items():
        kind, _, name = full.partition("/")
        if _matches(words, types=kind, names=name, ids=str(number)):
            yield {"Type": kind, "Name": name, "ID": str(number)}


def _problem(site: Site, words: Words) -> Rows:
    """Accounts and users without associations, accounts without users, users that the system does not know."""
    known = associations.index(site.accounting)
    for name in sorted(known.accounts):
        if (name, "", "") not in known.assocs:
            yield {"Account": name, "Problem": "Account has no Associations"}
    for _depth, assoc in associations.tree(site.accounting):
        if not assoc.user and assoc.account != associations.ROOT and not known.users_of.get(assoc.account):
            yield {"Cluster": site.config.cluster_name, "Account": assoc.account, "Problem": "Account has no users"}
    for name in sorted(known.users):
        if name not in known.accounts_of:
            yield {"User": name, "Problem": "User has no Associations"}
    for name in sorted(known.users):
        if site.user_id(name) is None:
            yield {"User": name, "Problem": "User does not have a uid"}


def _wckey(site: Site, words: Words) -> Rows:
    for key in site.accounting.wckeys:
        if _matches(words, users=key.user, names=key.name):
            yield {"WCKey": key.name, "Cluster": site.config.cluster_name, "User": key.user}


def _nothing(_site: Site, _words: Words) -> Rows:
    """Federations and shared licences exist only where several clusters share a database."""
    return ()


def _reservation(site: Site, _words: Words) -> Rows:
    for reservation in site.reservations():
        yield {
            "Cluster": site.config.cluster_name,
            "Name": reservation.name,
            "TRES": f"node={len(reservation.nodes)}",
            "TimeStart": times.render(reservation.start_time),
            "TimeEnd": times.render(reservation.end_time),
        }


def window(words: Words, call: Call, site: Site) -> tuple[float | None, float | None]:
    def moment(key: str) -> float | None:
        given = words.where.get(key)
        return float(times.parse(given[-1], call.now, time_zone(call, site))) if given else None

    return moment("start"), moment("end")


def transactions(call: Call, site: Site, words: Words, found: tuple[Transaction, ...]) -> Rows:
    zone = time_zone(call, site)
    for one in found:
        if _matches(words, actions=one.action, actors=one.actor):
            yield {
                "Time": times.render(one.time, zone),
                "Action": one.action,
                "Actor": one.actor,
                "Where": one.where,
                "Info": one.info,
                "Cluster": site.config.cluster_name,
            }


ROWS: Final[dict[str, Callable[[Site, Words], Rows]]] = {
    "user": _user,
    "account": _account,
    "association": _association,
    "qos": _qos,
    "cluster": _cluster,
    "tres": _tres,
    "wckey": _wckey,
    "federation": _nothing,
    "instance": _nothing,
    "resource": _nothing,
    "reservation": _reservation,
    "problem": _problem,
}
