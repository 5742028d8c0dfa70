"""The processes of a job in its pod: all that descends from the container's first process, which the supervisor is.

The container is the job's namespace already: nothing is made here, and what is left when the first process ends ends with
it. Processes that the supervisor needs for itself are no part of the job.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from slurmbridge.supervisor.loop import Loop
from slurmbridge.supervisor.space import Process, Space


class PodSpace(Space):
    """`aside`: children that are not the job's."""

    def __init__(self) -> None:
        super().__init__(namespaces=False)
        self.aside: set[int] = set()

    def processes(self) -> list[Process]:
        return [process for process in super().processes() if process.pid not in self.aside]

    def part(self, loop: Loop) -> None:
        """The end of a process aside is nobody's business."""
        inner = loop.on_child

        def on_child(pid: int, status: int, usage: object) -> None:
            if pid in self.aside:
                self.aside.discard(pid)
            else:
                inner(pid, status, usage)

        loop.on_child = on_child

    def fork(self, loop: Loop, work: Callable[[], None]) -> int:
        """A child aside. OSError when there is no room."""
        pid = os.fork()
        if pid == 0:
            try:
                loop.close_in_child()
                work()
            finally:
                os._exit(0)
        self.aside.add(pid)
        return pid


def say(text: str) -> None:
    """A line in the container's own log."""
    try:
        print(f"slurmbridge: {text}", file=sys.stderr, flush=True)
    except OSError:
        return
