"""Files that srun writes itself, in a pod where no file system keeps them: what is written goes to the job's supervisor.

The supervisor says with the step which folders are mounted there (`wire.step`, c). Standard library only.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from slurmbridge.cli import srun_reach
from slurmbridge.lang.lasting import lasts
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import Decoder, frame, pack

Keep = Callable[[str], int]
"""(file) -> a descriptor in its place, -1: it is to be opened. OSError."""
PATIENCE_S = 30.0


class Keeper:
    """`created`: what the supervisor at `address` said of the step."""

    def __init__(self, address: str, created: dict[str, Any]) -> None:
        self._address = address
        mounts: Sequence[tuple[str, bool]] = created.get("mounts") or ()
        is_inside = "mounts" in created and not address.startswith(srun_reach.THROUGH)  # outside, files are outside
        self._mounts = mounts if is_inside else None

    def __call__(self, name: str) -> int:
        path = os.path.abspath(name)
        if self._mounts is None or lasts(self._mounts, path):
            return -1
        with srun_reach.reach(self._address, "srun", {}) as sock:
            sock.settimeout(PATIENCE_S)
            sock.sendall(frame(wire.LAY, pack(wire.VERSION, os.fsencode(path))))
            self._agree(sock)
            sock.setblocking(True)
            return os.dup(sock.fileno())

    @staticmethod
    def _agree(sock: socket.socket) -> None:
        decoder = Decoder()
        while not (frames := decoder.feed(data := sock.recv(1 << 12))):
            if not data:
                raise ConnectionError("the job's supervisor does not take it")
        if frames[0][0] != wire.MORE:
            raise OSError(int(frames[0][1]), os.strerror(int(frames[0][1])))
