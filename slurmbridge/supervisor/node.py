"""One node's part of a run: its space, its children by group, what they used, and its end.

A group is the batch script or one step's tasks on this node. Rank 0 (`head`) and the others (`member`) both have one.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import deque
from collections.abc import Callable
from typing import Any

from slurmbridge.supervisor.loop import Loop, Timer
from slurmbridge.supervisor.space import Process, Space, members
from slurmbridge.supervisor.spawn import Identity, reset_signals, write_all
from slurmbridge.supervisor.usage import NOTHING, Meter, add

SAMPLES_S = (0.2, 1.0, 2.0, 4.0, 10.0)
"""Time before each look at what processes hold, the last one again and again: soon, and then ever more seldom."""
EMPTY_POLL_S = 0.05
LAST_WORDS_S = 1.0
"""How long the end of a job waits for lines about it to reach its files."""
BATCH = -5


class Child:
    """A direct child: which group and task it is, and who wants to know of its end."""

    __slots__ = ("group", "on_exit", "task")

    def __init__(self, group: int, task: int, on_exit: Callable[[int], None]) -> None:
        self.group, self.task, self.on_exit = group, task, on_exit


class NodeRun:
    """See the module docstring. `on_empty` is called once, when after `end` nothing is left."""

    def __init__(self, loop: Loop, header: dict[str, Any], space: Space) -> None:
        self.loop, self.node, self.rank = loop, str(header["node"]), int(header["rank"])
        self.is_root = os.getuid() == 0
        self.identity = Identity(
            int(header["uid"]), int(header["gid"]), [int(gid) for gid in header["groups"]], change=self.is_root
        )
        self.space = space
        self.children: dict[int, Child] = {}
        self.meters: dict[int, Meter] = {}
        self.on_empty: Callable[[], None] = lambda: None
        self.place: Callable[[str, str], str | int] = lambda path, what: path
        """(file for output, what of `wire.supervisor` it is) -> the file, or a descriptor in its place. OSError."""
        self._writes: deque[tuple[int, bytes]] = deque()
        self._writer = 0
        self._end_when_written: Timer | None = None
        self._ending = False
        self._empty = False
        self._samples = 0
        self._sampler: Timer | None = None
        loop.on_child = self._reaped

    def spawn(self, group: int, task: int, child: Callable[[], None], on_exit: Callable[[int], None]) -> int:
        """Fork; `child` runs in the new process and must exec (returning ends it). OSError when there is no room."""
        self.meters.setdefault(group, Meter())
        pid = os.fork()
        if pid == 0:
            try:
                self.loop.close_in_child()
                reset_signals()
                os.setsid()
                child()
            finally:
                os._exit(1)
        self.children[pid] = Child(group, task, on_exit)
        if self._sampler is None:
            self._sampler = self.loop.after(SAMPLES_S[0], self._sample)
        return pid

    def roots(self, group: int | None = None) -> list[int]:
        """Pids of the direct children of one group, or of all."""
        return [pid for pid, child in self.children.items() if group is None or child.group == group]

    def signal_group(self, group: int, number: int, *, leader_only: bool = False) -> None:
        """To all processes of a group (`leader_only`: its direct children alone)."""
        roots = self.roots(group)
        if not roots:
            return
        if leader_only:
            for pid in roots:
                _kill(pid, number)
            return
        self.space.signal_tree(number, roots)

    def end_sessions(self, sessions: set[int]) -> None:
        """SIGKILL to what is left in these sessions (leaders as the job's own process table names them)."""
        if sessions and not self._ending:
            self.space.end_sessions(sessions)

    def signal_all(self, number: int) -> None:
        """To every process of the job here."""
        if not self._ending:
            self.space.signal_all(number, self.roots())

    def write(self, fd: int, data: bytes) -> None:
        """To a file of the job, by a process that may wait for it as long as it likes; in the order of the calls."""
        self._writes.append((fd, data))
        if not self._writer:
            self._write_next()

    def _write_next(self) -> None:
        self._writer = 0
        if not self._writes:
            return
        fd, data = self._writes.popleft()
        # what signals the whole job must not stop a line about it
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
        try:
            pid = os.fork()
        except OSError:
            self._writes.clear()
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
                self.loop.close_in_child()
                self.identity.become()
                write_all(fd, data)
            finally:
                os._exit(0)
        self._writer = pid

    def usage(self, group: int) -> dict[str, object]:
        """Of a group, running processes included."""
        roots = self.roots(group)
        running = self._tree(roots) if roots and not self._ending else []
        return self.meters.setdefault(group, Meter()).value(self.node, running)

    def end(self) -> None:
        """SIGKILL to everything; `on_empty` follows."""
        if self._ending or self._end_when_written is not None:
            return
        if self._writer:
            self._end_when_written = self.loop.after(LAST_WORDS_S, self._end_now)
        else:
            self._end_now()

    def _end_now(self) -> None:
        if self._ending:
            return
        self._sample_now()
        self._ending = True
        self.space.end(self.roots())
        self._check_empty()

    def total(self) -> dict[str, object]:
        """Of all groups together."""
        whole = dict(NOTHING)
        for group in self.meters:
            whole = add(whole, self.usage(group))
        return whole

    @property
    def is_empty(self) -> bool:
        """Whether everything has ended (only ever after `end`)."""
        return self._empty

    @property
    def is_ending(self) -> bool:
        return self._ending or self._end_when_written is not None

    def _reaped(self, pid: int, status: int, usage: object) -> None:
        if pid == self.space.init_pid:
            self.space.init_pid = 0
            self.meters.setdefault(BATCH if self.rank == 0 else 0, Meter()).reaped(usage)  # type: ignore[arg-type]
            self._ending = True
            for each in self.roots():
                _kill(each, signal.SIGKILL)
            self._check_empty()
            return
        if pid == self._writer:
            self._write_next()
            if self._end_when_written is not None and not self._writer:
                self._end_when_written.cancel()
                self._end_now()
            return
        child = self.children.pop(pid, None)
        if child is None:
            if not self.space.is_namespace:
                self.meters.setdefault(BATCH if self.rank == 0 else 0, Meter()).reaped(usage)  # type: ignore[arg-type]
        else:
            self.meters[child.group].reaped(usage, child.task)  # type: ignore[arg-type]
            child.on_exit(status)
        if self._ending:
            self._check_empty()

    def _check_empty(self) -> None:
        if self._empty or not self._ending or self.children or self.space.init_pid:
            return
        if not self.space.was_namespace:
            left = self.space.processes()
            if left:
                for each in left:
                    _kill(each.pid, signal.SIGKILL)
                self.loop.after(EMPTY_POLL_S, self._check_empty)
                return
        self._empty = True
        if self._sampler is not None:
            self._sampler.cancel()
        self.on_empty()

    def _tree(self, roots: list[int]) -> list[Process]:
        inner = {self.space.inner_pid(pid) for pid in roots} - {0}
        return members(self.space.processes(), inner)

    def _sample(self) -> None:
        self._sample_now()
        self._samples = min(self._samples + 1, len(SAMPLES_S) - 1)
        self._sampler = self.loop.after(SAMPLES_S[self._samples], self._sample)

    def _sample_now(self) -> None:
        if self._ending or not self.children:
            return
        table = self.space.processes()
        for pid, child in self.children.items():
            inner = self.space.inner_pid(pid)
            tree = members(table, {inner}) if inner else []
            meter = self.meters[child.group]
            meter.seen(tree, child.task)
            for each in tree:
                meter.peak(self.space.high_water_kib(each.pid), child.task)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except OSError as error:
        if error.errno != errno.EINVAL:  # --signal takes numbers that are no signals
            raise
