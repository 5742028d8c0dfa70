"""The last words of a supervisor: the exit record in the container's termination message, and its exit code.

The kubelet keeps the message in the pod's status (terminationMessagePath of "Container" in core/v1); it takes 4096 bytes of
it. A record that is longer leaves out, of what the daemon may have heard before, the least.
"""

from __future__ import annotations

import signal
from typing import Any

from slurmbridge.wire import supervisor as wire

LIMIT = 4096
MESSAGE = 512
LONGEST = 12
"""Bytes of a character in JSON."""
USAGE, LAUNCH, GONE = 64, 1, 70
"""Exit codes: wrong arguments; a run that could not begin; a supervisor that failed."""


def last_words(report: dict[str, Any], limit: int = LIMIT) -> tuple[bytes, bool]:
    """(JSON that fits, whether it is all of it): first texts of steps go, then the later steps, then long messages."""
    whole = wire.encode(report)
    if len(whole) <= limit:
        return whole, True
    steps = [{name: value for name, value in step.items() if value not in ("", [], None)} for step in report["steps"]]
    for step in steps:
        step.pop("submit_line", None)
    shorter = {**report, "message": str(report.get("message", ""))[:MESSAGE]}
    while len(text := wire.encode({**shorter, "steps": steps})) > limit:
        size = len(text) - limit
        if not steps:
            shorter["message"] = shorter["message"][: -1 - size // LONGEST]
        while steps and size > 0:
            size -= len(wire.encode(steps.pop()))
    return text, False


def exit_code(why: str, status: int) -> int:
    """Of the container: that of the script where it ended by itself, as a shell gives it."""
    if why == "exit":
        number = status & 0x7F
        return 128 + number if number else status >> 8 & 0xFF
    return LAUNCH if why == "launch" else 128 + (signal.SIGKILL if why == "oom" else signal.SIGTERM)
