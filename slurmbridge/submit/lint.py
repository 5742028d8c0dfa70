"""What becomes of each directive of a script: honoured, recorded (and why that is enough), or refused?

    FILE:LINE:COLUMN: --option=value: honoured
    FILE:LINE:COLUMN: --hint=nomultithread: recorded: CPUs are counted, not pinned, here: ...
    FILE:LINE:COLUMN: --mem=abc: refused: Invalid --mem specification

Reads scripts as sbatch does, without a cluster: whether a partition or a feature exists is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from slurmbridge.lang.directives import Directive, Script, Token, read_script
from slurmbridge.submit import foreign
from slurmbridge.submit.getopt import Given, scan
from slurmbridge.submit.option import End, Option
from slurmbridge.submit.options import BY_LONG, GETOPT
from slurmbridge.submit.value import Bad, Clock
from slurmbridge.submit.values import read

COMMAND = "sbatch"
_PROBLEMS = {
    "empty": "the script is empty",
    "whitespace": "the script contains only whitespace",
    "no_shebang": "the first line must start with #! followed by the path to an interpreter",
    "nul": "the script contains a NULL character",
    "dos": "the script contains DOS line breaks (\\r\\n) instead of UNIX line breaks (\\n)",
}
_CLOCK = Clock(4_000_000_000.0)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One directive, or one mistake, at its place (from 1; 0:0 for the script as a whole)."""

    line: int
    column: int
    what: str
    end: End
    why: str = ""

    def render(self, name: str) -> str:
        return f"{name}:{self.line}:{self.column}: {self.what}: {self.end.value}" + (
            f": {self.why}" if self.why else ""
        )


def lint_script(name: str, data: bytes) -> tuple[str, int]:
    """The findings as text, and 1 when sbatch would refuse the script."""
    findings = list(lint(data))
    text = "".join(finding.render(name) + "\n" for finding in findings)
    return text, int(any(finding.end is End.REFUSED for finding in findings))


def lint(data: bytes) -> Iterator[Finding]:
    """In the order of the script."""
    script = read_script(data)
    if script.problem is not None:
        yield Finding(line=1, column=1, what="script", end=End.REFUSED, why=_PROBLEMS[script.problem])
    for warning in script.warnings:
        yield Finding(line=1, column=1, what="packjob", end=End.HONOURED, why=warning)
    for directive in script.directives:
        if directive.kind in ("SBATCH", "BRIDGE"):
            yield from _own(directive, script)
        else:
            yield from _translated(directive)


def _own(directive: Directive, script: Script) -> Iterator[Finding]:
    tokens = [token for token in directive.tokens if token.text]
    found = scan(GETOPT[COMMAND], [token.text for token in tokens], permute=False)
    for given in found.options:
        yield _finding(tokens[given.at], _spelled(given), BY_LONG[COMMAND][given.key], given.value)
    if found.problem:
        yield _mistake(directive, found.problem)
    elif found.operands:
        place = tokens[len(tokens) - len(found.operands)]
        why = f"Invalid directive found in batch script: {found.operands[0]}"
        yield Finding(line=place.line, column=place.column, what=place.text, end=End.REFUSED, why=why)
    if directive.error:
        yield _mistake(directive, directive.error)


def _spelled(given: Given) -> str:
    return f"--{given.opt.long}" + (f"={given.value}" if given.value is not None else "")


def _finding(place: Token, what: str, option: Option, text: str | None) -> Finding:
    found = read(COMMAND, option, text, _CLOCK)
    end, why = option.end, option.why
    if isinstance(found, Bad):
        end, why = End.REFUSED, option.why or "; ".join(line for _, line in found.lines)
    elif option.needs:
        why = f"where jobs run as pods; on virtual nodes it is refused: {option.why}"
    elif option.early:
        end, why = End.RECORDED, "it means something on the command line only, as in Slurm"
    return Finding(line=place.line, column=place.column, what=what, end=end, why=why)


def _mistake(directive: Directive, text: str) -> Finding:
    return Finding(line=directive.line, column=directive.column, what=f"#{directive.kind}", end=End.REFUSED, why=text)


def _translated(directive: Directive) -> Iterator[Finding]:
    words = [token.text for token in directive.tokens if token.text]
    translated = foreign.translate(directive.kind, words)
    place = Token(text="", line=directive.line, column=directive.column)
    for long, text in translated.pairs:
        what = f"#{directive.kind} --{long}" + (f"={text}" if text is not None else "")
        yield _finding(place, what, BY_LONG[COMMAND][long], text)
    for words_left in translated.left_out:
        yield Finding(
            line=place.line, column=place.column, what=f"#{directive.kind} {words_left}", end=End.RECORDED,
            why=foreign.LEFT_OUT,
        )  # fmt: skip
    if translated.bad is not None:
        yield _mistake(directive, "; ".join(text for _, text in translated.bad.lines))
    if directive.error:
        yield _mistake(directive, directive.error)
