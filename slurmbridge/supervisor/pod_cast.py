"""sbcast on nodes that have files of their own: every rank writes the file, and the next block comes when all have the last.

Rank 0 passes the sender's frames on over its links, under a number as if it were a step's; the first rank that fails ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from slurmbridge.supervisor.casting import Cast
from slurmbridge.supervisor.loop import Link
from slurmbridge.supervisor.node import NodeRun
from slurmbridge.wire import step as wire
from slurmbridge.wire.supervisor import decode

if TYPE_CHECKING:
    from slurmbridge.supervisor.pod_head import PodHead

FIRST_NUMBER = 1 << 31
"""Steps have smaller ones."""


class Answers:
    """What a rank's writer says, in the place of a link."""

    def __init__(self, say: Callable[[bytes, bytes], None]) -> None:
        self._say = say

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self._say(kind, payload)

    def close(self) -> None:
        """Nothing to close: the last frame says it."""


class Spread:
    """Rank 0's side of one file. As `Cast`."""

    def __init__(self, head: PodHead, link: Link, number: int, ranks: int, on_over: Callable[[int], None]) -> None:
        self._head, self._link, self._number, self._on_over = head, link, number, on_over
        self._ranks = range(1, ranks)
        self._left = set(range(ranks))
        self._busy = set(self._left)
        self._own = Cast(head.node, Answers(lambda kind, payload: self.told(0, kind, payload)))

    def begin(self, payload: bytes) -> None:
        self._own.begin(payload)  # first: what is nonsense goes no further
        self._pass_on(wire.CAST, payload)

    def frame(self, kind: bytes, payload: bytes) -> None:
        self._busy = set(self._left)
        self._pass_on(kind, payload)
        self._own.frame(kind, payload)

    def lost(self) -> None:
        """The sender is gone."""
        self._left.clear()
        self._pass_on(wire.FINISHED, b"")
        self._own.lost()
        self._on_over(self._number)

    def told(self, rank: int, kind: bytes, payload: bytes) -> None:
        """A rank has room for more, or is done."""
        if rank not in self._left:
            return
        if kind == wire.MORE:
            self._busy.discard(rank)
        elif kind == wire.FINISHED:
            self._left.discard(rank)
            self._busy.discard(rank)
            if decode(payload)["errno"] or not self._left:
                self._link.send(wire.FINISHED, payload)
                self._link.close()
                self.lost()  # the others' writers wait for more
                return
        if not self._busy and self._left:
            self._link.send(wire.MORE)

    def _pass_on(self, kind: bytes, payload: bytes) -> None:
        for rank in self._ranks:
            self._head.peers.send(rank, kind, wire.number(self._number, payload))


class Receiver:
    """Another rank's side, for all files."""

    def __init__(self, node: NodeRun, emit: Callable[[int, bytes, bytes], None]) -> None:
        self._node, self._emit = node, emit
        self._casts: dict[int, Cast] = {}

    def frame(self, number: int, kind: bytes, payload: bytes) -> None:
        if kind == wire.CAST:
            cast = Cast(self._node, Answers(lambda what, load: self._told(number, what, load)))
            self._casts[number] = cast
            cast.begin(payload)
        elif number in self._casts:
            if kind == wire.FINISHED:
                self._casts.pop(number).lost()
            else:
                self._casts[number].frame(kind, payload)

    def _told(self, number: int, kind: bytes, payload: bytes) -> None:
        if kind == wire.FINISHED:
            self._casts.pop(number, None)
        self._emit(number, kind, payload)
