"""What is each association's fair-share factor? Fair Tree, as Slurm computes it by default.

Accounts and users below one account are ranked by level fair share = shares (as part of their siblings') over use (as
part of their siblings'); a tree walk in that order ranks users, and the factor is rank over number of users. Ties share
a rank, tied accounts are walked as one. Source: fair_tree(1) of Slurm's documentation ("Fair Tree Fairshare Algorithm").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from slurmbridge.model.accounts import Accounting, Assoc, UsageRow


def usage_of(rows: Sequence[UsageRow], half_life_s: float) -> dict[int, float]:
    """Association id -> billed seconds, all decayed to the latest row's time."""
    latest = max((row.as_of for row in rows), default=0.0)
    found: dict[int, float] = {}
    for row in rows:
        raw = dict(row.raw)
        amount = raw.get("billing", raw.get("cpu", 0.0))
        if half_life_s > 0:
            amount *= 0.5 ** ((latest - row.as_of) / half_life_s)
        found[row.assoc_id] = found.get(row.assoc_id, 0.0) + amount
    return found


class _Tree:
    """Children of each account, and what everybody below used."""

    def __init__(self, accounting: Accounting, usage: Mapping[int, float]) -> None:
        self.children: dict[str, list[Assoc]] = {}
        accounts = {assoc.account: assoc for assoc in accounting.assocs if not assoc.user}
        for assoc in accounting.assocs:
            if assoc.user:
                self.children.setdefault(assoc.account, []).append(assoc)
            elif assoc.parent and assoc.parent in accounts and assoc.parent != assoc.account:
                self.children.setdefault(assoc.parent, []).append(assoc)
        self.roots = [a for a in accounts.values() if not a.parent or a.parent not in accounts]
        self.used: dict[int, float] = {}
        for root in self.roots:
            self._sum(root, usage)

    def _sum(self, assoc: Assoc, usage: Mapping[int, float]) -> float:
        if assoc.user:
            total = usage.get(assoc.assoc_id, 0.0)
        else:
            total = sum(self._sum(child, usage) for child in self.children.get(assoc.account, ()))
        self.used[assoc.assoc_id] = total
        return total

    def below(self, accounts: Sequence[Assoc]) -> list[Assoc]:
        """Children of these accounts; those of an account with Fairshare=parent stand in for it."""
        found: list[Assoc] = []
        for account in accounts:
            for child in self.children.get(account.account, ()):
                if child.shares_parent and not child.user:
                    found.extend(self.below([child]))
                else:
                    found.append(child)
        return found


def _level_share(assoc: Assoc, shares: float, used: float, own: float) -> float:
    if assoc.shares_parent:
        return math.inf
    if assoc.shares == 0 or shares == 0:
        return 0.0
    if own == 0 or used == 0:
        return math.inf
    return (assoc.shares / shares) / (own / used)


def factors(accounting: Accounting, usage: Mapping[int, float]) -> dict[int, float]:
    """User association id -> factor in (0, 1]."""
    tree = _Tree(accounting, usage)
    users = sum(1 for assoc in accounting.assocs if assoc.user)
    found: dict[int, float] = {}
    rank = untied = users

    def walk(accounts: Sequence[Assoc], tied_above: bool = False) -> None:
        nonlocal rank, untied
        siblings = tree.below(accounts)
        shares_of: dict[str, float] = {}
        used_of: dict[str, float] = {}
        for each in siblings:
            above = each.account if each.user else each.parent
            shares_of[above] = shares_of.get(above, 0.0) + (0 if each.shares_parent else each.shares)
            used_of[above] = used_of.get(above, 0.0) + tree.used.get(each.assoc_id, 0.0)
        ranked = sorted(
            (
                (
                    -_level_share(each, shares_of[above], used_of[above], tree.used.get(each.assoc_id, 0.0)),
                    0 if each.user else 1,
                    each.assoc_id,
                    each,
                )
                for each in siblings
                for above in (each.account if each.user else each.parent,)
            ),
            key=lambda entry: entry[:3],
        )
        place = 0
        before: float | None = None
        while place < len(ranked):
            level, _, _, assoc = ranked[place]
            same = tied_above if before is None else level == before
            if assoc.user:
                if not same:
                    rank = untied
                found[assoc.assoc_id] = rank / users
                untied -= 1
                place += 1
            else:
                tied = [entry[3] for entry in ranked[place:] if entry[0] == level and not entry[3].user]
                if not same:
                    rank = untied
                walk(tied, same)
                place += len(tied)
            before = level

    walk(tree.roots)
    return found
