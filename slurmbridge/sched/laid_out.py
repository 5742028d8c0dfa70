"""Does a job fit where a place was laid out for it, and nowhere else?

Whoever makes room looks at amounts; when the job begins there, the numbers of its CPUs are chosen. Looks at the nodes of that
place alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slurmbridge.model.request import LicenseTerm
from slurmbridge.sched.choose import Part
from slurmbridge.sched.eligibility import NO_ROOM, Blocked
from slurmbridge.sched.fates import cuts
from slurmbridge.sched.one_node import OneNode, part_of_one
from slurmbridge.sched.place import Placement
from slurmbridge.sched.room import Hold, Room
from slurmbridge.sched.session import Session
from slurmbridge.sched.snapshot import PartitionView, Waiting


class LaidOut:
    """The question, asked of one session. `holds`: what the job would have there."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._one: OneNode | None = None

    def start_at(self, waiting: Waiting, view: PartitionView, *, holds: Sequence[Hold]) -> Placement | Blocked:
        """Where these holds are, as far as they are free now."""
        session = self._session
        licenses = session.admits(waiting, view)
        if isinstance(licenses, Blocked):
            return licenses
        fate, lengths = session.fate(waiting, view), list[float]()
        if fate.whole > fate.length:
            lengths += cuts(waiting.job, fate, session.now, ())
        for length in (*lengths, fate.length):
            found = self.place(waiting, view, session.horizon.room, holds, length, licenses)
            if found is not None:
                cut = found if length >= fate.whole else msgspec.structs.replace(found, minutes=int(length // 60))
                return session.within_limits(waiting, view, cut)
        return NO_ROOM

    def place(
        self,
        waiting: Waiting,
        view: PartitionView,
        room: Room,
        holds: Sequence[Hold],
        length: float,
        licenses: tuple[LicenseTerm, ...],
    ) -> Placement | None:
        """The same in any room, limits apart."""
        session, part = self._session, part_of_one(self._session, waiting, view)
        if part is None or len(holds) > 1:
            only = room.only(holds)
            return session.finder.place(waiting.job, waiting.shape, view, only, only, licenses, length, None)
        if self._one is None:
            self._one = OneNode(session.snapshot.columns, session.horizon.room)
        self._one.begin(holds[0].row, room, ())
        self._one.limits.cap(holds[0])
        numbered = room if room.busy else None
        return self._one.place(session, waiting.shape, view, Part(holds[0].row, part.tasks, part.devices), numbered)
