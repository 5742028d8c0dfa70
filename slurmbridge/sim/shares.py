"""What part of the cluster is each account's? From the `fairshare` of sacctmgr's tree, filled up level by level.

Nobody gets more than it asks for; what one leaves goes to its siblings by their shares, then up the tree. Accounts that
are not in the tree are children of root with one share each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from slurmbridge.model.accounts import Accounting, Assoc
from slurmbridge.model.tres import count
from slurmbridge.submit.associations import ROOT

Floats = NDArray[np.float64]


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """`part`: of the cluster, when everybody asks for more. `quota`: DeservedTRES in GPUs or CPUs; None: not set."""

    part: float
    quota: float | None = None


class Level(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Siblings. `leaves`: positions of accounts whose own jobs count here; `below`: what each of `inner` is made of."""

    weights: Floats  # of leaves, then inner ones
    leaves: NDArray[np.int64]
    inner: tuple[Level, ...] = ()


def filled(capacity: float, weights: Floats, wanted: Floats) -> Floats:
    """Each gets `min(wanted, level x weight)`, with the level at which all is given out or everybody has enough."""
    if float(wanted.sum()) <= capacity:
        return wanted
    with np.errstate(divide="ignore", invalid="ignore"):
        full_at = np.where(wanted > 0, wanted / weights, 0.0)
    order = np.argsort(full_at, kind="stable")
    given = np.concatenate(([0.0], np.cumsum(wanted[order])[:-1]))
    weight_left = np.cumsum(weights[order][::-1])[::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = (capacity - given) / weight_left
    short = np.flatnonzero(levels < full_at[order])
    if not len(short):
        return wanted
    found: Floats = np.minimum(wanted, max(float(levels[short[0]]), 0.0) * weights)
    return found


class Tree:
    """The accounts of some jobs."""

    def __init__(self, accounting: Accounting, accounts: Sequence[str]) -> None:
        self.accounts = tuple(accounts)
        self._places = {name: place for place, name in enumerate(accounts)}
        known = {assoc.account: assoc for assoc in accounting.assocs if not assoc.user}
        children: dict[str, list[Assoc]] = {}
        for assoc in known.values():
            if assoc.account != ROOT:
                parent = assoc.parent if assoc.parent in known else ROOT
                children.setdefault(parent, []).append(assoc)
        for name in accounts:
            if name not in known:
                children.setdefault(ROOT, []).append(Assoc(assoc_id=0, account=name, parent=ROOT))
        self._quota = {name: _quota(known.get(name)) for name in accounts}
        self._top = self._level(ROOT, children)

    def _level(self, above: str, children: Mapping[str, Sequence[Assoc]]) -> Level:
        """Children; an account whose own users have jobs is one leaf among its sub-accounts."""
        leaves, leaf_weights, inner, inner_weights = [], [], [], []
        if above in self._places:
            leaves.append(self._places[above])
            leaf_weights.append(1.0)
        for assoc in children.get(above, ()):
            level = self._level(assoc.account, children)
            if level.inner or len(level.leaves) > 1:
                inner.append(level)
                inner_weights.append(_weight(assoc))
            elif len(level.leaves):
                leaves.append(int(level.leaves[0]))
                leaf_weights.append(_weight(assoc))
        return Level(
            weights=np.array(leaf_weights + inner_weights, dtype=np.float64),
            leaves=np.array(leaves, dtype=np.int64),
            inner=tuple(inner),
        )

    def deserved(self, capacity: float, wanted: Floats) -> Floats:
        """By account, in the order given: the capacity filled up, nobody above what it wants."""
        found = np.zeros(len(self.accounts))
        self._fill(self._top, capacity, wanted, found)
        return found

    def _fill(self, level: Level, capacity: float, wanted: Floats, found: Floats) -> None:
        if not level.inner:
            found[level.leaves] = filled(capacity, level.weights, wanted[level.leaves])
            return
        sums = np.array([_wanted(each, wanted) for each in level.inner])
        given = filled(capacity, level.weights, np.concatenate((wanted[level.leaves], sums)))
        own = len(level.leaves)
        found[level.leaves] = given[:own]
        for each, amount in zip(level.inner, given[own:], strict=True):
            self._fill(each, float(amount), wanted, found)

    def shares(self) -> dict[str, Share]:
        """By account: its part when everybody wants all, and its quota."""
        parts = self.deserved(1.0, np.full(len(self.accounts), 1.0))
        return {
            name: Share(part=float(part), quota=self._quota[name])
            for name, part in zip(self.accounts, parts, strict=True)
        }


def _wanted(level: Level, wanted: Floats) -> float:
    return float(wanted[level.leaves].sum()) + sum(_wanted(each, wanted) for each in level.inner)


def _weight(assoc: Assoc) -> float:
    return float(max(assoc.shares, 0)) if not assoc.shares_parent else 1.0


def _quota(assoc: Assoc | None) -> float | None:
    """GPUs of DeservedTRES, else its CPUs."""
    if assoc is None:
        return None
    quota = assoc.quota_in("") or next(iter(assoc.quotas), None)
    if quota is None:
        return None
    gpus = count(quota.deserved, "gres/gpu")
    if gpus:
        return gpus / 1000
    cpus = count(quota.deserved, "cpu")
    return float(cpus) if cpus else None
