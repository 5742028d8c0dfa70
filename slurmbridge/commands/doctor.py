"""`slurmbridge doctor`: how findings are printed, and what they mean for its exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from slurmbridge.model.examination import Finding, Level

WORDS: Final = {Level.OK: "ok", Level.WARNING: "warning", Level.ERROR: "ERROR"}
WIDTH: Final = max(map(len, WORDS.values()))


def exit_code(findings: Iterable[Finding]) -> int:
    """1 when something does not work; warnings are for people."""
    return 1 if any(finding.level is Level.ERROR for finding in findings) else 0


def text(findings: Sequence[Finding]) -> str:
    """A line each, what to do below it, then how many there are."""
    lines = []
    for finding in findings:
        lines.append(f"{WORDS[finding.level]:<{WIDTH}}  {finding.text}")
        if finding.advice:
            lines.append(f"{'':<{WIDTH}}  -> {finding.advice}")
    counts = [sum(finding.level is level for finding in findings) for level in (Level.ERROR, Level.WARNING)]
    lines.append("{} errors, {} warnings".format(*counts))
    return "\n".join(lines) + "\n"


def document(findings: Sequence[Finding]) -> str:
    """One JSON object."""
    counts = {level.value: sum(finding.level is level for finding in findings) for level in Level}
    return msgspec.json.encode({"findings": findings, "counts": counts}).decode() + "\n"


def ok(check: str, words: str) -> Finding:
    return Finding(level=Level.OK, check=check, text=words)


def warning(check: str, words: str, advice: str = "") -> Finding:
    return Finding(level=Level.WARNING, check=check, text=words, advice=advice)


def error(check: str, words: str, advice: str) -> Finding:
    return Finding(level=Level.ERROR, check=check, text=words, advice=advice)
