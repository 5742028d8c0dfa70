"""`sacctmgr modify ENTITY [where ...] set ...`: what is changed, on which records, and what Slurm says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from slurmbridge.commands import quotas
from slurmbridge.commands.accounting_edits import apply_to_assoc, apply_to_qos, settings
from slurmbridge.commands.accounting_words import ASSOC_WORDS, QOS_WORDS, Word, is_word, known_tres
from slurmbridge.commands.effects import Command, Print
from slurmbridge.commands.sacctmgr_add import ACCOUNT_OWN, USER_OWN, admin_level
from slurmbridge.commands.sacctmgr_commit import (
    DENIED,
    NO_PRIVILEGE,
    Context,
    agree,
    assoc_line,
    commit,
    err,
    known_qos,
    out,
    refuse,
)
from slurmbridge.commands.sacctmgr_conditions import NOTHING_TO_SET, Words, read
from slurmbridge.commands.sacctmgr_heirs import INHERITED, heirs
from slurmbridge.commands.sacctmgr_usage import reset_usage
from slurmbridge.model.accounts import Account, Accounting, Assoc, User
from slurmbridge.submit import association_changes as changes
from slurmbridge.submit import associations

MODIFY_ENTITIES: Final = (
    ("Accounts", 1, "account"), ("Acct", 4, "account"), ("Clusters", 1, "cluster"), ("Federations", 1, "federation"),
    ("Job", 1, "job"), ("QOS", 1, "qos"), ("Resources", 1, "resource"), ("Users", 1, "user"),
)  # fmt: skip
_NOTHING_MODIFIED = "  Nothing modified"
Lines = list[str]


def modify(context: Context, argv: Sequence[str]) -> Command:
    """The whole verb; `argv` begins with the entity."""
    entity = next((key for name, least, key in MODIFY_ENTITIES if argv and is_word(argv[0], name, least)), None)
    if entity is None:
        yield err(
            "No valid entity in modify command",
            'Input line must include "Account", "Cluster", "Federation", "Job", "QOS", "Resource" or "User"',
        )
        return 1
    if entity in ("federation", "resource", "job"):
        reason = "use scontrol update job" if entity == "job" else "this is the only cluster"
        yield err(f"sacctmgr: error: modify {entity} is not offered: {reason}")
        return 1
    code: int = yield from _MODIFY[entity](context, argv[1:])
    return code


def _read(
    context: Context, entity: str, argv: Sequence[str], words: Sequence[Word], own: Sequence[tuple[str, int, str]]
) -> Words:
    return read(
        entity, argv, config=context.site.config, qos=known_qos(context.site), words=words, own=own, changing=True
    )  # fmt: skip


def _selected(context: Context, words: Words, *, users: bool) -> list[Assoc]:
    """Associations of users (or of accounts) that all conditions let through, in tree order."""
    found = []
    for _depth, assoc in associations.tree(context.site.accounting):
        if bool(assoc.user) is not users or not context.clusters_wanted(words.where.get("clusters")):
            continue
        fields = {
            "accounts": assoc.account,
            "users": assoc.user,
            "partitions": assoc.partition,
            "parents": assoc.parent,
        }
        if all(key not in words.where or text in words.where[key] for key, text in fields.items()):
            found.append(assoc)
    return found


def _default_qos_problem(context: Context, words: Words, targets: Sequence[Assoc]) -> Lines:
    """Associations whose default QOS would be out of their reach."""
    if not any(edit.word.field in ("qos", "default_qos") for edit in words.edits):
        return []
    after = _edit_assocs(context, words, targets)(context.site.accounting)
    below = frozenset().union(*(associations.descendants(after, assoc.account) for assoc in targets if not assoc.user))
    ids = {assoc.assoc_id for assoc in targets}
    bad = [
        assoc
        for assoc in after.assocs
        if assoc.default_qos
        and (assoc.assoc_id in ids or assoc.account in below)
        and assoc.default_qos not in associations.effective_qos(after, assoc)
    ]
    if not bad:
        return []
    return [
        "sacctmgr: error: ",
        " These associations don't have access to their default qos.",
        " Please give them access before they the default can be set to this.",
        *(f"  DefQOS = {assoc.default_qos:<10} {assoc_line(context.site, assoc).lstrip()}" for assoc in bad),
        "",
        " Error with request: This request would make it so some associations would not have access to their default qos.",
    ]  # fmt: skip


def _edit_assocs(context: Context, words: Words, targets: Sequence[Assoc]) -> Callable[[Accounting], Accounting]:
    ids = frozenset(assoc.assoc_id for assoc in targets)

    def change(accounting: Accounting) -> Accounting:
        return changes.edit_assocs(accounting, ids, lambda assoc: apply_to_assoc(assoc, words.edits))

    return change


def _user(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "user", argv, ASSOC_WORDS, USER_OWN)
    refused = refuse(words, nothing=NOTHING_TO_SET)
    if refused:
        yield from refused
        return 1
    if "rawusage" in words.other:
        if not words.where.get("accounts"):
            yield err("sacctmgr: error: An account must be specified")
        else:
            yield err("sacctmgr: error: Raw usage is reset on accounts: modify account NAME set RawUsage=0")
        return 1
    steps: list[Callable[[Accounting], Accounting]] = []
    if words.other:
        problem = yield from _user_records(context, words, steps)
        if problem:
            return 1
    if words.edits:
        yield out(" Modified user associations...")
        targets = _selected(context, words, users=True)
        if not context.is_operator:
            targets = [each for each in targets if context.may_change([each.account])]
        if not targets:
            yield out(_NOTHING_MODIFIED)
            return 1
        lines = _default_qos_problem(context, words, targets)
        if lines:
            yield err(*lines)
            return 1
        yield out(*(assoc_line(context.site, assoc) for assoc in targets))
        steps.append(_edit_assocs(context, words, targets))
    if not (yield from agree(context)):
        return 0
    notes = [context.note("Modify Users", ",".join(words.where.get("users", ())))] if words.other else []
    notes += [context.note("Modify Associations", ",".join(words.where.get("users", ())))] if words.edits else []
    return 0 if (yield from commit(context, _together(steps), notes)) else 1


def _user_records(context: Context, words: Words, steps: list[Callable[[Accounting], Accounting]]) -> Any:
    """Admin level, default account and name of users; true when that was refused."""
    yield out(" Modified users...")
    named = words.where.get("users")
    known = associations.index(context.site.accounting)
    users = [user for user in context.site.accounting.users if named is None or user.name in named]
    users = [
        user
        for user in users
        if "accounts" not in words.where
        or any(assoc.account in words.where["accounts"] for assoc in known.accounts_of.get(user.name, ()))
    ]
    users.sort(key=lambda each: each.name)
    level = admin_level(words.other["admin"]) if "admin" in words.other else None
    if not users or ("admin" in words.other and level is None):
        yield out(_NOTHING_MODIFIED)
        return True
    if "admin" in words.other and not context.is_admin:
        yield Print(
            "sacctmgr: error: You must be a super user to modify a users admin level\n"
            f" Error with request: {DENIED}\n", 2
        )  # fmt: skip
        return True
    if not context.is_operator and (
        set(words.other) != {"default_account"} or any(u.name != context.user for u in users)
    ):
        yield Print(NO_PRIVILEGE, 2)
        return True
    default = words.other.get("default_account", "").lower()
    if default:
        strangers = [u for u in users if all(a.account != default for a in known.accounts_of.get(u.name, ()))]
        if strangers:
            yield out(
                f" Can't modify because these users aren't associated with new default account '{default}'...",
                *(f"  U = {user.name} C = {context.site.config.cluster_name}" for user in strangers),
            )
            return True
    yield out(*(f"  {user.name}" for user in users))
    names = frozenset(user.name for user in users)
    new_name = words.other.get("newname", "").lower()
    if new_name and (len(users) > 1 or new_name in known.users):
        yield err(f"sacctmgr: error: NewName={new_name} must name one user anew")
        return True

    def edit(user: User) -> User:
        return replace(
            user,
            admin_level=level or user.admin_level,
            default_account=default or user.default_account,
            default_wckey=words.other.get("default_wckey", user.default_wckey),
        )

    steps.append(lambda accounting: changes.edit_users(accounting, names, edit))
    if new_name:
        steps.append(lambda accounting: changes.rename_user(accounting, users[0].name, new_name))
    return False


def _account(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "account", argv, ASSOC_WORDS, (*ACCOUNT_OWN, ("Name", 1, "name")))
    refused = refuse(words, nothing=NOTHING_TO_SET)
    if refused:
        yield from refused
        return 1
    if "name" in words.other:
        yield err(" Can't modify the name of an account")
        return 1
    if "rawusage" in words.other:
        code: int = yield from reset_usage(context, words, _selected(context, words, users=False))
        return code
    steps: list[Callable[[Accounting], Accounting]] = []
    record = {key: text for key, text in words.other.items() if key != "parent"}
    if record:
        named = words.where.get("accounts")
        names = sorted(a.name for a in context.site.accounting.accounts if named is None or a.name in named)
        yield out(" Modified accounts...")
        if not names:
            yield out(_NOTHING_MODIFIED)
            return 1
        if not context.may_change(names):
            yield Print(NO_PRIVILEGE, 2)
            return 1
        yield out(*(f"  {name}" for name in names))
        steps.append(lambda accounting: changes.edit_accounts(accounting, frozenset(names), _account_edit(record)))
    if words.edits or "parent" in words.other:
        code = yield from _account_assocs(context, words, steps)
        if code is not None:
            return code
    if not (yield from agree(context)):
        return 0
    where = ",".join(words.where.get("accounts", ()))
    notes = [context.note("Modify Accounts", where)] if record else []
    notes += [context.note("Modify Associations", where)] if words.edits or "parent" in words.other else []
    return 0 if (yield from commit(context, _together(steps), notes)) else 1


def _account_edit(record: dict[str, str]) -> Callable[[Account], Account]:
    def edit(account: Account) -> Account:
        flags = account.flags
        for flag in filter(None, record.get("flags", "").split(",")):
            flags = tuple(f for f in flags if f != "UsersAreCoords")
            if not flag.lower().startswith("no"):
                flags = (*flags, "UsersAreCoords")
        return replace(
            account,
            description=record.get("description", account.description),
            organization=record.get("organization", account.organization),
            flags=flags,
        )

    return edit


def _account_assocs(context: Context, words: Words, steps: list[Callable[[Accounting], Accounting]]) -> Any:
    """Limits and places of accounts; an exit code when that ends the command."""
    site = context.site
    yield out(" Modified account associations...")
    targets = _selected(context, words, users=False)
    if targets and not context.may_change([assoc.account for assoc in targets]):
        yield Print(NO_PRIVILEGE, 2)
        return 1
    if not targets:
        yield out(_NOTHING_MODIFIED)
        return 1
    if problem := quotas.refusal([edit.word.name for edit in words.edits], targets, context.may_change):
        yield err(problem)
        return 1
    parent = words.other.get("parent", "").lower()
    if parent:
        if (parent, "", "") not in associations.index(site.accounting).assocs:
            yield out(f"  Parent account {parent} doesn't exist on cluster {site.config.cluster_name}")
            return 0
        inside = [a.account for a in targets if parent in associations.descendants(site.accounting, a.account)]
        if inside:
            yield out(
                *(
                    f"  Requested parent account {parent} is a child of {name} on cluster {site.config.cluster_name}. "
                    f"Please re-parent {parent} before using it as a parent."
                    for name in inside
                )
            )
            return 0
    if parent and not words.edits and all(assoc.parent == parent for assoc in targets):
        yield out(_NOTHING_MODIFIED)
        return 1
    lines = _default_qos_problem(context, words, targets)
    if lines:
        yield err(*lines)
        return 1
    inherited = {edit.word.field for edit in words.edits if edit.word.field in INHERITED} | (
        {"qos"} if parent else set()
    )
    for assoc in targets:
        yield out(assoc_line(site, assoc, above=assoc.parent), *heirs(context, assoc.account, inherited))
    if words.edits:
        steps.append(_edit_assocs(context, words, targets))
    if parent:
        steps.append(lambda accounting: _move(accounting, [assoc.account for assoc in targets], parent))
    return None


def _move(accounting: Accounting, names: Sequence[str], parent: str) -> Accounting:
    for name in names:
        accounting = changes.reparent(accounting, name, parent)
    return accounting


def _preempts_itself(accounting: Accounting) -> bool:
    """Whether some QOS may preempt itself, at once or by way of others."""
    below = {qos.name: set(qos.preempt) for qos in accounting.qos}
    for _ in below:
        for names in below.values():
            names.update(*(below.get(name, set()) for name in list(names)))
    return any(name in names for name, names in below.items())


def _qos(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "qos", argv, QOS_WORDS, ())
    refused = refuse(words, nothing=NOTHING_TO_SET)
    if refused:
        yield from refused
        return 1
    if not context.is_admin:
        yield Print(NO_PRIVILEGE, 2)
        return 1
    named = words.where.get("qos_names")
    names = [name for name in known_qos(context.site) if named is None or name in named]
    if not names:
        yield out(_NOTHING_MODIFIED)
        return 1
    wanted = frozenset(names)
    after = changes.edit_qos(context.site.accounting, wanted, lambda qos: apply_to_qos(qos, words.edits))
    if _preempts_itself(after):
        yield err("sacctmgr: error: QOS Preemption loop detected", " Error with request: QOS Preemption loop detected")
        return 1
    yield out(" Modified qos...", *(f"  {name}" for name in names))
    if not (yield from agree(context)):
        return 0
    notes = [context.note("Modify QOS", ",".join(names))]
    done = yield from commit(
        context, lambda a: changes.edit_qos(a, wanted, lambda qos: apply_to_qos(qos, words.edits)), notes
    )
    return 0 if done else 1


def _cluster(context: Context, argv: Sequence[str]) -> Command:
    words = _read(context, "cluster", argv, ASSOC_WORDS, ())
    refused = refuse(words, nothing=NOTHING_TO_SET)
    if refused:
        yield from refused
        return 1
    root = associations.index(context.site.accounting).assocs.get((associations.ROOT, "", ""))
    if root is None or not context.clusters_wanted(words.where.get("clusters")):
        yield out(_NOTHING_MODIFIED)
        return 1
    if problem := quotas.refusal([edit.word.name for edit in words.edits], [root], context.may_change):
        yield err(problem)
        return 1
    yield out(" Setting", "  Default Limits:", *settings(words.edits, ASSOC_WORDS, known_tres(context.site.config), 14))
    if not context.is_admin:
        yield Print(NO_PRIVILEGE, 2)
        return 1
    yield out(" Modified cluster defaults for associations...", assoc_line(context.site, root))
    if not (yield from agree(context)):
        return 0
    notes = [context.note("Modify Clusters", context.site.config.cluster_name)]
    return 0 if (yield from commit(context, _edit_assocs(context, words, [root]), notes)) else 1


def _together(steps: Sequence[Callable[[Accounting], Accounting]]) -> Callable[[Accounting], Accounting]:
    def change(accounting: Accounting) -> Accounting:
        for step in steps:
            accounting = step(accounting)
        return accounting

    return change


_MODIFY: Final[dict[str, Callable[[Context, Sequence[str]], Command]]] = {
    "account": _account,
    "user": _user,
    "qos": _qos,
    "cluster": _cluster,
}
