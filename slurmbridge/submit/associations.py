"""Who may charge what: lookups in the tree of accounts and associations (sacctmgr(1), accounting.shtml).

Lookups are answered from an index that is built once per `Accounting` record. Changes are in
`submit.association_changes`. Slurm keeps names of accounts and users in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from slurmbridge.model.accounts import Account, Accounting, Assoc, Limits, Qos, User

ROOT = "root"
NORMAL_QOS = Qos(name="normal", qos_id=1, description="Normal QOS default")
_KEPT_INDEXES = 4


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """Everything by name."""

    accounts: Mapping[str, Account]
    users: Mapping[str, User]
    qos: Mapping[str, Qos]
    assocs: Mapping[tuple[str, str, str], Assoc]  # (account, user, partition)
    by_id: Mapping[int, Assoc]
    users_of: Mapping[str, tuple[Assoc, ...]]  # account -> user associations, by name, then partition
    children_of: Mapping[str, tuple[Assoc, ...]]  # account -> child accounts, by name
    accounts_of: Mapping[str, tuple[Assoc, ...]]  # user -> associations


_indexes: list[tuple[Accounting, Index]] = []


def index(accounting: Accounting) -> Index:
    """The index of this very record; the last few are kept."""
    for known, made in _indexes:
        if known is accounting:
            return made
    made = _build(accounting)
    _indexes.insert(0, (accounting, made))
    del _indexes[_KEPT_INDEXES:]
    return made


def _build(accounting: Accounting) -> Index:
    users_of: dict[str, list[Assoc]] = {}
    children_of: dict[str, list[Assoc]] = {}
    accounts_of: dict[str, list[Assoc]] = {}
    for assoc in accounting.assocs:
        if assoc.user:
            users_of.setdefault(assoc.account, []).append(assoc)
            accounts_of.setdefault(assoc.user, []).append(assoc)
        elif assoc.account != ROOT:
            children_of.setdefault(assoc.parent or ROOT, []).append(assoc)
    return Index(
        accounts={account.name: account for account in accounting.accounts},
        users={user.name: user for user in accounting.users},
        qos={qos.name: qos for qos in accounting.qos},
        assocs={(assoc.account, assoc.user, assoc.partition): assoc for assoc in accounting.assocs},
        by_id={assoc.assoc_id: assoc for assoc in accounting.assocs},
        users_of={name: tuple(sorted(many, key=lambda a: (a.user, a.partition))) for name, many in users_of.items()},
        children_of={name: tuple(sorted(many, key=lambda a: a.account)) for name, many in children_of.items()},
        accounts_of={name: tuple(many) for name, many in accounts_of.items()},
    )


def initial_accounting(cluster: str, *, enforced: bool = True) -> Accounting:
    """What exists before anybody adds anything: root's account and association, and the QOS normal.

    The cluster counts as added where no limits are enforced; else `sacctmgr add cluster` comes first, as at any site.
    """
    return Accounting(
        clusters=() if enforced else (cluster,),
        accounts=(Account(name=ROOT, description="default root account", organization=ROOT),),
        users=(User(name=ROOT, default_account=ROOT, admin_level="Administrator"),),
        assocs=(
            Assoc(assoc_id=1, account=ROOT, qos=(NORMAL_QOS.name,)),
            Assoc(assoc_id=2, account=ROOT, user=ROOT, is_default=True),
        ),
        qos=(NORMAL_QOS,),
        next_assoc_id=3,
        next_qos_id=2,
    )


def find(accounting: Accounting, user: str, account: str | None = None, partition: str = "") -> Assoc | None:
    """The association that a job of `user` is charged to; account None: the user's default one.

    An association of this very partition goes before the one of all partitions.
    """
    known = index(accounting)
    if account is None:
        owner = known.users.get(user)
        if owner is None or not owner.default_account:
            return None
        account = owner.default_account
    account = account.lower()
    return known.assocs.get((account, user, partition)) or known.assocs.get((account, user, ""))


def default_account(accounting: Accounting, user: str) -> str:
    """Empty when the user is unknown."""
    owner = index(accounting).users.get(user)
    return owner.default_account if owner is not None else ""


def parent(accounting: Accounting, assoc: Assoc) -> Assoc | None:
    """The association above; None for root's account."""
    known = index(accounting)
    if assoc.user:
        return known.assocs.get((assoc.account, "", ""))
    if assoc.account == ROOT:
        return None
    return known.assocs.get((assoc.parent or ROOT, "", ""))


def ancestors(accounting: Accounting, assoc: Assoc) -> tuple[Assoc, ...]:
    """The account associations above, nearest first, root last."""
    above: list[Assoc] = []
    current = parent(accounting, assoc)
    while current is not None:
        above.append(current)
        current = parent(accounting, current)
    return tuple(above)


def effective_qos(accounting: Accounting, assoc: Assoc) -> tuple[str, ...]:
    """The QOS that may be used: its own list, else the nearest one above with what was changed since; by name."""
    changed, base = _stored_qos(accounting, assoc)
    names = set(base)
    for change in reversed(changed):
        for name in change:
            names = names | {name[1:]} if name[0] == "+" else names - {name[1:]}
    return tuple(sorted(names))


def raw_qos(accounting: Accounting, assoc: Assoc) -> tuple[str, ...]:
    """The same before changes are made: `+long`, `-tiny` and the list that they are changes of."""
    changed, base = _stored_qos(accounting, assoc)
    return tuple(sorted({*base, *(name for change in changed for name in change)}))


def _stored_qos(accounting: Accounting, assoc: Assoc) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Changes from here upwards, and the nearest list."""
    changed: list[tuple[str, ...]] = []
    for each in (assoc, *ancestors(accounting, assoc)):
        if each.qos is None:
            continue
        if not is_change(each.qos):
            return changed, each.qos
        changed.append(each.qos)
    return changed, ()


def is_change(qos: tuple[str, ...]) -> bool:
    """Whether a list says how it differs from the one above instead of being one."""
    return bool(qos) and qos[0][0] in "+-"


def default_qos(accounting: Accounting, assoc: Assoc) -> str:
    """The QOS of a job that names none: the default set here or above, the only one allowed, or normal; else empty."""
    for each in (assoc, *ancestors(accounting, assoc)):
        if each.default_qos:
            return each.default_qos
    allowed = effective_qos(accounting, assoc)
    if len(allowed) == 1:
        return allowed[0]
    return NORMAL_QOS.name if NORMAL_QOS.name in allowed else ""


_INHERITED = (
    "max_jobs",
    "max_jobs_accrue",
    "max_submit",
    "max_wall",
    "max_tres_per_job",
    "max_tres_per_node",
    "max_tres_mins_per_job",
)
"""Limits that a child takes from above where it has none; TRES limits name by name."""


def effective_limits(accounting: Accounting, assoc: Assoc) -> Limits:
    """Its own limits, those per user and job completed from above (group limits hold where they are set)."""
    values = {name: getattr(assoc.limits, name) for name in _INHERITED}
    for above in ancestors(accounting, assoc):
        for name in _INHERITED:
            theirs = getattr(above.limits, name)
            if isinstance(theirs, tuple):
                mine = values[name]
                names = {tres for tres, _count in mine}
                values[name] = mine + tuple((tres, count) for tres, count in theirs if tres not in names)
            elif values[name] is None:
                values[name] = theirs
    return msgspec.structs.replace(assoc.limits, **values)


def admin_level(accounting: Accounting, user: str) -> str:
    """None, Operator or Administrator."""
    known = index(accounting).users.get(user)
    return known.admin_level if known is not None else "None"


def coordinates(accounting: Accounting, user: str, account: str) -> bool:
    """Whether the user is coordinator of this account or of one above it."""
    known = index(accounting)
    top = known.assocs.get((account, "", ""))
    if top is None:
        return False
    for assoc in (top, *ancestors(accounting, top)):
        record = known.accounts.get(assoc.account)
        if record is None:
            continue
        if user in record.coordinators:
            return True
        if "UsersAreCoords" in record.flags and any(a.user == user for a in known.users_of.get(assoc.account, ())):
            return True
    return False


def coordinated(accounting: Accounting, user: str) -> tuple[str, ...]:
    """Accounts that name the user as coordinator, by name."""
    return tuple(sorted(account.name for account in accounting.accounts if user in account.coordinators))


def tree(accounting: Accounting, top: str = ROOT) -> Iterator[tuple[int, Assoc]]:
    """(depth, association) as sacctmgr and sshare print them: an account, its users, then its child accounts."""
    known = index(accounting)
    stack = [(0, known.assocs[(top, "", "")])] if (top, "", "") in known.assocs else []
    while stack:
        depth, account = stack.pop()
        yield depth, account
        for user in known.users_of.get(account.account, ()):
            yield depth + 1, user
        stack.extend((depth + 1, child) for child in reversed(known.children_of.get(account.account, ())))


def descendants(accounting: Accounting, account: str) -> frozenset[str]:
    """Names of the account and all accounts below it."""
    return frozenset(assoc.account for _depth, assoc in tree(accounting, account))


def lineage(accounting: Accounting, assoc: Assoc) -> str:
    """The path from the root, as sacctmgr's Lineage column shows it."""
    names = [each.account for each in reversed(ancestors(accounting, assoc)) if each.account != ROOT]
    if not assoc.user and assoc.account != ROOT:
        names.append(assoc.account)
    text = "/" + "".join(f"{name}/" for name in names)
    if assoc.user:
        text += f"0-{assoc.user}/" + (f"{assoc.partition}/" if assoc.partition else "")
    return text
