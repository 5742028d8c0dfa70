"""One step from its request to its end, and its record: what of it is told and kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from slurmbridge.supervisor import layout, onlookers
from slurmbridge.supervisor.loop import Link, Timer
from slurmbridge.supervisor.usage import NOTHING

Adapt = Callable[[dict[str, str]], dict[str, str]]
"""What a run makes of the environment that a step brings."""


class RunningStep:
    """One step from its request to its end. `step` is -1 until it has its resources."""

    def __init__(self, link: Link, request: dict[str, Any], env: dict[str, str]) -> None:
        self.link, self.request, self.env = link, request, env
        self.step = -1
        self.plan: layout.Layout | None = None
        self.devices: dict[int, tuple[int, ...]] = {}
        self.start = 0.0
        self.is_started = False
        self.left: set[int] = set()  # ranks whose parts run
        self.statuses: dict[int, int] = {}
        self.usage: dict[str, object] = dict(NOTHING)
        self.cancelled = False
        self.announced = False
        self.in_barrier: set[int] = set()
        self.values: dict[str, str] = {}
        self.timer: Timer | None = None
        self.onlookers: list[Link] = []  # of sattach
        self.full: set[int] = set()  # ranks whose tasks have enough standard input before them
        self.early: list[tuple[bytes, bytes]] = []  # standard input that came before the tasks

    def tell(self, kind: bytes, payload: bytes) -> None:
        """A frame for the step's srun and for those who look on."""
        self.link.send(kind, payload)
        if self.onlookers:
            onlookers.tell(self, kind, payload)

    @property
    def holds(self) -> bool:
        """Whether its CPUs are taken from others."""
        return self.plan is not None and not self.request.get("overlap") and not self.request.get("external")


def record_of(step: RunningStep, ranks: list[dict[str, Any]], state: str) -> dict[str, object]:
    plan, request = step.plan, step.request
    assert plan is not None
    status = max(step.statuses.values(), key=_weight, default=0)
    return {
        "step_id": step.step,
        "name": str(request.get("name") or os.path.basename(str(request["argv"][0]))),
        "state": state,
        "start": step.start,
        "end": None if state == "RUNNING" else time.time(),
        "nodes": [ranks[rank]["node"] for rank in plan.ranks],
        "tasks": sum(len(ids) for ids in plan.tasks),
        "cpus": sum(plan.cpus),
        "tres": tres_of([ranks[rank] for rank in plan.ranks], list(plan.cpus)),
        "exit": status,
        "layout": "Unknown" if request.get("external") else plan.distribution.split(":")[0].capitalize(),
        "submit_line": str(request.get("submit_line") or ""),
        "std_out": str(request.get("out") or ""),
        "std_err": str(request.get("err") or ""),
        "std_in": str(request.get("in") or ""),
        "usage": None if state == "RUNNING" else step.usage,
    }


def tres_of(ranks: list[dict[str, Any]], cpus: list[int]) -> list[list[object]]:
    """TRES of a step on these nodes: memory goes with the CPUs."""
    memory = sum(rank["memory"] * held // max(1, rank["cpus"]) for rank, held in zip(ranks, cpus, strict=True))
    return [["cpu", sum(cpus)], ["mem", memory], ["node", len(ranks)]] if sum(cpus) else []


def _weight(status: int) -> tuple[int, int]:
    """A signal outweighs an exit code, a larger code a smaller."""
    return (1 if status & 0x7F else 0, status)


def state_of(step: RunningStep) -> str:
    status = max(step.statuses.values(), key=_weight, default=0)
    if step.cancelled or status & 0x7F:
        return "CANCELLED"
    return "FAILED" if status else "COMPLETED"
