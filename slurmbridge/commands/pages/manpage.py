"""A command as a manual page, in the man(7) macros. Pure: `describe(...)` in, roff out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.pages.described import Choice, Described
from slurmbridge.submit.getopt import Arg

_SEE_ALSO = ("sbatch", "srun", "salloc", "squeue", "sinfo", "scancel", "scontrol", "sacct", "sacctmgr", "slurmbridge")
_EXIT = (
    "0 when everything asked for was done or shown; any other number when something was refused, is unknown or could\n"
    "not be reached. The message on standard error says what."
)


def manpage(command: Described, *, package: str) -> str:
    """`package`: what the foot of the page names, with its version."""
    lines = [
        '.\\" Written by docs/generate.py from the tables of the product: edit those.',
        f'.TH {command.name.upper()} 1 "" "{package}" "Slurm {SLURM_VERSION} commands"',
        ".SH NAME",
        f"{text(command.name)} \\- {text(command.purpose)}",
        ".SH SYNOPSIS",
    ]
    for number, synopsis in enumerate(command.synopsis):
        lines += [".br"] if number else []
        lines += [f".B {text(command.name)}", text(synopsis)]
    lines += [".SH DESCRIPTION", *_description(command)]
    if command.choices:
        lines += [".SH OPTIONS"]
        for choice in command.choices:
            lines += _option(choice)
    lines += _verbs(command)
    for title, rows in command.columns:
        lines += [f".SH COLUMNS {text(title).upper()}", *_columns(rows)]
    lines += _environment(command)
    lines += [".SH EXIT STATUS", *text(_EXIT).split("\n"), ".SH SEE ALSO"]
    others = [name for name in _SEE_ALSO if name != command.name]
    lines += [f".BR {text(name)} (1)" + ("," if name != others[-1] else "") for name in others]
    return "\n".join(lines) + "\n"


def text(words: str) -> str:
    """Plain text as roff: nothing in it is a request or an escape."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in escaped.split("\n"))


def _description(command: Described) -> list[str]:
    if command.missing:
        return [f"Not available in this release of slurmbridge: {text(command.missing)}."]
    lines = [text(command.purpose[0].upper() + command.purpose[1:]) + "."]
    if any(choice.why for choice in command.choices):
        lines += [
            "Options marked",
            ".I recorded",
            "are checked as Slurm checks them, stored and shown, without effect for the reason given; those marked",
            ".I refused",
            "end in an error. No option is ignored silently.",
        ]
    return lines


def _option(choice: Choice) -> list[str]:
    value = {Arg.NONE: "", Arg.REQUIRED: "={}", Arg.OPTIONAL: "[={}]"}[choice.arg].format(choice.meta or "value")
    names = [f"\\fB\\-{choice.short}\\fR"] if choice.short else []
    if choice.long:
        names.append(f"\\fB\\-\\-{text(choice.long)}\\fR" + (f"\\fI{text(value)}\\fR" if value else ""))
    lines = [".TP", ", ".join(names), text(_sentence(choice.help))]
    if choice.why:
        lines += [f".I {'Refused' if choice.refused else 'Recorded'}:", text(_sentence(choice.why))]
    if choice.values.words and len(choice.values.words) <= 40:
        lines += [f"Values: {text(', '.join(choice.values.words))}."]
    return lines


def _sentence(words: str) -> str:
    return words if words.endswith(".") else words + "."


def _columns(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    if not any(letter or heading for _, letter, heading in rows):
        return [text(", ".join(name for name, _, _ in rows)) + "."]
    lines = [".TS", "l l l.", "\\fBname\tletter\theading\\fR"]
    for name, letter, heading in rows:
        cells = (text(name), text(f"%{letter}") if letter else "", text(heading))
        lines.append("\t".join(cell or "\\&" for cell in cells))
    return [*lines, ".TE"]


def _verbs(command: Described) -> list[str]:
    """What may stand behind the command, where that is a choice of words."""
    branches = {
        place: words for place, words in command.words.branches.items() if words and not words[0].startswith("@")
    }
    if "" not in branches:
        return []
    lines = [".SH COMMANDS", text(", ".join(branches[""])) + "."]
    for place, words in branches.items():
        shown = [word for word in words if not word.startswith("@")]
        if place and shown:
            lines += [
                ".TP",
                f"\\fB{text(place.rstrip('='))}\\fR" + ("" if place[-1] != "=" else text("=NAME")),
                text(", ".join(shown)) + ".",
            ]
    return lines


def _environment(command: Described) -> list[str]:
    pairs: Iterable[tuple[str, str]] = (
        (variable, choice.long) for choice in command.choices for variable in choice.variables
    )
    lines: list[str] = []
    for variable, long in pairs:
        lines += [
            ".TP",
            f"\\fB{text(variable)}\\fR",
            f"The same as \\-\\-{text(long)}; the command line comes before it.",
        ]
    lines += [
        ".TP",
        "\\fBSLURMBRIDGE_ADDR\\fR",
        "Where the controller is: unix:/path/to/socket, or https://HOST:PORT with a token of yours. Default: the socket of",
        "your own state folder, else /run/slurmbridge/socket.",
        ".TP",
        "\\fBSLURMBRIDGE_TOKEN_FILE\\fR",
        "Where that token is, readable by you alone. Default: slurmbridge/token in $XDG_CONFIG_HOME or ~/.config.",
    ]
    return [".SH ENVIRONMENT", *lines]
