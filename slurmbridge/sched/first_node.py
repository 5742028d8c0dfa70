"""On which node does a job of one node start: the first that has room, in the order in which its partition's are tried?

Where the order is fixed, each shape has a place in the line before which nothing has room for it: the search goes on there. Where
starts change the order, each shape has a list of nodes that may have room, of which the last is next.
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.model.request import LicenseTerm
from slurmbridge.sched.backfill import Horizon
from slurmbridge.sched.choose import Part
from slurmbridge.sched.columns import Bools
from slurmbridge.sched.fates import Fate
from slurmbridge.sched.finder import Finder
from slurmbridge.sched.fit import Rules
from slurmbridge.sched.lines import Line
from slurmbridge.sched.place import Placement, candidates, place_one, trim
from slurmbridge.sched.placing import put_right
from slurmbridge.sched.portion import Portions, is_plain
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting

_Key = tuple[int, int, int, int]
"""Shape, partition, promised starts that its run would meet, and which of its alternatives."""

MISSES = 4
"""After so many nodes that have room now but none for the job, only those are looked at that keep it up to its end."""


class FirstNode:
    """One cycle's answers. What is known is forgotten when there may be more room than before."""

    def __init__(
        self,
        snapshot: Snapshot,
        finder: Finder,
        rules: Rules,
        tracked: frozenset[str],
        portions: dict[tuple[int, int], Portions | None],
    ) -> None:
        """`portions`: those that are known, by shape and partition; grows."""
        self._snapshot, self._finder, self._rules, self._tracked = snapshot, finder, rules, tracked
        self._lists: dict[_Key, list[int]] = {}
        self._places: dict[_Key, int] = {}
        self._lines: dict[int, tuple[Bools, Line]] = {}  # by the identity of the set of nodes
        self._portions = portions
        self._grown = -1

    def forget(self) -> None:
        """There may be more room now than before."""
        self._lists.clear()
        self._places.clear()

    def place(
        self,
        waiting: Waiting,
        view: PartitionView,
        fate: Fate,
        licenses: tuple[LicenseTerm, ...],
        horizon: Horizon,
        floor: Sequence[int],
    ) -> Placement | None:
        """The job on the first node that has room for it and more than its floor; `fate` says what the node must give."""
        shape, finder, part = waiting.shape, self._finder, fate.alone
        site = finder.site(shape, view)
        if site.unknown:
            return None
        assert part is not None
        if horizon.grown != self._grown:
            self._grown = horizon.grown
            self._places.clear()
        reach = horizon.reach(fate.length)
        portions = self.portions(shape, view, part) if finder.placing(view) is None and not licenses else None
        for number, each in enumerate(site.alternatives):
            if each.counts:
                limits = horizon.limits(fate.length)
                return finder.place(waiting.job, shape, view, horizon.room, limits, licenses, fate.length, None)
            key = shape.number, view.number, reach, number
            if portions is not None:
                found = self._in_line(key, each.nodes, portions, horizon, floor)
            else:
                found = self._from_list(key, shape, view, each.nodes, part, licenses, horizon, fate, floor)
            if found is not None:
                return found
        return None

    def _in_line(
        self, key: _Key, nodes: Bools, portions: Portions, horizon: Horizon, floor: Sequence[int]
    ) -> Placement | None:
        line = self._line(nodes)
        rooms = [room.cells for room in horizon.rooms(key[2])]
        columns, room, misses = self._snapshot.columns, horizon.room, 0
        at = line.first(self._places.get(key, 0), floor, room)
        while at < len(line.rows):
            found = portions.place(line.rows[at], columns, rooms, horizon.room.busy, self._tracked)
            if found is not None:
                self._places[key] = at
                return found
            misses += 1
            if misses == MISSES:  # promises are in the way
                room = horizon.least(key[2])
            at = line.first(at + 1, floor, room)
        self._places[key] = at
        return None

    def _line(self, nodes: Bools) -> Line:
        known = self._lines.get(id(nodes))
        if known is None:
            order = self._snapshot.columns.order
            known = nodes, Line(order[nodes[order]])
            self._lines[id(nodes)] = known
        return known[1]

    def portions(self, shape: Shape, view: PartitionView, part: Part) -> Portions | None:
        """What such a job takes of a node that must give `part` (its row does not matter); None: that are not plain numbers."""
        key = shape.number, view.number
        if key not in self._portions:
            plain = is_plain(shape)
            self._portions[key] = Portions(shape, view, part, self._rules) if plain else None
        return self._portions[key]

    def _from_list(
        self,
        key: _Key,
        shape: Shape,
        view: PartitionView,
        nodes: Bools,
        part: Part,
        licenses: tuple[LicenseTerm, ...],
        horizon: Horizon,
        fate: Fate,
        floor: Sequence[int],
    ) -> Placement | None:
        """Nodes that had no room before in this cycle have none now."""
        placing, columns, rules = self._finder.placing(view), self._snapshot.columns, self._rules
        limits = horizon.limits(fate.length)
        left, fresh = self._lists.get(key), False
        if left:
            trim(left, limits, floor, rules)
            if placing is not None:
                put_right(placing, left, limits)
        while left is None or left:
            if left is None:
                left = self._lists[key] = candidates(shape, columns, limits, nodes, rules, part, placing)
                fresh = True
                continue
            here = Part(left[-1], part.tasks, part.devices)
            found = place_one(shape, view, columns, horizon.room, limits, here, rules, licenses, self._tracked)
            if found is not None:
                return found
            if fresh:
                left.pop()  # what it has free does not go together
            else:
                left = None  # others were here since: look at all nodes again
        return None
