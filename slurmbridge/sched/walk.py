"""One way through the queue: every entry is looked at once, in the order of the line or of the queues' turns.

What stopped one job of a group in a partition stops the rest of the group there, so most entries only hear what is known.
Others may look at some entries before (see `firsts`). Where the site promises by claim and a promise is left, jobs are then
looked at by their claims until it is given.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping

import numpy as np

from slurmbridge.model.states import Reason
from slurmbridge.sched import claims
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.eligibility import Blocked, of_job
from slurmbridge.sched.market import Market, Preemptible
from slurmbridge.sched.memo import Memo
from slurmbridge.sched.order import ACROSS, Queue
from slurmbridge.sched.pending import NO_CODE, Floats
from slurmbridge.sched.queues import Vector
from slurmbridge.sched.ranks import by_rank
from slurmbridge.sched.session import Session
from slurmbridge.sched.snapshot import PartitionView, Snapshot, Waiting
from slurmbridge.sched.starters import MORE, Find, Starts, start_array, start_het, start_single
from slurmbridge.sched.turns import Turns
from slurmbridge.sched.verdicts import Board, Tally

MISSES = 16
"""After so many looks for nothing all shapes are screened again."""


class Walk:
    """The state of one way through. `blocked`: entries that nothing but missing room stopped, in the order of their looks."""

    def __init__(
        self,
        snapshot: Snapshot,
        session: Session,
        memo: Memo,
        board: Board,
        starts: Starts,
        tally: Tally,
        markets: tuple[Market, ...],
        preemptible: Preemptible,
        entries: Queue,
    ) -> None:
        self.snapshot, self.session, self.memo = snapshot, session, memo
        self.board, self.starts, self.tally = board, starts, tally
        self.markets, self.preemptible = markets, preemptible
        self.done: set[int] = set()  # rows that need no other look
        self.stopped: dict[int, Blocked] = {}  # group and partition: what stopped one stops its equals
        self.settled: dict[int, int] = {}  # the same -> what everybody there hears
        self.held: dict[int, int] = {}  # row -> for how many jobs of it a certain place is being freed
        self.began_at: dict[int, tuple[int, bool]] = {}  # place in `starts.made` -> that of the entry; called backfill
        self._settled_views = 0  # partitions whose last promise is given, as far as that was acted on
        self._needs_all: dict[int, bool] = {}  # group and partition of several pools -> whether no part will do
        self._seen: set[int] = set()
        self._quiet_rows = 0
        self._ids: list[int] = snapshot.pending.rows["id"].tolist()
        self._behind = board.code(Blocked(Reason.PRIORITY))  # what those hear who wait behind others
        self._components: Mapping[int, list[Waiting]] | None = None
        self.entries = entries
        self.groups: Ints = snapshot.pending.rows["group"][entries.rows]
        width = max(len(memo.places.by_number), 1)
        self.keys: list[int] = (self.groups * width + entries.views).tolist()
        self.rows: list[int] = entries.rows.tolist()
        self.numbers: list[int] = entries.views.tolist()
        self.roomless = bytearray(len(self.rows))  # 1 at entries that certainly find no room, and wait behind a promise
        self._limited = self._with_array_limits()
        self._plain: dict[int, tuple[Bools, Ints, Floats]] = {}  # by partition: see `_of_view`
        self._screen()

    def through(self) -> None:
        """Every entry once."""
        self._settle()
        if self.markets:
            if self.snapshot.config.scheduling.promise != "turn":
                self._by_claim()
            for market in self.markets:
                self._in_turn(market)
            self._across()
        else:
            for place in range(len(self.rows)):
                if not self.skip(place):
                    self.look(place)
        self.tally.looked_at = len(self._seen) + self._quiet_rows

    def waiting(self, place: int) -> Waiting:
        """The job of an entry."""
        return self.snapshot.waiting[self._ids[self.rows[place]]]

    def id(self, place: int) -> int:
        """The job id of an entry."""
        return self._ids[self.rows[place]]

    def view(self, place: int) -> PartitionView:
        """The partition of an entry."""
        return self.memo.places.by_number[self.numbers[place]]

    def skip(self, place: int) -> bool:
        """Whether an entry needs no look; what is known of its group is noted."""
        row = self.rows[place]
        if self.roomless[place] or row in self.done:
            return True
        code = self.settled.get(self.keys[place])
        if code is None:
            return False
        self.board.note(row, code)
        return True

    def look(self, place: int, market: Market | None = None, leaf: int = -1, ask: Vector | None = None) -> bool:
        """Start an entry's job, or one task of its array, or note why not. Whether the entry may start more."""
        row, each = self.rows[place], self.waiting(place)
        self._seen.add(row)
        if each.job.het_job_id:
            code = self._het(each)
        else:
            code = self._one(place, each, market, leaf, ask)
            if code == MORE:
                return True
        if code is not None:
            self.board.note(row, code)
        if self.session.misses >= MISSES:
            self.session.screen_again()
            self._settle()
        elif len(self.session.promised_out) > self._settled_views:
            self._settle()
        return False

    def begin(self, place: int, find: Find) -> bool:
        """Start an entry's job, or one task of its array, where `find` says; whether it starts."""
        if self.refusal(place) is not None:
            return False
        self._seen.add(self.rows[place])
        found = self._start(place, 1, find)
        if found is None:
            self.begins(self.rows[place])
        return not isinstance(found, Blocked)

    def refusal(self, place: int) -> Blocked | None:
        """Why the quotas of an entry's queue do not let it start whatever is free."""
        market, leaf, ask = self.queue_of(place)
        if market is None or ask is None:
            return None
        return market.refusal(leaf, ask, self.preemptible(self.waiting(place).job), self.memo.queued.accounts)

    def _with_array_limits(self) -> Bools:
        """Rows whose array says how many may run at a time, and components: each has to be looked at by itself."""
        groups, shapes = self.snapshot.pending.rows["group"], self.snapshot.shapes
        limited = np.zeros(len(groups), dtype=np.bool_)
        if shapes.any_het and len(groups):
            limited = np.array(shapes.het, dtype=np.int64)[groups] != 0
        for row in np.flatnonzero(self.snapshot.pending.rows["array"]).tolist():
            limited[row] = bool(self.snapshot.waiting[self._ids[row]].job.array_limit)
        return limited

    def _settle(self) -> None:
        """Where nobody else is promised anything, whoever certainly finds no room hears that he waits behind others."""
        self._settled_views = len(self.session.promised_out)
        if self.session.counts_limits or not self._settled_views:
            return
        entries = self.entries
        quiet = np.frombuffer(self.roomless, dtype=np.bool_)
        for number in self.session.promised_out:
            view = self.memo.places.by_number[number]
            mine, shapes, lengths = self._of_view(number)
            inside = mine & ~quiet
            inside &= self.session.too_long(view)[shapes] <= lengths
            places = np.flatnonzero(inside)
            found, first = np.unique(shapes[places], return_index=True)
            for shape, place in zip(found.tolist(), places[first].tolist(), strict=True):
                blocked = self.session.misfit(self.waiting(place), view)
                if not blocked.lacks_room:
                    inside &= shapes != shape
            if self.done:
                done = np.zeros(len(self._ids), dtype=np.bool_)
                done[np.fromiter(self.done, dtype=np.int64)] = True
                inside &= ~done[entries.rows]
            quiet |= inside
            self.board.note_all(np.unique(entries.rows[inside]), self._behind)
            self._quiet_rows += int(inside.sum())

    def _of_view(self, number: int) -> tuple[Bools, Ints, Floats]:
        """Entries of a partition that nothing but free space can stop; and shape and length of every entry."""
        found = self._plain.get(number)
        if found is None:
            pairs, entries = self.memo.pairs, self.entries
            mine = (entries.views == number) & pairs.plain[entries.pairs] & ~self._limited[entries.rows]
            found = self._plain[number] = mine, pairs.shapes[entries.pairs], pairs.lengths[entries.pairs]
        return found

    def _screen(self) -> None:
        shapes = self.memo.places.shapes[self.groups]
        for number, view in enumerate(self.memo.places.by_number):
            self.session.screen(np.unique(shapes[self.entries.views == number]), view)

    def _by_claim(self) -> None:
        """In every partition where a promise is left: look at jobs by their claims until it is given."""
        for view in self.memo.places.by_number:
            number = int(self.memo.places.pools[view.number])
            if view.number in self.session.promised_out or number == ACROSS:
                continue
            market, leaves = self.markets[number], self.memo.queued.leaves[number]
            for place in self._claimants(view.number, market, leaves):
                if view.number in self.session.promised_out:
                    break
                if not self.skip(place):
                    group = int(self.groups[place])
                    cpus, memory, gpus = self.memo.queued.vectors[group].tolist()
                    self.look(place, market, int(leaves[group]), (cpus, memory, gpus))

    def _claimants(self, number: int, market: Market, leaves: Ints) -> list[int]:
        """Entries of a partition, the strongest claim first."""
        entries, rows = self.entries, self.snapshot.pending.rows
        places = np.flatnonzero((entries.views == number) & ~self._limited[entries.rows])
        groups = self.groups[places]
        places, groups = places[leaves[groups] >= 0], groups[leaves[groups] >= 0]
        if not len(places):
            return []
        since = rows["accrued"][entries.rows[places]]
        candidates = claims.Candidates(
            waited=self.session.now - np.nan_to_num(since, nan=self.session.now),
            lengths=self.memo.pairs.lengths[entries.pairs[places]],
            asks=self.memo.queued.vectors[groups],
            importance=self.memo.queued.importance[groups],
            leaves=leaves[groups],
        )
        found: list[int] = places[claims.order(candidates, market, self.snapshot)].tolist()
        return found

    def queue_of(self, place: int) -> tuple[Market | None, int, Vector | None]:
        """An entry's market and queue, and what it asks for there; none where it may have nodes of several pools."""
        number = int(self.memo.places.pools[self.numbers[place]])
        if not self.markets or number == ACROSS:
            return None, -1, None
        group = int(self.groups[place])
        cpus, memory, gpus = self.memo.queued.vectors[group].tolist()
        return self.markets[number], int(self.memo.queued.leaves[number][group]), (cpus, memory, gpus)

    def _in_turn(self, market: Market) -> None:
        open_to = np.frombuffer(self.roomless, dtype=np.uint8) == 0
        first = self.order_inside()
        for some in self.by_rank(open_to):
            turns = Turns(market, self.memo, self.groups, self.entries, self._skip_quickly, first=first, among=some)
            for leaf, place, ask in turns:
                if not self.look(place, market, leaf, ask):
                    turns.passed(leaf)

    def by_rank(self, among: Bools) -> Iterator[Bools]:
        """Entries in parts, who may preempt others before them."""
        return by_rank(self.snapshot, self.memo, self.entries, self.groups, among)

    def order_inside(self) -> Floats | None:
        """By entry, what queues order their own jobs by, the least first; None: by priority."""
        limits, way = self.memo.queued.limits[self.groups], self.snapshot.config.scheduling.backfill
        if way != "aged":
            return limits if way == "shortest" else None
        since = self.snapshot.pending.rows["accrued"][self.entries.rows]
        return claims.impatience(self.session.now - since, 60.0 * limits)

    def _across(self) -> None:
        """Jobs that no single pool could ever hold, in one line: they may have nodes of several."""
        pools = self.memo.places.pools
        if (pools != ACROSS).all():
            return
        for place in np.flatnonzero(pools[self.entries.views] == ACROSS).tolist():
            if self.has_part(place) and not self.skip(place):
                self.look(place)

    def has_part(self, place: int) -> bool:
        """Whether an entry may be looked at at all: the whole of a partition of several pools only where no part will do."""
        places, view = self.memo.places, self.view(place)
        if places.pools[view.number] != ACROSS:
            return True
        key = self.keys[place]
        known = self._needs_all.get(key)
        if known is None:
            name, each = view.partition.name, self.waiting(place)
            parts = [part for part in places.by_number if part.partition.name == name and part is not view]
            known = self._needs_all[key] = all(self.session.fits_never(each, part) for part in parts)
        return known

    def _skip_quickly(self, place: int) -> bool:
        """`skip`, and what certainly finds no room behind the last promise needs no turn of its own either."""
        if self.skip(place):
            return True
        view = self.view(place)
        each = self.waiting(place)
        if view.number not in self.session.promised_out or each.job.array_limit or each.job.het_job_id:
            return False
        blocked = self.session.certainly_blocked(each, view)
        if blocked is None or not blocked.lacks_room:
            return False
        self._seen.add(self.rows[place])
        self.stopped[self.keys[place]] = blocked
        self.settled[self.keys[place]] = self._behind
        self.board.note(self.rows[place], self._behind)
        return True

    def _one(self, place: int, each: Waiting, market: Market | None, leaf: int, ask: Vector | None) -> int | None:
        """None when nothing of the job is left, MORE when its array may go on, else the code of what stopped it."""
        session, board, key, view = self.session, self.board, self.keys[place], self.view(place)
        blocked = self.stopped.get(key)
        if blocked is None and not each.job.array_limit:
            blocked = session.certainly_blocked(each, view)
        if blocked is None and market is not None and ask is not None:
            blocked = market.refusal(leaf, ask, self.preemptible(each.job), self.memo.queued.accounts)
        if blocked is None:
            found = self._start(place, 1 if market is not None else None, session.attempt)
            if not isinstance(found, Blocked):
                if found is None:
                    self.begins(self.rows[place])
                return found
            blocked = found
            if blocked.reason == Reason.ARRAY_TASK_LIMIT:
                return board.code(blocked)
        self.stopped[key] = blocked
        if blocked.lacks_room and view.number in session.promised_out:
            self.settled[key] = self._behind
            return self._behind
        told, promised, nodes = session.wait(each, view, blocked)
        if promised is not None:
            self.tally.promises += 1
            board.promise(self.rows[place], promised, nodes)
        code = board.code(told)
        if not blocked.lacks_room:
            self.settled[key] = code
        return code

    def _start(self, place: int, most: int | None, find: Find) -> Blocked | int | None:
        begun, each, view = len(self.starts.made), self.waiting(place), self.view(place)
        found: Blocked | int | None
        if each.job.is_array_record:
            found = start_array(self.session, each, view, self.starts, find, most)
        else:
            found = start_single(self.session, each, view, self.starts, find)
        self.tally.began(len(self.starts.made) - begun)
        self.began_at.update(dict.fromkeys(range(begun, len(self.starts.made)), (place, bool(self.tally.promises))))
        return found

    def take_back(self, at: int) -> None:
        """What starts by this place in `starts.made` waits behind others after all."""
        place, backfilled = self.began_at[at]
        waiting, view, placement = self.starts.placed[at]
        row = self.rows[place]
        self.session.take_back(waiting, view, placement)
        self.starts.take_back(at)
        self.tally.backfilled -= backfilled
        self.done.discard(row)
        self.board.waits(row, self._behind)

    def begins(self, row: int) -> None:
        """The job of a row starts as a whole."""
        self.board.begins(row)
        self.done.add(row)

    def _het(self, each: Waiting) -> int | None:
        """All components at once."""
        group = self._group(each.job.het_job_id)
        rows = [bisect.bisect_left(self._ids, member.job.job_id) for member in group]
        now = self.session.now
        unready = [member.job for member in group if of_job(member.job, now) is not None]
        if len(group) < len(each.job.het_ids) or unready:
            blocked = (of_job(unready[0], now) if unready else None) or Blocked(Reason.NONE)
        else:
            begun = len(self.starts.made)
            found = start_het(self.session, group, self.starts)
            self.tally.began(len(self.starts.made) - begun, parts=True)
            if found is None:
                for row in rows:
                    self.begins(row)
                return None
            blocked = found
        code = self.board.code(blocked)
        for row in rows:
            if self.board.found[row] == NO_CODE:
                self.board.note(row, code)
        self.done.update(rows)
        return code

    def _group(self, het_job_id: int) -> list[Waiting]:
        if self._components is None:
            groups: dict[int, list[Waiting]] = {}
            for each in self.snapshot.waiting.values():
                if each.job.het_job_id:
                    groups.setdefault(each.job.het_job_id, []).append(each)
            for group in groups.values():
                group.sort(key=lambda member: member.job.het_offset)
            self._components = groups
        return self._components[het_job_id]
