"""How the tasks of a step ended, in srun's words, and what srun's exit code follows from it. No I/O.

Tasks of one node that ended alike share a line. Source: srun(1), RETURN VALUE; wording of Slurm 26.05.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable


def ranges(tasks: Iterable[int]) -> str:
    """`0-2,5`"""
    words: list[str] = []
    ordered = sorted(tasks)
    index = 0
    while index < len(ordered):
        end = index
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        words.append(str(ordered[index]) if end == index else f"{ordered[index]}-{ordered[end]}")
        index = end + 1
    return ",".join(words)


def named(tasks: Iterable[int]) -> str:
    """`task 3` or `tasks 0-2,5`."""
    text = ranges(tasks)
    return f"{'task' if text.isdecimal() else 'tasks'} {text}"


def words_of(status: int) -> str:
    """What a wait status means."""
    number = status & 0x7F
    if not number:
        return f"Exited with exit code {status >> 8}"
    words = signal.strsignal(number) or f"Signal {number}"
    return f"{words} (core dumped)" if status & 0x80 else words


def _code(status: int) -> int:
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8


class Ends:
    """`nodes`: task -> (node name, index), known once the step is created."""

    def __init__(self) -> None:
        self.nodes: dict[int, tuple[str, int]] = {}
        self._statuses: dict[int, int] = {}
        self._told: set[int] = set()
        self._cut = ""
        self.is_forced = False  # somebody was killed, or the step was ended for a task's sake

    def done(self, task: int, status: int) -> None:
        self._statuses[task] = status

    @property
    def running(self) -> list[int]:
        return [task for task in self.nodes if task not in self._statuses]

    def cut(self, step: str) -> None:
        """Nothing more will be heard of it."""
        if self.running:
            self._cut = f"srun: error: StepId={step}: the connection to it was cut, which ends what still ran of it"

    def new_lines(self) -> list[str]:
        """About tasks that ended badly since the last call, and about an end of all that nobody told of."""
        groups: dict[tuple[str, int], list[int]] = {}
        for task, status in self._statuses.items():
            if status and task not in self._told:
                self._told.add(task)
                groups.setdefault((self.nodes[task][0], status), []).append(task)
        lines = [f"srun: error: {node}: {named(tasks)}: {words_of(status)}" for (node, status), tasks in groups.items()]
        cut, self._cut = self._cut, ""
        return [*lines, cut] if cut else lines

    def standing(self, step: str) -> list[str]:
        """How things stand, when the others took too long after the first."""
        good = [task for task, status in self._statuses.items() if status == 0]
        bad = [task for task, status in self._statuses.items() if status]
        kinds = ((self.running, "running"), (good, "exited"), (bad, "exited abnormally"))
        return [f"srun: StepId={step} {named(tasks)}: {word}" for tasks, word in kinds if tasks]

    def status(self) -> int:
        """The wait status that stands for the step: that of the highest exit code."""
        if self.running or not self._statuses:
            return 1 << 8
        return max(self._statuses.values(), key=_code) & 0xFF7F

    def exit_code(self) -> int:
        """The highest of all tasks; 128 and the number for a signal; 1 when some never ended."""
        codes = [_code(status) for status in self._statuses.values()]
        return max([*codes, 1 if self.running else 0], default=1)
