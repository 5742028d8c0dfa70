"""Where the output of a step's tasks goes on srun's side: terminal or files, labelled, whole lines.

Follows srun(1), section "IO Redirection": `none`, `all`, a task number, a pattern. Files whose names differ by task or
node are opened on the nodes (unless labels are wanted); all others here. Standard library only.
"""

from __future__ import annotations

import os

from slurmbridge.cli.srun_kept import Keep
from slurmbridge.lang import filenames

PER_TASK = ("%t", "%n", "%N")


def is_per_task(pattern: str) -> bool:
    """Whether tasks or nodes have files of their own."""
    return any(mark in _without_widths(pattern) for mark in PER_TASK)


def _without_widths(pattern: str) -> str:
    return "".join(
        char for at, char in enumerate(pattern) if not (char.isdecimal() and "%" in pattern[max(0, at - 2) : at])
    )


def pattern_values(job: str, step: str) -> dict[str, str]:
    """What the marks of a file name stand for, as srun's own environment has it."""
    env = os.environ
    task = env.get("SLURM_ARRAY_TASK_ID", "4294967294")
    return {
        "j": job, "J": f"{job}.{step}", "s": step, "u": env.get("USER", ""), "x": env.get("SLURM_JOB_NAME", ""),
        "A": env.get("SLURM_ARRAY_JOB_ID", job), "a": task, "N": "", "n": "0", "t": "0", "b": str(int(task or 0) % 10),
    }  # fmt: skip


class Mode:
    """How one stream is meant: kind "all", "none", "task" (number) or "file" (pattern)."""

    def __init__(self, text: str | None) -> None:
        self.kind, self.number, self.pattern = "all", -1, ""
        if text is None or text == "all" or text == "":
            return
        if text == "none":
            self.kind = "none"
        elif text.isdecimal():
            self.kind, self.number = "task", int(text)
        else:
            self.kind, self.pattern = "file", text

    def on_nodes(self, label: bool) -> bool:
        """Whether the nodes open these files."""
        return self.kind == "file" and is_per_task(self.pattern) and not label


class Sink:
    """One stream (stdout or stderr) of all tasks."""

    def __init__(self, fd: int, mode: Mode, *, label: bool, width: int, whole_lines: bool) -> None:
        self._fd, self._mode, self._label, self._width = fd, mode, label, width
        self._whole_lines = whole_lines or label
        self._partial: dict[int, bytes] = {}
        self._files: dict[str, int] = {}

    def open(
        self, values: dict[str, str], nodes: dict[int, tuple[str, int]], keep: Keep = lambda path: -1, *, append: bool
    ) -> None:
        """Open what is opened here. OSError when that fails."""
        self._values, self._nodes, self._append, self._keep = values, nodes, append, keep
        if self._mode.kind == "file" and not is_per_task(self._mode.pattern):
            self._fd = self._file(filenames.expand(self._mode.pattern, values))

    def _file(self, path: str) -> int:
        if path not in self._files:
            flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if self._append else os.O_TRUNC)
            kept = self._keep(path)
            self._files[path] = kept if kept >= 0 else os.open(path, flags, 0o666)
        return self._files[path]

    def _target(self, task: int) -> int:
        if self._mode.kind == "file" and is_per_task(self._mode.pattern):
            node, index = self._nodes.get(task, ("", 0))
            values = {**self._values, "t": str(task), "N": node, "n": str(index)}
            return self._file(filenames.expand(self._mode.pattern, values))
        return self._fd

    def write(self, task: int, data: bytes) -> None:
        """Bytes of one task."""
        if self._mode.kind == "none" or (self._mode.kind == "task" and task != self._mode.number):
            return
        if not self._whole_lines:
            _write(self._target(task), data)
            return
        data = self._partial.pop(task, b"") + data
        end = data.rfind(b"\n") + 1
        if end < len(data):
            self._partial[task] = data[end:]
        if end:
            self._lines(task, data[:end])

    def end(self, task: int) -> None:
        """This task writes no more."""
        rest = self._partial.pop(task, b"")
        if rest:
            self._lines(task, rest + b"\n" if self._label else rest)

    def end_all(self) -> None:
        for task in sorted(self._partial):
            self.end(task)

    def _lines(self, task: int, data: bytes) -> None:
        if self._label:
            prefix = f"{task:>{self._width}}: ".encode()
            data = b"".join(prefix + line for line in data.splitlines(keepends=True))
        _write(self._target(task), data)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
