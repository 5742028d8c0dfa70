"""`sacctmgr add ENTITY`: accounts, users, QOS, coordinators, the cluster.

Slurm says what it is going to add, asks, and adds; who may do it is checked first for accounts and users, last for QOS
and clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from slurmbridge.commands import quotas
from slurmbridge.commands.accounting_edits import apply_to_assoc, apply_to_qos, settings
from slurmbridge.commands.accounting_words import ASSOC_WORDS, QOS_WORDS, Edit, Word, is_word, known_tres
from slurmbridge.commands.effects import Command
from slurmbridge.commands.sacctmgr_commit import DENIED, Context, agree, commit, err, known_qos, out, refuse
from slurmbridge.commands.sacctmgr_conditions import Words, read
from slurmbridge.model.accounts import Account, Accounting, Assoc, Qos, User
from slurmbridge.submit import association_changes as changes
from slurmbridge.submit import associations

ADD_ENTITIES: Final = (
    ("Accounts", 1, "account"), ("Acct", 4, "account"), ("Clusters", 2, "cluster"), ("Coordinators", 2, "coordinator"),
    ("Federations", 1, "federation"), ("QOS", 1, "qos"), ("Resources", 1, "resource"), ("Users", 1, "user"),
)  # fmt: skip
ACCOUNT_OWN: Final = (
    ("Description", 1, "description"), ("Organization", 1, "organization"), ("Parents", 1, "parent"),
    ("Flags", 2, "flags"), ("RawUsage", 7, "rawusage"),
)  # fmt: skip
USER_OWN: Final = (
    ("AdminLevel", 2, "admin"), ("DefaultAccount", 8, "default_account"), ("DefaultWCKey", 8, "default_wckey"),
    ("NewName", 1, "newname"), ("RawUsage", 7, "rawusage"),
)  # fmt: skip
LEVELS: Final = (("Administrator", 1), ("Operator", 1), ("None", 1), ("SuperUser", 1))
_WHERE_TO_ADD = "Make sure the accounts requested here have been added to the system/cluster. (sacctmgr add account...)"


def admin_level(text: str) -> str | None:
    """The level that a word means; None for no level."""
    found = next((name for name, least in LEVELS if is_word(text, name, least)), None)
    return "Administrator" if found == "SuperUser" else found


def add(context: Context, argv: Sequence[str]) -> Command:
    """The whole verb; `argv` begins with the entity."""
    entity = next((key for name, least, key in ADD_ENTITIES if argv and is_word(argv[0], name, least)), None)
    if entity is None:
        yield err(
            "No valid entity in add command",
            'Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or "User"',
        )
        return 1
    if entity in ("federation", "resource"):
        yield err(f"sacctmgr: error: {entity}s need several clusters on one database; this is the only one")
        return 1
    code: int = yield from _ADD[entity](context, argv[1:])
    return code


def _read(
    context: Context, entity: str, argv: Sequence[str], words: Sequence[Word], own: Sequence[tuple[str, int, str]]
) -> Words:
    return read(
        entity, argv, config=context.site.config, qos=known_qos(context.site), words=words, own=own, adding=True
    )  # fmt: skip


def _assoc_settings(context: Context, edits: Sequence[Edit]) -> list[str]:
    config = context.site.config
    return settings(edits, ASSOC_WORDS, quotas.order(known_tres(config), config), 14)


def _account(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "account", argv, ASSOC_WORDS, ACCOUNT_OWN)
    refused = refuse(words)
    if refused:
        yield from refused
        return 1
    names = list(dict.fromkeys(name for name in words.where.get("accounts", ()) if name))
    if not names:
        yield err(" Need name of account to add.")
        return 1
    cluster = context.site.config.cluster_name
    for named in words.where.get("clusters", ()):
        if named != cluster:
            yield err(
                f" error: Cluster '{named}' has not been added yet, please contact your admin before adding accounts to it"
            )
            return 1
    parent = words.other.get("parent", associations.ROOT).lower() or associations.ROOT
    if not context.may_change([parent]):
        yield err(" error: Only admins/operators/coordinators can add accounts")
        return 1
    known = associations.index(context.site.accounting)
    if (parent, "", "") not in known.assocs:
        yield err(f" error: No parent account '{parent}' on cluster '{cluster}'")
        return 1
    new = [name for name in names if (name, "", "") not in known.assocs]
    if not new:
        yield out(*(f" Already existing account {name} on cluster {cluster}" for name in names))
        return 1
    description, organization = words.other.get("description"), words.other.get("organization")
    records = [name for name in new if name not in known.accounts]
    if records:
        yield out(
            " Adding Account(s)",
            *(f"  {name}" for name in records),
            " Settings",
            f"  Description     = {description or 'Account Name'}",
            f"  Organization    = {organization or 'Parent/Account Name'}",
        )
    if len(new) < len(names):
        yield out(*(f"Already existing account {name} on cluster {cluster}" for name in names if name not in new))
    else:
        yield out(" Associations =")
    yield out(*(f"  C = {cluster[:10]:<10} A = {name[:20]:<20}" for name in new))
    lines = _assoc_settings(context, words.edits)
    if "parent" in words.other:
        after = sum(line.lstrip().startswith(("Fair", "Grp", "Max")) for line in lines)
        lines.insert(after, f"  {'Parent':<14}= {parent}")
    if lines or "flags" in words.other:
        yield out(" Settings", *lines)

    def change(accounting: Accounting) -> Accounting:
        for name in new:
            if (name, "", "") in associations.index(accounting).assocs:
                continue
            account = Account(
                name=name,
                description=description or name,
                organization=organization or (parent if parent != associations.ROOT else name),
                flags=tuple(filter(None, words.other.get("flags", "").split(","))),
            )
            assoc = Assoc(assoc_id=0, account=name, parent=parent)
            accounting = changes.add_account(accounting, account, apply_to_assoc(assoc, words.edits))
        return accounting

    if not (yield from agree(context)):
        return 0
    notes = [context.note("Add Accounts", name, f"description='{description or name}'") for name in records]
    notes += [context.note("Add Associations", name) for name in new]
    return 0 if (yield from commit(context, change, notes)) else 1


def _user(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "user", argv, ASSOC_WORDS, USER_OWN)
    refused = refuse(words)
    if refused:
        yield from refused
        return 1
    names = list(dict.fromkeys(name for name in words.where.get("users", ()) if name))
    if not names:
        yield err(" Need name of user to add.")
        return 1
    default = words.other.get("default_account", "").lower()
    accounts = list(dict.fromkeys(name for name in words.where.get("accounts", ()) if name))
    if default and default not in accounts:
        accounts.insert(0, default)
    if not accounts:
        yield err(" Need name of account or wckey to add.")
        return 1
    level = admin_level(words.other["admin"]) if "admin" in words.other else None
    if "admin" in words.other and level is None:
        yield err(f" Unknown option: adminlevel={words.other['admin']}")
        return 1
    if not context.may_change(accounts) or (level not in (None, "None") and not context.is_admin):
        yield err(
            f" error: Problem adding user associations: {DENIED} (Only admins/operators/coordinators can add accounts)"
        )
        return 1
    cluster = context.site.config.cluster_name
    clusters = words.where.get("clusters") or (cluster,)
    known = associations.index(context.site.accounting)
    there = [name for name in accounts if (name, "", "") in known.assocs] if cluster in clusters else []
    skipped = [
        f"No account {name} on cluster {where}, skipping."
        for where in clusters
        for name in accounts
        if where != cluster or name not in there
    ]
    if default and default not in there:
        there = []
    partitions = words.where.get("partitions") or ("",)
    assocs = [
        Assoc(assoc_id=0, account=account, user=name, partition=partition)
        for name in names
        for account in there
        for partition in partitions
        if (account, name, partition) not in known.assocs
    ]
    if not assocs:
        yield out(*(skipped or ["Request didn't affect anything"]), "Nothing added.", _WHERE_TO_ADD)
        return 1
    new = [name for name in names if name not in known.users and any(assoc.user == name for assoc in assocs)]
    if new:
        yield out(" Adding User(s)", *(f"  {name}" for name in new), " Settings")
        if default:
            yield out(f"  Default Account = {default}")
        if level is not None:
            yield out(f"  Admin Level     = {level}")
    lines = []
    for assoc in assocs:
        line = f"  C = {cluster[:10]:<10} A = {assoc.account[:20]:<20} U = {assoc.user[:9]:<9}"
        lines.append(line + (f" P = {assoc.partition}" if assoc.partition else ""))
    yield out(" Associations =", *lines)
    non_default = _assoc_settings(context, words.edits)
    if non_default:
        yield out(" Non Default Settings", *non_default)
    if skipped:
        yield out(*skipped)

    def change(accounting: Accounting) -> Accounting:
        missing = [a for a in assocs if (a.account, a.user, a.partition) not in associations.index(accounting).assocs]
        accounting = changes.add_assocs(
            accounting,
            [apply_to_assoc(each, words.edits) for each in missing],
        )
        for name in dict.fromkeys(assoc.user for assoc in assocs):
            first = next(assoc.account for assoc in assocs if assoc.user == name)
            user = associations.index(accounting).users.get(name) or User(name=name, default_account=default or first)
            user = replace(user, default_account=default or user.default_account or first)
            accounting = changes.put_user(accounting, replace(user, admin_level=level or user.admin_level))
        return accounting

    if not (yield from agree(context)):
        return 0
    notes = []
    for name in dict.fromkeys(assoc.user for assoc in assocs):
        if name in new:
            notes.append(context.note("Add Users", name, f"admin_level={level}" if level else ""))
        notes += [context.note("Add Associations", f"{a.user} in {a.account}") for a in assocs if a.user == name]
    return 0 if (yield from commit(context, change, notes)) else 1


def _qos(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "qos", argv, QOS_WORDS, (("RawUsage", 7, "rawusage"),))
    refused = refuse(words)
    if refused:
        yield from refused
        return 1
    names = list(dict.fromkeys(name for name in words.where.get("qos_names", ()) if name))
    if not names:
        yield err(" Need name of qos to add.")
        return 1
    known = associations.index(context.site.accounting)
    new = [name for name in names if name not in known.qos]
    if not new:
        yield out(" Nothing new added.")
        return 1
    described = any(edit.word.name == "Description" for edit in words.edits)
    lines = [] if described else [f"  {'Description':<15}= {new[-1]}"]
    lines += settings(words.edits, QOS_WORDS, known_tres(context.site.config), 25)
    yield out(" Adding QOS(s)", *(f"  {name}" for name in new), " Settings", *lines)

    def change(accounting: Accounting) -> Accounting:
        for name in new:
            if name not in associations.index(accounting).qos:
                qos = apply_to_qos(Qos(name=name, description=name), words.edits)
                accounting = changes.add_qos(accounting, qos)
        return accounting

    if not (yield from agree(context)):
        return 0
    if not context.is_admin:
        yield err(f" Problem adding QOS: {DENIED}")
        return 1
    return 0 if (yield from commit(context, change, [context.note("Add QOS", name) for name in new])) else 1


def _cluster(context: Context, argv: Sequence[str]) -> Command:
    own = (("Classification", 3, "classification"), ("Features", 3, "features"), ("Federation", 3, "federation"))
    words = _read(context, "cluster", argv, ASSOC_WORDS, own)
    refused = refuse(words)
    if refused:
        yield from refused
        return 1
    if words.other:
        yield err(
            "sacctmgr: error: classification, features and federations need several clusters; this is the only one"
        )
        return 1
    names = list(dict.fromkeys(name.lower() for name in words.where.get("clusters", ()) if name))
    if not names:
        yield err(" Need name of cluster to add.")
        return 1
    known = context.site.accounting.clusters
    new = []
    for name in names:
        if name in known:
            yield out(f" This cluster {name} already exists.  Not adding.")
        else:
            new.append(name)
    if not new:
        return 1
    yield out(" Adding Cluster(s)", *(f"  {'Name':<15}= {name}" for name in new))
    if any(edit.word.name in quotas.WORDS for edit in words.edits):
        yield err(quotas.NOT_OF_ROOT)
        return 1
    lines = _assoc_settings(context, words.edits)
    if lines:
        yield out(" Setting", "  Default Limits:", *lines)

    def change(accounting: Accounting) -> Accounting:
        for name in new:
            if name not in accounting.clusters:
                accounting = changes.add_cluster(accounting, name)
        root = associations.index(accounting).assocs[(associations.ROOT, "", "")]
        if context.site.config.cluster_name not in new:
            return accounting
        return changes.edit_assocs(accounting, {root.assoc_id}, lambda each: apply_to_assoc(each, words.edits))

    if not (yield from agree(context)):
        return 0
    if not context.is_admin:
        yield err(f" Problem adding clusters: {DENIED}")
        return 1
    notes = []
    for name in new:
        notes += [context.note("Add Clusters", name)] + [context.note("Add Associations", f"root in {name}")] * 2
    return 0 if (yield from commit(context, change, notes)) else 1


def _coordinator(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "coordinator", argv, (), ())
    refused = refuse(words)
    if refused:
        yield from refused
        return 1
    users = list(dict.fromkeys(name for name in words.where.get("users", ()) if name))
    accounts = list(dict.fromkeys(name for name in words.where.get("accounts", ()) if name))
    known = associations.index(context.site.accounting)
    unknown = [name for name in users if name not in known.users]
    if not users:
        yield err(" You need to specify a user list here.")
        return 1
    if not accounts:
        yield err(" You need to specify an account list here.")
        return 1
    if unknown:
        yield err(*(f" You specified a non-existent user '{name}'." for name in unknown))
        return 1
    unknown = [name for name in accounts if name not in known.accounts]
    if unknown:
        yield err(*(f" You specified a non-existent account '{name}'." for name in unknown))
        return 1
    yield out(" Adding Coordinator User(s)", *(f"  {name}" for name in users))
    yield out(" To Account(s) and all sub-accounts", *(f"  {name}" for name in accounts))

    def appoint(account: Account) -> Account:
        return replace(account, coordinators=tuple(dict.fromkeys((*account.coordinators, *users))))

    if not (yield from agree(context)):
        return 0
    if not context.may_change(accounts):
        yield err(f" Problem adding coordinator: {DENIED}")
        return 1
    notes = [context.note("Add Account Coordinators", account, ",".join(users)) for account in accounts]
    done = yield from commit(context, lambda a: changes.edit_accounts(a, accounts, appoint), notes)
    return 0 if done else 1


_ADD: Final[dict[str, Callable[[Context, Sequence[str]], Command]]] = {
    "account": _account,
    "user": _user,
    "qos": _qos,
    "cluster": _cluster,
    "coordinator": _coordinator,
}
