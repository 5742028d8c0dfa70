"""A caller at the agent's socket, from dialling in to the end: who he is, a way to the daemon, then bytes both ways.

What he says before there is a way is kept, up to `AHEAD`. When no way is found in time he is told so as a job's commands are
(frame L of `wire.client`), and says himself in Slurm's words that there is no controller.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from slurmbridge.agent.far import Far, Refused
from slurmbridge.daemon import through
from slurmbridge.daemon.peer import Peer, of_socket
from slurmbridge.wire import client as wire

if TYPE_CHECKING:
    from slurmbridge.agent.main import Agent

log = logging.getLogger(__name__)

AHEAD = 1 << 18
PATIENCE_S = 8.0
"""How long the daemon is tried for a command: less than the command waits for its first answer."""
FIRST_S, LAST_S = 0.1, 1.0
"""Pauses between tries."""


class Near(asyncio.Protocol):
    """`Far`'s caller."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._peer: Peer
        self._is_counted = False
        self._kept = bytearray()
        self._held = 0  # bytes of it, as they were counted
        self._far: Far | None = None
        self._task: asyncio.Task[None] | None = None
        self._has_ended = False
        self._is_full = False  # he does not take what comes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._peer = of_socket(transport.get_extra_info("socket"))
        if not self._agent.crowd.may_come(self._peer.uid):
            self._refuse("Access/permission denied")
            return
        self._agent.crowd.came(self._peer.uid)
        self._is_counted = True

    async def _begin(self) -> None:
        try:
            caller = await self._agent.lookup.find(self._peer)
        except LookupError as fault:
            self._refuse(f"Access/permission denied: {fault}")
            return
        try:
            far = await self._way()
        except Refused as fault:
            self._agent.say(str(fault))
            self._refuse(f"the agent of this login node is not let in: {fault}; an administrator has to see to it")
            return
        if far is None:
            self._part()
            return
        self._agent.reached()
        self._far = far
        far.begin(self, caller)
        if self._kept:
            far.say(bytes(self._kept))
            self._kept.clear()
            self._weigh()
        if self._has_ended:
            far.end()
        elif not self._transport.is_closing():
            self._transport.resume_reading()

    async def _way(self) -> Far | None:
        """None: the daemon is not reached in time."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + PATIENCE_S, FIRST_S
        while True:
            try:
                return await self._agent.pool.take()
            except OSError as fault:
                self._agent.say(fault.strerror or str(fault))
            if loop.time() + pause > end:
                return None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_S)

    def _part(self) -> None:
        """He asked for a step of a job, or types a command."""
        try:
            frames = wire.Decoder().feed(bytes(self._kept))
        except ValueError:
            frames = []
        if frames and frames[0][0] == b"T":
            try:
                job, command = (part.decode(errors="replace") for part in wire.unpack(frames[0][1]))
            except ValueError:
                job, command = "", "srun"
            through.refuse(self._transport, command, job, through.SILENT)
            return
        self._transport.write(wire.frame(wire.BY_YOURSELF, b""))
        self._transport.close()

    def _refuse(self, message: str) -> None:
        self._transport.write(wire.frame(b"E", f"slurm: error: {message}\n".encode(errors="replace")))
        self._transport.write(wire.frame(b"X", b"1"))
        self._transport.close()

    # ---- his side

    def data_received(self, data: bytes) -> None:
        if self._far is not None:
            self._far.say(data)
            return
        if self._task is None and self._is_counted:  # who says nothing costs the daemon nothing
            self._task = asyncio.get_running_loop().create_task(self._begin())
        self._kept += data
        if not self._weigh():
            log.warning("event=connection.cut uid=%d bytes=%d", self._peer.uid, self._held)
            self._transport.abort()
        elif len(self._kept) > AHEAD:
            self._transport.pause_reading()

    def _weigh(self) -> bool:
        """Count what waits for a way; False: his user has too much of it."""
        before, self._held = self._held, len(self._kept)
        return not self._is_counted or self._agent.crowd.holds(self._peer.uid, before, self._held)

    def eof_received(self) -> bool:
        """He says no more, and may still listen."""
        self._has_ended = True
        if self._far is not None:
            self._far.end()
        return self._task is not None

    def pause_writing(self) -> None:
        if self._far is not None:
            self._far.hold(True)

    def resume_writing(self) -> None:
        if self._far is not None:
            self._far.hold(False)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_counted:
            self._agent.crowd.went(self._peer.uid, self._held)
        if self._far is not None:
            self._far.let_go()
            self._far = None
        elif self._task is not None:
            self._task.cancel()

    # ---- the daemon's side

    def came(self, data: bytes) -> None:
        self._transport.write(data)

    def ended(self) -> None:
        self._far = None
        self._transport.close()

    def cut(self) -> None:
        self._far = None
        self._transport.close()

    def hold(self, full: bool) -> None:
        if self._transport.is_closing():
            return
        if full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
