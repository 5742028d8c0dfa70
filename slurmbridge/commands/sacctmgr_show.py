"""`sacctmgr show ENTITY`: which rows an entity has, and which columns it shows by default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from slurmbridge.commands import quotas
from slurmbridge.commands import sacctmgr_fields as table
from slurmbridge.commands import sacctmgr_rows as rows
from slurmbridge.commands.accounting_words import is_word
from slurmbridge.commands.effects import Call, Command, Print, Reports, Site
from slurmbridge.commands.sacctmgr_commit import NO_PRIVILEGE
from slurmbridge.commands.sacctmgr_conditions import Words, read
from slurmbridge.commands.sacctmgr_config import config_text, stats_text
from slurmbridge.commands.sacctmgr_events import only_of_the_cluster, show_events
from slurmbridge.commands.sacctmgr_json import document, json_accounts, json_users
from slurmbridge.commands.sacctmgr_json_assoc import json_assoc
from slurmbridge.commands.sacctmgr_json_qos import json_cluster, json_qos, json_tres
from slurmbridge.errors import LangError
from slurmbridge.model.accounts import Transaction
from slurmbridge.submit import associations

ENTITIES: Final = (
    ("Accounts", 2, "account"), ("Acct", 4, "account"), ("Associations", 2, "association"), ("Clusters", 2, "cluster"),
    ("Configuration", 2, "config"), ("Events", 1, "event"), ("Federation", 1, "federation"), ("Instances", 1, "instance"), ("Problems", 1, "problem"),
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
    document: str = ""  # json or yaml


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
    if entity == "wckey" and not site.is_operator(call.uid):
        yield Print(NO_PRIVILEGE, 2)
        return 1
    kind = entity if entity in _KINDS else "other"
    words = read(kind, argv[1:], config=site.config, qos=associations.index(site.accounting).qos)
    if options.with_assocs:
        words = msgspec.structs.replace(words, switches=words.switches | {"withassoc"})
    if words.mistakes:
        yield Print("".join(f"{line}\n" for line in words.mistakes), 2)
        return 1
    if options.document:
        listed = _records(site, entity, words)
        if listed is None:
            yield Print(f"sacctmgr: error: --{options.document} is not offered for this entity ({argv[0]})\n", 2)
            return 1
        yield Print(document(call, site, *listed, options.document))
        return 0
    transactions: tuple[Transaction, ...] = ()
    if entity == "transaction":
        try:
            start, end = rows.window(words, call, site)
        except LangError as error:
            yield Print(f"sacctmgr: error: {error.message}\n", 2)
            return 1
        transactions = yield Reports(what="transactions", start=start, end=end)
    events: tuple[dict[str, str], ...] = ()
    if entity == "event":
        read_events = yield from show_events(call, site, words)
        if isinstance(read_events, list):
            yield Print("".join(f"{line}\n" for line in read_events), 2)
            return 1
        events = read_events
    asked = ",".join(words.where["format"]) if "format" in words.where else None
    if asked == "":
        yield Print("Unknown field ''\n", 2)
        return 1
    fields = table.columns(asked or default_format(entity, words))
    if isinstance(fields, str):
        yield Print(fields + "\n", 2)
        return 1
    if any(field.key in quotas.COLUMNS for field in fields):
        words = msgspec.structs.replace(words, switches=words.switches | {quotas.SHOWN_BY_POOL})
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
        if not call.stdin_is_tty:
            yield Print("error: Inappropriate ioctl for device\n")
        yield Print("Aborted\n")
        return 0
    found = (
        rows.transactions(call, site, words, transactions)
        if entity == "transaction"
        else events
        if entity == "event"
        else rows.ROWS[entity](site, words)
    )
    yield Print(table.table(fields, found, options.style))
    return 0


def _records(site: Site, entity: str, words: Words) -> tuple[str, list[Any]] | None:
    """(name of the list, its records) of a document. What is deleted is not kept: WithDeleted adds nothing."""
    if entity == "user":
        return "users", json_users(site, rows.wanted_users(site, words), words.switches)
    if entity == "account":
        return "accounts", json_accounts(site, rows.wanted_accounts(site, words), words.switches)
    if entity == "association":
        own = not words.switches.isdisjoint({"woplimits", "wopinfo"})
        return "associations", [json_assoc(site, each, own_limits=own) for each in rows.wanted_assocs(site, words)]
    if entity == "qos":
        return "qos", [json_qos(site, each) for each in rows.wanted_qos(site, words)]
    if entity == "tres":
        return "TRES", json_tres(rows.ROWS["tres"](site, words))
    if entity == "cluster":
        return "clusters", json_cluster(site, rows.ROWS["cluster"](site, words))
    return ("wckeys", []) if entity == "wckey" else None


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
        "instance": "Cluster,NodeName,TimeStart,TimeEnd,InstanceId,InstanceType,Extra",
    }[entity]
    if entity == "event" and only_of_the_cluster(words):
        text = "Cluster,TRES,TimeStart,TimeEnd,ClusterNodes"
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
