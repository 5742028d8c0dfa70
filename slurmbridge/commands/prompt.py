"""The prompt of scontrol and sacctmgr: which command is typed next?

Follows scontrol(1) and sacctmgr(1): one command a line, words quoted as in a shell, `!!` is the line before. What does
not come from a terminal is shown behind the prompt, as it would be on one.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator
from typing import Any

from slurmbridge.commands.effects import Call, Effect, FileData, Print, ReadStdin

LONGEST_LINE = 64 * 1024


class Prompt:
    def __init__(self, name: str, call: Call) -> None:
        self._text, self._shows = f"{name}: ", not call.stdin_is_tty
        self._last = ""

    def next(self) -> Generator[Effect, Any, list[str] | None]:
        """The words of the next command; None at the end of the input."""
        while True:
            yield Print(self._text)
            given: FileData = yield ReadStdin(line=True, limit=LONGEST_LINE)
            if given.errno or not given.data:
                yield Print("\n")
                return None
            line = given.data.decode("utf-8", "surrogateescape").rstrip("\n")
            if self._shows:
                yield Print(line + "\n")
            if line.strip() == "!!":
                line = self._last
            self._last = line
            words = _split(line)
            if words:
                return words


def _split(line: str) -> list[str]:
    """An open quote ends with the line."""
    for ending in ("", '"', "'"):
        try:
            return shlex.split(line + ending)
        except ValueError:
            continue
    return line.split()
