"""Which job, array tasks, component or step does `12_[1-3]`, `12+1` or `12_3.0` name?

Shared by scontrol and scancel. Follows the job id forms of scontrol(1) and scancel(1). Says nothing about existence.
"""

from __future__ import annotations

import re

import msgspec

from slurmbridge.errors import LangError
from slurmbridge.lang import arrays
from slurmbridge.model.job import StepId

_FORM = re.compile(
    r"(?P<job>[0-9]{1,10})(?:_(?:(?P<task>[0-9]{1,10})|\[(?P<tasks>[0-9,:\-]+)(?:%[0-9]+)?\])|\+(?P<offset>[0-9]{1,3}))?"
    r"(?:\.(?P<step>[0-9]{1,10}|batch|extern|interactive))?",
    re.ASCII,
)
_STEPS = {step.name.lower(): step.value for step in StepId}
_MAX_ID = 0xFFFFFFFF


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One addressed thing. `tasks` None: the job itself, a whole array or a whole het job."""

    text: str
    job_id: int
    tasks: tuple[int, ...] | None = None
    is_range: bool = False
    offset: int | None = None
    step: int | None = None


def read_target(text: str, max_array_size: int = 4_000_001) -> Target | None:
    """None for what names no job; job 0 names none."""
    match = _FORM.fullmatch(text)
    if match is None or not 0 < int(match["job"]) < _MAX_ID:
        return None
    tasks: tuple[int, ...] | None = None
    if match["task"] is not None:
        tasks = (int(match["task"]),)
    elif match["tasks"] is not None:
        try:
            tasks = tuple(arrays.expand_runs(arrays.parse(match["tasks"], max_array_size).runs))
        except LangError:
            return None
        if not tasks:
            return None
    step = match["step"]
    return Target(
        text=text, job_id=int(match["job"]), tasks=tasks, is_range=match["tasks"] is not None,
        offset=None if match["offset"] is None else int(match["offset"]),
        step=None if step is None else _STEPS.get(step, int(step) if step.isdecimal() else 0),
    )  # fmt: skip


def split_targets(word: str) -> list[str]:
    """The jobs of a list, some perhaps empty: commas outside brackets part them."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(word):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append(word[start:place])
            start = place + 1
    parts.append(word[start:])
    return parts
