"""A connection to a run that asks for no step of its own: sattach looks on at one, sbcast brings a file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from slurmbridge.supervisor import onlookers
from slurmbridge.supervisor.loop import Link
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import unpack

if TYPE_CHECKING:
    from slurmbridge.supervisor.casting import Cast
    from slurmbridge.supervisor.head import Head
    from slurmbridge.supervisor.pod_cast import Spread
    from slurmbridge.supervisor.step_state import RunningStep

FromClient = Callable[["RunningStep", bytes, bytes], None]


class Guest:
    """`live`: the run's steps by number; `speak` passes a frame on to a step as its own srun would."""

    def __init__(self, head: Head, link: Link, live: dict[int, RunningStep], speak: FromClient) -> None:
        self._head, self._link, self._live, self._speak = head, link, live, speak
        self._watched = -1
        self._cast: Cast | Spread | None = None

    def frame(self, kind: bytes, payload: bytes) -> None:
        """What it says. ValueError: nonsense."""
        if self._cast is not None:
            self._cast.frame(kind, payload)
        elif kind == wire.CAST and not self._head.is_ending:
            self._cast = self._head.cast(self._link)
            self._cast.begin(payload)
        elif kind == wire.ATTACH and self._watched < 0:
            ranks = self._head.header["ranks"]
            self._watched = onlookers.admit(self._link, payload, self._live, self._head.job_id, ranks)
        elif kind == wire.LAY and self._watched < 0:
            self._lay(payload)
        elif kind == wire.STDIN and self._watched in self._live:
            self._speak(self._live[self._watched], kind, payload)

    def _lay(self, payload: bytes) -> None:
        version, path = unpack(payload)
        if version != wire.VERSION:
            raise ValueError("of another version than the job")
        source = os.dup(self._link.fileno())
        try:
            self._head.lay(os.fsdecode(path), source)
        except OSError as error:
            os.close(source)
            self._link.send(wire.FINISHED, b"%d" % (error.errno or errno.EIO))
            self._link.close()
            return
        self._link.send(wire.MORE)
        self._link.detach().close()

    def lost(self) -> None:
        """It has gone."""
        if self._cast is not None:
            self._cast.lost()
