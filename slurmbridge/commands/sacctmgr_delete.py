"""`sacctmgr delete ENTITY where ...`: what goes, what must not go, and what Slurm says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from slurmbridge.commands.accounting_words import is_word
from slurmbridge.commands.effects import Command, Print
from slurmbridge.commands.sacctmgr_add import ADD_ENTITIES
from slurmbridge.commands.sacctmgr_commit import (
    NO_PRIVILEGE,
    Context,
    active_jobs,
    active_lines,
    agree,
    commit,
    err,
    known_qos,
    out,
)
from slurmbridge.commands.sacctmgr_conditions import Words, read
from slurmbridge.model.accounts import Account, Accounting, Assoc
from slurmbridge.submit import association_changes as changes
from slurmbridge.submit import associations

_NOTHING = " Nothing deleted"
_NO_CONDITIONS = " No conditions given to remove, not executing."
_ACTIVE = " Error with request: Job(s) active, cancel job(s) before remove"
_DEFAULT = " Error with request: You can not remove the default account of a user"


def delete(context: Context, argv: Sequence[str]) -> Command:
    """The whole verb; `argv` begins with the entity."""
    entity = next((key for name, least, key in ADD_ENTITIES if argv and is_word(argv[0], name, least)), None)
    if entity is None:
        yield err(
            "No valid entity in delete command",
            'Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or "User"',
        )
        return 1
    if entity in ("federation", "resource"):
        yield out(_NOTHING)
        return 1
    words = read(entity, argv[1:], config=context.site.config, qos=known_qos(context.site))
    if words.mistakes:
        yield err(*words.mistakes)
        return 1
    if not words.where:
        yield err(_NO_CONDITIONS)
        return 1
    code: int = yield from _DELETE[entity](context, words)
    return code


def _default_lines(context: Context, assocs: Sequence[Assoc]) -> list[str]:
    cluster = context.site.config.cluster_name
    return [f"  C = {cluster:<15} A = {assoc.account:<10} U = {assoc.user:<9}" for assoc in assocs]


def _user(context: Context, words: Words) -> Command:
    """Whole users, or (with other conditions) some of their associations."""
    site = context.site
    known = associations.index(site.accounting)
    named = words.where.get("users")
    if set(words.where) - {"users", "clusters"}:
        code: int = yield from _user_assocs(context, words)
        return code
    users = sorted(user.name for user in site.accounting.users if named is None or user.name in named)
    if not users or not context.clusters_wanted(words.where.get("clusters")):
        yield out(_NOTHING)
        return 1
    places = [assoc.account for name in users for assoc in known.accounts_of.get(name, ())]
    if not context.may_change(places) or (not places and not context.is_operator):
        yield Print(NO_PRIVILEGE, 2)
        return 1
    jobs = active_jobs(site, lambda job: job.spec.user in users)
    if jobs:
        yield err(_ACTIVE, *active_lines(site, jobs, "  "))
        return 1
    yield out(" Deleting users...", *(f"  {name}" for name in users))
    if not (yield from agree(context)):
        return 0
    gone = frozenset(users)
    notes = [context.note("Remove Users", name) for name in users]
    return 0 if (yield from commit(context, lambda a: changes.remove_users(a, gone), notes)) else 1


def _user_assocs(context: Context, words: Words) -> Command:
    site = context.site
    known = associations.index(site.accounting)
    admins = words.where.get("admin", ())
    targets = [
        assoc
        for _depth, assoc in associations.tree(site.accounting)
        if assoc.user
        and context.clusters_wanted(words.where.get("clusters"))
        and ("users" not in words.where or assoc.user in words.where["users"])
        and ("accounts" not in words.where or assoc.account in words.where["accounts"])
        and ("partitions" not in words.where or assoc.partition in words.where["partitions"])
        and ("default_accounts" not in words.where or _default(known, assoc.user) in words.where["default_accounts"])
        and (not admins or any(is_word(text, _level(known, assoc.user), 1) for text in admins))
    ]
    if not targets:
        yield out(_NOTHING)
        return 1
    if not context.may_change([assoc.account for assoc in targets]):
        yield Print(NO_PRIVILEGE, 2)
        return 1
    ids = frozenset(assoc.assoc_id for assoc in targets)
    jobs = active_jobs(site, lambda job: job.spec.assoc_id in ids)
    if jobs:
        yield err(_ACTIVE, *active_lines(site, jobs, "  "))
        return 1
    left = {name: [a for a in known.accounts_of[name] if a.assoc_id not in ids] for name in {a.user for a in targets}}
    blocked = [
        assoc
        for assoc in targets
        if left[assoc.user]
        and _default(known, assoc.user) == assoc.account
        and all(other.account != assoc.account for other in left[assoc.user])
    ]
    if blocked:
        yield err(
            _DEFAULT,
            *_default_lines(context, blocked),
            " You must change the default account of these users or remove the users completely from the affected "
            "clusters to allow these changes.",
            " Changes Discarded",
        )
        return 1
    cluster = site.config.cluster_name
    lines = [
        f"  C = {cluster:<10} A = {assoc.account:<10} U = {assoc.user:<9}"
        + (f" P = {assoc.partition}" if assoc.partition else "")
        for assoc in targets
    ]
    yield out(" Deleting user associations...", *lines)
    homeless = sorted(name for name, others in left.items() if not others)
    if homeless:
        yield out(" Deleting users (No Associations)...", *(f"  {name}" for name in homeless))
    if not (yield from agree(context)):
        return 0

    def change(accounting: Accounting) -> Accounting:
        return changes.remove_users(changes.remove_assocs(accounting, ids), frozenset(homeless))

    notes = [context.note("Remove Associations", f"{a.user} in {a.account}") for a in targets]
    notes += [context.note("Remove Users", name) for name in homeless]
    return 0 if (yield from commit(context, change, notes)) else 1


def _default(known: associations.Index, user: str) -> str:
    record = known.users.get(user)
    return record.default_account if record is not None else ""


def _level(known: associations.Index, user: str) -> str:
    record = known.users.get(user)
    return record.admin_level if record is not None else "None"


def _account(context: Context, words: Words) -> Command:
    site = context.site
    known = associations.index(site.accounting)
    names = []
    for account in sorted(site.accounting.accounts, key=lambda each: each.name):
        assoc = known.assocs.get((account.name, "", ""))
        fields = {
            "accounts": account.name,
            "descriptions": account.description,
            "organizations": account.organization,
            "parents": assoc.parent if assoc is not None else "",
        }
        if all(key not in words.where or text in words.where[key] for key, text in fields.items()):
            names.append(account.name)
    if not names or not context.clusters_wanted(words.where.get("clusters")):
        yield out(_NOTHING)
        return 1
    if not context.may_change(names):
        yield Print(NO_PRIVILEGE, 2)
        return 1
    if associations.ROOT in names:
        yield err(" You are not allowed to remove the root account.", " Use remove cluster instead.")
        return 1
    below = frozenset(names).union(*(associations.descendants(site.accounting, name) for name in names))
    jobs = active_jobs(site, lambda job: job.spec.account in below)
    if jobs:
        yield err(_ACTIVE, *active_lines(site, jobs, "  "))
        return 1
    blocked = [
        assoc
        for name in sorted(below)
        for assoc in known.users_of.get(name, ())
        if _default(known, assoc.user) == name
        and any(other.account not in below for other in known.accounts_of[assoc.user])
    ]
    if blocked:
        yield err(
            _DEFAULT,
            *_default_lines(context, blocked),
            " Please either remove the accounts listed above from list and resubmit,",
            " or change these users' default accounts to remove the account(s).",
            " Changes Discarded",
        )
        return 1
    yield out(" Deleting accounts...", *(f"  {name}" for name in names))
    if not (yield from agree(context)):
        return 0
    notes = [context.note("Remove Accounts", name) for name in names]
    return 0 if (yield from commit(context, lambda a: changes.remove_accounts(a, names), notes)) else 1


def _qos(context: Context, words: Words) -> Command:
    site = context.site
    fields = (
        ("qos_names", lambda qos: qos.name), ("ids", lambda qos: str(qos.qos_id)),
        ("descriptions", lambda qos: qos.description),
    )  # fmt: skip
    names = [
        qos.name
        for qos in sorted(site.accounting.qos, key=lambda each: each.qos_id)
        if all(key not in words.where or text(qos) in words.where[key] for key, text in fields)
    ]
    if not context.is_admin:
        yield Print(NO_PRIVILEGE, 2)
        return 1
    if not names:
        yield out(" " + _NOTHING)
        return 1
    jobs = active_jobs(site, lambda job: job.spec.qos in names)
    if jobs:
        yield err(_ACTIVE, *active_lines(site, jobs, " "))
        return 1
    yield out(" Deleting QOS(s)...", *(f"  {name}" for name in names))
    if not (yield from agree(context)):
        return 0
    notes = [context.note("Remove QOS", name) for name in names]
    return 0 if (yield from commit(context, lambda a: changes.remove_qos(a, names), notes)) else 1


def _cluster(context: Context, words: Words) -> Command:
    own = context.site.config.cluster_name
    wanted = words.where.get("clusters", ())
    names = [name for name in context.site.accounting.clusters if name in wanted]
    if not names:
        yield out(_NOTHING)
        return 1
    if not context.is_admin:
        yield Print(NO_PRIVILEGE, 2)
        return 1
    if own in names:
        yield err(f" Error with request: {own} is the cluster of this controller and cannot be removed")
        return 1
    yield out(" Deleting clusters...", *(f"  {name}" for name in names))
    if not (yield from agree(context)):
        return 0
    notes = [context.note("Remove Clusters", name) for name in names]

    def change(accounting: Accounting) -> Accounting:
        return replace(accounting, clusters=tuple(each for each in accounting.clusters if each not in names))

    return 0 if (yield from commit(context, change, notes)) else 1


def _coordinator(context: Context, words: Words) -> Command:
    users, accounts = words.where.get("users", ()), words.where.get("accounts", ())
    if users:
        yield out(" Removing Coordinators with user name", *(f"  {name}" for name in users))
    if accounts:
        yield out(" From Account(s)" if users else " Removing all users from Accounts", *(f"  {n}" for n in accounts))
    pairs = [
        (user, account.name)
        for account in sorted(context.site.accounting.accounts, key=lambda each: each.name)
        if not accounts or account.name in accounts
        for user in sorted(account.coordinators)
        if not users or user in users
    ]
    if not pairs:
        yield out(" Nothing removed")
        return 1
    if not context.may_change([account for _user, account in pairs]):
        yield Print(NO_PRIVILEGE, 2)
        return 1
    yield out(
        " Removed Coordinators (sub accounts not listed)...",
        *(f"  U = {user:<9} A = {account:<10}" for user, account in pairs),
    )
    if not (yield from agree(context)):
        return 0

    def dismiss(account: Account) -> Account:
        kept = tuple(user for user in account.coordinators if (user, account.name) not in pairs)
        return replace(account, coordinators=kept)

    names = frozenset(account for _user, account in pairs)
    notes = [context.note("Remove Account Coordinators", account, user) for user, account in pairs]
    done = yield from commit(context, lambda a: changes.edit_accounts(a, names, dismiss), notes)
    return 0 if done else 1


_DELETE: Final[dict[str, Callable[[Context, Words], Command]]] = {
    "account": _account,
    "user": _user,
    "qos": _qos,
    "cluster": _cluster,
    "coordinator": _coordinator,
}
