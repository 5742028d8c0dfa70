"""Adding, changing and removing accounts, users, associations and QOS: functions Accounting -> Accounting.

What a person must be told (unknown names, running jobs, missing rights) is checked by the command before; these keep
the tree whole: ids are never used again, a child goes with its parent, a removed QOS is gone from every list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from slurmbridge.model.accounts import Account, Accounting, Assoc, Qos, User
from slurmbridge.submit import associations

Edit = Callable[[Any], Any]


def add_cluster(accounting: Accounting, name: str) -> Accounting:
    return replace(accounting, clusters=(*accounting.clusters, name))


def add_account(accounting: Accounting, account: Account, assoc: Assoc) -> Accounting:
    """A new account below `assoc.parent`; the record is kept as it is when there is one of that name."""
    known = associations.index(accounting)
    accounts = accounting.accounts if account.name in known.accounts else (*accounting.accounts, account)
    return add_assocs(replace(accounting, accounts=accounts), [assoc])


def add_assocs(accounting: Accounting, assocs: Iterable[Assoc]) -> Accounting:
    """With the next free ids, whatever ids they came with."""
    following = accounting.next_assoc_id
    added = []
    for assoc in assocs:
        added.append(replace(assoc, assoc_id=following))
        following += 1
    return replace(accounting, assocs=(*accounting.assocs, *added), next_assoc_id=following)


def put_user(accounting: Accounting, user: User) -> Accounting:
    """Add or replace by name."""
    others = [each for each in accounting.users if each.name != user.name]
    return _mark_defaults(replace(accounting, users=(*others, user)))


def add_qos(accounting: Accounting, qos: Qos) -> Accounting:
    number = accounting.next_qos_id
    return replace(accounting, qos=(*accounting.qos, replace(qos, qos_id=number)), next_qos_id=number + 1)


def edit_assocs(accounting: Accounting, ids: Collection[int], edit: Edit) -> Accounting:
    return replace(accounting, assocs=tuple(edit(each) if each.assoc_id in ids else each for each in accounting.assocs))


def edit_accounts(accounting: Accounting, names: Collection[str], edit: Edit) -> Accounting:
    return replace(
        accounting, accounts=tuple(edit(each) if each.name in names else each for each in accounting.accounts)
    )


def edit_users(accounting: Accounting, names: Collection[str], edit: Edit) -> Accounting:
    edited = replace(accounting, users=tuple(edit(each) if each.name in names else each for each in accounting.users))
    return _mark_defaults(edited)


def edit_qos(accounting: Accounting, names: Collection[str], edit: Edit) -> Accounting:
    return replace(accounting, qos=tuple(edit(each) if each.name in names else each for each in accounting.qos))


def reparent(accounting: Accounting, account: str, parent: str) -> Accounting:
    """Move an account with all below it; the caller has checked that `parent` is not among those."""
    assoc = associations.index(accounting).assocs[(account, "", "")]
    return edit_assocs(accounting, {assoc.assoc_id}, lambda each: replace(each, parent=parent))


def rename_user(accounting: Accounting, name: str, new: str) -> Accounting:
    def renamed(text: str) -> str:
        return new if text == name else text

    return replace(
        accounting,
        users=tuple(replace(each, name=renamed(each.name)) for each in accounting.users),
        assocs=tuple(replace(each, user=renamed(each.user)) for each in accounting.assocs),
        accounts=tuple(
            replace(each, coordinators=tuple(renamed(one) for one in each.coordinators)) for each in accounting.accounts
        ),
        wckeys=tuple(replace(each, user=renamed(each.user)) for each in accounting.wckeys),
    )


def remove_assocs(accounting: Accounting, ids: Collection[int]) -> Accounting:
    return replace(accounting, assocs=tuple(each for each in accounting.assocs if each.assoc_id not in ids))


def remove_users(accounting: Accounting, names: Collection[str]) -> Accounting:
    """With all their associations and offices."""
    return replace(
        accounting,
        users=tuple(each for each in accounting.users if each.name not in names),
        assocs=tuple(each for each in accounting.assocs if each.user not in names),
        accounts=tuple(
            replace(each, coordinators=tuple(one for one in each.coordinators if one not in names))
            for each in accounting.accounts
        ),
        wckeys=tuple(each for each in accounting.wckeys if each.user not in names),
    )


def remove_accounts(accounting: Accounting, names: Collection[str]) -> Accounting:
    """With all associations in them and below them."""
    gone = frozenset().union(*(associations.descendants(accounting, name) for name in names))
    return replace(
        accounting,
        accounts=tuple(each for each in accounting.accounts if each.name not in names),
        assocs=tuple(each for each in accounting.assocs if each.account not in gone),
    )


def remove_qos(accounting: Accounting, names: Collection[str]) -> Accounting:
    """Everywhere: as a record, in lists, as a default and in preemption."""

    def without(list_: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in list_ if name.lstrip("+-") not in names)

    return replace(
        accounting,
        qos=tuple(replace(each, preempt=without(each.preempt)) for each in accounting.qos if each.name not in names),
        assocs=tuple(
            replace(
                each,
                qos=None if each.qos is None else _left(each.qos, without(each.qos)),
                default_qos="" if each.default_qos in names else each.default_qos,
            )
            for each in accounting.assocs
        ),
    )


def _left(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...] | None:
    """A list of changes of which nothing is left is no list."""
    return None if not after and associations.is_change(before) else after


def _mark_defaults(accounting: Accounting) -> Accounting:
    """`is_default` follows the users' default accounts."""
    defaults = {user.name: user.default_account for user in accounting.users}
    return replace(
        accounting,
        assocs=tuple(
            replace(each, is_default=marked) if each.is_default is not marked else each
            for each in accounting.assocs
            for marked in (bool(each.user) and defaults.get(each.user) == each.account,)
        ),
    )
