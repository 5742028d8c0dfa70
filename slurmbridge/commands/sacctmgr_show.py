"""`sacctmgr show ENTITY`: which rows an entity has, and which columns it shows by default."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from slurmbridge.commands import sacctmgr_fields as table
from slurmbridge.commands import sacctmgr_values as values
from slurmbridge.commands.accounting_words import is_word, known_tres
from slurmbridge.commands.effects import Call, Command, Print, Reports, Site
from slurmbridge.commands.listing import time_zone
from slurmbridge.commands.sacctmgr_conditions import Words, read
from slurmbridge.commands.sacctmgr_config import config_text, stats_text
from slurmbridge.commands.sacctmgr_json import document, json_accounts, json_users
from slurmbridge.errors import LangError
from slurmbridge.lang import times
from slurmbridge.model.accounts import Account, Assoc, Transaction, User
from slurmbridge.submit import associations

ENTITIES: Final = (
    ("Accounts", 2, "account"), ("Acct", 4, "account"), ("Associations", 2, "association"), ("Clusters", 2, "cluster"),
    ("Configuration", 2, "config"), ("Events", 1, "event"), ("Federation", 1, "federation"), ("Problems", 1, "problem"),
    ("QOS", 1, "qos"), ("Resources", 4, "resource"), ("Reservations", 4, "reservation"), ("RunAwayJobs", 2, "runaway"),
    ("Stats", 1, "stats"), ("Transactions", 1, "transaction"), ("Txn", 1, "transaction"), ("TRES", 4, "tres"),
    ("Users", 1, "user"), ("WCKeys", 1, "wckey"),
)  # fmt: skip

_ASSOC_OF_USER = (
    "Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
)
_ASSOC_OF_ACCOUNT = (
    "Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMem,GrpSubmit,GrpWall,GrpCPUMins,"
    "MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
)
_ASSOC = (
    "Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,"
    "MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins"
)
_QOS = (
    "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThreshold,UsageFactor,GrpTRES,"
    "GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,"
    "MaxSubmitPU,MaxTRESPA,MaxTRESRunMinsPA%22,MaxTRESRunMinsPU%22,MaxJobsPA,MaxSubmitPA,MinTRES"
)
_CLUSTER = "GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,DefaultQOS"
TREE_WIDTH: Final = -20
"""Of the account's column, unless a width was asked for."""
NO_ENTITY = (
    "No valid entity in list command\n"
    'Input line must include "Account", "Association", "Cluster", "Configuration",\n'
    '"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",\n'
    '"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"\n'
)
_DENIED = "Your user doesn't have privilege to perform this action"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said before the verb."""

    style: table.Style = table.Style()
    with_assocs: bool = False  # -s
    json: bool = False


Rows = Iterable[Mapping[str, str]]


def show(call: Call, site: Site, options: Options, argv: Sequence[str]) -> Command:
    """The whole verb; `argv` begins with the entity."""
    entity = find_entity(argv[0]) if argv else None
    if entity is None:
        yield Print(NO_ENTITY, 2)
        return 1
    if entity in _PLAIN:
        code: int = yield from _PLAIN[entity](call, site)
        return code
    if entity == "problem" and not site.is_operator(call.uid):
        yield Print("sacctmgr: error: Access/permission denied\n Error with request: Access/permission denied\n", 2)
        return 1
    kind = entity if entity in _KINDS else "other"
    words = read(kind, argv[1:], config=site.config, qos=associations.index(site.accounting).qos)
    if options.with_assocs:
        words = msgspec.structs.replace(words, switches=words.switches | {"withassoc"})
    if words.mistakes:
        yield Print("".join(f"{line}\n" for line in words.mistakes), 2)
        return 1
    if options.json:
        if entity not in ("user", "account"):
            yield Print(f"sacctmgr: error: --json is not offered for this entity ({argv[0]}) yet\n", 2)
            return 1
        if entity == "user":
            text = document(call, site, "users", json_users(site, _wanted_users(site, words), words.switches))
        else:
            text = document(call, site, "accounts", json_accounts(site, _wanted_accounts(site, words), words.switches))
        yield Print(text)
        return 0
    transactions: tuple[Transaction, ...] = ()
    if entity == "transaction":
        try:
            start, end = _window(words, call, site)
        except LangError as error:
            yield Print(f"sacctmgr: error: {error.message}\n", 2)
            return 1
        transactions = yield Reports(what="transactions", start=start, end=end)
    asked = ",".join(words.where["format"]) if "format" in words.where else None
    if asked == "":
        yield Print("Unknown field ''\n", 2)
        return 1
    fields = table.columns(asked or default_format(entity, words))
    if isinstance(fields, str):
        yield Print(fields + "\n", 2)
        return 1
    if entity == "wckey":
        fields = [msgspec.structs.replace(f, heading="WCKey") if f.heading == "WCKeys" else f for f in fields]
    if entity == "association" and "tree" in words.switches and not table.has_width(asked or "", table.ACCOUNT):
        tree_field = msgspec.structs.replace(table.ACCOUNT, width=TREE_WIDTH)
        fields = [tree_field if field == table.ACCOUNT else field for field in fields]
    if entity in ("user", "account") and _needs_assocs(entity, words):
        yield Print(
            "You requested options that are only valid when querying with the withassoc option.\n"
            "Are you sure you want to continue? (You have 30 seconds to decide)\n(N/y): \n"
        )
        yield Print("Aborted\n")
        return 0
    rows = _transactions(call, site, words, transactions) if entity == "transaction" else _ROWS[entity](site, words)
    yield Print(table.table(fields, rows, options.style))
    return 0


def find_entity(text: str) -> str | None:
    return next((key for name, least, key in ENTITIES if is_word(text, name, least)), None)


def default_format(entity: str, words: Words) -> str:
    """The columns without `format=`."""
    switches = words.switches
    text = {
        "user": "User,DefaultAccount,Admin",
        "account": "Account,Description,Organization",
        "association": "Cluster,Account,User,Partition",
        "qos": _QOS,
        "cluster": "Cluster,ControlHost,ControlPort,RPC",
        "tres": "Type,Name%15,ID",
        "event": "Cluster,NodeName,TimeStart,TimeEnd,State,Reason%30,User",
        "transaction": "Time,Action,Actor,Where,Info",
        "wckey": "WCKeys%10,Cluster,User",
        "federation": "Federation,Cluster,ID%2,Features,FedState",
        "reservation": "Cluster,Name%15,TRES%30,TimeStart,TimeEnd,UnusedWall",
        "resource": "Name,Server,Type,Count,LastConsumed,Allocated,ServerType,Flags",
        "problem": "Cluster,Account,User,Problem",
    }[entity]
    if entity == "user" and "withassoc" in switches:
        text += "," + _ASSOC_OF_USER
    if entity == "account" and "withassoc" in switches:
        text += "," + _ASSOC_OF_ACCOUNT
    if entity == "association" and "wolimits" not in switches:
        text += "," + _ASSOC
    if entity == "cluster" and "wolimits" not in switches:
        text += ",Share," + _CLUSTER
    if entity == "cluster" and "withfed" in switches:
        text += ",Federation,ID,Features,FedState"
    if entity in ("user", "account") and "withcoord" in switches:
        text += ",Coordinators"
    return text


def _needs_assocs(entity: str, words: Words) -> bool:
    foreign = (
        {"accounts", "partitions", "qos", "default_qos"}
        if entity == "user"
        else {"users", "partitions", "parents", "qos"}
    )
    return "withassoc" not in words.switches and not foreign.isdisjoint(words.where)


def _source(site: Site, words: Words) -> values.Source:
    return values.source(
        site.config,
        site.accounting,
        own_limits="woplimits" in words.switches,
        parents="wopinfo" not in words.switches,
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
        if "qos" in words.where and set(words.where["qos"]).isdisjoint(
            associations.effective_qos(site.accounting, assoc)
        ):
            continue
        if "default_qos" in words.where and assoc.default_qos not in words.where["default_qos"]:
            continue
        if "onlydefaults" in words.switches and (not assoc.user or defaults.get(assoc.user) != assoc.account):
            continue
        found.append((depth, assoc))
    return found


def _association(site: Site, words: Words) -> Rows:
    show_ = _source(site, words)
    tree = "tree" in words.switches
    for depth, assoc in _selected(site, words):
        yield values.assoc_row(assoc, show_, depth if tree else 0)


def _wanted_users(site: Site, words: Words) -> list[User]:
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
    for user in _wanted_users(site, words):
        row = values.user_row(user, show_)
        mine = [assoc for _depth, assoc in selected if assoc.user == user.name]
        if narrowed and all(assoc.account != user.default_account for assoc in mine):
            row["Def Acct"] = ""
        if not mine:
            yield row
        for assoc in mine:
            yield values.assoc_row(assoc, show_) | row


def _wanted_accounts(site: Site, words: Words) -> list[Account]:
    return [
        account
        for account in sorted(site.accounting.accounts, key=lambda each: each.name)
        if _matches(words, accounts=account.name, descriptions=account.description, organizations=account.organization)
    ]


def _account(site: Site, words: Words) -> Rows:
    show_ = _source(site, words)
    with_assocs = "withassoc" in words.switches
    selected = _selected(site, words, accounts=False) if with_assocs else []
    for account in _wanted_accounts(site, words):
        row = values.account_row(account)
        mine = [assoc for _depth, assoc in selected if assoc.account == account.name]
        if not mine:
            yield row
        for assoc in mine:
            yield values.assoc_row(assoc, show_) | row


def _qos(site: Site, words: Words) -> Rows:
    show_ = _source(site, words)
    by_name = words.where.get("qos_names") is not None
    for qos in sorted(site.accounting.qos, key=lambda qos: (qos.name if by_name else "", qos.qos_id)):
        if _matches(words, qos_names=qos.name, ids=str(qos.qos_id), descriptions=qos.description):
            yield values.qos_row(qos, show_)


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
    """Accounts without users, users that the system does not know."""
    known = associations.index(site.accounting)
    for _depth, assoc in associations.tree(site.accounting):
        if not assoc.user and assoc.account != associations.ROOT and not known.users_of.get(assoc.account):
            yield {"Cluster": site.config.cluster_name, "Account": assoc.account, "Problem": "Account has no users"}
    for user in sorted(site.accounting.users, key=lambda each: each.name):
        if site.user_id(user.name) is None:
            yield {"User": user.name, "Problem": "User does not have a uid"}
        if user.name not in known.accounts_of:
            yield {"User": user.name, "Problem": "User has no associations"}


def _wckey(site: Site, words: Words) -> Rows:
    for key in site.accounting.wckeys:
        if _matches(words, users=key.user, names=key.name):
            yield {"WCKey": key.name, "Cluster": site.config.cluster_name, "User": key.user}


def _nothing(_site: Site, _words: Words) -> Rows:
    """Federations and shared licences exist only where several clusters share a database."""
    return ()


def _event(site: Site, words: Words) -> Rows:
    """Nodes that are down or drained now."""
    for node in site.nodes():
        if not node.reason or node.reason_time is None or not _matches(words, nodes=node.name):
            continue
        uid = node.reason_uid or 0
        yield {
            "Cluster": site.config.cluster_name,
            "NodeName": node.name,
            "TimeStart": times.render(node.reason_time),
            "TimeEnd": "Unknown",
            "State": "+".join([node.base.value, *sorted(flag.value for flag in node.flags)]),
            "Reason": node.reason,
            "User": f"{site.user_name(uid)}({uid})",
        }


def _reservation(site: Site, _words: Words) -> Rows:
    for reservation in site.reservations():
        yield {
            "Cluster": site.config.cluster_name,
            "Name": reservation.name,
            "TRES": f"node={len(reservation.nodes)}",
            "TimeStart": times.render(reservation.start_time),
            "TimeEnd": times.render(reservation.end_time),
        }


def _window(words: Words, call: Call, site: Site) -> tuple[float | None, float | None]:
    def moment(key: str) -> float | None:
        given = words.where.get(key)
        return float(times.parse(given[-1], call.now, time_zone(call, site))) if given else None

    return moment("start"), moment("end")


def _transactions(call: Call, site: Site, words: Words, found: tuple[Transaction, ...]) -> Rows:
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


def _config(call: Call, site: Site) -> Command:
    yield Print(config_text(call, site))
    return 0


def _stats(call: Call, site: Site) -> Command:
    if not site.is_admin(call.uid):
        text = f"sacctmgr: accounting_storage/slurmdbd: acct_storage_p_get_stats: RC:2002 {_DENIED}\n"
        yield Print(text, 2)
        return 1
    yield Print(stats_text(call, site))
    return 0


def _runaway(call: Call, site: Site) -> Command:
    """There are none by design: what runs is compared with what is recorded at every start."""
    if not site.is_operator(call.uid):
        yield Print("sacctmgr: error: You must have an AdminLevel>=Operator to fix runaway jobs\n", 2)
        return 1
    yield Print(f"Runaway Jobs: No runaway jobs found on cluster {site.config.cluster_name}\n")
    return 0


_KINDS: Final = ("user", "account", "association", "qos", "cluster", "transaction", "event", "tres")
_PLAIN: Final[dict[str, Callable[[Call, Site], Command]]] = {"config": _config, "stats": _stats, "runaway": _runaway}
_ROWS: Final[dict[str, Callable[[Site, Words], Rows]]] = {
    "user": _user,
    "account": _account,
    "association": _association,
    "qos": _qos,
    "cluster": _cluster,
    "tres": _tres,
    "event": _event,
    "wckey": _wckey,
    "federation": _nothing,
    "resource": _nothing,
    "reservation": _reservation,
    "problem": _problem,
}
