"""Steps of jobs whose supervisors only the daemon reaches: it joins who asks with a connection that the supervisor dials.

srun, sattach and sbcast outside of a pod say for which job (frame T of `wire.client`); the supervisor is told to dial once
more (frame W of `wire.supervisor`); what each side sends is then passed on to the other, as fast as it is read there.
"""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
from collections.abc import Callable

from slurmbridge.daemon.jobtable import JobTable, holds_resources
from slurmbridge.daemon.peer import Peer
from slurmbridge.model.job import Job
from slurmbridge.model.run import RunKey
from slurmbridge.wire import step
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import frame, unpack

WITHIN_S = 60.0
"""From the order to dial until the supervisor has dialled."""
AHEAD = 1 << 18
"""Bytes that are kept of who asks until then; a request is rarely larger than an environment."""

DENIED = "Access/permission denied"
INVALID = "Invalid job id specified"
SILENT = "Communication connection failure"


def through(job_id: int) -> str:
    """The address of a job's supervisor for who reaches only us."""
    return f"through:{job_id}"


class End(asyncio.Protocol):
    """One of two connections that are joined, or the first that waits for the second."""

    def __init__(self, transport: asyncio.Transport, first: bytes, lost: Callable[[Exception | None], None]) -> None:
        self.transport, self._lost = transport, lost
        self._kept = bytearray(first)
        self._other: End | None = None
        transport.set_protocol(self)

    def join(self, other: End) -> None:
        self._other, other._other = other, self
        for end, far in ((self, other), (other, self)):
            far.transport.write(bytes(end._kept))
            end._kept.clear()
            end.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._other is not None:
            self._other.transport.write(data)
            return
        self._kept += data
        if len(self._kept) > AHEAD:
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and not self._other.transport.is_closing():
            self._other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(exc)
        if self._other is not None:
            self._other.transport.close()


class Waiting:
    """Who asked, and of which run."""

    __slots__ = ("end", "key", "refuse", "timer")

    def __init__(self, key: RunKey, end: End, timer: asyncio.TimerHandle, refuse: Callable[[], None]) -> None:
        self.key, self.end, self.timer, self.refuse = key, end, timer, refuse


class Through:
    """`order(key, name)`: have the first supervisor of a run dial, with that name; False: none can be reached this way."""

    def __init__(self, table: JobTable) -> None:
        self._table = table
        self._waiting: dict[str, Waiting] = {}
        self.order: Callable[[RunKey, str], bool] = lambda key, name: False

    def begin(
        self, payload: bytes, peer: Peer, transport: asyncio.Transport, first: bytes,
        lost: Callable[[Exception | None], None],
    ) -> None:  # fmt: skip
        """The transport is ours from here on; `first`: what came behind T. `lost`: told when it ends."""
        name = ""

        def gone(exc: Exception | None) -> None:
            waiting = self._waiting.pop(name, None)
            if waiting is not None:
                waiting.timer.cancel()
            lost(exc)

        end = End(transport, first, gone)
        try:
            text, command = (os.fsdecode(part) for part in unpack(payload))
        except ValueError:
            transport.close()
            return
        job = self._job(text)
        if job is None:
            refuse(transport, command, text, INVALID)
        elif peer.uid not in (0, job.spec.uid):
            refuse(transport, command, text, DENIED)
        else:
            name, key = secrets.token_hex(16), RunKey(job.job_id, job.restarts)
            too_late = functools.partial(refuse, transport, command, text, SILENT)
            timer = asyncio.get_running_loop().call_later(WITHIN_S, too_late)
            self._waiting[name] = Waiting(key, end, timer, too_late)
            if not self.order(key, name):
                refuse(transport, command, text, INVALID)

    def _job(self, text: str) -> Job | None:
        job = self._table.get(int(text)) if text.isascii() and text.isdecimal() and len(text) < 20 else None
        return job if job is not None and holds_resources(job) else None

    def failed(self, name: str) -> None:
        """No supervisor will dial with that name."""
        waiting = self._waiting.get(name)
        if waiting is not None:
            waiting.refuse()

    def arrived(self, key: RunKey, name: str, transport: asyncio.Transport, first: bytes) -> bool:
        """The supervisor of this run dialled with that name. False: nobody waits for it."""
        waiting = self._waiting.get(name)
        if waiting is None or waiting.key != key or waiting.end.transport.is_closing():
            return False
        del self._waiting[name]
        waiting.timer.cancel()
        waiting.end.join(End(transport, first, lambda exc: None))
        return True


def refuse(transport: asyncio.Transport, command: str, job: str, why: str) -> None:
    """In the words of the supervisor's own refusals, or of srun where there is no allocation."""
    if command != "srun":
        lines = [f"{command}: error: Unable to reach the step of job {job}: {why}"]
    elif why == SILENT:
        lines = [f"srun: error: Unable to create step for job {job}: {why}"]
    else:
        lines = [
            f"srun: error: Unable to confirm allocation for job {job}: {why}",
            f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job}",
        ]
    transport.write(frame(step.REFUSED, wire.encode({"lines": lines, "exit": 1})))
    transport.close()
