"""The loop of srun: its one step, or the steps of several components that look like one (MPMD).

Components of a heterogeneous job have supervisors and steps of their own; here their tasks are counted on, wait for each
other to begin, and share standard input, signals and the exit code. Standard library only.
"""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Sequence
from typing import Any

from slurmbridge.cli.srun_session import ENDING, FORWARDED, RESIZED, SIGNALS, Session


def run(sessions: Sequence[Session], payloads: Sequence[bytes]) -> int:
    """Until all are over: the highest exit code."""
    signals, signals_in = os.pipe()
    for end in (signals, signals_in):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(signals_in, warn_on_full_buffer=False)
    for number in (*SIGNALS, *FORWARDED, *ENDING, *RESIZED):
        signal.signal(number, lambda number, where: None)
    for session, payload in zip(sessions, payloads, strict=True):
        session.start(payload)
    while running := [session for session in sessions if session.code is None]:
        _turn(running, signals)
        if any(session.code is not None and not session.has_begun for session in sessions):
            for session in sessions:
                session.abandon()
    for session in sessions:
        session.finish()
    return max(session.code or 0 for session in sessions)


def _turn(sessions: Sequence[Session], signals: int) -> None:
    readers, writers, due = [signals], list[int](), list[float]()
    for session in sessions:
        wanted_in, wanted_out, at = session.wants()
        readers += wanted_in
        writers += wanted_out
        due += [at] if at is not None else []
    timeout = max(0.0, min(due) - time.monotonic()) if due else None
    ready, writable, _ = select.select(readers, writers, [], timeout)
    if signals in ready:
        for number in os.read(signals, 64):
            for session in sessions:
                session.signalled(number)
    for session in sessions:
        if session.code is None:
            session.serve(ready, writable)


class Together:
    """Lets components begin when all have their step, each knowing of the whole. Use as the `gate` of sessions."""

    def __init__(self, leader: str) -> None:
        self._leader = leader  # job id of the first component
        self.sessions: list[Session] = []
        self._created: dict[int, dict[str, Any]] = {}

    def __call__(self, session: Session, value: dict[str, Any]) -> None:
        self._created[self.sessions.index(session)] = value
        if len(self._created) < len(self.sessions):
            return
        ordered = [self._created[index] for index in range(len(self.sessions))]
        nodes = [node for each in ordered for node in each["nodes"]]
        total = sum(len(node["tasks"]) for node in nodes)
        whole = merged(nodes)
        self.sessions[0].relay = list(self.sessions)
        for follower in self.sessions[1:]:
            follower.relay = []
        offset = node_offset = 0
        for session, each in zip(self.sessions, ordered, strict=True):
            facts = {"leader": self._leader, "offset": offset, "node_offset": node_offset, **whole}
            session.begin(each, total - 1, {"het": facts})
            offset += sum(len(node["tasks"]) for node in each["nodes"])
            node_offset += len(each["nodes"])


def merged(nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Names in order, and tasks and CPUs on each, whatever component brought them."""
    tasks: dict[str, int] = {}
    cpus: dict[str, int] = {}
    for node in nodes:
        name = str(node["name"])
        tasks[name] = tasks.get(name, 0) + len(node["tasks"])
        cpus[name] = cpus.get(name, 0) + int(node.get("cpus", 0))
    names = sorted(tasks, key=_natural)
    return {"nodes": names, "tasks": [tasks[name] for name in names], "cpus": [cpus[name] for name in names]}


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """n2 before n10."""
    return tuple((text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name))
