"""Output of runs whose files nothing keeps, on its way from a supervisor to who keeps it (frames F and G of
`wire.supervisor`).

A supervisor waits for an answer before it sends the next piece. One that does not wait loses its link: what comes is in the
daemon's memory until the disk has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from slurmbridge.model.run import RunKey
from slurmbridge.runtime.kube.run import Run
from slurmbridge.wire import supervisor as wire

MOST_UNDER_WAY = 4
"""Of one rank: those of links that were cut are under way still when it is back."""

Keep: TypeAlias = Callable[[RunKey, int, wire.Output, Callable[[int, bool], None]], None]
"""(run, rank, piece, what is to be told how far the stream is and whether all of it is there to stay)."""


def _nobody(key: RunKey, rank: int, piece: wire.Output, kept: Callable[[int, bool], None]) -> None:
    kept(piece.offset + len(piece.data), piece.lost >= 0)


class Keeping:
    """`keep` is set before a supervisor is welcome; else what comes is dropped."""

    def __init__(self) -> None:
        self.keep: Keep = _nobody
        self._under_way: Counter[tuple[RunKey, int]] = Counter()

    def before(self, told: Callable[[Run, bytes, bytes], None], run: Run, rank: int) -> Callable[[bytes, bytes], None]:
        """What hears the frames of one link: output itself, all others by `told`."""

        def hear(kind: bytes, payload: bytes) -> None:
            if kind == wire.OUTPUT:
                self._told(run, rank, payload)
            else:
                told(run, kind, payload)

        return hear

    def _told(self, run: Run, rank: int, payload: bytes) -> None:
        """ValueError: no supervisor sends that."""
        piece, place = wire.decode_output(payload), (run.key, rank)
        if self._under_way[place] >= MOST_UNDER_WAY:
            raise ValueError("output before the answer to what came before")
        self._under_way[place] += 1

        def kept(size: int, over: bool) -> None:
            self._under_way[place] -= 1
            if not self._under_way[place]:
                del self._under_way[place]
            channel = run.channels.get(rank)
            if channel is not None:
                channel.send(wire.KEPT, wire.encode({"stream": piece.stream, "size": size, "over": over}))

        self.keep(run.key, rank, piece, kept)
