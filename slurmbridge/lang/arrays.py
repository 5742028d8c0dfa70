"""Which tasks does `--array=1-10:2,15%4` ask for, and how does Slurm write a set of tasks?

Follows sbatch(1) --array. A set of tasks is a tuple of (first, last, step) runs, disjoint and ordered by first; an array
of a million tasks is one run and is never spelled out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number
from slurmbridge.model.request import ArraySpec

Run = tuple[int, int, int]
Runs = tuple[Run, ...]

TEXT_WIDTH = 64
"""What Slurm's BITSTR_LEN allows for a set of tasks, its end mark included; SLURM_BITSTR_LEN changes it."""
_STEP_FORM_FROM = 6  # fewer tasks with a constant step are listed one by one
_SPELL_OUT = 10_000  # tasks
_MOST_LIMIT = (1 << 31) - 1


class _Items(Transformer[Token, list[tuple[Run | None, str]]]):
    def start(self, items: list[tuple[Run | None, str]]) -> list[tuple[Run | None, str]]:
        return items

    def item(self, parts: list[Run | str]) -> tuple[Run | None, str]:
        run = parts[0]
        limit = parts[1] if len(parts) > 1 else ""
        return (run if isinstance(run, tuple) else None, limit if isinstance(limit, str) else "")

    def only_limit(self, parts: list[Token]) -> tuple[Run | None, str]:
        return (0, 0, 1), str(parts[0])

    def limit(self, parts: list[Token]) -> str:
        return str(parts[0])

    def one(self, parts: list[Token]) -> Run:
        task = number(parts[0])
        return task, task, 1

    def span(self, parts: list[Token]) -> Run:
        return self._checked(parts, number(parts[0]), number(parts[1]), 1)

    def steps(self, parts: list[Token]) -> Run:
        return self._checked(parts, number(parts[0]), number(parts[1]), number(parts[2]))

    @staticmethod
    def _checked(parts: list[Token], first: int, last: int, step: int) -> Run:
        if last < first:
            raise LangError("array range is backwards", place=parts[1].start_pos or 0, expected=(f"{first} or more",))
        if step < 1:
            raise LangError("array step is zero", place=parts[2].start_pos or 0, expected=("1 or more",))
        return first, last, step


_LANGUAGE = Language("arrays", _Items(), "array specification")


@functools.lru_cache(maxsize=1024)
def parse(text: str, max_size: int) -> ArraySpec:
    """Tasks and limit; no runs at all when nothing but commas is given (Slurm then makes no array).

    Every task id must be below `max_size` (MaxArraySize).
    """
    items = _LANGUAGE.parse(text)
    limit = next((_limit(suffix) for _, suffix in items if suffix), 0)
    runs = [run for run, _ in items if run is not None]
    for _, last, step in runs:
        if last >= max_size or step >= max(max_size, 2):
            raise LangError("array index is too large", text=text, expected=(f"less than {max_size}",))
    plain = "".join(char for char in text if char not in "[]")
    return ArraySpec(runs=_join(runs), limit=limit, text=plain)


def _limit(suffix: str) -> int:
    found = re.match(r"%[ \t]*\+?([0-9]+)", suffix, re.ASCII)
    return number(found[1], _MOST_LIMIT) if found else 0


def _join(runs: list[Run]) -> Runs:
    """Disjoint, ordered runs with constant steps found again (`1,4,7` is one run), without spelling out large sets."""
    tidy = sorted({_trimmed(run) for run in runs})
    is_disjoint = all(before[1] < after[0] for before, after in zip(tidy, tidy[1:], strict=False))
    if len(tidy) == 1 or (is_disjoint and count(tuple(tidy)) > _SPELL_OUT):
        return _fuse(tidy)
    if all(step == 1 for _, _, step in tidy) and count(tuple(tidy)) > _SPELL_OUT:
        merged: list[Run] = []
        for low, high, _ in tidy:
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high), 1)
            else:
                merged.append((low, high, 1))
        return tuple(merged)
    tasks: set[int] = set()
    for low, high, step in tidy:
        tasks.update(range(low, high + 1, step))
    return to_runs(sorted(tasks))


def _trimmed(run: Run) -> Run:
    low, high, step = run
    return low, low + (high - low) // step * step, step if high - low >= step else 1


def _fuse(runs: Iterable[Run]) -> Runs:
    """Join neighbours that continue each other: 1-3,4 is 1-4."""
    fused: list[Run] = []
    for first, last, step in runs:
        if fused and fused[-1][2] == 1 and step == 1 and fused[-1][1] + 1 == first:
            fused[-1] = (fused[-1][0], last, 1)
        else:
            fused.append((first, last, step))
    return tuple(fused)


def expand_runs(runs: Runs) -> Iterator[int]:
    """Every task id, ascending."""
    for first, last, step in runs:
        yield from range(first, last + 1, step)


def count(runs: Runs) -> int:
    """Number of tasks."""
    return sum((last - first) // step + 1 for first, last, step in runs)


def first(runs: Runs) -> int | None:
    """The lowest task id; None of an empty set."""
    return runs[0][0] if runs else None


def contains(runs: Runs, task: int) -> bool:
    """Whether the task is in the set."""
    return any(low <= task <= high and (task - low) % step == 0 for low, high, step in runs)


def remove(runs: Runs, task: int) -> Runs:
    """The set without one task (itself when the task is not in it)."""
    kept: list[Run] = []
    for low, high, step in runs:
        if not (low <= task <= high and (task - low) % step == 0):
            kept.append((low, high, step))
            continue
        if task > low:
            kept.append((low, task - step, step if task - step > low else 1))
        if task < high:
            kept.append((task + step, high, step if high > task + step else 1))
    return tuple(kept)


def to_runs(tasks: Iterable[int]) -> Runs:
    """Runs of ascending task ids: constant steps of at least three tasks become one run."""
    runs: list[Run] = []
    for task in tasks:
        if runs:
            low, high, step = runs[-1]
            if low == high or task - high == step:
                runs[-1] = (low, task, task - low if low == high else step)
                continue
            if high - low == step and step > 1:  # two tasks are no series: let the second begin one
                runs[-1] = (low, low, 1)
                runs.append((high, task, task - high))
                continue
        runs.append((task, task, 1))
    return tuple(
        part
        for low, high, step in runs
        for part in ([(low, low, 1), (high, high, 1)] if high - low == step > 1 else [(low, high, step)])
    )


def render(runs: Runs, limit: int = 0, width: int = TEXT_WIDTH) -> str:
    """As scontrol and squeue show tasks: `1-3,7`, `0-98:7` for six or more with one step, `...` where it is cut.

    `limit` adds `%N`. `width` 0 never cuts.
    """
    suffix = f"%{limit}" if limit else ""
    if len(runs) == 1 and runs[0][2] > 1 and count(runs) >= _STEP_FORM_FROM:
        low, high, step = runs[0]
        return f"{low}-{high}:{step}{suffix}"
    parts: list[str] = []
    length = 0
    start = end = -1
    for low, high in _plain_runs(runs):
        if start >= 0 and low == end + 1:
            end = high
            continue
        if start >= 0:
            parts.append(_span(start, end))
            length += len(parts[-1]) + 1
            if width and length > width:
                break
        start, end = low, high
    else:
        if start >= 0:
            parts.append(_span(start, end))
    text = ",".join(parts)
    if width and len(text) > width - 4:
        text = text[: width - 4] + "..."
    return text + suffix


def _plain_runs(runs: Runs) -> Iterator[tuple[int, int]]:
    for low, high, step in runs:
        if step == 1:
            yield low, high
        else:
            yield from ((task, task) for task in range(low, high + 1, step))


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"
